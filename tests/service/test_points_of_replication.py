"""Ends of dumps, files that a purge gave back, policies that are late: each is a point, once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select

from changemanager.manifest import LEASE_MS
from changemanager.purge import Purge
from hms_bridge.backend.schema.archive_tables import HMSB_ARCHIVE_ANNOUNCED
from hms_bridge.config.reading import settings_from
from hms_bridge.model.lateness import Watch, next_watch
from hms_bridge.model.replication import CycleOutcome, CycleResult, PolicySide, ReplicationPolicy
from hms_bridge.policies import watches
from hms_bridge.repl.dump.discard import DiscardRequest, ReplDiscard
from hms_bridge.repl.dump.plan import DumpKind
from hms_bridge.repl.dump.repl_dump import ReplDump
from hms_bridge.repl.format.directories import DumpState, list_dumps
from hms_bridge.service.late_policies import tell_late_policies
from hms_bridge.service.unit_of_work import UnitOfWork
from tests.repl.test_dropped import drop
from tests.support.databases import fresh_url
from tests.support.faults import CrashError, FaultPlan, FaultyManifest, faulty
from tests.support.repl_world import LEASE, ReplWorld
from tests.support.told_points import listen, messages, points

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
POLICY = ReplicationPolicy(
    name="p", source=PolicySide(database="src"), target=PolicySide(database="dst"), root="/dumps"
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[ReplWorld]:
    made = ReplWorld(tmp_path, source_url=fresh_url(tmp_path))
    listen(made.source)
    yield made
    made.close()


def finished(world: ReplWorld) -> list[str]:
    """Directories of dumps that have their marker, oldest first."""
    dumps = list_dumps(world.resolve, str(world.repl_root), "src")
    done = [dump for dump in dumps if dump.state is not DumpState.UNFINISHED]
    return [dump.paths.root for dump in reversed(done)]


def announced_count(world: ReplWorld) -> int:
    return world.source._transactions.read(
        lambda c: c.scalar(select(func.count()).select_from(HMSB_ARCHIVE_ANNOUNCED)) or 0
    )


def ended(world: ReplWorld) -> list[str]:
    """The directories that were told, in order."""
    return [message["dumpDirectory"] for message in messages(world.source, "END_DUMP")]


def killed_dump(world: ReplWorld, *, at: int | None = None, label: str | None = None) -> bool:
    """Whether it died: there, or at so many steps."""
    faults = FaultPlan()
    faults.crash_at, faults.crash_label = at, label
    dumper = ReplDump(
        world.source,
        faulty(world.resolve, faults),
        world.clock,
        world.token,
        FaultyManifest(world.source.manifest, faults),  # type: ignore[arg-type]
    )
    try:
        dumper.run(dumper.plan(world.dump_request()))
    except CrashError:
        return True
    return False


def test_a_dump_is_told_of_when_it_is_finished(world: ReplWorld) -> None:
    world.create_table()
    world.insert("t", (1, "a"))
    report = world.dump()
    (point,) = (event for event in points(world.source) if event.type == "END_DUMP")
    assert point.database_name == "src"
    assert json.loads(point.message) == {
        "db": "src",
        "dumpDirectory": report.directory,
        "dumpKind": "bootstrap",
        "scope": "src",
        "fromEventId": report.from_event_id,
        "untilEventId": report.to_event_id,
        "fileCount": report.file_count,
    }
    assert world.dump().kind is DumpKind.BLOCKED
    world.load()
    world.insert("t", (2, "b"))
    later = world.dump()
    world.load()
    assert world.dump().kind is DumpKind.NOTHING
    assert ended(world) == [report.directory, later.directory]
    assert messages(world.source, "END_DUMP")[1]["dumpKind"] == "incremental"


def test_the_last_dump_of_a_dropped_database_is_told(world: ReplWorld) -> None:
    world.create_table()
    world.replicate()
    drop(world)
    report = world.dump()
    assert report.kind is DumpKind.DROP
    told = messages(world.source, "END_DUMP")[-1]
    assert (told["dumpKind"], told["dumpDirectory"]) == ("drop", report.directory)


def test_a_dump_that_is_killed_anywhere_is_told_once_if_it_is_finished(world: ReplWorld) -> None:
    """However often: all that got their markers, and no others."""
    world.create_table()
    world.insert("t", (1, "a"))
    count = 0
    while not finished(world):
        count += 1
        world.clock.advance_ms(LEASE_MS)
        assert killed_dump(world, at=count)
    assert count > 20
    assert world.dump().kind is DumpKind.BLOCKED, "who finds it blocked tells of it, too"
    assert ended(world) == finished(world)
    assert announced_count(world) == 0


@pytest.mark.parametrize("label", ["before settle_announced", "after settle_announced"])
def test_a_dump_that_died_with_its_marker_is_told_once(world: ReplWorld, label: str) -> None:
    world.create_table()
    assert killed_dump(world, label=label)
    assert len(finished(world)) == 1
    for _ in range(2):
        assert world.dump().kind is DumpKind.BLOCKED
    assert ended(world) == finished(world)


def test_a_dump_that_died_without_its_marker_is_never_told(world: ReplWorld) -> None:
    world.create_table()
    assert killed_dump(world, label="after announce")
    assert (finished(world), announced_count(world)) == ([], 1)
    world.clock.advance_ms(LEASE_MS)
    report = world.dump()
    assert ended(world) == [report.directory]
    assert announced_count(world) == 0


def test_who_plans_while_another_one_finishes_does_not_settle_it(world: ReplWorld) -> None:
    world.create_table()
    world.replicate()
    assert killed_dump(world, label="after announce") is False, "there is nothing new"
    world.source.manifest.announce(f"dump:src:file:{world.repl_root}/c3Jj/x", {"db": "src"})
    assert world.dump().kind is DumpKind.NOTHING
    assert announced_count(world) == 1
    world.insert("t", (1, "a"))
    world.dump()
    assert announced_count(world) == 0


def test_a_dump_that_nobody_told_of_is_told_before_it_is_discarded(world: ReplWorld) -> None:
    world.create_table()
    assert killed_dump(world, label="before settle_announced")
    directories = finished(world)
    world.clock.advance_ms(LEASE_MS)
    discarder = ReplDiscard(
        world.source, world.resolve, world.clock, world.token, world.source.manifest
    )
    request = DiscardRequest(root=str(world.repl_root), database_name="src", lease=LEASE)
    discarder.run(discarder.plan(request))
    assert (ended(world), finished(world)) == (directories, [])


def test_nothing_is_written_down_where_nobody_hears(tmp_path: Path) -> None:
    world = ReplWorld(tmp_path)
    world.create_table()
    assert killed_dump(world, label="before settle_announced")
    assert announced_count(world) == 0
    assert points(world.source) == []
    world.close()


@pytest.mark.parametrize("step", ["after claim_purge", "before record_purged"])
def test_a_purge_that_died_gives_back_what_it_had_not_deleted(world: ReplWorld, step: str) -> None:
    world.create_table()
    for number in (1, 2):
        world.insert("t", (number, "a"))
    world.compact()
    assert world.clean()
    for _ in range(12):  # a clock that leaps would not be believed
        world.clock.advance_ms(DAY_MS)
        world.source.manifest.note_time(world.clock.now_ms())
    faults = FaultPlan()
    faults.crash_label = step
    job = Purge(
        world.archive,
        FaultyManifest(world.source.manifest, faults),  # type: ignore[arg-type]
        world.clock,
    )
    with pytest.raises(CrashError):
        job.run(job.plan())
    claimed = [
        name
        for name, entry in world.source.manifest.entries(f"file:{world.cmroot}").items()
        if entry.state.name == "PURGING"
    ]
    assert len(claimed) == 1
    world.clock.advance_ms(LEASE_MS + 1)
    for _ in range(2):
        Purge(world.archive, world.source.manifest, world.clock).settle()
    is_gone = step == "before record_purged"
    told = [
        (point.type, json.loads(point.message)["name"])
        for point in points(world.source)
        if point.type in ("RESTORE_FILE", "PURGE_FILE")
    ]
    assert told == [("PURGE_FILE" if is_gone else "RESTORE_FILE", claimed[0])]


def succeed(world: ReplWorld, outcome: CycleOutcome = CycleOutcome.REPLICATED) -> None:
    store = world.source.policies
    store.end_cycle("p", store.begin_cycle("p", "here"), CycleResult(outcome=outcome))


def keep_house(world: ReplWorld, hours: float) -> int:
    """How many points of lateness there are after so many hours."""
    world.clock.advance_ms(int(hours * HOUR_MS))
    world.source.run_housekeeping()
    return len(messages(world.source, "LATE_POLICY"))


def test_a_policy_that_is_late_is_told_once_each_time(world: ReplWorld) -> None:
    world.source.policies.add_policies([POLICY])
    assert keep_house(world, 0) == 0
    began_ms = world.clock.now_ms()
    assert keep_house(world, 6) == 0
    assert keep_house(world, 0.1) == 1
    for _ in range(3):
        succeed(world, CycleOutcome.FAILED)
        assert keep_house(world, 5) == 1, "a failure is no success"
    succeed(world)
    succeeded_ms = world.clock.now_ms()
    assert keep_house(world, 5.9) == 1
    assert keep_house(world, 0.2) == 2
    assert keep_house(world, 50) == 2
    first, second = messages(world.source, "LATE_POLICY")
    assert first == {
        "policy": "p", "sinceMs": began_ms, "lastSuccessMs": None, "lateAfterMs": 6 * HOUR_MS,
    }  # fmt: skip
    assert second == first | {"sinceMs": succeeded_ms, "lastSuccessMs": succeeded_ms}


def test_who_keeps_house_hears_of_hooks_that_came_after_it(tmp_path: Path) -> None:
    """The server that has the lease need not be the one that was started with a hook."""
    world = ReplWorld(tmp_path, source_url=fresh_url(tmp_path))
    world.source.policies.add_policies([POLICY])
    assert keep_house(world, 0) == 0
    world.source.hook_positions.register("hook")
    assert keep_house(world, 0) == 0
    assert keep_house(world, 6.1) == 1
    world.close()


def test_a_policy_is_late_also_after_the_clock_was_set_back(world: ReplWorld) -> None:
    world.source.policies.add_policies([POLICY])
    world.clock.advance_ms(365 * DAY_MS)
    succeed(world)
    assert keep_house(world, 0) == 0
    world.clock.advance_ms(-365 * DAY_MS)
    assert keep_house(world, 0) == 0
    assert keep_house(world, 6.1) == 1


def test_a_policy_that_is_paused_or_gone_is_not_late(world: ReplWorld) -> None:
    store = world.source.policies
    store.add_policies([POLICY])
    succeed(world)
    assert keep_house(world, 0) == 0
    store.set_paused("p", is_paused=True)
    assert keep_house(world, 50) == 0
    store.set_paused("p", is_paused=False)
    assert keep_house(world, 1) == 0, "it is waited for from when it was seen to go on"
    assert keep_house(world, 6.1) == 1
    store.remove_policy("p")
    assert keep_house(world, 50) == 1
    store.add_policies([POLICY])
    assert keep_house(world, 1) == 1
    assert keep_house(world, 6.1) == 2


def test_of_two_who_keep_house_one_tells(world: ReplWorld) -> None:
    """The other has read what it was before."""
    world.source.policies.add_policies([POLICY])
    assert keep_house(world, 0) == 0
    now_ms = world.clock.now_ms()
    seen, late = Watch(since_ms=now_ms), Watch(since_ms=now_ms, late_at_ms=now_ms + 1)
    has_put = [
        world.source._transactions.write(
            lambda unit: watches._has_put(unit.connection, "p", seen, late)
        )
        for _ in range(2)
    ]
    assert has_put == [True, False]


def test_zero_means_that_no_policy_is_late(world: ReplWorld) -> None:
    settings = settings_from({"hms.bridge.repl.policy.late.after": "0s"})
    world.source.policies.add_policies([POLICY])

    def look(unit: UnitOfWork) -> int:
        unit.settings = settings
        tell_late_policies(unit)
        return len(unit.points)

    for _ in range(3):
        world.clock.advance_ms(DAY_MS)
        assert world.source._transactions.write(look) == 0


@pytest.mark.parametrize(
    ("watch", "last_success_ms", "expected"),
    [
        (None, None, Watch(since_ms=100)),
        (None, 99, Watch(since_ms=100)),
        (Watch(since_ms=90), None, Watch(since_ms=90)),
        (Watch(since_ms=89), None, Watch(since_ms=89, late_at_ms=100)),
        (Watch(since_ms=50), 95, Watch(since_ms=95)),
        (Watch(since_ms=50, late_at_ms=70), 60, Watch(since_ms=60, late_at_ms=100)),
        (Watch(since_ms=50, late_at_ms=70), 50, Watch(since_ms=50, late_at_ms=70)),
        (Watch(since_ms=95), 120, Watch(since_ms=95)),
        (Watch(since_ms=50), 120, Watch(since_ms=50, late_at_ms=100)),
        (Watch(since_ms=50), 100, Watch(since_ms=100)),
        (Watch(since_ms=120), None, Watch(since_ms=100)),
        (Watch(since_ms=120, late_at_ms=140), 119, Watch(since_ms=100)),
    ],
)
def test_when_a_policy_is_late(
    watch: Watch | None, last_success_ms: int | None, expected: Watch
) -> None:
    found = next_watch(
        watch, is_paused=False, last_success_ms=last_success_ms, now_ms=100, late_ms=10
    )
    assert found == expected
