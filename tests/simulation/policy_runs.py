"""Cycles of a policy: dump, load, release by the product's runner, as `repl run` starts them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from hms_bridge.errors import ReplError
from hms_bridge.model.replication import CycleOutcome, PolicySide, ReplicationPolicy
from hms_bridge.repl.cycles.cycle import OpenCycle
from hms_bridge.repl.cycles.runner import Runner
from hms_bridge.repl.pinned_dumps import release_loaded_dumps
from tests.simulation.admins import Admins
from tests.simulation.daemons import LEASE
from tests.simulation.side import REPL_ROOT
from tests.simulation.story import ViolationError

POLICY = ReplicationPolicy(
    name="src-to-dst",
    source=PolicySide(database="src"),
    target=PolicySide(database="dst"),
    root=REPL_ROOT,
)


class PolicyRuns(Admins):
    """What a timer does, each a method that an actor runs to its end."""

    def run_policy(self, dice: random.Random) -> None:
        """One cycle. Its policy and history are in the replica's database."""
        del dice
        store = self.cluster.target.metastore
        policies = store.policies
        if not policies.get_policies():
            policies.add_policies([POLICY])
        runner = Runner(
            metastore=store,
            store=policies,
            open_cycle=self._open_cycle,
            clock=self.cluster.clock,
            user="timer",
            host="h",
            lease=LEASE,
        )
        result = runner.run(POLICY)
        newest = policies.get_cycles(POLICY.name, limit=1)[0]
        if newest.result.outcome is CycleOutcome.RUNNING:
            raise ViolationError("I13", f"history says that {newest} runs")
        if result.outcome is CycleOutcome.FAILED:
            raise ReplError(result.message or "")

    @contextmanager
    def _open_cycle(self, policy: ReplicationPolicy) -> Iterator[OpenCycle]:
        del policy
        yield self.cycle()

    def cycle(self) -> OpenCycle:
        """Both sides, at hand."""
        cluster, manifest = self.cluster, self.cluster.source.metastore.manifest
        return OpenCycle(
            dumper=self.dumper(),
            loader=self.loader(),
            dump=self.dump_request(),
            load=self.load_request(),
            release=lambda: release_loaded_dumps(cluster.resolve, manifest),
        )
