"""Repairs by an admin: the product's `repl repair`, which looks for itself what is wrong."""

from __future__ import annotations

import random

from hms_bridge.repl.compare.repl_compare import ReplCompare
from hms_bridge.repl.compare.table_comparison import Depth
from hms_bridge.repl.dump.discard import ReplDiscard
from hms_bridge.repl.repair.looking import RepairRequest, RepairSides
from hms_bridge.repl.repair.repl_repair import RepairReport, ReplRepair
from tests.simulation.policy_runs import PolicyRuns
from tests.simulation.story import ViolationError


class Repairs(PolicyRuns):
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
        return RepairSides(
            cycle=self.cycle(),
            source=source,
            target=target,
            discarder=ReplDiscard(
                source, cluster.resolve, cluster.clock, cluster.token, source.manifest
            ),
            comparer=ReplCompare(cluster.resolve, cluster.clock, source=source, target=target),
            resolve=cluster.resolve,
        )
