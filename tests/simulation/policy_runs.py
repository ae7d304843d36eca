"""Cycles of a policy: dump, load, release by the product's runner, as `repl run` starts them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from hms_bridge.errors import ReplError
from hms_bridge.model.replication import CycleOutcome, PolicySide, ReplicationPolicy
from hms_bridge.policy_store import PolicyStore
from hms_bridge.repl.cycles.cycle import OpenCycle
from hms_bridge.repl.cycles.runner import CycleWork, Runner
from hms_bridge.repl.pinned_dumps import release_loaded_dumps
from tests.simulation.admins import Admins
from tests.simulation.daemons import LEASE
from tests.simulation.side import REPL_ROOT, Side
from tests.simulation.statements import NotTodayError
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
        """One cycle, whichever way the policy goes. Policy and history are at the second side."""
        del dice
        policies = self.policies
        known = policies.get_policies()
        if not known:
            policies.add_policies([POLICY])
        policy = known[0] if known else POLICY
        if policy.is_paused:
            raise NotTodayError("paused")
        result = self.runner(self.open_cycle).run(policy)
        newest = policies.get_cycles(POLICY.name, limit=1)[0]
        if newest.result.outcome is CycleOutcome.RUNNING:
            raise ViolationError("I13", f"history says that {newest} runs")
        if result.outcome is CycleOutcome.FAILED:
            raise ReplError(result.message or "")

    def runner(
        self, open_cycle: Callable[[ReplicationPolicy], AbstractContextManager[CycleWork]]
    ) -> Runner:
        """Alone with the policy, as `repl run` and `repl repair` are."""
        return Runner(
            metastore=self.cluster.second.metastore,
            store=self.policies,
            open_cycle=open_cycle,
            clock=self.cluster.host_clock,
            user="timer",
            host="h",
            lease=LEASE,
        )

    @property
    def policies(self) -> PolicyStore:
        """At the second side, whoever is whose replica."""
        return self.cluster.second.metastore.policies

    @property
    def policy(self) -> ReplicationPolicy:
        """Kept at the second side, whoever is whose replica."""
        if not self.policies.get_policies():
            self.policies.add_policies([POLICY])
        return self.policies.get_policy(POLICY.name)

    @contextmanager
    def open_cycle(self, policy: ReplicationPolicy) -> Iterator[OpenCycle]:
        """From the policy's source, whoever else takes another side for it."""
        self.cluster.work_at(self.side_of(policy.source))
        cycle = self.cycle()
        if self.cluster.wishes.is_used:  # the policy says which tables, and means it
            dump = replace(cycle.dump, scope=policy.scope, is_scope_changed=True)
            cycle = replace(cycle, dump=dump)
        yield cycle

    def side_of(self, named: PolicySide) -> Side:
        """Each side's database has a name of its own."""
        sides = self.cluster.sides
        return next(side for side in sides if side.database_name == named.database)

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
