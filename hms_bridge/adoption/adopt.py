"""Carries out an adoption: registers what the plan says, and nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from changemanager.location import ParsedUri, parse_uri
from hms_bridge.adoption.plan import AdoptionPlan
from hms_bridge.errors import AlreadyExistsError, InvalidOperationError, NoSuchObjectError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import KEEP_FILES, Database, Partition, Table
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import LockFilter, LockState, LockType
from hms_bridge.model.partition_name import partition_name, target_name
from hms_bridge.model.target import Scope, Target
from hms_bridge.model.txn import OpenTxns, TableWriteIdState
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.session.transaction import Client, current_snapshot, open_transaction

_TABLES_AT_ONCE = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class AdoptionTarget:
    """What the metastore has already. ``known``: the table, if an adoption was interrupted;
    ``missing``: the partitions that it lacks."""

    known: Table | None
    missing: tuple[Partition, ...]
    is_database_new: bool


def check_target(plan: AdoptionPlan, metastore: Metastore) -> AdoptionTarget:
    """Whether the metastore can take the table. Changes nothing.

    Raises as :func:`adopt`.
    """
    table = plan.table
    known = _known_table(metastore, table)
    missing = _missing_partitions(metastore, plan, known)
    if known is None:
        _require_unused(metastore, table)
        _require_no_writers(metastore, table)
    _require_own_txns(plan, metastore.get_open_txns(frozenset()))
    _require_write_ids(metastore, plan, is_set=False)
    try:
        metastore.get_database(table.database_name)
        is_database_new = False
    except NoSuchObjectError:
        is_database_new = True
    return AdoptionTarget(known=known, missing=missing, is_database_new=is_database_new)


def adopt(plan: AdoptionPlan, metastore: Metastore, *, user: str, host: str) -> AdoptionTarget:
    """Register the table, its partitions and its write ids; its database if that is not there.

    Write ids come first, so that nobody can write to the table before its rows are known, and the
    table last but for its partitions; an adoption that was interrupted is completed by the next.
    Where aborted writes left files, a major compaction is queued. Returns what was there before.
    Raises AlreadyExistsError if the name or the directory belongs to a table already,
    InvalidOperationError if this metastore has transactions of its own under the numbers of the
    directory's compactions, other write ids under the table's name, or somebody who holds a lock to
    write to a table of that name; MetaError if a DROP of the directory has begun to delete its
    files (one that has not is taken back).
    """
    table = plan.table
    target = check_target(plan, metastore)
    _make_txns_known(plan, metastore, user, host)
    if target.is_database_new:
        metastore.create_database(Database(name=table.database_name))
    metastore.repl_table_write_id_state(
        TableWriteIdState(
            valid_write_ids=plan.write_ids.format(),
            user=user,
            host=host,
            database_name=table.database_name,
            table_name=table.name,
            partition_names=plan.partitions_with_aborts if table.is_partitioned else None,
        )
    )
    _require_write_ids(metastore, plan)
    if target.known is None:
        wanted = {**table.parameters, KEEP_FILES: "true"}
        metastore.create_table(replace(table, parameters=wanted))
    if target.missing:
        missing = [
            replace(partition, parameters={**partition.parameters, KEEP_FILES: "true"})
            for partition in target.missing
        ]
        metastore.add_partitions(table.database_name, table.name, missing)
    _ask_to_compact(plan, metastore)
    return target


def _ask_to_compact(plan: AdoptionPlan, metastore: Metastore) -> None:
    """Where aborted writes are. The write ids' state asks too, but before there is a table: a
    worker that is quick has refused it. What is still queued is not queued twice."""
    table = plan.table
    for name in plan.to_compact:
        metastore.compact(
            CompactionRequest(
                target=Target(table.database_name, table.name, name),
                type=CompactionType.MAJOR,
                initiator_id="adopt",
            )
        )


def _known_table(metastore: Metastore, table: Table) -> Table | None:
    """The table of that name, if it lies in the same directory and has the same columns."""
    try:
        known = metastore.get_table(table.database_name, table.name)
    except NoSuchObjectError:
        return None
    is_place_same = _place(known) == _place(table)
    is_same = is_place_same and _shape(known) == _shape(table) and known.is_full_acid
    if not is_same:
        raise AlreadyExistsError(
            f"{table.full_name} is there already, in {known.storage.location}; choose another name"
        )
    return known


def _missing_partitions(
    metastore: Metastore, plan: AdoptionPlan, known: Table | None
) -> tuple[Partition, ...]:
    if known is None:
        return plan.partitions
    there = set(metastore.get_partition_names(known.database_name, known.name))
    missing = tuple(
        partition for partition in plan.partitions if _name(plan.table, partition) not in there
    )
    if not missing:
        raise AlreadyExistsError(
            f"{known.full_name} is adopted already, from {known.storage.location}"
        )
    return missing


def _require_unused(metastore: Metastore, table: Table) -> None:
    """Two tables over one directory would clean away each other's rows."""
    wanted = _place(table)
    for other in _all_tables(metastore):
        place = _place(other)
        if place is None or wanted is None:
            continue
        if place.is_below(wanted) or wanted.is_below(place):
            raise AlreadyExistsError(
                f"{table.storage.location} belongs to {other.full_name}, which lies in "
                f"{other.storage.location}; two tables over the same files would lose rows"
            )


def _require_no_writers(metastore: Metastore, table: Table) -> None:
    """Who wrote to a table that was dropped under him may not have ended: what he still brings
    under a write id that counts as aborted would be seen once that is forgotten."""
    mine = LockFilter(scope=Scope(table.database_name, table.name))
    for lock in metastore.show_locks(mine):
        if lock.type is not LockType.SHARED_READ and lock.state is LockState.ACQUIRED:
            raise InvalidOperationError(
                f"transaction {lock.txn_id} of {lock.user} at {lock.host} holds a lock to write to "
                f"{table.full_name} (SHOW LOCKS {table.full_name}), of before it was dropped; "
                "adopt it when that has ended, or end it with ABORT TRANSACTIONS"
            )


def _all_tables(metastore: Metastore) -> Iterator[Table]:
    for database in metastore.get_databases():
        names = metastore.get_tables(database)
        for start in range(0, len(names), _TABLES_AT_ONCE):
            some = names[start : start + _TABLES_AT_ONCE]
            yield from metastore.get_tables_by_names(database, some)


def _make_txns_known(plan: AdoptionPlan, metastore: Metastore, user: str, host: str) -> None:
    """Directories ``…_v17`` are seen only by who knows transaction 17 as committed."""
    if not plan.visibility_txn_ids:
        return
    opened = metastore.get_open_txns(frozenset())
    _require_own_txns(plan, opened)
    highest = max(plan.visibility_txn_ids)
    if highest > opened.high_watermark:
        # The number after it: one that were left open by a kill must be none of the directory's.
        metastore.seed_txn_id(TxnId(highest + 1))
        with open_transaction(metastore, Client(user=user, host=host, agent="adopt")):
            pass


def _require_own_txns(plan: AdoptionPlan, opened: OpenTxns) -> None:
    foreign = {txn.id for txn in opened.txns} & set(plan.visibility_txn_ids)
    if foreign:
        raise InvalidOperationError(
            f"the directory has the output of compaction transaction {min(foreign)}, which is the "
            "number of an open or aborted transaction of this metastore; adopt into a new metastore"
        )


def _require_write_ids(metastore: Metastore, plan: AdoptionPlan, *, is_set: bool = True) -> None:
    """A name may have write ids left, of a table that was dropped. Before they are set, none are
    as good as those of the plan."""
    name = plan.table.full_name
    (known,) = metastore.get_valid_write_ids([name], current_snapshot(metastore))
    if not is_set and known.high_watermark == 0:
        return
    if _state(known) != _state(plan.write_ids):
        raise InvalidOperationError(
            f"the metastore has other write ids for {name} ({known.format()}, not "
            f"{plan.write_ids.format()}): it was written to, or another table had that name; "
            "choose another name"
        )


def _state(ids: ValidWriteIdList) -> tuple[object, ...]:
    return ids.high_watermark, ids.open_ids, ids.aborted_ids


def _place(table: Table) -> ParsedUri | None:
    """Where a table lies, with its scheme; None for a view."""
    if not table.storage.location:
        return None
    parsed = parse_uri(table.storage.location)
    return replace(parsed, scheme=parsed.file_system[0])


def _shape(table: Table) -> tuple[object, ...]:
    return tuple((c.name, c.type) for c in (*table.storage.columns, *table.partition_columns))


def _name(table: Table, partition: Partition) -> str:
    return partition_name(table.partition_columns, partition.values)


def describe(plan: AdoptionPlan) -> dict[str, object]:
    """The plan for people."""
    table = plan.table
    return {
        "table": table.full_name,
        "location": table.storage.location,
        "columns": ", ".join(f"{c.name} {c.type}" for c in table.storage.columns),
        "partition columns": ", ".join(f"{c.name} {c.type}" for c in table.partition_columns),
        "partitions": len(plan.partitions),
        "write ids": plan.write_ids.format(),
        "compaction transactions": list(plan.visibility_txn_ids),
        "to compact": [target_name(table.full_name, name) for name in plan.to_compact],
    }
