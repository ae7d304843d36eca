"""The product's own processes beside the clients: each a method that an actor runs to its end."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from uuid import uuid4

from changemanager.errors import ChangeManagerError
from changemanager.purge import Purge
from cleaner.daemon import make_cleaner
from cleaner.plan import CleaningState
from hms_bridge.compaction.executor import always
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
from tests.simulation.scopes import ALL_TABLES, Patterns, patterns_of_dump
from tests.simulation.side import REPL_ROOT, Side
from tests.simulation.story import ViolationError

_STAYS = re.compile(r"table \w+\.(\w+) is outside of what is replicated and stays")
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
            self.cluster.host_clock,
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

    def compact_all(self, dice: random.Random) -> None:
        """Everything of the source, one after the other."""
        side = self.cluster.source
        for table in sorted(side.table_ids()):
            for partition in sorted(side.places(table)):
                target = Target(side.database_name, table, partition or None)
                kind = dice.choice([CompactionType.MINOR, CompactionType.MAJOR])
                side.metastore.compact(CompactionRequest(target=target, type=kind))
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
            always(LocalExecutor(kernel=BucketKernel(resolver=resolve))),
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
        job = self._source_purge()
        # An admin who believes the clock, right or wrong: what is needed must stay all the same.
        job.run(job.plan(is_clock_trusted=True))

    def purge_daily(self, dice: random.Random) -> None:
        """A server's, which nobody tells that the clock is right."""
        del dice
        job = self._source_purge()
        job.settle()
        job.run(job.plan())

    def _source_purge(self) -> Purge:
        store = self.cluster.source.store
        return Purge(store.archive(), store.manifest, self.cluster.host_clock)

    def keep_house(self, dice: random.Random) -> None:
        """Each of the servers, on both sides."""
        del dice
        for side in (self.cluster.source, self.cluster.target):
            for metastore in side.metastores:
                metastore.run_housekeeping()
                metastore.revoke_timed_out_workers(side.settings.compactor.worker_timeout_ms)

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
        if plan.kind not in (DumpKind.NOTHING, DumpKind.BLOCKED):
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
        wishes = self.cluster.wishes
        return DumpRequest(
            root=REPL_ROOT,
            database=self.cluster.database,
            cm_root=self.cluster.source.cm_root,
            wait=WaitRules(timeout_seconds=10, poll_seconds=1),
            lease=LEASE,
            scope=wishes.scope(self.cluster.database),
            is_scope_changed=wishes.patterns is not None,
            event_limit=wishes.event_limit,
            is_previous_kept=wishes.is_previous_kept,
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
            is_drop_allowed=self.cluster.wishes.is_drop_allowed,
            roots=self.cluster.source_roots,
        )


class WatchedDump(ReplDump):
    """The product's; a bootstrap shows each table at some moment while it is made, and so does a
    dump that tables come into the scope by. What a dump is of is what was asked for."""

    def __init__(self, cluster: Cluster) -> None:
        store = cluster.source.metastore
        super().__init__(store, cluster.resolve, cluster.host_clock, cluster.token, store.manifest)
        self._cluster = cluster
        self._side = cluster.source

    def run(self, plan: DumpPlan) -> DumpReport:
        story, before = self._side.story, self._side.story.bootstrap_end
        has_snapshots = plan.kind is DumpKind.BOOTSTRAP or bool(plan.anew)
        if has_snapshots or plan.scope_change.is_limited:
            story.bootstrap_end = None
        wanted = self._wanted(plan)
        try:
            report = super().run(plan)
        except ReplError as error:
            self._require_waited_for_others(error)
            raise
        if has_snapshots or report.tables:
            story.bootstrap_end = self._side.event_id()
        elif story.bootstrap_end is None:
            story.bootstrap_end = before
        if self._cluster.wishes.is_used and plan.kind in (
            DumpKind.BOOTSTRAP,
            DumpKind.INCREMENTAL,
        ):
            self._require_of(report.directory or "", wanted)
        return report

    def _require_waited_for_others(self, error: ReplError) -> None:
        """I13: who began while it waited, in its own sleep, keeps no dump from its beginning."""
        actor = self._cluster.scheduler.current
        mine = self._cluster.owned.get(actor.name if actor else "", set())
        others = self._side.ledger.open - {one.txn_id for one in mine}
        if "while it is written to" in str(error) and not others:
            raise ViolationError("I13", f"a dump waits for who came later: {error}") from error

    def _wanted(self, plan: DumpPlan) -> Patterns:
        """What was asked for, or else what the dump before is of."""
        scope, disk = plan.request.scope, self._cluster.disk
        if scope is not None:
            return Patterns(scope.included_pattern, scope.excluded_pattern)
        is_there = plan.previous and disk.find(f"{plan.previous[5:]}/hive/_dumpmetadata")
        return patterns_of_dump(disk, plan.previous or "") if is_there else ALL_TABLES

    def _require_of(self, directory: str, wanted: Patterns) -> None:
        disk = self._cluster.disk
        if disk.find(f"{directory.removeprefix('file:')}/hive/_dumpmetadata") is None:
            return  # another dump was faster, and has taken it away
        told = patterns_of_dump(disk, directory)
        if told != wanted:
            raise ViolationError("I11", f"{directory} is of {told}, not {wanted}")


class WatchedLoad(ReplLoad):
    """The product's; what it says must be so (I11), also where it says that there is nothing to do:
    a load that died at its very end, or came too late, has made the cluster doubt."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.target.metastore, cluster.resolve, clock=cluster.host_clock)
        self._cluster = cluster
        self._story = cluster.target.story
        self._begun_before = self._story.loads_begun
        self._kept: frozenset[str] = frozenset()

    def plan(self, request: LoadRequest) -> LoadPlan:
        self._begun_before = self._story.loads_begun
        return super().plan(request)

    def run(self, plan: LoadPlan) -> LoadReport:
        cluster, target = self._cluster, self._cluster.target
        if plan.kind is LoadKind.NOTHING:
            report = super().run(plan)
            # What an earlier one said of tables that stay is forgotten.
            is_known = not (cluster.wishes.is_used and cluster.roles.has_changed)
            is_doubted = plan.stands_at is not None and cluster.loaded is None
            if is_doubted and is_known and self._is_alone:
                cluster.loaded_to(int(plan.stands_at), self._patterns(plan))
            return report
        patterns = self._patterns(plan)
        self._kept = cluster.loaded.kept if cluster.loaded else frozenset()
        cluster.loaded = None
        with self._loading(), self._keeping(plan):
            report = super().run(plan)
        if plan.kind is LoadKind.DROP and target.has_database():
            raise ViolationError("I11", "a replica is there that a load says it has dropped")
        cluster.loaded_to(int(report.last_event_id or 0), patterns)
        self._keep_what_is_told(report)
        return report

    def _keep_what_is_told(self, report: LoadReport) -> None:
        loaded, names = self._cluster.loaded, set[str]()
        for note in report.notes:
            names.update(_STAYS.findall(note))
        if loaded is not None and self._cluster.roles.has_changed:
            loaded.kept = frozenset(names | self._kept) - set(
                loaded.patterns.of(self._cluster.model.tables)
            )

    def _patterns(self, plan: LoadPlan) -> Patterns:
        cluster = self._cluster
        if not cluster.wishes.is_used:
            return ALL_TABLES
        return patterns_of_dump(cluster.disk, plan.directory)

    @property
    def _is_alone(self) -> bool:
        """Whether the replica was between two states at no time since this load was planned."""
        return not self._story.loads_at_work and self._story.loads_begun == self._begun_before

    @contextmanager
    def _loading(self) -> Iterator[None]:
        self._story.loads_begun += 1
        self._story.loads_at_work += 1
        try:
            yield
        finally:
            self._story.loads_at_work -= 1

    @contextmanager
    def _keeping(self, plan: LoadPlan) -> Iterator[None]:
        """Unless it was allowed to, a load drops no replica."""
        actor, keeping = self._cluster.scheduler.current, self._cluster.roles.keeping
        names = {actor.name} if actor and not plan.request.is_drop_allowed else set()
        keeping |= names
        try:
            yield
        finally:
            keeping -= names


EXPECTED = (HmsBridgeError, ChangeManagerError, OSError)
"""What a process may end with: refusals that name what is wrong."""
