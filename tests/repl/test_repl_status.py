from __future__ import annotations

from dataclasses import replace

from hms_bridge.model.compaction import CompactionType
from hms_bridge.repl.dump.backlog import Backlog
from hms_bridge.repl.format.directories import DumpState
from hms_bridge.repl.status import Headroom, ReplStatus, StatusRequest
from tests.support.simulated_clock import DAY_MS


def look(world, *, with_source=True, with_target=True, with_pins=True, **given):
    status = ReplStatus(
        world.resolve,
        world.clock,
        source=world.source if with_source else None,
        target=world.target if with_target else None,
        pins=world.source.manifest if with_pins else None,
    )
    request = StatusRequest(
        root=str(world.repl_root), source_database="src", target_database="dst", **given
    )
    return status.look(request)


def test_before_the_first_dump_there_is_nothing_to_say(world):
    report = look(world)
    assert (report.last_event_id, report.dumps, report.backlog) == (None, (), None)
    assert report.rpo_seconds is None
    assert report.newest_dump is None
    assert report.archive_expires_in_seconds is None


def test_lag_is_what_a_reader_of_the_replica_misses(world):
    world.replicate()
    begun = look(world)
    assert begun.is_first_incremental_pending
    assert begun.newest_dump.state is DumpState.LOADED
    assert begun.last_loaded_ms == begun.newest_dump.loaded_ms is not None
    assert (begun.backlog.commits, begun.rpo_seconds) == (0, 0)
    world.insert("t", (2, "b"))
    world.clock.advance_ms(90_000)
    report = look(world)
    assert report.last_event_id == begun.last_event_id
    assert report.backlog.commits == 1
    assert 90 <= report.rpo_seconds < 3600
    assert 29 * 86_400 < report.events_expire_in_seconds < 30 * 86_400
    assert report.headroom == Headroom(limit="event log", seconds=report.events_expire_in_seconds)
    world.replicate()
    after = look(world)
    assert after.last_event_id > begun.last_event_id
    assert (after.backlog, after.rpo_seconds) == (Backlog(), 0)
    assert not after.is_first_incremental_pending


def test_bytes_are_those_of_the_files_wherever_they_are(world):
    world.replicate()
    assert look(world).bytes_to_copy is None
    assert look(world, are_bytes_counted=True).bytes_to_copy == 0
    world.insert("t", (2, "b"))
    files = [path for path in world.path().rglob("bucket_*") if "0000002" in path.parent.name]
    written = sum(path.stat().st_size for path in files)
    assert look(world, are_bytes_counted=True).bytes_to_copy == written > 0
    world.compact("t", CompactionType.MAJOR)
    world.clean()
    assert not any(path.exists() for path in files)
    assert look(world, are_bytes_counted=True).bytes_to_copy == written


def test_events_that_are_gone_are_trouble_and_no_lag(world):
    world.replicate()
    world.insert("t", (2, "b"))
    world.insert("t", (3, "c"))
    world.clock.advance_ms(40 * DAY_MS)
    world.metastore.run_housekeeping()
    world.insert("t", (4, "d"))
    report = look(world)
    assert (report.backlog, report.rpo_seconds) == (None, None)
    assert "are gone from the notification log" in report.troubles[0]


def test_what_a_waiting_dump_holds_needs_no_log(world):
    world.replicate()
    world.insert("t", (2, "b"))
    world.dump()
    world.clock.advance_ms(40 * DAY_MS)
    world.metastore.run_housekeeping()
    report = look(world)
    assert (report.backlog, report.troubles) == (None, ())
    world.load()
    assert look(world).backlog == Backlog()


def test_a_source_from_before_the_replica_is_trouble(world):
    """Its log begins anew below the replica's position, and nothing would seem to be behind."""
    world.replicate()
    name = world.target.get_database("dst")
    ahead = name.parameters | {"repl.last.id": "999999"}
    world.target.alter_database("dst", replace(name, parameters=ahead))
    report = look(world)
    assert report.backlog is None
    assert "restored from a backup" in report.troubles[0]


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
    report = look(world)
    assert report.missing_files == 1
    assert "has lost 1 file" in report.troubles[0]


def test_one_side_alone_is_enough(world):
    world.replicate()
    report = look(world, with_source=False)
    assert report.last_event_id is not None
    assert (report.backlog, report.rpo_seconds, report.source_event_id) == (None, None, None)
    report = look(world, with_target=False)
    assert report.last_event_id is None
    assert report.backlog is not None
