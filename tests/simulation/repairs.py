"""Repairs by an admin: the product's `repl repair`, which looks for itself what is wrong."""

from __future__ import annotations

import random
from typing import Any

from hms_bridge.repl.compare.repl_compare import ReplCompare
from hms_bridge.repl.compare.table_comparison import Depth
from hms_bridge.repl.cycles.cycle import OpenCycle
from hms_bridge.repl.dump.discard import ReplDiscard
from hms_bridge.repl.dump.plan import DumpKind, DumpPlan, DumpReport, DumpRequest
from hms_bridge.repl.dump.repl_dump import ReplDump
from hms_bridge.repl.dump.snapshot_wait import WaitRules
from hms_bridge.repl.load.repl_load import (
    LoadKind,
    LoadPlan,
    LoadReport,
    LoadRequest,
    ReplLoad,
)
from hms_bridge.repl.pinned_dumps import release_loaded_dumps
from hms_bridge.repl.repair.looking import RepairRequest, RepairSides
from hms_bridge.repl.repair.repl_repair import RepairReport, ReplRepair
from tests.simulation.cluster import Cluster, ViolationError
from tests.simulation.daemons import LEASE, Daemons
from tests.simulation.side import CMROOT, REPL_ROOT


class Repairs(Daemons):
    """What an admin does who knows one verb only."""

    def repair(self, dice: random.Random) -> None:
        """Nobody but loads changes this replica: what came whole and differs is a violation."""
        request = RepairRequest(
            is_bootstrap_allowed=True, depth=Depth(has_rows=dice.random() < 0.5)
        )
        report: RepairReport = ReplRepair(self._sides(), self.cluster.clock, tell=self._told).run(
            request
        )
        if report.left:
            raise ViolationError("I11", f"a repair left {report.left}")

    def _told(self, step: str) -> None:
        """From now on the replica is nobody's copy."""
        if "drop database" in step:
            self.cluster.loaded = None

    def _sides(self) -> RepairSides:
        cluster = self.cluster
        source, target = cluster.source.metastore, cluster.target.metastore
        where: tuple[Any, ...] = (source, cluster.resolve, cluster.clock, cluster.token)
        cycle = OpenCycle(
            dumper=_WatchedDump(cluster, *where, source.manifest),
            loader=_WatchedLoad(cluster, target, cluster.resolve, clock=cluster.clock),
            dump=DumpRequest(
                root=REPL_ROOT,
                database="src",
                cm_root=CMROOT,
                wait=WaitRules(timeout_seconds=10, poll_seconds=1),
                lease=LEASE,
            ),
            load=LoadRequest(
                root=REPL_ROOT, source_database="src", target_database="dst", lease=LEASE
            ),
            release=lambda: release_loaded_dumps(cluster.resolve, source.manifest),
        )
        return RepairSides(
            cycle=cycle,
            source=source,
            target=target,
            discarder=ReplDiscard(*where, source.manifest),
            comparer=ReplCompare(cluster.resolve, cluster.clock, source=source, target=target),
            resolve=cluster.resolve,
        )


class _WatchedDump(ReplDump):
    """The cluster knows when a snapshot of whole tables begins and ends."""

    def __init__(self, cluster: Cluster, *parts: Any) -> None:
        super().__init__(*parts)
        self._cluster = cluster

    def run(self, plan: DumpPlan) -> DumpReport:
        has_snapshots = plan.kind is DumpKind.BOOTSTRAP or bool(plan.anew)
        if has_snapshots:
            self._cluster.bootstrap_end = None
        report = super().run(plan)
        if has_snapshots:
            self._cluster.bootstrap_end = self._cluster.source.event_id()
        return report


class _WatchedLoad(ReplLoad):
    """What a load says must be so (I11)."""

    def __init__(self, cluster: Cluster, *parts: Any, **named: Any) -> None:
        super().__init__(*parts, **named)
        self._cluster = cluster

    def run(self, plan: LoadPlan) -> LoadReport:
        if plan.kind is LoadKind.NOTHING:
            return super().run(plan)
        self._cluster.loaded = None
        report = super().run(plan)
        self._cluster.loaded_to(int(report.last_event_id or 0))
        return report
