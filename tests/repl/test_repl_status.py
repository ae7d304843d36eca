from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from hms_bridge.model.compaction import CompactionType
from hms_bridge.repl.dump.backlog import Backlog
from hms_bridge.repl.format.directories import DumpState
from hms_bridge.repl.load.admission import SourcePlaces
from hms_bridge.repl.status.repl_status import ReplStatus
from hms_bridge.repl.status.report import Headroom, StatusRequest
from tests.support.faults import CrashError, FaultPlan, FaultyMetastore
from tests.support.simulated_clock import DAY_MS


def look(world, *, with_source=True, with_target=True, with_pins=True, **given):
    status = ReplStatus(
        world.resolve,
        world.clock,
        source=world.source if with_source else None,
        target=world.target if with_target else None,
        manifest=world.source.manifest if with_pins else None,
        places=SourcePlaces(metastore=world.source, cm_root=str(world.cmroot)),
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


def killed_load(world, crash_at=None, crash_label=None):
    """What a load that died leaves; its lease, too."""
    faults = FaultPlan()
    faults.crash_at, faults.crash_label = crash_at, crash_label
    load = world.loader(FaultyMetastore(world.target, faults))
    plan = load.plan(world.load_request)
    with pytest.raises(CrashError):
        load.run(plan)


def test_a_bootstrap_that_was_killed_is_not_one_that_never_was(empty_world):
    world = empty_world
    world.create_table("t")
    world.insert("t", (1, "a"))
    world.dump()
    assert look(world).unfinished_load is None
    killed_load(world, crash_label="after create_table")
    report = look(world)
    assert report.last_event_id is None
    assert "a load into dst is at work, or was killed (" in report.unfinished_load
    assert "EXCLUSIVE lock" in report.unfinished_load
    assert "some or all of its tables are not whole" in report.unfinished_load
    assert "'repl load' goes on from there" in report.unfinished_load
    world.load()
    assert look(world).unfinished_load is None


def test_after_a_kill_at_any_point_the_lag_is_what_readers_miss(empty_world):
    world = empty_world
    for name in ("a", "b", "c"):
        world.create_table(name)
    world.replicate()
    for name in ("a", "b", "c"):
        world.insert(name, (1, "x"))
        world.insert(name, (2, "y"))
    dump = world.dump()
    seen = set()
    for crash_at in itertools.count(1):
        try:
            killed_load(world, crash_at)
        except pytest.fail.Exception:  # it came to its end
            break
        report = look(world)
        rows = sum(len(world.replica.rows(name)) for name in ("a", "b", "c"))
        assert report.backlog.commits == 6 - rows
        seen.add(rows)
        if 0 < rows < 6:
            reached = f"come to event {report.last_event_id} of {dump.last_event_id}"
            assert reached in report.unfinished_load
        world.clock.advance_ms(3_600_000)  # the killed one is dead for the next
    assert 0 in seen
    assert len(seen) > 1
    assert look(world).unfinished_load is None


def test_a_load_that_the_history_of_a_policy_knows_counts_though_its_dump_is_gone(world):
    world.replicate()
    loaded_ms = look(world).last_loaded_ms
    assert look(world, last_success_ms=loaded_ms + 5).last_loaded_ms == loaded_ms + 5
    world.insert("t", (2, "b"))
    world.dump()
    assert look(world).last_loaded_ms is None
    assert look(world, last_success_ms=loaded_ms).last_loaded_ms == loaded_ms
