"""Events that the next dump needs stay in the log, but not for ever."""

from __future__ import annotations

import logging

import pytest

from hms_bridge.config.repl import ReplSettings
from hms_bridge.errors import EventGapError
from hms_bridge.model.event import NotificationRequest
from hms_bridge.model.ids import EventId
from hms_bridge.repl.status.repl_status import ReplStatus
from hms_bridge.repl.status.report import StatusRequest
from tests.support.repl_world import ReplWorld

DAY_MS = 86_400_000


@pytest.fixture
def world(empty_world: ReplWorld) -> ReplWorld:
    empty_world.create_table("t")
    empty_world.insert("t", (1, "a"))
    return empty_world


def events(world: ReplWorld) -> int:
    return len(world.source.get_next_notification(NotificationRequest(last_event_id=EventId(0))))


def days_later(world: ReplWorld, days: int) -> int:
    """How many events there are after a housekeeping that much later."""
    world.clock.advance_ms(days * DAY_MS)
    world.source.run_housekeeping()
    return events(world)


def test_events_of_a_database_that_nobody_replicates_go(world: ReplWorld) -> None:
    assert events(world) > 3
    assert days_later(world, 11) == 0


def test_what_the_next_dump_needs_stays_until_it_was_dumped(world: ReplWorld) -> None:
    world.replicate()
    world.insert("t", (2, "b"))
    there = events(world)
    assert days_later(world, 20) == there
    world.replicate()
    world.assert_same()
    assert days_later(world, 12) < there


def test_a_policy_that_is_forgotten_is_given_up_loudly(
    world: ReplWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.replicate()
    world.insert("t", (2, "b"))
    assert days_later(world, 28) > 0
    assert not caplog.records
    with caplog.at_level(logging.WARNING):
        assert days_later(world, 5) == 0
    assert f"{world.policy_pin} is given up" in caplog.text
    with pytest.raises(EventGapError, match="are gone from the notification log"):
        world.dump()


def test_a_policy_is_not_given_up_before_what_it_needs_goes(
    world: ReplWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """Half a day before the end of the budget older events go, and nothing that is needed."""
    world.clock.advance_ms(DAY_MS * 3 // 4)
    world.replicate()
    world.insert("t", (2, "b"))
    needed = events(world)
    world.clock.advance_ms(DAY_MS // 2)
    with caplog.at_level(logging.WARNING):
        assert days_later(world, 29) < needed
    assert f"{world.policy_pin} will be given up within a day" in caplog.text
    assert "is given up" not in caplog.text
    world.replicate()
    world.assert_same()


def test_a_policy_that_was_released_keeps_nothing(world: ReplWorld) -> None:
    world.replicate()
    world.source.manifest.remove_pin(world.policy_pin)
    assert days_later(world, 11) == 0


def test_headroom_counts_down_to_the_budget(world: ReplWorld) -> None:
    world.replicate()
    world.insert("t", (2, "b"))
    looker = ReplStatus(world.resolve, world.clock, source=world.source, target=world.target)
    pinned = ReplStatus(
        world.resolve,
        world.clock,
        source=world.source,
        target=world.target,
        manifest=world.source.manifest,
    )
    request = StatusRequest(root=str(world.repl_root), source_database="src", target_database="dst")
    for look, days in ((looker, 10), (pinned, 30)):
        headroom = look.look(request).headroom
        assert headroom is not None
        assert (days - 1) * 86_400 < headroom.seconds <= days * 86_400


def test_the_budget_is_a_setting() -> None:
    assert ReplSettings().event_budget_ms == 30 * DAY_MS
