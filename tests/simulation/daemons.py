"""The product's own processes beside the clients: each a method that an actor runs to its end."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from uuid import uuid4

from changemanager.errors import ChangeManagerError
from changemanager.purge import Purge
from cleaner.daemon import make_cleaner
from cleaner.plan import CleaningState
from hms_bridge.compaction.initiator import Initiator
from hms_bridge.compaction.kernel import BucketKernel, LocalExecutor
from hms_bridge.compaction.worker import Worker, WorkerIdentity
from hms_bridge.errors import HmsBridgeError, ReplError
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.target import Target
from hms_bridge.repl.dump.plan import DumpKind, DumpPlan, DumpReport, DumpRequest
from hms_bridge.repl.dump.repl_dump import ReplDump
from hms_bridge.repl.dump.snapshot_wait import WaitRules
from hms_bridge.repl.lease import LeaseRules
from hms_bridge.repl.load.plan import LoadKind, LoadPlan, LoadReport, LoadRequest
from hms_bridge.repl.load.repl_load import ReplLoad
from tests.simulation.cluster import Cluster
from tests.simulation.side import REPL_ROOT, Side

LEASE = LeaseRules(dead_after_seconds=300, heartbeat_seconds=10)


class Daemons:
    """What daemons and admins do."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    # -- compaction

    def initiate(self, dice: random.Random) -> None:
        del dice
        side = self.cluster.source
        Initiator(
            side.metastore,
            self.cluster.resolve,
            side.settings.compactor,
            self.cluster.clock,
            initiator_id="i",
            version="4",
        ).run_once()

    def request(self, dice: random.Random) -> None:
        """An admin's ALTER TABLE … COMPACT on either side, and a worker at once."""
        side = self._side(dice)
        tables = sorted(side.table_ids())
        if not tables:
            return
        table = self.cluster.pick(dice, tables)
        places = sorted(side.places(table))
        if not places:
            return
        partition = self.cluster.pick(dice, places)
        kind = dice.choice([CompactionType.MINOR, CompactionType.MAJOR])
        side.metastore.compact(
            CompactionRequest(
                target=Target(side.database_name, table, partition or None),
                type=kind,
            )
        )
        self._work(side)

    def request_rebalance(self, dice: random.Random) -> None:
        """Nobody rebalances here: the request is refused, or ends so; what is there stays."""
        side = self._side(dice)
        tables = sorted(side.table_ids())
        if tables:
            side.metastore.compact(
                CompactionRequest(
                    target=Target(side.database_name, dice.choice(tables)),
                    type=CompactionType.REBALANCE,
                )
            )
            self._work(side)

    def work(self, dice: random.Random) -> None:
        self._work(self._side(dice))

    def _side(self, dice: random.Random) -> Side:
        is_source = dice.random() < 0.8 or not self.cluster.target.has_database()
        return self.cluster.source if is_source else self.cluster.target

    def _work(self, side: Side) -> None:
        resolve = self.cluster.resolve
        worker = Worker(
            side.metastore,
            LocalExecutor(kernel=BucketKernel(resolver=resolve)),
            resolve,
            WorkerIdentity(worker_id=uuid4().hex, version="4", user="w", host="h"),
        )
        worker.run_once()

    # -- cleaning

    def clean(self, dice: random.Random) -> None:
        self._clean(self._side(dice))

    def _clean(self, side: Side) -> None:
        for outcome in make_cleaner(side.store).run_once():
            if outcome.state is CleaningState.FAILED:
                self.cluster.failed_cleanings.append(outcome.message)

    def purge(self, dice: random.Random) -> None:
        del dice
        store = self.cluster.source.store
        job = Purge(store.archive(), store.manifest, self.cluster.clock)
        # An admin who believes the clock, right or wrong: what is needed must stay all the same.
        job.run(job.plan(), is_clock_trusted=True)

    def keep_house(self, dice: random.Random) -> None:
        del dice
        for side in (self.cluster.source, self.cluster.target):
            side.metastore.run_housekeeping()
            side.metastore.revoke_timed_out_workers(side.settings.compactor.worker_timeout_ms)

    def clean_all(self, dice: random.Random) -> None:
        """Both sides."""
        del dice
        for side in (self.cluster.source, self.cluster.target):
            self._clean(side)

    # -- replication

    def dump(
        self,
        dice: random.Random,
        *,
        is_bootstrap_forced: bool = False,
        tables_anew: tuple[str, ...] = (),
    ) -> None:
        del dice
        dumper = self.dumper()
        request = replace(
            self.dump_request(), is_bootstrap_forced=is_bootstrap_forced, tables_anew=tables_anew
        )
        plan = dumper.plan(request)
        if plan.kind in (DumpKind.BOOTSTRAP, DumpKind.INCREMENTAL):
            dumper.run(plan)

    def replicate(self, dice: random.Random) -> None:
        """As a scheduled policy does it: load what is there, then dump and load."""
        with suppress(ReplError):
            self.load(dice)
        self.dump(dice)
        self.load(dice)

    def load(self, dice: random.Random) -> None:
        del dice
        loader = self.loader()
        loader.run(loader.plan(self.load_request()))

    def dumper(self) -> ReplDump:
        """Of the source; the cluster knows when a bootstrap begins and ends."""
        return WatchedDump(self.cluster)

    def dump_request(self) -> DumpRequest:
        return DumpRequest(
            root=REPL_ROOT,
            database=self.cluster.database,
            cm_root=self.cluster.source.cm_root,
            wait=WaitRules(timeout_seconds=10, poll_seconds=1),
            lease=LEASE,
        )

    def loader(self) -> ReplLoad:
        """Into the replica; the cluster knows what it said."""
        return WatchedLoad(self.cluster)

    def load_request(self) -> LoadRequest:
        return LoadRequest(
            root=REPL_ROOT,
            source_database=self.cluster.database,
            target_database=self.cluster.target.database_name,
            lease=LEASE,
        )


class WatchedDump(ReplDump):
    """The product's; a bootstrap shows each table at some moment while it is made."""

    def __init__(self, cluster: Cluster) -> None:
        store = cluster.source.metastore
        super().__init__(store, cluster.resolve, cluster.clock, cluster.token, store.manifest)
        self._side = cluster.source

    def run(self, plan: DumpPlan) -> DumpReport:
        has_snapshots = plan.kind is DumpKind.BOOTSTRAP or bool(plan.anew)
        if has_snapshots:
            self._side.story.bootstrap_end = None
        report = super().run(plan)
        if has_snapshots:
            self._side.story.bootstrap_end = self._side.event_id()
        return report


class WatchedLoad(ReplLoad):
    """The product's; what it says must be so (I11)."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.target.metastore, cluster.resolve, clock=cluster.clock)
        self._cluster = cluster

    def run(self, plan: LoadPlan) -> LoadReport:
        if plan.kind is LoadKind.NOTHING:
            return super().run(plan)
        self._cluster.loaded = None
        report = super().run(plan)
        self._cluster.loaded_to(int(report.last_event_id or 0))
        return report


EXPECTED = (HmsBridgeError, ChangeManagerError, OSError)
"""What a process may end with: refusals that name what is wrong."""
