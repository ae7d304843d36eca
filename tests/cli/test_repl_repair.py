"""`repl repair`: what a person and a program are told, and with which exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hms_bridge.config.settings import Settings
from hms_bridge.connect import connected_locally
from hms_bridge.model.lock import (
    DataOperation,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
)
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import OpenTxnsRequest
from hms_bridge.repl.lease import LeaseKind, LeaseRequest, LeaseRules, held_lease
from tests.support.busy_metastore import BusyMetastore, opened
from tests.support.program import Answer, Program

STORE = "sqlite:///dr/metastore.db"
BEAT_SECONDS = 0.2
"""Of somebody else at work: who waits is refused as soon as it hears that one live."""


@pytest.fixture
def program(busy: BusyMetastore) -> Program:
    """With a policy `sales`, whose replica has all; nobody writes now."""
    made, dr = busy.program, busy.program.folder / "dr"
    made.ok("txns", "abort", str(busy.open_txn), str(busy.waiting_txn))
    made.ok(
        "repl", "policy", "add", "sales", "--source", made.url, "--metastore", STORE,
        "--target-set", f"hive.metastore.warehouse.dir={dr}/warehouse",
        "--target-set", f"hive.repl.cmrootdir={dr}/cmroot",
    )  # fmt: skip
    made.ok("repl", "run", "sales", "--metastore", STORE)
    return made


def repair(program: Program, *words: str) -> Answer:
    return program.run("repl", "repair", *words, "--metastore", STORE)


def lose_files(program: Program, table: str) -> None:
    for file in (program.folder / "dr" / "warehouse").rglob("bucket_*"):
        if table in file.parts:
            file.unlink()


def cycles(program: Program) -> list[str]:
    answer = program.ok("repl", "history", "sales", "--metastore", STORE, "--format", "jsonl")
    return [row["outcome"] for row in answer.json_lines]


def test_a_policy_is_repaired_and_history_knows(program: Program) -> None:
    lose_files(program, "orders")
    shown = repair(program, "sales", "--rows", "--dry-run", "--format", "json")
    assert (shown.exit_code, shown.json["step"], shown.json["tables"]) == (
        0,
        "tables anew",
        ["orders"],
    )
    assert any("compare: orders: " in text for text in shown.json["because"])
    assert cycles(program) == ["replicated"]
    done = repair(program, "sales", "--rows", "--format", "json")
    assert done.exit_code == 0, done.err
    assert (done.json["outcome"], done.json["tables"]) == ("repaired", ["orders"])
    assert done.json["compared_rows"] > 0
    assert "repair: dump with orders whole, and load it" in done.err
    assert cycles(program) == ["replicated", "replicated"]
    again = repair(program, "sales")
    assert again.exit_code == 0
    assert "nothing was wrong" in again.out


@contextmanager
def another_at_work(program: Program, kind: LeaseKind, name: str) -> Iterator[None]:
    kept_at = f"sqlite:///{program.folder}/dr/metastore.db"
    with connected_locally(kept_at, Settings()) as store:
        wanted = LeaseRequest(
            kind=kind,
            database_name=name,
            user="other",
            host="h",
            rules=LeaseRules(heartbeat_seconds=BEAT_SECONDS),
            on_waiting=lambda _: None,
        )
        with held_lease(store.metastore, store.clock, wanted):
            yield


def test_who_repairs_a_policy_is_alone_with_it(program: Program) -> None:
    """Else a promotion overtakes the repair, or a cycle loads beside it."""
    with another_at_work(program, LeaseKind.RUN, "sales"):
        refused = repair(program, "sales")
    assert refused.exit_code == 1
    assert "another repl run of policy sales is at work: other@h" in refused.err
    assert cycles(program) == ["replicated"]


def test_what_files_cannot_tell_is_said(program: Program) -> None:
    """The source's `orders` was compacted since its files came: lost ones look like taken up."""
    lose_files(program, "orders")
    answer = repair(program, "sales")
    assert answer.exit_code == 0
    assert "of which --rows tells for sure: customers, orders" in answer.err


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_partition_that_nobody_has_is_no_repair(program: Program, more: tuple[str, ...]) -> None:
    """Its table was copied for a typing error."""
    for partition, why in (
        ("events/a=x/b=11", "did you mean events/a=x/b=1?"),
        ("events/c=1", "look at its table and its name"),
        ("orders/b=1", "look at its table and its name"),
        ("nosuch/b=1", "look at its table and its name"),
    ):
        answer = repair(program, "sales", "--partition", partition, *more)
        assert answer.exit_code == 1, partition
        assert f"neither side has a partition {partition}; {why}" in answer.err
    with opened(program) as store:
        store.metastore.drop_partitions("sales", "events", ["a=x/b=1"])
    shown = repair(program, "sales", "--partition", "events/a=x/b=1", "--dry-run")
    assert shown.exit_code == 0, "its replica has it still"


def test_what_is_wanted_comes_by_name_partition_and_pattern(program: Program) -> None:
    answer = repair(
        program, "sales", "--table", "orders", "--pattern", "cust.*", "--partition", "events/b=1"
    )
    assert answer.exit_code == 0, answer.err
    assert "events/b=1: its table comes whole" in answer.err
    shown = repair(program, "sales", "--partition", "events/b=1", "--dry-run")
    assert "tables anew" in shown.out
    assert "asked for: bring events whole" in shown.err


def test_open_writers_are_waited_for_or_aborted(program: Program) -> None:
    table = LockComponent(
        type=LockType.SHARED_WRITE, level=LockLevel.TABLE, scope=Scope("sales", "orders"),
        operation=DataOperation.UPDATE,
    )  # fmt: skip
    with opened(program) as store:
        (txn_id,) = store.metastore.open_txns(OpenTxnsRequest(user="ann", host="here"))
        store.metastore.lock(
            LockRequest(components=(table,), user="ann", host="here", txn_id=txn_id)
        )
    refused = repair(program, "sales", "--table", "orders", "--wait", "1s")
    assert (refused.exit_code, str(txn_id) in refused.err) == (1, True), refused.err
    waiting = "waiting for open writers of database sales, for 1.0 s at most: transactions "
    assert f"{waiting}{txn_id} hold locks on sales.orders (" in refused.err
    assert "aborted then" not in refused.err
    words = ("--wait", "1s", "--abort-writers")
    done = repair(program, "sales", "--table", "orders", *words)
    assert done.exit_code == 0
    assert "Those with locks are aborted then" in done.err


def test_a_bootstrap_is_shown_and_not_made_without_leave(program: Program) -> None:
    warehouse = f"hive.metastore.warehouse.dir={program.folder}/dr/warehouse"
    program.ok("sql", "--metastore", STORE, "--set", warehouse, "-e", "DROP DATABASE sales CASCADE")
    for words in ((), ("--dry-run",)):
        refused = repair(program, "sales", *words)
        assert refused.exit_code == 1
        assert "--allow-bootstrap" in refused.err
    allowed = repair(program, "sales", "--allow-bootstrap", "--format", "json")
    assert (allowed.exit_code, allowed.json["outcome"]) == (0, "repaired"), allowed.err
    assert repair(program, "sales").exit_code == 0


def test_without_a_policy_both_sides_are_named(program: Program) -> None:
    lose_files(program, "orders")
    warehouse = program.folder / "dr" / "warehouse"
    words = ("--source", program.url, "--set", f"hive.metastore.warehouse.dir={warehouse}")
    answer = repair(program, "sales", "--rows", *words, "--format", "json")
    assert (answer.exit_code, answer.json["tables"]) == (0, ["orders"]), answer.err
    assert cycles(program) == ["replicated"]


def test_without_a_policy_a_repair_is_alone_all_the_same(program: Program) -> None:
    """The replica's metastore keeps a policy, and another repair has no other name either."""
    lose_files(program, "orders")
    words = ("sales", "--source", program.url)
    for kind, told in (
        (LeaseKind.RUN, "another repl run of policy sales is at work: other@h"),
        (LeaseKind.REPAIR, "another repl repair of database sales is at work: other@h"),
    ):
        with another_at_work(program, kind, "sales"):
            refused = repair(program, *words)
            shown = repair(program, *words, "--dry-run")
        assert (refused.exit_code, told in refused.err) == (1, True), refused.err
        assert shown.exit_code == 0


def test_what_is_left_is_told(program: Program) -> None:
    program.ok("repl", "open", "sales", "--definitions", "--metastore", STORE)
    program.ok("sql", "--metastore", STORE, "-e", "CREATE TABLE sales.mine (a INT)")
    answer = repair(program, "sales", "--format", "json")
    assert (answer.exit_code, answer.json["outcome"]) == (2, "something is left")
    assert "table mine is on the replica only" in answer.json["left"][0]
    assert "left: compare: table mine" in answer.err


def test_bad_input_is_refused(program: Program, tmp_path: Path) -> None:
    for words, code, why in (
        (("other",), 1, "other"),
        (("sales", "--table", "typo"), 1, "no table typo"),
        (("sales", "--pattern", "x.*"), 1, "called as 'x.*' says"),
        (("sales", "--partition", "events"), 2, "write TABLE/KEY=VALUE"),
        (("sales", "--into", "b"), 2, "a policy has its own database"),
        (("sales", "--source", STORE), 2, "one metastore"),
        (("sale", "--source", program.url), 1, "there is no database sale"),
    ):
        answer = repair(program, *words)
        assert (answer.exit_code, why in answer.err) == (code, True), (words, answer.err)
    absent = f"sqlite:///{tmp_path}/absent.db"
    answer = program.run("repl", "repair", "sales", "--source", program.url, "--metastore", absent)
    assert (answer.exit_code, list(tmp_path.glob("absent*"))) == (1, [])
    answer = program.run("repl", "repair", "sales", "--metastore", "thrift://localhost:1")
    assert (answer.exit_code, "policies are kept in a database" in answer.err) == (1, True)
