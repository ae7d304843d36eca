"""A repair of a world's replica, killed at a point if wanted."""

from __future__ import annotations

from typing import Any

from hms_bridge.repl.compare.repl_compare import ReplCompare
from hms_bridge.repl.compare.table_comparison import Depth
from hms_bridge.repl.cycles.cycle import OpenCycle
from hms_bridge.repl.dump.discard import ReplDiscard
from hms_bridge.repl.dump.repl_dump import ReplDump
from hms_bridge.repl.load.repl_load import ReplLoad
from hms_bridge.repl.pinned_dumps import release_loaded_dumps
from hms_bridge.repl.repair.looking import RepairRequest, RepairSides
from hms_bridge.repl.repair.plan import RepairPlan
from hms_bridge.repl.repair.repl_repair import RepairReport, ReplRepair
from tests.support.faults import FaultPlan, FaultyMetastore, faulty
from tests.support.repl_world import ReplWorld


def repair_of(
    world: ReplWorld, faults: FaultPlan | None = None, told: list[str] | None = None
) -> ReplRepair:
    """With ``faults`` it dies where they say."""
    source: Any = world.source
    target: Any = world.target
    resolve = world.resolve
    manifest = world.source.manifest
    if faults is not None:
        source, target = FaultyMetastore(source, faults), FaultyMetastore(target, faults)
        resolve = faulty(resolve, faults)
    cycle = OpenCycle(
        dumper=ReplDump(source, resolve, world.clock, world.token, manifest),
        loader=ReplLoad(target, resolve, clock=world.clock),
        dump=world.dump_request(),
        load=world.load_request,
        release=lambda: release_loaded_dumps(world.resolve, manifest),
    )
    sides = RepairSides(
        cycle=cycle,
        source=source,
        target=target,
        discarder=ReplDiscard(source, resolve, world.clock, world.token, manifest),
        comparer=ReplCompare(world.resolve, world.clock, source=world.source, target=world.target),
        resolve=world.resolve,
    )
    return ReplRepair(sides, world.clock, say=(told if told is not None else []).append)


def request(*tables: str, rows: bool = True, **options: Any) -> RepairRequest:
    """Compares rows, too."""
    return RepairRequest(tables=tables, depth=Depth(has_rows=rows), **options)


def repair(world: ReplWorld, *tables: str, **options: Any) -> RepairReport:
    world.clock.advance_ms(1000)
    return repair_of(world).run(request(*tables, **options))


def planned(world: ReplWorld, *tables: str, **options: Any) -> RepairPlan:
    return repair_of(world).plan(request(*tables, **options))
