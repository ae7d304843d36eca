"""Whatever is killed when, and however commits fall between the steps of a teller: every hook hears
of every commit, in the order of commits, by a key of its own, and never of what was rolled back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, event

from hms_bridge.backend.engine import Database
from hms_bridge.hooks.port import HookPositions
from hms_bridge.model.hook import HookEvent, HookPosition
from hms_bridge.model.ids import EventId
from hms_bridge.notification import hook_points
from hms_bridge.notification.hook_positions import HOLD_MS
from hms_bridge.service import hooks
from hms_bridge.service.hooks import POLL_SECONDS, HookTeller
from tests.support.databases import fresh_database
from tests.support.faults import CrashError, FaultPlan
from tests.support.hooked import DyingPositions, Hearer, HookedLog, number_of
from tests.support.passing import Counting

HOOK = "hook"
LOGGED = st.text("ep", min_size=1, max_size=3)
WRITES = st.tuples(st.just("write"), LOGGED, st.booleans())
"""What a transaction logs, and whether it is killed before its commit."""
PASSES = st.tuples(
    st.just("tell"), st.integers(0, 1), st.none() | st.integers(1, 12), st.integers(0, 1)
)
"""Which of two processes, at which step it is killed, how often the hook fails."""
PAUSES = st.tuples(st.just("wait"), st.sampled_from([1, HOLD_MS + 1]))


class Processes:
    """Two processes that tell one hook; one that was killed is started again under another id."""

    def __init__(self, log: HookedLog, hearer: Hearer) -> None:
        self._log = log
        self._hearer = hearer
        self._count = 0
        self._tellers: dict[int, tuple[HookTeller, FaultPlan]] = {}

    def tell(self, process: int, crash_at: int | None) -> None:
        teller, faults = self._tellers.get(process) or self._start(process)
        faults.count, faults.crash_at = 0, crash_at
        self._hearer.faults = faults
        with suppress(CrashError):
            teller.run_once()
        if faults.is_dead:
            del self._tellers[process]

    def _start(self, process: int) -> tuple[HookTeller, FaultPlan]:
        self._count += 1
        faults = FaultPlan()
        positions = DyingPositions(self._log.positions, faults)
        teller = HookTeller(HOOK, self._hearer, positions, f"process-{self._count}", kept_by="")
        self._tellers[process] = (teller, faults)
        return self._tellers[process]


def told_to_the_end(log: HookedLog, hearer: Hearer) -> None:
    """By a process that nobody disturbs."""
    log.clock.advance_ms(HOLD_MS + 1)
    hearer.failures = 0
    Processes(log, hearer).tell(9, None)


def assert_heard_as_committed(log: HookedLog, hearer: Hearer) -> None:
    keys = {told.key: number_of(told) for told in hearer.heard}
    assert list(keys.values()) == log.committed, "all, in order, nothing else, keys as they were"
    assert all(keys[told.key] == number_of(told) for told in hearer.heard)


@given(steps=st.lists(WRITES | PASSES | PAUSES, max_size=12))
@settings(max_examples=40, deadline=None)
def test_every_commit_is_heard_in_order_whatever_is_killed(steps: list[tuple[Any, ...]]) -> None:
    with fresh_database() as database:
        log, hearer = HookedLog(database), Hearer()
        log.positions.register(HOOK)
        processes = Processes(log, hearer)
        for kind, *given_values in steps:
            if kind == "write":
                log.write(given_values[0], is_killed=given_values[1])
            elif kind == "wait":
                log.clock.advance_ms(given_values[0])
            else:
                hearer.failures = given_values[2]
                processes.tell(given_values[0], given_values[1])
        told_to_the_end(log, hearer)
        assert_heard_as_committed(log, hearer)


def test_a_teller_that_dies_at_any_step_loses_nothing() -> None:
    crash_at = 0
    while True:
        crash_at += 1
        with fresh_database() as database:
            log, hearer = HookedLog(database), Hearer()
            log.positions.register(HOOK)
            for kinds in ("e", "pp", "ep", "e", "p"):
                log.write(kinds)
            processes = Processes(log, hearer)
            processes.tell(0, crash_at)
            is_over = not hearer.faults.is_dead
            told_to_the_end(log, hearer)
            assert_heard_as_committed(log, hearer)
        if is_over:
            break
    assert crash_at > 12, "take, following and advance have two steps each, events one"


class Slow(Hearer):
    """It takes so long for an event; meanwhile another process looks."""

    def __init__(self, log: HookedLog, seconds: int) -> None:
        super().__init__()
        self._log = log
        self._seconds = seconds
        self.other: HookTeller | None = None

    def on_event(self, event: HookEvent) -> None:
        self._log.clock.advance_ms(self._seconds * 1000)
        if self.other is not None:
            self.other.run_once()
        super().on_event(event)


@pytest.mark.parametrize("seconds", [0, 4])
def test_another_process_takes_no_hook_over_that_is_slow_or_has_nothing_to_hear(
    monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """Else both tell the next event, as who had it goes on from what it has in mind."""
    with fresh_database() as database:
        log = HookedLog(database)
        now = SimpleNamespace(monotonic=lambda: log.clock.now_ms() / 1000)
        monkeypatch.setattr(hooks, "time", now)
        log.positions.register(HOOK)
        slow, idle, positions = Slow(log, seconds), Hearer(), Counting(log.positions)
        first = HookTeller(HOOK, slow, cast(HookPositions, positions), "first", kept_by="")
        slow.other = HookTeller(HOOK, idle, log.positions, "other", kept_by="")
        for _ in range(3 * HOLD_MS // 1000):
            first.run_once()
            slow.other.run_once()
            log.clock.advance_ms(int(POLL_SECONDS * 1000))
        assert positions.calls["take"] < HOLD_MS / 1000, "a write now and then"
        for _ in range(6):
            log.write("e")
        first.run_once()
        slow.other.run_once()
        assert idle.heard == []
        assert [number_of(event) for event in slow.heard] == log.committed


@contextmanager
def dying_at_statement(number: int) -> Iterator[list[str]]:
    """The process of whoever writes dies before this statement."""
    seen: list[str] = []

    def count(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        seen.append(statement)
        if len(seen) == number:
            raise CrashError(statement)

    event.listen(Engine, "before_cursor_execute", count)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", count)


def test_a_writer_that_dies_at_any_statement_is_heard_of_whole_or_never() -> None:
    number, is_over = 0, False
    while not is_over:
        number += 1
        with fresh_database() as database:
            log, hearer = HookedLog(database), Hearer()
            log.positions.register(HOOK)
            log.write("ep")
            with dying_at_statement(number) as seen, suppress(CrashError):
                log.write("epp")
            is_over = len(seen) < number
            log.write("pe")
            told_to_the_end(log, hearer)
            assert_heard_as_committed(log, hearer)
            assert len(hearer.heard) == (7 if is_over else 4)
    assert number > 4, "PostgreSQL numbers and stores an event in one statement"


class EachForItself:
    """A connection on which others commit before each statement, as at READ COMMITTED."""

    def __init__(self, database: Database, log: HookedLog, meanwhile: list[list[str]]) -> None:
        self._database = database
        self._log = log
        self._meanwhile = meanwhile
        self.dialect = SimpleNamespace(name="by Core, wherever it is")

    def execute(self, statement: Any, values: Any = None) -> Any:
        for kinds in self._meanwhile.pop(0) if self._meanwhile else ():
            self._log.write(kinds)
        with self._database.transaction(write=False) as connection:
            return connection.execute(statement, values).freeze()()

    def scalar(self, statement: Any) -> Any:
        return self.execute(statement).scalar()


@given(meanwhile=st.lists(st.lists(LOGGED, max_size=3), max_size=8), limit=st.integers(1, 4))
@example(meanwhile=[[], ["p", "e"]], limit=4)
@example(meanwhile=[[], ["ep"]], limit=4)
@settings(max_examples=40, deadline=None)
def test_commits_between_the_statements_of_a_reader_come_in_their_order(
    meanwhile: list[list[str]], limit: int
) -> None:
    with fresh_database() as database:
        log = HookedLog(database)
        log.write("ep")
        reader = cast(Connection, EachForItself(database, log, list(meanwhile)))
        last, heard = HookPosition(EventId(0), 0), []
        while True:
            newest, events = hook_points.following(reader, last, limit)
            for told in events:
                heard.append(number_of(told))
                last = HookPosition(told.id, told.point_id or last.point_id)
            if not events:
                assert newest == last, "what is not told is there, and does not count as gone"
                break
        assert heard == log.committed[: len(heard)]
        assert len(heard) >= len("ep"), "what was there when it began"


@pytest.mark.parametrize("kinds", ["e", "p", "epp"])
def test_what_was_purged_unheard_is_told_of(kinds: str, caplog: pytest.LogCaptureFixture) -> None:
    with fresh_database() as database:
        log, hearer = HookedLog(database), Hearer()
        log.positions.register(HOOK)
        log.write(kinds)
        before = log.clock.now_ms() // 1000 + 1
        log.transactions.write(lambda unit: hook_points.purge(unit.connection, before, before))
        told_to_the_end(log, hearer)
        assert [number_of(told) for told in hearer.heard] == log.committed[: kinds.count("e")]
        count = kinds.count("p")
        assert (f"was not told of {count} points, from 1 to {count}" in caplog.text) == (count > 0)
        log.write("p")
        told_to_the_end(log, hearer)
        assert hearer.heard[-1].point_id == count + 1
