"""``--dry-run`` changes nothing: neither files nor directories nor a row of a database."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.busy_metastore import BusyMetastore, copy_golden
from tests.support.program import Program
from tests.support.what_changed import checksums, database_rows

OLD = ("--set", "hive.repl.cm.retain=1ms")

VERBS: dict[str, Callable[[BusyMetastore], list[str]]] = {
    "compact": lambda _: [
        "compact", "sales.events", "major", "--partition", "a=日本/b=3", "--dry-run",
    ],
    "cm purge": lambda busy: [
        "cm", "purge", *OLD, "--dry-run", "--override", busy.policy_pin,
        "--override", f"dump:sales:file:{busy.dump}",
    ],
    "repl dump": lambda _: ["repl", "dump", "sales", "--dry-run"],
    "repl dump of another": lambda _: ["repl", "dump", "default", "--dry-run"],
    "repl load": lambda busy: ["repl", "load", "sales", *busy.replica, "--dry-run"],
    "repl verify": lambda busy: ["repl", "verify", str(busy.dump), "--all"],
    "table adopt": lambda busy: [
        "table", "adopt", f"{busy.program.folder}/left/orders", "--name", "sales.again",
        "--dry-run",
    ],
    "cleaner run": lambda _: ["cleaner", "run", "--dry-run"],
    "cleaner plan": lambda _: ["cleaner", "plan"],
    "txns abort": lambda busy: ["txns", "abort", str(busy.open_txn), "--dry-run"],
    "initiator run": lambda _: ["initiator", "run", "--dry-run"],
    "initiator plan": lambda _: ["initiator", "plan"],
    "cm ls": lambda _: ["cm", "ls"],
    "cm fsck": lambda _: ["cm", "fsck", "--content"],
    "cm pins": lambda _: ["cm", "pins"],
    "cm release": lambda busy: [
        "cm", "release", busy.policy_pin, "--loaded", "--gone", "--dry-run",
    ],
}  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_a_dry_run_changes_nothing(busy: BusyMetastore, verb: str) -> None:
    folder = busy.program.folder
    copy_golden("g01_insert/01-three-inserts", folder / "left" / "orders")
    assert busy.program.environment["HMS_BRIDGE_CONFIG"]
    files, rows = checksums(folder), database_rows(folder / "metastore.db")
    answer = busy.program.ok(*VERBS[verb](busy))
    assert answer.out or verb == "txns abort"
    assert database_rows(folder / "metastore.db") == rows
    assert checksums(folder) == files


def test_the_same_verbs_do_change_something(busy: BusyMetastore) -> None:
    """Else the comparison above would prove nothing."""
    folder = busy.program.folder
    for words in (
        ["compact", "sales.events", "major", "--partition", "a=日本/b=3"],
        ["txns", "abort", str(busy.open_txn)],
        ["cleaner", "run"],
        ["repl", "dump", "default"],
    ):
        files, rows = checksums(folder), database_rows(folder / "metastore.db")
        busy.program.ok(*words)
        assert database_rows(folder / "metastore.db") != rows
        assert checksums(folder) != files


@pytest.mark.parametrize(
    "words",
    [
        ("txns",), ("locks",), ("compactions",), ("cm", "ls"), ("cm", "purge"), ("cleaner", "run"),
        ("cm", "pins"), ("initiator", "plan"), ("initiator", "run"), ("cm", "release", "policy:a"),
        ("cleaner", "plan"), ("schema", "info"), ("compact", "a.b", "major"),
        ("repl", "dump", "sales"), ("repl", "load", "sales", "--dry-run"), ("txns", "abort", "1"),
    ],
)  # fmt: skip
def test_a_mistyped_database_is_not_made(program: Program, words: tuple[str, ...]) -> None:
    """It would look like an empty metastore."""
    before = checksums(program.folder)
    answer = program.run(*words, "--database", "sqlite:///typo.db")
    assert answer.exit_code == 1
    assert "there is no database typo.db" in answer.err
    assert "hms-bridge schema init" in answer.err
    before["hive-site.xml"] = checksums(program.folder)["hive-site.xml"]
    assert checksums(program.folder) == before
