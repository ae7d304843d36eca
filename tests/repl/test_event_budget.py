"""What pinned events may take together: the policy is given up loudly, and told before."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import delete, func, select, update

from hms_bridge.backend.schema.notification_tables import NOTIFICATION_LOG
from hms_bridge.config.repl import ReplSettings
from hms_bridge.errors import EventGapError
from hms_bridge.model.event import NotificationRequest
from hms_bridge.model.event_block import EventBlock, budget_ends_seconds, kept_since_seconds
from hms_bridge.model.ids import EventId
from hms_bridge.notification import event_sizes
from hms_bridge.notification.event_sizes import EventSizes
from hms_bridge.repl.status.repl_status import ReplStatus
from hms_bridge.repl.status.report import StatusRequest
from tests.support.repl_world import ReplWorld
from tests.support.simulated_clock import DAY_MS


def blocks(*sizes: int) -> list[EventBlock]:
    """Ten events each, a hundred seconds from the one before."""
    return [
        EventBlock(last_event_id=EventId(10 * n), size_bytes=size, oldest_seconds=100 * n)
        for n, size in enumerate(sizes, 1)
    ]


@pytest.mark.parametrize(
    ("budget", "since"), [(None, None), (60, None), (59, 200), (30, 300), (29, 1000), (0, 1000)]
)
def test_the_newest_events_are_kept(budget: int | None, since: int | None) -> None:
    assert kept_since_seconds(blocks(10, 20, 30), budget, 1000) == since


@pytest.mark.parametrize(
    ("budget", "after", "end"),
    [(None, 0, None), (60, 0, None), (59, 0, 307), (9, 0, 107), (59, 10, None), (49, 15, 307)],
)
def test_the_first_one_goes_when_later_ones_need_its_room(
    budget: int | None, after: int, end: int | None
) -> None:
    assert budget_ends_seconds(blocks(10, 20, 30), budget, EventId(after), 7) == end


@pytest.fixture
def world(fast_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReplWorld]:
    monkeypatch.setattr(event_sizes, "BLOCK", 4)
    world = ReplWorld(fast_folder)
    world.create_table("t")
    world.insert("t", (1, "a"))
    yield world
    world.close()


def limited(world: ReplWorld, size_bytes: int | None) -> None:
    """A server with that budget is started."""
    world.start(repl=ReplSettings(event_budget_bytes=size_bytes))


def there(world: ReplWorld) -> int:
    return len(world.source.get_next_notification(NotificationRequest(last_event_id=EventId(0))))


def size_of_log(world: ReplWorld) -> int:
    octets = func.sum(func.length(NOTIFICATION_LOG.c.MESSAGE))
    with world.engine.transaction(write=False) as connection:
        return int(connection.scalar(select(octets)) or 0)


def days_later(world: ReplWorld, days: int) -> int:
    world.clock.advance_ms(days * DAY_MS)
    world.source.run_housekeeping()
    return there(world)


def test_a_policy_that_keeps_too_much_is_given_up_loudly(
    world: ReplWorld, caplog: pytest.LogCaptureFixture
) -> None:
    limited(world, 10)
    world.replicate()
    world.insert("t", (2, "b"))
    assert days_later(world, 9) == there(world)
    with caplog.at_level(logging.WARNING):
        assert days_later(world, 3) == 0
    told = f"{world.policy_pin} is given up: its next dump needs events that are older than what "
    assert f"{told}hms.bridge.repl.events.budget.bytes allows" in caplog.text
    with pytest.raises(EventGapError, match="are gone from the notification log"):
        world.dump()


def test_what_fits_is_kept(world: ReplWorld, caplog: pytest.LogCaptureFixture) -> None:
    world.replicate()
    world.insert("t", (2, "b"))
    limited(world, size_of_log(world))
    before = there(world)
    with caplog.at_level(logging.WARNING):
        assert days_later(world, 12) == before
    assert "given up" not in caplog.text
    world.replicate()
    world.assert_same()


def test_what_another_policy_needs_and_what_is_young_stays(world: ReplWorld) -> None:
    """The oldest go: whoever needs newer ones follows on."""
    world.replicate()
    for number in range(2, 8):
        world.insert("t", (number, "old"))
        world.clock.advance_ms(60_000)
    world.clock.advance_ms(2 * DAY_MS)
    other = str(world.folder / "other")
    dump = world.dump(root=other)
    (world.resolve(f"{dump.directory}/hive/_finished_load")).volume.write_new(
        f"{dump.directory}/hive/_finished_load".removeprefix("file:"), []
    )
    old = size_of_log(world)
    world.insert("t", (8, "needed by the other"))
    needed = size_of_log(world) - old
    world.clock.advance_ms(11 * DAY_MS)
    for number in range(9, 15):
        world.insert("t", (number, "young"))
    limited(world, needed + old // 3)
    before = there(world)
    assert days_later(world, 0) < before
    with pytest.raises(EventGapError):
        world.dump()
    assert world.dump(root=other).from_event_id == dump.last_event_id


def test_headroom_counts_down_to_it(world: ReplWorld) -> None:
    world.replicate()
    world.insert("t", (2, "b"))
    looker = ReplStatus(
        world.resolve,
        world.clock,
        source=world.source,
        target=world.target,
        manifest=world.source.manifest,
        figures=world.source,
    )
    for budget, days in ((None, 30), (1 << 30, 30), (10, 10)):
        request = StatusRequest(
            root=str(world.repl_root),
            source_database="src",
            target_database="dst",
            event_budget_bytes=budget,
        )
        headroom = looker.look(request).headroom
        assert headroom is not None
        assert headroom.limit == "event log"
        assert (days - 1) * 86_400 < headroom.seconds <= days * 86_400


def test_a_whole_block_is_summed_once_and_again_where_a_purge_parted_it(world: ReplWorld) -> None:
    for number in range(2, 8):
        world.insert("t", (number, "a"))
    sizes = EventSizes()
    before = world.do(lambda work: sizes.blocks(work.connection))
    assert sum(block.size_bytes for block in before) == size_of_log(world)
    log = NOTIFICATION_LOG.c
    world.execute(update(NOTIFICATION_LOG).where(log.EVENT_ID == 9).values(MESSAGE="{}"))
    world.insert("t", (8, "a"))
    again = world.do(lambda work: sizes.blocks(work.connection))
    assert again[: len(before) - 1] == before[:-1]
    assert len(again) > len(before)
    world.execute(delete(NOTIFICATION_LOG).where(log.EVENT_ID < 10))
    parted = world.do(lambda work: sizes.blocks(work.connection))
    assert sum(block.size_bytes for block in parted) == size_of_log(world)
    assert parted == world.do(lambda work: EventSizes().blocks(work.connection))
    world.execute(delete(NOTIFICATION_LOG))
    assert world.do(lambda work: sizes.blocks(work.connection)) == ()
