"""`repl drill`: what a person and a program are told, and with which exit code."""

from __future__ import annotations

from tests.support.busy_metastore import BusyMetastore
from tests.support.policy_program import Replication
from tests.support.program import Answer
from tests.support.what_changed import checksums, database_rows

RECORD = [
    "verdict", "kind", "reason", "rpo_seconds", "rto_seconds", "dump_seconds", "compare_seconds",
    "event_id", "source_event_id", "dumps", "events", "files", "bytes", "tables", "partitions",
    "rows", "differences", "undecided", "kept_database",
]  # fmt: skip


def drill(busy: BusyMetastore, *words: str) -> Answer:
    return busy.program.run(
        "repl", "drill", "sales", *busy.replica, "--source", busy.program.url, *words
    )


def test_a_drill_of_what_a_real_hive_wrote(busy: BusyMetastore) -> None:
    busy.program.ok("repl", "load", "sales", *busy.replica)
    answer = drill(busy, "--rows", "--format", "json")
    assert (answer.exit_code, list(answer.json)) == (0, RECORD), answer.err
    found = answer.json
    assert (found["verdict"], found["kind"], found["dumps"]) == ("equal", "chain", 1)
    assert (found["tables"], found["differences"], found["undecided"]) == (3, 0, 0)
    assert (found["rpo_seconds"], found["dump_seconds"]) == (0, None)
    assert found["rto_seconds"] > 0
    assert found["rows"] > 0
    assert found["bytes"] > 0
    left = busy.program.ok(
        "repl", "drill", "sales", *busy.replica, "--source", busy.program.url, "--dry-run",
        "--format", "json",
    ).json  # fmt: skip
    assert left["removed_first"] == []


def test_a_difference_is_told_and_can_be_looked_at(busy: BusyMetastore) -> None:
    unknown = busy.program.warehouse / "sales.db" / "orders" / "delta_0000009_0000009_0000"
    unknown.mkdir()
    answer = drill(busy, "--keep", "--format", "json")
    assert (answer.exit_code, answer.json["verdict"], answer.json["differences"]) == (
        2, "different", 1,
    )  # fmt: skip
    assert "different: orders: rows: source cannot be read" in answer.err
    assert answer.json["kept_database"] == "drill_of_sales"
    unknown.rmdir()
    kept = busy.program.ok(
        "repl", "compare", "sales", "--into", "drill_of_sales", *busy.replica,
        "--source", busy.program.url, "--format", "json",
    )  # fmt: skip
    assert "different" not in {row["verdict"] for row in kept.json}
    plan = drill(busy, "--dry-run", "--format", "json").json
    assert plan["removed_first"][0] == "drill_of_sales"


def test_a_dry_run_changes_nothing(busy: BusyMetastore) -> None:
    folder = busy.program.folder
    before = checksums(folder), database_rows(folder / "dr/metastore.db")
    plan = drill(busy, "--dry-run", "--format", "json").json
    assert (checksums(folder), database_rows(folder / "dr/metastore.db")) == before
    assert (plan["kind"], plan["dumps"]) == ("chain", [f"file:{busy.dump}"])
    assert plan["scratch_database"] == "drill_of_sales"


def test_a_policy_says_where_both_sides_are(replication: Replication) -> None:
    """Also which archive is the source's, and where the replica's files go."""
    program = replication.program
    dr = program.folder / "dr"
    replication.end_writers()
    assert replication.add("sales.'orders|events'", "--into", "dr", "--replace").exit_code == 0
    replication.ok("run", "sales")
    answer = replication.ok("drill", "sales", "--rows", "--keep", "--format", "json")
    found = answer.json
    assert (found["verdict"], found["tables"], found["kept_database"]) == (
        "equal", 2, "drill_of_sales",
    )  # fmt: skip
    assert "of other tables" not in answer.err
    assert (dr / "warehouse" / "drill_of_sales.db" / "orders").is_dir()
    assert replication.add("sales", "--into", "dr", "--replace").exit_code == 0
    plan = replication.ok("drill", "sales", "--dry-run", "--format", "json")
    assert "note: policy sales is of other tables by now" in plan.err
    refused = replication.run("drill", "sales", "--root", "other")
    assert (refused.exit_code, "a policy has its own database" in refused.err) == (2, True)


def test_bad_input_is_refused(busy: BusyMetastore) -> None:
    taken = drill(busy, "--scratch", "default")
    assert (taken.exit_code, "not made by a drill" in taken.err) == (1, True), taken.err
    elsewhere = drill(busy, "--root", str(busy.program.warehouse))
    assert (elsewhere.exit_code, "no replication to drill" in elsewhere.err) == (1, True)
    nameless = drill(busy, "--scratch", "a/b")
    assert (nameless.exit_code, "is no name of a database" in nameless.err) == (1, True)
