"""`repl compare`: what a person and a program are told, and with which exit code."""

from __future__ import annotations

from pathlib import Path

from tests.support.busy_metastore import BusyMetastore
from tests.support.policy_program import Replication
from tests.support.program import Answer

REPLICA = "sqlite:///dr/metastore.db"


def compare(busy: BusyMetastore, *words: str, database: str = "sales") -> Answer:
    return busy.program.run(
        "repl", "compare", database, "--metastore", REPLICA, "--source", busy.program.url, *words
    )


def loaded(busy: BusyMetastore) -> BusyMetastore:
    busy.program.ok("repl", "load", "sales", *busy.replica)
    return busy


def test_an_equal_replica_of_what_a_real_hive_wrote(busy: BusyMetastore) -> None:
    answer = compare(loaded(busy), "--rows", "--format", "jsonl")
    assert (answer.exit_code, {row["verdict"] for row in answer.json_lines}) == (0, {"equal"})
    assert {row["table"] for row in answer.json_lines} == {"orders", "customers", "events"}
    assert "no rows" not in answer.err
    quick = compare(busy, "--table", "orders")
    assert quick.exit_code == 0
    assert quick.table[0][0].startswith("verdict")
    assert "file of the source, no rows (--rows)" in quick.err


def test_a_lost_file_is_a_difference(busy: BusyMetastore) -> None:
    files = sorted((loaded(busy).program.folder / "dr").rglob("orders/*/bucket_*"))
    Path(files[0]).unlink()
    answer = compare(busy, "--rows", "--format", "json")
    found = [row for row in answer.json if row["verdict"] == "different"]
    assert (answer.exit_code, {row["table"] for row in found}) == (2, {"orders"})
    assert {"rows", f"file {files[0].parent.name}/{files[0].name}"} >= {
        row["what"] for row in found
    }
    assert "different" in answer.err


def test_what_the_source_changed_since_is_undecided(busy: BusyMetastore) -> None:
    loaded(busy).program.ok("sql", "-e", "CREATE TABLE sales.more (a INT)")
    answer = compare(busy)
    assert answer.exit_code == 3
    assert "undecided" in answer.out
    assert "changed since the event" in answer.out


def test_a_policy_says_where_both_sides_are(replication: Replication) -> None:
    program = replication.program
    replication.end_writers()
    assert replication.add("sales.'orders|events'", "--into", "dr", "--replace").exit_code == 0
    replication.ok("run", "sales")
    answer = replication.run("compare", "sales", "--rows", "--format", "jsonl")
    assert (answer.exit_code, {row["verdict"] for row in answer.json_lines}) == (0, {"equal"})
    assert {row["table"] for row in answer.json_lines} == {"orders", "events"}
    assert "of other tables" not in answer.err
    assert replication.add("sales", "--into", "dr", "--replace").exit_code == 0
    told = replication.ok("compare", "sales").err
    assert "note: policy sales is of other tables by now" in told
    for words, code, why in (
        (("sale",), 1, "there is no policy sale; there are: sales. With --source, sale is a"),
        (("sales", "--into", "other"), 2, "a policy has its own database and root"),
        (("sales", "--root", "other"), 2, "a policy has its own database and root"),
    ):
        refused = replication.run("compare", *words)
        assert (refused.exit_code, why in refused.err) == (code, True), refused.err
    remote = program.run("repl", "compare", "sales", "--metastore", "thrift://localhost:1")
    assert (remote.exit_code, "policies are kept in a database" in remote.err) == (1, True)


def test_bad_input_is_refused(busy: BusyMetastore) -> None:
    for words, why in (
        ((), "--metastore: there is no database sales"),
        (("--into", "default"), "nothing was ever loaded into it"),
    ):
        answer = compare(busy, *words)
        assert (answer.exit_code, why in answer.err) == (1, True), answer.err
    answer = compare(busy, database="sale")
    assert (answer.exit_code, "--source: there is no database sale; did you" in answer.err) == (
        1,
        True,
    )
    loaded(busy)
    answer = compare(busy, "--table", "absent")
    assert (answer.exit_code, "has a table absent" in answer.err) == (1, True), answer.err
    swapped = busy.program.run(
        "repl", "compare", "sales", "--source", REPLICA, "--metastore", busy.program.url
    )
    assert (swapped.exit_code, "behind --source is one" in swapped.err) == (1, True), swapped.err
    same = busy.program.run("repl", "compare", "sales", "--source", busy.program.url)
    assert (same.exit_code, "one metastore" in same.err) == (2, True)
