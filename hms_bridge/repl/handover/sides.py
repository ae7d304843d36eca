"""What a promotion or a failback works with: both sides of a policy, and where it is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace

from changemanager.location import Resolver
from changemanager.manifest import ArchiveManifest
from hms_bridge.clock import Clock
from hms_bridge.errors import HmsBridgeError, MetaError, ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Database, Table
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.model.replication import CycleOutcome, CycleResult, ReplicationPolicy
from hms_bridge.model.txn import AbortReason, AllocateWriteIdsRequest
from hms_bridge.policy_store import PolicyStore
from hms_bridge.repl.cycles.cycle import OpenCycle
from hms_bridge.repl.handover.own_part import open_rebalances, open_writers
from hms_bridge.repl.lease import Lease, LeaseKind, LeaseRequest, LeaseRules, held_lease, lease_seen
from hms_bridge.repl.lookup import all_tables, if_there
from hms_bridge.repl.pins import DumpPins
from hms_bridge.repl.successor import Successor
from hms_bridge.repl.target_objects import FENCED, SUCCESSOR, with_parameters
from hms_bridge.session.transaction import Client, open_transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """A database of a metastore. ``manifest`` keeps its pins, None where it is out of reach;
    ``cm_root`` is its archive."""

    metastore: Metastore
    database_name: str
    resolve: Resolver
    manifest: ArchiveManifest | None
    cm_root: str | None

    @property
    def all_tables(self) -> ReplScope:
        """What is handed over: only a replica of all tables takes its source's place."""
        return ReplScope(database_name=self.database_name)

    def database(self) -> Database:
        """Read anew each time. Raises NoSuchObjectError."""
        return self.metastore.get_database(self.database_name)

    def tables(self) -> tuple[Table, ...]:
        """Whole rows of all tables and views of the database."""
        return all_tables(self.metastore, self.database_name)

    def set_parameters(self, changes: Mapping[str, str | None]) -> None:
        """Set parameters of the database, or remove them (None), in one step."""
        database = self.database()
        changed = with_parameters(database, changes)
        if changed != database:
            self.metastore.alter_database(self.database_name, changed)


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenSides:
    """``source`` None: it cannot be reached, and ``unreachable`` says why. ``keeper``: the
    metastore in whose database ``policies`` are. ``open_cycle`` opens the sides of a policy for a
    cycle."""

    policy: ReplicationPolicy
    source: Side | None
    target: Side
    keeper: Metastore
    policies: PolicyStore
    open_cycle: Callable[[ReplicationPolicy], AbstractContextManager[OpenCycle]]
    clock: Clock
    new_name: Callable[[], str]
    user: str
    host: str
    lease: LeaseRules
    unreachable: str = ""
    say: Callable[[str], None] = lambda _: None

    @contextmanager
    def alone_with_policy(self, verb: str) -> Iterator[Lease]:
        """No cycle of the policy runs while ``verb`` does something. Raises BusyError, and what
        :meth:`same_policy` does."""
        wanted = LeaseRequest.of(self, LeaseKind.RUN, self.policy.name, self.say, verb)
        with held_lease(self.keeper, self.clock, wanted) as lease:
            self.same_policy()  # whoever had the lease may have turned it around
            yield lease

    def same_policy(self) -> ReplicationPolicy:
        """The policy as it is kept now. Raises ReplError if that is not any more what its sides
        were opened by (a pause changes no side), NoSuchObjectError if it was removed."""
        now = self.policies.get_policy(self.policy.name)
        if replace(now, is_paused=self.policy.is_paused) != self.policy:
            raise ReplError(
                f"policy {now.name} was changed by somebody else meanwhile, so this is not done by "
                f"it any more. Look at it ('repl policy show {now.name}'), and type this again if "
                "it is still wanted"
            )
        return now

    def alone_with_loads(self, side: Side, verb: str) -> AbstractContextManager[Lease]:
        """Nothing is loaded into a side meanwhile, and ``verb`` may change its definitions. Raises
        BusyError."""
        wanted = LeaseRequest.of(self, LeaseKind.LOAD, side.database_name, self.say, verb)
        return held_lease(side.metastore, self.clock, wanted)

    def holders(self, *, is_loading: bool) -> tuple[str, ...]:
        """Who holds the policy and (``is_loading``) loads into its replica now, as sentences: which
        of them lives shows only to who waits."""
        name = self.target.database_name
        looked_at = [(self.keeper, LeaseKind.RUN, self.policy.name)]
        looked_at += [(self.target.metastore, LeaseKind.LOAD, name)] if is_loading else []
        texts = []
        for metastore, kind, about in looked_at:
            seen = lease_seen(metastore, kind, about)
            if seen is not None and not seen.has_ended:
                texts.append(
                    f"another {seen.doing} of {about} has begun and not ended: {seen.who}. If it "
                    "lives, this is refused; if it was killed, this waits for its lease"
                )
        return tuple(texts)

    def replicate(
        self, policy: ReplicationPolicy, work: Callable[[OpenCycle], CycleResult]
    ) -> None:
        """A cycle, which history keeps. Raises what ``work`` raises."""
        number = self.policies.begin_cycle(policy.name, self.host)
        result = CycleResult(outcome=CycleOutcome.INTERRUPTED)
        try:
            with self.open_cycle(policy) as cycle:
                result = work(cycle)
        except HmsBridgeError as error:
            result = CycleResult(outcome=CycleOutcome.FAILED, message=str(error))
            raise
        finally:
            self.policies.end_cycle(policy.name, number, result)


def without_lost_source(sides: OpenSides) -> OpenSides:
    """A source whose metastore answers but has no such database is as lost as one out of reach."""
    source = sides.source
    if source is None or find_database(source) is not None:
        return sides
    lost = f"its metastore has no database {source.database_name}"
    return replace(sides, source=None, unreachable=lost)


def find_database(side: Side) -> Database | None:
    """That of a side, if it is there."""
    return if_there(side.database)


def require_replica(sides: OpenSides) -> Database:
    """The replica's database. Raises ReplError if nothing was loaded yet."""
    database, policy = find_database(sides.target), sides.policy
    if database is not None:
        return database
    raise ReplError(
        f"the replica's metastore has no database {sides.target.database_name}, so policy "
        f"{policy.name} has no replica yet: 'repl run {policy.name}' brings one; if the source is "
        f"lost, 'repl load {policy.source.database} --root {policy.root}' with the replica's "
        "--metastore loads what was dumped. Nothing was changed"
    )


def fence(sides: OpenSides, side: Side) -> None:
    """From now on nobody gets a write id of a source, nor changes what it defines."""
    side.set_parameters({FENCED: sides.policy.name})


def hand_over(sides: OpenSides, side: Side) -> None:
    """The same for good: who has the source's place, or will have it as nobody can give the
    promotion up any more. From now on the source is not dumped."""
    successor = Successor(
        policy=sides.policy.name,
        database=sides.target.database_name,
        metastore=sides.policy.target.metastore,
    )
    side.set_parameters({FENCED: sides.policy.name, SUCCESSOR: successor.format()})


def lift_fence(side: Side) -> None:
    """Its writers have it again."""
    side.set_parameters({FENCED: None})


def require_heeding(sides: OpenSides, side: Side) -> None:
    """Raises ReplError if the metastore of a source is none that heeds a fence, as Hive's is not.
    Changes nothing, so it is asked before there is a fence."""
    if _transactional_table(side) is not None and not side.metastore.heeds_fences():
        raise _heedless(sides, side)


def require_upheld(sides: OpenSides, side: Side) -> None:
    """Raises ReplError if the metastore of a fenced source gives write ids all the same, as an
    early version of ours does. Tried with a transaction of its own."""
    table = _transactional_table(side)
    if table is None:
        return
    client, is_upheld = Client(user=sides.user, host=sides.host), False
    with open_transaction(side.metastore, client, abort_reason=AbortReason.REPL_DEFAULT) as opened:
        try:
            side.metastore.allocate_table_write_ids(
                AllocateWriteIdsRequest(
                    database_name=side.database_name, table_name=table.name, txn_ids=(opened.id,)
                )
            )
        except MetaError:
            is_upheld = True
        if not is_upheld:
            raise _heedless(sides, side)


def _transactional_table(side: Side) -> Table | None:
    return next((table for table in side.tables() if table.is_transactional), None)


def _heedless(sides: OpenSides, side: Side) -> ReplError:
    return ReplError(
        f"the metastore of database {side.database_name} heeds no fence (a Hive's does not): what "
        "is written there while the replica takes over would be lost to it. Stop its writers, then "
        f"'repl promote {sides.policy.name}' as before, with --source-is-quiet"
    )


def pins_of(sides: OpenSides, side: Side) -> DumpPins:
    """Those that a side's archive keeps for dumps of the policy."""
    return DumpPins(
        manifest=side.manifest,
        clock=sides.clock,
        database=side.database_name,
        root=side.resolve(sides.policy.root).uri,
    )


def abort_writers(side: Side) -> None:
    """End the open transactions of clients that have write ids of a side's database, or give its
    rows other ids."""
    writers = open_writers(side.metastore, side.database_name)
    writers += open_rebalances(side.metastore, side.database_name)
    if writers:
        side.metastore.abort_txns(writers, AbortReason.REPL_DEFAULT)
