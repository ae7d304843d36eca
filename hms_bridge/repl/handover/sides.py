"""What a promotion or a failback works with: both sides of a policy, and where it is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from changemanager.location import Resolver
from changemanager.manifest import ArchivePins
from hms_bridge.clock import Clock
from hms_bridge.errors import HmsBridgeError, MetaError, ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Database, Table
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.model.replication import CycleOutcome, CycleResult, ReplicationPolicy
from hms_bridge.model.txn import AbortReason, AllocateWriteIdsRequest
from hms_bridge.policy_store import PolicyStore
from hms_bridge.repl.cycles.cycle import OpenCycle
from hms_bridge.repl.lease import Lease, LeaseKind, LeaseRequest, LeaseRules, held_lease
from hms_bridge.repl.own_part import open_rebalances, open_writers
from hms_bridge.repl.target_objects import FENCED, with_parameters
from hms_bridge.session.transaction import Client, open_transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """A database of a metastore. ``manifest`` keeps its pins, None where it is out of reach;
    ``cm_root`` is its archive."""

    metastore: Metastore
    database_name: str
    resolve: Resolver
    manifest: ArchivePins | None
    cm_root: str | None

    @property
    def all_tables(self) -> ReplScope:
        """What is handed over: only a replica of all tables takes its source's place."""
        return ReplScope(database_name=self.database_name)

    def database(self) -> Database:
        """Raises NoSuchObjectError."""
        return self.metastore.get_database(self.database_name)

    def tables(self) -> tuple[Table, ...]:
        """All of them."""
        names = self.metastore.get_tables(self.database_name)
        return self.metastore.get_tables_by_names(self.database_name, names) if names else ()

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
    tell: Callable[[str], None] = lambda _: None

    def alone_with_policy(self) -> AbstractContextManager[Lease]:
        """No cycle of the policy runs meanwhile. Raises BusyError."""
        return held_lease(
            self.keeper, self.clock, self._lease_request(LeaseKind.RUN, self.policy.name)
        )

    def alone_with_loads(self, side: Side) -> AbstractContextManager[Lease]:
        """Nothing is loaded into a side meanwhile, and this one may change its definitions. Raises
        BusyError."""
        return held_lease(
            side.metastore, self.clock, self._lease_request(LeaseKind.LOAD, side.database_name)
        )

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

    def _lease_request(self, kind: LeaseKind, name: str) -> LeaseRequest:
        return LeaseRequest(
            kind=kind,
            database_name=name,
            user=self.user,
            host=self.host,
            rules=self.lease,
            on_waiting=self.tell,
        )


def fence(sides: OpenSides, side: Side) -> None:
    """From now on nobody gets a write id of a source, nor changes what it defines."""
    side.set_parameters({FENCED: sides.policy.name})


def lift_fence(side: Side) -> None:
    """Its writers have it again."""
    side.set_parameters({FENCED: None})


def require_upheld(sides: OpenSides, side: Side) -> None:
    """Raises ReplError if the metastore of a fenced source gives write ids all the same, as Hive's
    does. Tried with a transaction of its own."""
    table = next((table for table in side.tables() if table.is_transactional), None)
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
            raise ReplError(
                f"the metastore of database {side.database_name} heeds no fence (a Hive's does "
                "not): what is written there while the replica takes over would be lost to it. "
                f"Stop its writers, then 'repl promote {sides.policy.name}' as before, with "
                "--source-is-quiet"
            )


def abort_writers(side: Side) -> None:
    """End the open transactions of clients that have write ids of a side's database, or give its
    rows other ids."""
    writers = open_writers(side.metastore, side.database_name)
    writers += open_rebalances(side.metastore, side.database_name)
    if writers:
        side.metastore.abort_txns(writers, AbortReason.REPL_DEFAULT)
