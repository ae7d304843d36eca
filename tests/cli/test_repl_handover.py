"""`repl promote` and `repl failback`: what people and programs see of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.config.settings import Settings
from hms_bridge.connect import connected
from hms_bridge.model.txn import AllocateWriteIdsRequest, OpenTxnsRequest
from hms_bridge.repl.handover import failback, promote, sides
from hms_bridge.repl.target_objects import FENCED
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

    def json(self, *words: str, exit_code: int = 0) -> Any:
        answer = self.run(*words, "--format", "json")
        assert answer.exit_code == exit_code, (words, answer.out, answer.err)
        return answer.json

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
    planned = handover.json("failback", "sales", "--dry-run")
    back = handover.json("failback", "sales")
    assert back == planned
    assert (back["given up"], back["tables that come whole"]) == ([], [])
    shown = handover.json("policy", "show", "sales")
    assert (shown["source"], shown["target"]) == (None, handover.program.url)
    equal = handover.program.run(
        "repl", "compare", "sales", "--metastore", handover.program.url,
        "--source", f"sqlite:///{handover.folder}/dr/metastore.db",
    )  # fmt: skip
    assert equal.exit_code == 0, equal.out + equal.err


def test_who_is_waited_for_is_told(busy: BusyMetastore, tmp_path: Path) -> None:
    """Of a transaction that somebody forgot nothing was said for an hour."""
    wait = ("--wait", "1s", "--root", str(tmp_path))
    answer = busy.program.run("repl", "dump", "sales", *wait)
    assert answer.exit_code == 1
    assert "waiting for open writers of database sales, for 1.0 s at most: " in answer.err
    assert str(busy.open_txn) in answer.err.split("waiting for")[1].splitlines()[0]
    assert answer.err.count("waiting for open writers") == 1
    handover = Handover(busy)
    with connected(busy.program.url, Settings()) as source:
        writer = source.open_txns(OpenTxnsRequest(count=1, user="u", host="h"))[0]
        source.allocate_table_write_ids(
            AllocateWriteIdsRequest(database_name="sales", table_name="orders", txn_ids=(writer,))
        )
    answer = handover.run("promote", "sales", "--planned", "--wait", "1s")
    assert answer.exit_code == 1
    assert answer.err.count("waiting for open writers of database sales, for 1.0 s at most: ") == 1


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
    assert handover.json("lag", "sales", exit_code=3)[0]["state"] == "UNKNOWN"
    plan = handover.json("promote", "sales", "--source-is-lost")
    assert plan["commits behind"] is None
    for words in ((), ("--source", handover.program.url)):
        lag = handover.run("lag", "sales", *words, "--format", "jsonl")
        (told,) = lag.json_lines
        assert (lag.exit_code, told["state"]) == (2, "CRITICAL"), told
        assert "database sales has taken its source's place, so it follows nobody" in told["why"]


Change = Callable[[Handover], object]


def elsewhere(handover: Handover) -> object:
    return handover.ok("policy", "add", "sales", "--replace", "--root", "/elsewhere")


def removed(handover: Handover) -> object:
    return handover.ok("policy", "remove", "sales", "--keep-pins")


@pytest.mark.parametrize("words", [(), ("--planned",), ("--cancel",)])
@pytest.mark.parametrize(
    ("change", "why"),
    [(elsewhere, "was changed by somebody else meanwhile"), (removed, "there is no policy sales")],
)
def test_a_promotion_goes_by_no_policy_that_was_changed_while_it_waited(
    handover: Handover,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    change: Change,
    why: str,
) -> None:
    """A promotion of a dead one waits for its lease; its dumps would be looked for elsewhere."""
    _before_the_lease(monkeypatch, lambda: change(handover))
    before = handover.everything()[0]
    answer = handover.run("promote", "sales", *words)
    assert (answer.exit_code, why in answer.err) == (1, True), answer.err
    assert handover.everything()[0] == before
    assert _fence_of(handover) is None


def test_a_pause_meanwhile_keeps_nobody_from_a_promotion(
    handover: Handover, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be paused now anyhow."""
    _before_the_lease(monkeypatch, lambda: handover.ok("policy", "pause", "sales"))
    assert handover.json("promote", "sales")["steps"]


def test_a_policy_that_is_changed_before_its_replica_takes_over_gives_the_source_back(
    handover: Handover, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way back would begin below one root, and be looked for below another one."""
    real = promote.abort_writers
    with monkeypatch.context() as patched:
        patched.setattr(promote, "abort_writers", lambda side: (elsewhere(handover), real(side)))
        answer = handover.run("promote", "sales")
    assert (answer.exit_code, "was changed by somebody" in answer.err) == (1, True), answer.err
    assert _fence_of(handover) is None
    assert handover.json("policy", "show", "sales")["paused"] is False


def test_a_failback_goes_by_no_policy_that_was_changed_while_it_waited(
    handover: Handover, monkeypatch: pytest.MonkeyPatch
) -> None:
    handover.ok("promote", "sales")
    before = handover.everything()[:2]
    _before_the_lease(monkeypatch, lambda: elsewhere(handover))
    answer = handover.run("failback", "sales")
    assert (answer.exit_code, "was changed by somebody" in answer.err) == (1, True), answer.err
    assert handover.everything()[:2] == before
    assert handover.json("policy", "show", "sales")["root"] == "/elsewhere"


@pytest.mark.parametrize("is_at_the_last_moment", [False, True])
def test_a_failback_takes_back_no_change_of_the_policy_that_it_turns(
    handover: Handover, monkeypatch: pytest.MonkeyPatch, is_at_the_last_moment: bool
) -> None:
    """And goes on with the policy as it is then, when it is typed again."""
    kept = ("--source-set", "hive.repl.cm.retain=20d")
    handover.ok("promote", "sales")

    def change() -> object:
        return handover.ok("policy", "add", "sales", "--replace", *kept)

    same, release = sides.OpenSides.same_policy, failback.pins_of
    with monkeypatch.context() as patched:
        if is_at_the_last_moment:
            calls = iter((None, change))  # the first one is at its begin
            patched.setattr(
                sides.OpenSides,
                "same_policy",
                lambda opened: (same(opened), (next(calls) or str)())[0],
            )
        else:
            patched.setattr(failback, "pins_of", lambda *of: (change(), release(*of))[1])
        answer = handover.run("failback", "sales")
    assert (answer.exit_code, "was changed by somebody" in answer.err) == (1, True), answer.err
    shown = handover.json("policy", "show", "sales")
    assert (shown["target"], shown["source settings"]["hive.repl.cm.retain"]) == (None, "20d")
    handover.ok("failback", "sales")
    turned = handover.json("policy", "show", "sales")
    assert (turned["source"], turned["target settings"]["hive.repl.cm.retain"]) == (None, "20d")


def _before_the_lease(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """What somebody else does once, before the lease of the policy is had."""
    real, todo = sides.held_lease, [meanwhile]

    def held(*of: Any) -> AbstractContextManager[Any]:
        while todo:
            todo.pop()()
        return real(*of)

    monkeypatch.setattr(sides, "held_lease", held)


def _fence_of(handover: Handover) -> str | None:
    with connected(handover.program.url, Settings()) as source:
        return source.get_database("sales").parameters.get(FENCED)
