"""Repairs by an admin: the product's `repl repair`, which looks for itself what is wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hms_bridge.errors import ReplError
from hms_bridge.model.replication import CycleResult, ReplicationPolicy
from hms_bridge.repl.compare.repl_compare import ReplCompare
from hms_bridge.repl.compare.table_comparison import Depth
from hms_bridge.repl.dump.discard import ReplDiscard
from hms_bridge.repl.lease import LeaseKind
from hms_bridge.repl.repair.looking import RepairRequest, RepairSides
from hms_bridge.repl.repair.repl_repair import RepairReport, ReplRepair
from tests.simulation.cluster import Cluster
from tests.simulation.policy_runs import PolicyRuns
from tests.simulation.story import ViolationError


class Repairs(PolicyRuns):
    """What an admin does who knows one verb only."""

    def repair(self, dice: random.Random) -> None:
        """Nobody but loads changes this replica: what came whole and differs is a violation."""
        request = RepairRequest(
            is_bootstrap_allowed=True, depth=Depth(has_rows=dice.random() < 0.5)
        )
        if self.cluster.roles.are_to_change:
            self._repair_by_name(request)
            return
        report = self._repairs().run(request)
        if report.left:
            raise ViolationError("I11", f"a repair left {report.left}")

    def _repair_by_name(self, request: RepairRequest) -> None:
        """`repl repair POLICY`: alone with the policy, so that no promotion overtakes it. Whoever
        stood still for so long that others count him for dead is promised nothing."""
        done: list[RepairReport] = []
        kept: list[bool] = []

        @contextmanager
        def opened(policy: ReplicationPolicy) -> Iterator[_Repairing]:
            self.cluster.work_at(self.side_of(policy.source))
            yield _Repairing(self.cluster, self._repairs(), request, done, kept)

        result = self.runner(opened).run(self.policy)
        if not done:
            raise ReplError(result.message or "")
        if done[-1].left and kept[-1]:
            raise ViolationError("I11", f"a repair left {done[-1].left}")

    def _repairs(self) -> ReplRepair:
        return ReplRepair(self._sides(), self.cluster.host_clock, say=self._told)

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
                source, cluster.resolve, cluster.host_clock, cluster.token, source.manifest
            ),
            comparer=ReplCompare(cluster.resolve, cluster.host_clock, source=source, target=target),
            resolve=cluster.resolve,
        )


@dataclass(frozen=True)
class _Repairing:
    """A repair as the work of a cycle. `done` gets its report, `kept` whether it has had its lease
    to the end, as the database says."""

    cluster: Cluster
    repairs: ReplRepair
    request: RepairRequest
    done: list[RepairReport]
    kept: list[bool]

    def run(self) -> CycleResult:
        """Raises what the repair does."""
        report = self.repairs.run(self.request)
        self.done.append(report)
        self.kept.append(self.cluster.has_lease(self.cluster.second, LeaseKind.RUN.value))
        return report.result
