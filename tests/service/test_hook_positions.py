"""The behaviour suite of HookPositions, and what an admin does with them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import delete

from hms_bridge.backend.schema.notification_tables import NOTIFICATION_LOG
from hms_bridge.errors import InvalidOperationError, NoSuchObjectError
from hms_bridge.model.hook import HookPosition
from hms_bridge.model.ids import EventId
from hms_bridge.notification.hook_positions import HOLD_MS
from tests.support.databases import fresh_database
from tests.support.hooked import HookedLog, number_of


@pytest.fixture
def log() -> Iterator[HookedLog]:
    with fresh_database() as database:
        yield HookedLog(database)


def at(event_id: int, point_id: int = 0) -> HookPosition:
    return HookPosition(EventId(event_id), point_id)


def test_a_new_hook_begins_after_the_newest_and_stays_where_it_was(log: HookedLog) -> None:
    log.write("epe")
    log.positions.register("h")
    assert log.positions.take("h", "me") == at(2, 1)
    log.write("ep")
    log.positions.register("h")
    assert log.positions.take("h", "me") == at(2, 1)


def test_one_process_at_a_time_tells(log: HookedLog) -> None:
    log.positions.register("h")
    assert log.positions.take("h", "me") == at(0)
    assert log.positions.take("h", "you") is None
    assert not log.positions.advance("h", "you", at(7), at(1))
    assert log.positions.advance("h", "me", at(0), at(1, 2))
    log.clock.advance_ms(HOLD_MS + 1)
    assert log.positions.take("h", "you") == at(1, 2), "who is silent has lost it"
    assert not log.positions.advance("h", "me", at(0), at(5))
    log.positions.release("h", "me")
    assert log.positions.take("h", "me") is None, "only who has it gives it back"
    log.positions.release("h", "you")
    assert log.positions.take("h", "me") == at(1, 2)


def test_what_was_heard_by_one_that_was_slow_counts_unless_another_stored_something(
    log: HookedLog,
) -> None:
    log.positions.register("h")
    assert log.positions.take("h", "slow") == at(0)
    log.clock.advance_ms(HOLD_MS + 1)
    assert log.positions.take("h", "other") == at(0)
    assert log.positions.advance("h", "slow", at(0), at(0, 1))
    assert not log.positions.advance("h", "other", at(0), at(1)), "it lost the hook to the slow one"
    assert log.positions.take("h", "other") is None
    log.clock.advance_ms(HOLD_MS + 1)
    assert log.positions.take("h", "other") == at(0, 1)
    assert log.positions.advance("h", "slow", at(0, 1), at(2, 1))
    assert log.positions.take("h", "slow") == at(2, 1)


def test_nobody_takes_a_hook_that_is_not_registered(log: HookedLog) -> None:
    assert log.positions.take("nobody", "me") is None


def test_events_and_points_come_in_the_order_of_commits(log: HookedLog) -> None:
    for kinds in ("p", "e", "pp", "eep", "p"):
        log.write(kinds)
    newest, found = log.positions.following(at(0), 100)
    assert newest == at(3, 5)
    assert [told.key for told in found] == ["0.1", "1", "1.2", "1.3", "2", "3", "3.4", "3.5"]
    assert [number_of(told) for told in found] == log.committed
    assert [told.key for told in log.positions.following(at(1, 2), 3)[1]] == ["1.3", "2", "3"]
    assert log.positions.following(newest, 10) == (newest, ())


def test_a_hook_is_told_again_from_an_event_on(log: HookedLog) -> None:
    log.positions.register("h")
    for kinds in ("p", "e", "p", "ep", "e"):
        log.write(kinds)
    assert log.positions.take("h", "me") == at(0)
    assert log.positions.advance("h", "me", at(0), at(3, 3))
    assert log.positions.rewind("h", EventId(2)) == at(1, 2)
    for since in (at(1, 2), at(3, 3)):
        moved = log.positions.advance("h", "me", since, at(3, 3))
        assert not moved, "his position is not stored over it"
    assert log.positions.take("h", "me") == at(1, 2)


@pytest.mark.parametrize("event_id", [0, 2, 99])
def test_a_hook_is_never_moved_forward(log: HookedLog, event_id: int) -> None:
    """What is between would never be told."""
    log.positions.register("h")
    log.write("eee")
    log.positions.take("h", "me")
    log.positions.advance("h", "me", at(0), at(1))
    with pytest.raises(InvalidOperationError, match=f"not from {event_id}"):
        log.positions.rewind("h", EventId(event_id))
    assert log.positions.take("h", "me") == at(1)


def test_a_hook_passes_over_what_it_hears_next_and_nothing_else(log: HookedLog) -> None:
    log.positions.register("h")
    for kinds in ("e", "p", "e"):
        log.write(kinds)
    assert log.positions.take("h", "me") == at(0)
    for key in ("2", "1.1", "0", "x"):
        with pytest.raises(InvalidOperationError, match=rf"is 1 \(.*\), not {key}"):
            log.positions.skip("h", key)
    assert log.positions.take("h", "other") is None, "who was refused takes it from nobody"
    assert log.positions.skip("h", "1") == at(1)
    moved = log.positions.advance("h", "me", at(0), at(0))
    assert not moved, "his position is not stored over it"
    assert log.positions.skip("h", "1.1") == at(1, 1)
    assert log.positions.skip("h", "2") == at(2, 1)
    with pytest.raises(InvalidOperationError, match=r"has heard all that there is, up to 2\.1"):
        log.positions.skip("h", "3")


def test_what_is_passed_over_may_follow_on_what_is_purged(log: HookedLog) -> None:
    log.positions.register("h")
    log.write("eep")
    first = delete(NOTIFICATION_LOG).where(NOTIFICATION_LOG.c.EVENT_ID == 1)
    log.transactions.write(lambda unit: unit.connection.execute(first))
    assert log.positions.skip("h", "2") == at(2)
    assert [told.key for told in log.positions.following(at(2), 9)[1]] == ["2.1"]


def test_an_unknown_hook_is_told_nothing_again(log: HookedLog) -> None:
    with pytest.raises(NoSuchObjectError, match="no hook 'h' is registered"):
        log.positions.rewind("h", EventId(1))
    with pytest.raises(NoSuchObjectError, match="no hook 'h' is registered"):
        log.positions.skip("h", "1")
    assert not log.positions.forget("h")


def test_how_far_hooks_are_behind(log: HookedLog) -> None:
    log.positions.register("a")
    log.write("ep")
    log.positions.register("b")
    log.clock.advance_ms(5_000)
    log.write("p")
    log.positions.take("b", "me")
    a, b = log.positions.lags()
    assert (a.name, str(a.heard), str(a.newest), a.behind_count) == ("a", "0", "1.2", 3)
    assert (a.oldest_age_ms, a.is_told) == (5_000, False)
    assert (b.behind_count, b.oldest_age_ms, b.is_told) == (1, 0, True)
    assert log.positions.forget("a")
    assert [lag.name for lag in log.positions.lags()] == ["b"]
