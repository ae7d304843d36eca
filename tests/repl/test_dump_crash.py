"""A dump that is killed at any step leaves nothing that a load would believe."""

from __future__ import annotations

from contextlib import suppress

import pytest

from hms_bridge.errors import DumpIncompleteError, ReplError
from hms_bridge.repl.dump.discard import DiscardRequest, ReplDiscard
from hms_bridge.repl.dump.plan import DumpKind
from hms_bridge.repl.dump.repl_dump import ReplDump
from hms_bridge.repl.format.directories import DumpState, list_dumps
from tests.support.faults import CrashError, FaultPlan, FaultyMetastore, faulty
from tests.support.passing import Interrupted
from tests.support.repl_world import LEASE


def killed_dump(world, crash_at) -> None:
    faults = FaultPlan()
    faults.crash_at = crash_at
    dumper = ReplDump(
        FaultyMetastore(world.source, faults),
        faulty(world.resolve, faults),
        world.clock,
        world.token,
        world.source.manifest,
    )
    plan = dumper.plan(world.dump_request())
    with pytest.raises(CrashError):
        dumper.run(plan)


def finished(world):
    dumps = list_dumps(world.resolve, str(world.repl_root), "src")
    return [one for one in dumps if one.state is not DumpState.UNFINISHED]


def test_a_bootstrap_dump_may_be_killed_anywhere(world):
    total = 0
    for at in range(1, 1000):
        killed_dump(world, at)
        total = at
        if finished(world):
            break
    assert total > 20
    assert world.dump().kind is DumpKind.BLOCKED
    world.load()
    world.assert_same()


def test_an_incremental_dump_may_be_killed_anywhere(world):
    world.replicate()
    world.insert("t", (2, "b"))
    total = 0
    for at in range(1, 1000):
        loaded = finished(world)
        assert [one.state for one in loaded][:1] == [DumpState.LOADED]
        killed_dump(world, at)
        total = at
        if finished(world)[0].state is DumpState.FINISHED:
            break
    assert total > 20
    assert world.dump().kind is DumpKind.BLOCKED
    world.load()
    world.assert_same()
    world.insert("t", (3, "c"))
    world.replicate()
    world.assert_same()
    assert len(finished(world)) == 1


def test_the_removal_of_an_older_dump_may_be_killed_anywhere(world):
    """What is left of it stands in nobody's way."""
    world.replicate()
    (old,) = finished(world)
    world.insert("t", (2, "b"))
    new = world.dump(is_previous_kept=True)
    for _ in range(1000):
        faults = FaultPlan()
        faults.crash_at = 2
        with suppress(CrashError):
            remover = ReplDump(
                world.source, faulty(world.resolve, faults), world.clock, world.token
            )
            remover._remove("src", old.paths.root, reason="a test")
        assert [one.paths.root for one in finished(world)] == [new.directory]
        assert world.loader().plan(world.load_request).directory == new.directory
        if world.resolve(old.paths.root).status() is None:
            break
    world.load()
    world.assert_same()


def test_a_finished_dump_without_what_it_holds_can_be_ended(world):
    """Removed by half in an earlier version, or copied by half: the error says how it ends."""
    world.replicate()
    world.insert("t", (2, "b"))
    damaged = world.dump()
    metadata = world.resolve(f"{damaged.directory}/hive/_dumpmetadata")
    metadata.volume.remove_file(metadata.path)
    for attempt in (world.dump, world.load):
        with pytest.raises(
            DumpIncompleteError, match=f"--discard {damaged.directory.rpartition('/')[2]}'"
        ):
            attempt()
    discard = ReplDiscard(
        world.source, world.resolve, world.clock, world.token, world.source.manifest
    )
    request = DiscardRequest(
        root=str(world.repl_root), database_name="src", dump=damaged.directory, lease=LEASE
    )
    discard.run(discard.plan(request))
    world.target.drop_database("dst", is_cascade=True)
    world.dump(is_bootstrap_forced=True)
    world.load()
    world.assert_same()


def test_a_dump_that_another_one_overtook_is_not_finished(world):
    """The other took it for dead and removed what it had: it would lack tables."""
    slow, fast = world.dumper(), world.dumper()
    plan = slow.plan(world.dump_request())
    other = fast.plan(world.dump_request())

    overtaken = Interrupted(world.source, lambda: fast.run(other), after="commit_txn")
    with pytest.raises(ReplError, match="counts as dead"):
        world.dumper(overtaken).run(plan)
    (only,) = finished(world)
    assert only.state is DumpState.FINISHED
    world.load()
    world.assert_same()
