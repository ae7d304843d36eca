"""A drill loads what is kept, compares it, leaves nothing, and touches nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Database
from hms_bridge.model.ids import EventId
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.repl.compare.described import Verdict
from hms_bridge.repl.compare.table_comparison import Depth
from hms_bridge.repl.drill.plan import DrillKind, DrillReport, DrillRequest
from hms_bridge.repl.drill.repl_drill import ReplDrill
from hms_bridge.repl.format.chain import newest_chain
from hms_bridge.repl.format.directories import DumpDirectory, DumpState
from hms_bridge.repl.format.dump_metadata import DumpMetadata
from hms_bridge.repl.format.layout import DRILLS_DIRECTORY, DumpPaths
from hms_bridge.repl.target_objects import DRILL
from tests.support.faults import CrashError, FaultPlan, FaultyMetastore, faulty
from tests.support.repl_world import ReplWorld
from tests.support.what_changed import checksums, database_rows

SCRATCH = "drill_of_src"


def request(world: ReplWorld, **changes) -> DrillRequest:
    wanted = DrillRequest(
        dump=world.dump_request(),
        load=world.load_request,
        scratch_database=SCRATCH,
        depth=Depth(has_rows=True),
    )
    return replace(wanted, **changes)


def driller(world: ReplWorld, **changes) -> ReplDrill:
    parts = {"resolve": world.resolve, "target": world.target, **changes}
    return ReplDrill(
        parts["resolve"],
        world.clock,
        world.token,
        source=world.source,
        target=parts["target"],
        manifest=world.source.manifest,
    )


def drill(world: ReplWorld, **changes) -> DrillReport:
    drilling = driller(world)
    return drilling.run(drilling.plan(request(world, **changes)))


def assert_nothing_left(world: ReplWorld) -> None:
    assert SCRATCH not in world.target.get_databases()
    assert not (world.repl_root / DRILLS_DIRECTORY).exists()
    assert not list(world.replica.warehouse.glob(f"*{SCRATCH}*"))
    assert world.target.get_replayed_txns(f"{SCRATCH}.*") == {}
    assert not [pin for pin in world.source.manifest.pins() if DRILLS_DIRECTORY in pin.holder]


def replicated_with_chain(world: ReplWorld) -> None:
    """A bootstrap, two incremental dumps, the last of them not loaded; all are kept."""
    world.dump(is_previous_kept=True)
    world.load()
    world.insert("t", (10, "j"))
    world.dump(is_previous_kept=True)
    world.load()
    world.delete("t", 10)
    world.source.alter_database(
        "src", replace(world.source.get_database("src"), description="sold things")
    )
    world.dump(is_previous_kept=True)


def test_a_chain_that_is_kept_is_loaded_and_nothing_else_is_touched(busy_world: ReplWorld) -> None:
    world = busy_world
    replicated_with_chain(world)
    world.insert("t", (11, "k"))
    world.clock.advance_ms(60_000)
    dumps = checksums(world.repl_root)
    pins = world.source.manifest.pins()
    files = checksums(world.replica.warehouse)
    stood_at = world.last_event()
    report = drill(world)
    assert (report.plan.kind, report.dump_count) == (DrillKind.CHAIN, 3)
    assert report.compared.of(Verdict.DIFFERENT) == ()
    assert report.compared.exit_code == 0
    assert report.compared.compared.rows == 7
    assert report.dump_seconds is None
    assert report.rpo_seconds is not None
    assert 60 <= report.rpo_seconds < 70
    assert report.event_count > 0
    assert report.file_count == report.plan.file_count
    assert checksums(world.repl_root) == dumps
    assert checksums(world.replica.warehouse) == files
    assert world.source.manifest.pins() == pins
    assert world.last_event() == stood_at
    assert_nothing_left(world)
    world.load()
    assert world.replica.rows("t") != world.rows("t")


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_drill_is_of_the_tables_that_the_replication_covers(
    busy_world: ReplWorld, is_kept: bool
) -> None:
    world = busy_world
    world.dump(scope=ReplScope.parse("src.'parted'"), is_previous_kept=is_kept)
    world.load()
    scope = ReplScope.parse("src.'t'")
    world.dump(scope=scope, is_scope_changed=True, is_previous_kept=is_kept)
    world.load()
    world.insert("parted", (9, "z"), partition="p=x")
    report = drill(world)
    assert report.plan.kind is (DrillKind.CHAIN if is_kept else DrillKind.BOOTSTRAP)
    assert (report.rpo_seconds, report.compared.exit_code) == (0, 0)
    assert report.compared.scope == scope
    assert [found.table for found in report.compared.of(Verdict.EQUAL)] == ["t"]
    assert_nothing_left(world)


def test_a_bootstrap_is_made_where_the_chain_is_not_kept(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    world.insert("t", (10, "j"))
    world.replicate()
    pins = world.source.manifest.pins()
    world.clock.advance_ms(5_000)
    report = drill(world)
    assert report.plan.kind is DrillKind.BOOTSTRAP
    assert "no dump is kept that ends at event" in report.plan.reason
    assert report.compared.exit_code == 0
    assert report.compared.compared.rows == 8
    assert report.dump_seconds is not None
    assert report.rpo_seconds == 0
    assert world.source.manifest.pins() == pins
    assert_nothing_left(world)
    world.insert("t", (11, "k"))
    world.replicate()
    world.assert_same()


def test_a_chain_without_its_files_is_no_chain(busy_world: ReplWorld) -> None:
    world = busy_world
    world.dump()
    next(path for path in world.warehouse.rglob("bucket_*") if path.is_file()).unlink()
    plan = driller(world).plan(request(world))
    assert plan.kind is DrillKind.BOOTSTRAP
    assert "1 file of " in plan.reason
    assert "can be had no more" in plan.reason


def test_a_drill_that_cannot_load_fails_and_leaves_nothing(busy_world: ReplWorld) -> None:
    world = busy_world
    world.dump()
    for path in world.warehouse.rglob("bucket_*"):
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(ReplError, match="lost"):
        drill(world)
    assert_nothing_left(world)


def test_a_plan_changes_nothing(busy_world: ReplWorld) -> None:
    world = busy_world
    replicated_with_chain(world)

    def state():
        rows = (
            database_rows(world.folder / "target.db3"),
            database_rows(world.folder / "source.db3"),
        )
        return checksums(world.repl_root), checksums(world.replica.warehouse), *rows

    before = state()
    plan = driller(world).plan(request(world))
    assert (plan.kind, len(plan.dumps), plan.left_behind) == (DrillKind.CHAIN, 3, None)
    assert plan.byte_count
    assert state() == before


def test_a_drill_refuses_what_has_changed_since_its_plan(busy_world: ReplWorld) -> None:
    world = busy_world
    replicated_with_chain(world)
    drilling = driller(world)
    plan = drilling.plan(request(world))
    world.load()
    world.insert("t", (12, "l"))
    world.dump(is_previous_kept=True)
    with pytest.raises(ReplError, match="drill again"):
        drilling.run(plan)
    assert_nothing_left(world)


def test_what_is_kept_for_a_look_goes_with_the_next_drill(busy_world: ReplWorld) -> None:
    world = busy_world
    world.dump()
    drill(world, is_kept=True)
    assert world.target.get_table(SCRATCH, "t").parameters
    assert driller(world).plan(request(world)).left_behind is not None
    drill(world)
    assert_nothing_left(world)


def test_a_database_of_somebody_is_never_taken(busy_world: ReplWorld) -> None:
    world = busy_world
    world.dump()
    world.target.create_database(Database(name=SCRATCH))
    with pytest.raises(ReplError, match="not made by a drill"):
        driller(world).plan(request(world))
    world.target.drop_database(SCRATCH)
    plan = driller(world).plan(request(world))
    world.target.create_database(Database(name=SCRATCH, parameters={DRILL: "/home/ann/files"}))
    with pytest.raises(ReplError, match="no place of a drill"):
        driller(world).run(plan)
    assert world.target.get_database(SCRATCH)


def test_without_a_dump_there_is_nothing_to_drill(world: ReplWorld) -> None:
    with pytest.raises(ReplError, match="no replication to drill"):
        driller(world).plan(request(world))


@pytest.mark.parametrize("is_chain", [True, False])
def test_a_drill_that_died_anywhere_is_removed_by_the_next(
    busy_world: ReplWorld, is_chain: bool
) -> None:
    world = busy_world
    if is_chain:
        replicated_with_chain(world)
    else:
        world.replicate()
        world.insert("t", (10, "j"))
        world.replicate()
    dumps, stood_at = checksums(world.repl_root), world.last_event()
    files = checksums(world.replica.warehouse)
    steps = FaultPlan()
    run_to_death(world, steps)
    for crash_at in range(1, steps.count, max(1, steps.count // 20)):
        died = FaultPlan()
        died.crash_at = crash_at
        with pytest.raises(CrashError):
            run_to_death(world, died)
        world.clock.advance_ms(600_000)
        assert drill(world).compared.exit_code == 0, died.labels[-1]
        assert_nothing_left(world)
    assert checksums(world.repl_root) == dumps
    assert checksums(world.replica.warehouse) == files
    assert world.last_event() == stood_at


def run_to_death(world: ReplWorld, faults: FaultPlan) -> None:
    drilling = driller(
        world,
        resolve=faulty(world.resolve, faults),
        target=FaultyMetastore(world.target, faults),
    )
    drilling.run(drilling.plan(request(world)))


def dump_of(name: str, kind: str, first: int, last: int, state=DumpState.LOADED) -> DumpDirectory:
    metadata = DumpMetadata(type=kind, from_event_id=EventId(first), to_event_id=EventId(last))
    return DumpDirectory(paths=DumpPaths(name), state=state, time_ms=last, metadata=metadata)


BOOTSTRAP = dump_of("/b", "BOOTSTRAP", 10, 12)
FIRST = dump_of("/1", "INCREMENTAL", 10, 20)
SECOND = dump_of("/2", "INCREMENTAL", 20, 30, DumpState.FINISHED)
UNFINISHED = DumpDirectory(paths=DumpPaths("/u"), state=DumpState.UNFINISHED, time_ms=99)


@pytest.mark.parametrize(
    ("dumps", "found", "broken"),
    [
        ((UNFINISHED, SECOND, FIRST, BOOTSTRAP), ("/b", "/1", "/2"), ""),
        ((BOOTSTRAP, SECOND), ("/b",), ""),
        ((SECOND, FIRST), ("/2", "/1"), "ends at event 10, where /1 begins"),
        ((SECOND, BOOTSTRAP), ("/2",), "ends at event 20, where /2 begins"),
        ((UNFINISHED,), (), "no finished dump"),
    ],
)
def test_the_newest_chain(dumps, found, broken) -> None:
    chain = newest_chain(dumps)
    assert chain.directories == found
    assert broken in chain.broken
    assert bool(chain.broken) == bool(broken)
