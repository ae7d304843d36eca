from __future__ import annotations

from hms_bridge.model.compaction import CompactionType
from hms_bridge.repl.format.directories import DumpState
from hms_bridge.repl.status import ReplStatus, StatusRequest
from tests.support.simulated_clock import DAY_MS


def look(world, *, with_source=True, with_target=True, with_pins=True):
    status = ReplStatus(
        world.resolve,
        world.clock,
        source=world.source if with_source else None,
        target=world.target if with_target else None,
        pins=world.source.manifest if with_pins else None,
    )
    request = StatusRequest(root=str(world.repl_root), source_database="src", target_database="dst")
    return status.look(request)


def test_before_the_first_dump_there_is_nothing_to_say(world):
    report = look(world)
    assert (report.last_event_id, report.dumps, report.lag_events) == (None, (), None)
    assert report.newest_dump is None
    assert report.archive_expires_in_seconds is None


def test_lag_is_counted_in_events_and_seconds(world):
    world.replicate()
    begun = look(world)
    assert begun.is_first_incremental_pending
    assert begun.newest_dump.state is DumpState.LOADED
    assert begun.newest_dump.loaded_ms is not None
    world.insert("t", (2, "b"))
    world.clock.advance_ms(90_000)
    report = look(world)
    assert report.last_event_id == begun.last_event_id
    assert report.lag_events > begun.lag_events
    assert 90 <= report.lag_seconds < 3600
    assert 9 * 86_400 < report.events_expire_in_seconds < 10 * 86_400
    world.replicate()
    after = look(world)
    assert after.last_event_id > begun.last_event_id
    assert not after.is_first_incremental_pending


def test_a_dump_that_waits_tells_until_when_it_can_be_loaded(world):
    world.dump()
    world.insert("t", (2, "b"))
    world.compact("t", CompactionType.MAJOR)
    world.clean()
    pinned = look(world)
    assert pinned.newest_dump.state is DumpState.FINISHED
    assert pinned.is_pinned
    assert pinned.archive_expires_in_seconds is None
    assert pinned.missing_files == 0
    unpinned = look(world, with_pins=False)
    assert unpinned.is_pinned is None  # nobody was asked
    assert 0 < unpinned.archive_expires_in_seconds <= 10 * DAY_MS // 1000


def test_lost_files_are_counted(world):
    world.dump()
    world.insert("t", (2, "b"))
    world.compact("t", CompactionType.MAJOR)
    world.clean()
    for path in world.cmroot.iterdir():
        path.unlink()
    assert look(world).missing_files == 1


def test_one_side_alone_is_enough(world):
    world.replicate()
    report = look(world, with_source=False)
    assert report.last_event_id is not None
    assert (report.lag_events, report.lag_seconds, report.source_event_id) == (None, None, None)
    report = look(world, with_target=False)
    assert report.last_event_id is None
    assert report.lag_events is not None
