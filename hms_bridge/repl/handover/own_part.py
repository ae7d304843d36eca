"""What an admin decides of a database's part in replication: who may change it, and its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from hms_bridge.errors import ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Database
from hms_bridge.model.compaction import CompactionType, ShowCompactionsRequest
from hms_bridge.model.ids import TxnId
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import AbortReason, TxnState, TxnType
from hms_bridge.repl.load.handed_over import refuse_successor
from hms_bridge.repl.load.replica import replay_policy
from hms_bridge.repl.load.write_id_owner import owns
from hms_bridge.repl.lookup import all_tables
from hms_bridge.repl.remedies import lift_fence
from hms_bridge.repl.successor import require_no_successor
from hms_bridge.repl.target_objects import (
    FENCED,
    OPENED,
    PROPERTIES,
    SUCCESSOR,
    WAS_OPEN,
    is_fenced,
    is_replica,
    with_parameters,
)
from hms_bridge.repl.whole_lists import whole_lists

_NO_CLIENTS = frozenset(
    {TxnType.REPL_CREATED, TxnType.COMPACTION, TxnType.REBALANCE_COMPACTION, TxnType.READ_ONLY}
)


class Access(Enum):
    """What others than loads may do in a replica; the value is that of the property."""

    WRITES = "true"
    DEFINITIONS = "definitions"
    NOTHING = "false"


def set_access(metastore: Metastore, name: str, access: Access) -> bool:
    """Let others change a replica, or not any more.

    With WRITES a former source whose part was ended may be dumped again; True for such a one.
    Raises NoSuchObjectError, ReplError for a database that is neither.
    """
    database = metastore.get_database(name)
    if is_fenced(database):
        require_no_successor(database)
        raise ReplError(
            f"database {database.name} is a source that is handed over to its replica; to give it "
            f"back: {lift_fence(database.parameters[FENCED])}"
        )
    if SUCCESSOR in database.parameters and access is Access.WRITES:
        metastore.alter_database(name, with_parameters(database, {SUCCESSOR: None}))
        return True
    if not is_replica(database.parameters):
        raise ReplError(f"database {database.name} is no replica; others may change it anyway")
    refuse_successor(database)
    changes: dict[str, str | None] = {OPENED: access.value}
    if access is not Access.NOTHING:
        changes[WAS_OPEN] = "true"
    metastore.alter_database(name, with_parameters(database, changes))
    return False


@dataclass(frozen=True, kw_only=True, slots=True)
class EndPlan:
    """``properties`` of the database go; ``txn_ids``, replays that a load began, are aborted."""

    database: Database
    properties: tuple[str, ...]
    txn_ids: tuple[TxnId, ...]

    @property
    def losses(self) -> tuple[str, ...]:
        """What will be lost, as sentences for people. A source that is handed over loses
        nothing: its replica has all, and has its place."""
        database, losses = self.database, []
        if database.is_replication_source and not is_fenced(database):
            losses.append(
                f"{database.name} is a source: what is replaced or dropped there from now on is "
                "not archived, so a load that has not copied it yet, of a dump that waits or of a "
                "later one, cannot, and its replica has to begin anew with a bootstrap dump"
            )
        if is_replica(database.parameters):
            losses.append(
                f"{database.name} is a replica: no later dump of its source can be loaded into "
                "it; a replica has to begin anew, in a database that is dropped before"
            )
        return tuple(losses)


def plan_end(metastore: Metastore, name: str, policies: Sequence[str] = ()) -> EndPlan:
    """What ends a database's part. ``policies``: those at work that replicate from or into it.

    Raises NoSuchObjectError, ReplError if it has no part, and while there are such policies.
    """
    database = metastore.get_database(name)
    properties = tuple(key for key in PROPERTIES if key in database.parameters)
    if not properties:
        raise ReplError(f"database {database.name} is neither a source nor a replica")
    if policies:
        ends = " and ".join(f"'repl policy remove {policy}'" for policy in policies)
        raise ReplError(
            f"database {database.name} is replicated by {', '.join(policies)}, whose next cycle "
            f"would fail or bring it back. End that first: {ends}, or 'repl policy pause' to "
            "keep what it says. Nothing was changed"
        )
    return EndPlan(
        database=database, properties=properties, txn_ids=open_replays(metastore, database.name)
    )


def run_end(metastore: Metastore, plan: EndPlan) -> None:
    """Carry it out. Replays first: their end marks the database once more."""
    if plan.txn_ids:
        metastore.abort_txns(plan.txn_ids, AbortReason.REPL_DEFAULT)
    database = metastore.get_database(plan.database.name)
    metastore.alter_database(
        database.name, with_parameters(database, dict.fromkeys(PROPERTIES, None))
    )


def open_replays(metastore: Metastore, database: str) -> tuple[TxnId, ...]:
    """Open transactions of loads: those that replay the source's, and whatever of theirs has write
    ids of the database."""
    replays = set(_with_write_ids(metastore, database, lambda kind: kind is TxnType.REPL_CREATED))
    # One that a load opened and was killed has no write id yet; nothing else shows it.
    replayed = set(metastore.get_replayed_txns(replay_policy(database)).values())
    if replayed - replays:
        opened = metastore.get_open_txns().txns
        replays |= replayed.intersection(txn.id for txn in opened if txn.state is TxnState.OPEN)
    return tuple(sorted(replays))


def open_writers(metastore: Metastore, database: str) -> tuple[TxnId, ...]:
    """Open transactions of clients that have write ids of the database."""
    return _with_write_ids(metastore, database, lambda kind: kind not in _NO_CLIENTS)


def open_rebalances(metastore: Metastore, database: str) -> tuple[TxnId, ...]:
    """Open transactions that give rows of the database other ids; they have no write ids."""
    opened = {
        txn.id
        for txn in metastore.get_open_txns().txns
        if txn.state is TxnState.OPEN and txn.type is TxnType.REBALANCE_COMPACTION
    }
    if not opened:
        return ()
    shown = metastore.show_compactions(
        ShowCompactionsRequest(scope=Scope(database), type=CompactionType.REBALANCE)
    )
    return tuple(sorted(opened.intersection(entry.txn_id or TxnId(0) for entry in shown)))


def _with_write_ids(
    metastore: Metastore, database: str, is_wanted: Callable[[TxnType], bool]
) -> tuple[TxnId, ...]:
    opened = metastore.get_open_txns()
    candidates = [
        txn.id for txn in opened.txns if txn.state is TxnState.OPEN and is_wanted(txn.type)
    ]
    if not candidates:
        return ()
    tables = all_tables(metastore, database)
    names = [table.full_name for table in tables if table.is_transactional]
    lists = whole_lists(metastore, names, metastore.get_open_txns().snapshot())
    return tuple(
        txn_id
        for txn_id in candidates
        if any(
            owns(metastore, name, txn_id, write_id)
            for name, write_ids in zip(names, lists, strict=True)
            for write_id in write_ids.open_ids
        )
    )
