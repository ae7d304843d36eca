"""A dump that nobody wants is ended: pins and directory go, and nothing else does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from changemanager.manifest import PinKind
from hms_bridge.errors import DumpIncompleteError, ReplError
from hms_bridge.model.compaction import CompactionType
from hms_bridge.repl.dump.discard import DiscardPlan, DiscardRequest, ReplDiscard
from hms_bridge.repl.dump.plan import DumpKind
from hms_bridge.repl.format.directories import DumpState, list_dumps
from tests.repl.test_edges import plain_table
from tests.support.faults import CrashError, FaultPlan, FaultyMetastore, faulty
from tests.support.passing import Interrupted
from tests.support.repl_world import LEASE, ReplWorld
from tests.support.simulated_clock import DAY_MS


def request(world: ReplWorld, dump: str | None = None) -> DiscardRequest:
    return DiscardRequest(root=str(world.repl_root), database_name="src", dump=dump, lease=LEASE)


def discarder(world: ReplWorld) -> ReplDiscard:
    world.clock.advance_ms(1000)
    return ReplDiscard(world.source, world.resolve, world.clock, world.token, world.source.manifest)


def discard(world: ReplWorld, dump: str | None = None) -> DiscardPlan:
    job = discarder(world)
    plan = job.plan(request(world, dump))
    job.run(plan)
    return plan


def pinned(world: ReplWorld) -> list[str]:
    return [pin.holder for pin in world.source.manifest.pins() if pin.kind is PinKind.DUMP]


def states(world: ReplWorld) -> list[DumpState]:
    return [one.state for one in list_dumps(world.resolve, str(world.repl_root), "src")]


def test_a_bootstrap_that_is_not_wanted_makes_way_for_another(world: ReplWorld) -> None:
    first = world.dump()
    assert world.dump().kind is DumpKind.BLOCKED
    assert "repl dump src --discard" in world.dump().reason
    assert len(pinned(world)) == 1
    plan = discard(world)
    assert (plan.directory, plan.resume_at, plan.pin is not None) == (first.directory, None, True)
    assert (states(world), pinned(world)) == ([], [])
    world.insert("t", (2, "b"))
    assert world.dump().kind is DumpKind.BOOTSTRAP
    world.load()
    world.assert_same()


def test_the_next_dump_begins_where_a_discarded_one_began(world: ReplWorld) -> None:
    world.replicate()
    world.insert("t", (2, "b"))
    unwanted = world.dump()
    world.insert("t", (3, "c"))
    plan = discard(world)
    assert plan.resume_at == unwanted.from_event_id
    assert (states(world), pinned(world)) == ([DumpState.LOADED], [])
    again = world.dump()
    assert (again.kind, again.from_event_id) == (DumpKind.INCREMENTAL, unwanted.from_event_id)
    world.load()
    world.assert_same()
    assert [row["id"] for row in world.replica.rows("t")] == [1, 2, 3]


def test_files_that_only_the_discarded_dump_named_stay_for_the_next(world: ReplWorld) -> None:
    world.replicate()
    world.insert("t", (2, "b"))
    world.insert("t", (3, "c"))
    world.compact("t", CompactionType.MAJOR)
    world.clock.advance_ms(DAY_MS)
    world.clean()
    world.clock.advance_ms(DAY_MS)
    world.dump()
    discard(world)
    world.clock.advance_ms(25 * DAY_MS)
    assert world.purge() == 0
    world.dump()
    world.load()
    world.assert_same()


def test_after_a_discard_a_bootstrap_can_be_asked_for(world: ReplWorld) -> None:
    world.replicate()
    world.insert("t", (2, "b"))
    world.dump()
    discard(world)
    assert world.dump(is_bootstrap_forced=True).kind is DumpKind.BOOTSTRAP


def test_a_plan_changes_nothing_and_is_carried_out_only_in_the_same_world(
    world: ReplWorld,
) -> None:
    world.dump()
    before = sorted(world.repl_root.rglob("*"))
    plan = discarder(world).plan(request(world))
    assert sorted(world.repl_root.rglob("*")) == before
    world.load()
    with pytest.raises(ReplError, match="is loaded already"):
        discarder(world).run(plan)
    assert states(world) == [DumpState.LOADED]


def test_only_dumps_of_the_database_are_removed(world: ReplWorld, tmp_path: Path) -> None:
    report = world.dump()
    directory = Path((report.directory or "").removeprefix("file:"))
    other = directory.parent.parent / "b3RoZXI=" / "dump"
    (other / "hive").mkdir(parents=True)
    for named in (
        str(other),
        str(tmp_path),
        str(directory.parent),
        "absent",
        str(directory / "hive"),
    ):
        with pytest.raises(ReplError, match="is no dump of src"):
            discard(world, named)
    for strange in (directory / "thesis.txt", directory / "hive" / "thesis.txt"):
        strange.write_text("mine")
        with pytest.raises(ReplError, match=r"thesis\.txt.*left alone"):
            discard(world, directory.name)
        strange.unlink()
    assert other.is_dir()
    discard(world, directory.name)
    assert not directory.exists()
    with pytest.raises(ReplError, match="there is no dump of src"):
        discard(world)


def test_it_may_be_killed_anywhere(world: ReplWorld) -> None:
    world.replicate()
    world.insert("t", (2, "b"))
    for at in range(1, 200):
        if world.dump().kind is DumpKind.NOTHING:
            break
        faults = FaultPlan()
        faults.crash_at = at
        job = ReplDiscard(
            FaultyMetastore(world.source, faults),
            faulty(world.resolve, faults),
            world.clock,
            world.token,
            world.source.manifest,
        )
        plan = job.plan(request(world))
        world.clock.advance_ms(1000)
        try:
            job.run(plan)
        except CrashError:
            world.clock.advance_ms(60_000)
            if DumpState.FINISHED in states(world)[:1]:
                discard(world)
        else:
            break
    assert at > 10
    world.dump()
    world.load()
    world.assert_same()
    assert [row["id"] for row in world.replica.rows("t")] == [1, 2]


def test_a_finished_dump_removes_older_dumps_and_nothing_of_others(world: ReplWorld) -> None:
    """Somebody keeps things where the dumps are, or in one of them."""
    first, _ = world.replicate()
    dumps = Path(str(first.directory).removeprefix("file:"))
    kept = dumps.parent / "keep me" / "notes"
    kept.parent.mkdir()
    kept.write_text("mine")
    note = dumps / "why.txt"
    note.write_text("mine, too")
    world.insert("t", (2, "b"))
    second, _ = world.replicate()
    assert (kept.read_text(), note.read_text()) == ("mine", "mine, too")
    note.unlink()
    world.insert("t", (3, "c"))
    world.replicate()
    world.assert_same()
    assert not dumps.exists()
    assert not Path(str(second.directory).removeprefix("file:")).exists()
    assert kept.read_text() == "mine"


@pytest.mark.parametrize("is_anew", [False, True])
def test_a_load_whose_dump_is_removed_meanwhile_leaves_nothing_out(
    world: ReplWorld, is_anew: bool
) -> None:
    """Discarded, or replaced by a dump that brings tables anew. A removal takes directories one by
    one; what it has taken is no commit without rows, and no table that the source has dropped."""
    world.replicate()
    world.insert("t", (2, "b"))
    directory = world.dump(tables_anew=("t",) if is_anew else ()).directory
    target = Interrupted(world.target, lambda: _remove_tables(directory), before="lock")
    loader = world.loader(target)
    with pytest.raises(DumpIncompleteError, match="it is being removed"):
        loader.run(loader.plan(world.load_request))
    discard(world)
    world.replicate()
    world.assert_same()


def _remove_tables(directory: str) -> None:
    hive = Path(directory.removeprefix("file:")) / "hive"
    for place in (*hive.glob("events_batch_*/*/src.t"), *hive.glob("_bootstrap/*/src/t")):
        shutil.rmtree(place)


def test_a_write_unseen_is_noticed_after_a_dump_was_discarded(world: ReplWorld) -> None:
    place = plain_table(world, "plain")
    (place / "one").write_text("1")
    world.replicate()
    world.insert("t", (3, "c"))
    world.dump()
    discard(world)
    (place / "two").write_text("2")
    with pytest.raises(ReplError, match="a write to plain, "):
        world.dump()
    # What came whole with a dump that is discarded never reached the replica.
    for _ in range(2):
        world.dump(tables_anew=("plain",))
        discard(world)
        with pytest.raises(ReplError, match="a write to plain, "):
            world.dump()
    world.dump(tables_anew=("plain",))
    world.load()
    world.insert("t", (4, "d"))
    world.replicate()
    world.assert_same()


def test_the_next_dump_begins_there_though_a_clock_was_set_back(world: ReplWorld) -> None:
    """A dump that is kept from before, by the clock of before, is not what it follows on."""
    world.replicate()
    world.insert("t", (2, "b"))
    followed = world.dump(is_previous_kept=True)
    world.load()
    world.insert("t", (3, "c"))
    unwanted = world.dump(is_previous_kept=True)
    shutil.rmtree(followed.directory.removeprefix("file:"))
    world.clock.set_back_ms(400 * DAY_MS)
    discard(world)
    again = world.dump()
    assert (again.kind, again.from_event_id) == (DumpKind.INCREMENTAL, unwanted.from_event_id)
    world.load()
    world.assert_same()
