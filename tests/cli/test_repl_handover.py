"""`repl promote` and `repl failback`: what people and programs see of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.busy_metastore import BusyMetastore
from tests.support.program import Answer
from tests.support.what_changed import checksums, database_rows

STORE = "sqlite:///dr/metastore.db"


class Handover:
    """The program, with a policy that is kept at the replica and has run once."""

    def __init__(self, busy: BusyMetastore) -> None:
        self.program = busy.program
        self.folder = busy.program.folder
        dr = self.folder / "dr"
        busy.program.ok("txns", "abort", str(busy.open_txn), str(busy.waiting_txn))
        self.ok(
            "policy", "add", "sales", "--source", self.program.url,
            "--source-set", f"hive.metastore.warehouse.dir={self.folder}/warehouse",
            "--target-set", f"hive.metastore.warehouse.dir={dr}/warehouse",
            "--target-set", f"hive.repl.cmrootdir={dr}/cmroot",
        )  # fmt: skip
        self.ok("run", "sales")

    def run(self, *words: str) -> Answer:
        return self.program.run("repl", *words, "--metastore", STORE)

    def ok(self, *words: str) -> Answer:
        answer = self.run(*words)
        assert answer.exit_code == 0, (words, answer.out, answer.err)
        return answer

    def json(self, *words: str) -> Any:
        return self.ok(*words, "--format", "json").json

    def everything(self) -> tuple[object, ...]:
        """Files, and rows of both databases."""
        databases = (self.folder / "metastore.db", self.folder / "dr" / "metastore.db")
        return (checksums(self.folder / "dumps"), *(database_rows(one) for one in databases))


@pytest.fixture
def handover(busy: BusyMetastore) -> Handover:
    return Handover(busy)


def test_sides_change_places_and_change_back(handover: Handover) -> None:
    plan = handover.json("promote", "sales", "--planned", "--wait", "1s")
    assert plan["steps"][0] == "fence the source"
    assert plan["steps"][-1] == "make the replica a source that everybody may change"
    assert (plan["commits behind"], plan["aborted at the source"]) == (0, [])
    assert handover.json("policy", "show", "sales")["paused"] is True
    again = handover.json("promote", "sales")
    assert (again["steps"], again["reason"]) == ([], "is promoted already")
    back = handover.json("failback", "sales")
    assert (back["given up"], back["tables that come whole"]) == ([], [])
    shown = handover.json("policy", "show", "sales")
    assert (shown["source"], shown["target"]) == (None, handover.program.url)
    equal = handover.program.run(
        "repl", "compare", "sales", "--metastore", handover.program.url,
        "--source", f"sqlite:///{handover.folder}/dr/metastore.db",
    )  # fmt: skip
    assert equal.exit_code == 0, equal.out + equal.err


@pytest.mark.parametrize("words", [("promote", "sales", "--planned"), ("promote", "sales")])
def test_a_dry_run_changes_nothing(handover: Handover, words: tuple[str, ...]) -> None:
    before = handover.everything()
    assert "nothing was changed" in handover.ok(*words, "--dry-run").err
    assert handover.everything() == before


def test_each_says_what_has_become_of_the_sides_and_what_is_next(handover: Handover) -> None:
    assert "takes writes now" not in handover.ok("promote", "sales", "--dry-run").err
    promoted = handover.ok("promote", "sales").err
    assert "database sales of the replica takes writes now" in promoted
    assert "'repl failback sales --dry-run'" in promoted
    assert "is turned around" not in handover.ok("failback", "sales", "--dry-run").err
    assert "policy sales is turned around" in handover.ok("failback", "sales").err


def test_nor_does_that_of_a_failback(handover: Handover) -> None:
    handover.ok("promote", "sales")
    before = handover.everything()
    assert "nothing was changed" in handover.ok("failback", "sales", "--dry-run").err
    assert handover.everything() == before


def test_what_makes_no_sense_is_refused(handover: Handover) -> None:
    for words, why in (
        (("promote", "sales", "--planned", "--source-is-lost"), "--planned loses nothing"),
        (("promote", "sales", "--wait", "1m"), "are for --planned"),
        (("promote", "sales", "--cancel", "--dry-run"), "does nothing else"),
    ):
        answer = handover.run(*words)
        assert (answer.exit_code, why in answer.err) == (2, True), answer.err
    for words, why in (
        (("promote", "other"), "repl policy add other"),
        (("failback", "other"), "repl policy add other"),
        (("failback", "sales"), "was not promoted"),
        (("promote", "sales", "--source-is-lost"), "can be reached, so it is fenced"),
    ):
        answer = handover.run(*words)
        assert (answer.exit_code, why in answer.err) == (1, True), answer.err
    assert "was not fenced" in handover.ok("promote", "sales", "--cancel").err


def test_a_source_that_is_not_there(handover: Handover) -> None:
    (handover.folder / "metastore.db").rename(handover.folder / "away.db")
    answer = handover.run("promote", "sales")
    assert answer.exit_code == 1
    assert "cannot be reached" in answer.err
    assert "--source-is-lost" in answer.err
    plan = handover.json("promote", "sales", "--source-is-lost")
    assert plan["commits behind"] is None
