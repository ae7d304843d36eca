"""Set column statistics, and who may believe them after it (Hive 4.2: SetAggrStatsHandler,
ObjectStore; docs/hive/metastore.md §8, §9)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from hms_bridge.catalog import statistics, statistics_state, view_creation
from hms_bridge.catalog.limits import check_statistics
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.catalog.statistics_merge import all_merged
from hms_bridge.catalog.statistics_state import PartitionState
from hms_bridge.catalog.tables import StoredTable
from hms_bridge.errors import MetaError, NoSuchObjectError
from hms_bridge.model.catalog import Table
from hms_bridge.model.ids import WriteId
from hms_bridge.model.partition_name import parse_partition_name
from hms_bridge.model.statistics import (
    ColumnStatistics,
    ObjectStatistics,
    StatisticsQuery,
    StatisticsUpdate,
)
from hms_bridge.model.statistics_state import (
    ACCURATE,
    Parameters,
    accurate_columns,
    change_needs_write_id,
    is_believable,
    seen_table,
    with_accurate_columns,
    without_trust,
)
from hms_bridge.notification import object_events
from hms_bridge.notification.events import EventDraft
from hms_bridge.service.believable_statistics import (
    require_table,
    statistics_of_partitions,
    statistics_of_table,
)
from hms_bridge.service.unit_of_work import UnitOfWork

_LOG = logging.getLogger(__name__)


def set_column_statistics(unit: UnitOfWork, update: StatisticsUpdate) -> bool:
    """See the port; with an event for the table, or for each partition."""
    check_statistics(update)
    stored = require_table(unit.connection, update, RowLock.EXCLUSIVE)
    if update.objects[0].partition_name is None:
        return _set_of_table(unit, stored, update)
    return _set_of_partitions(unit, stored, update)


def _set_of_table(unit: UnitOfWork, stored: StoredTable, update: StatisticsUpdate) -> bool:
    stored = view_creation.with_creation(unit.connection, stored)
    table, columns = stored.table, update.objects[0].columns
    if update.is_merge:
        query = _query_for(update, columns)
        old = statistics_of_table(unit.connection, stored, query)
        # Nothing that this writer may merge with; and what is stored leaves its rows out.
        if old is not None and old.is_compliant is False:
            _distrust_table(unit, stored, update.write_id)
            return False
        columns = _mergeable(columns, table.parameters, old)
        if not columns:
            return True
    _check_columns(table, columns)
    names = [column.column for column in columns]
    parameters, write_id = _state_after(
        table, table.parameters, table.write_id, names, update, table.full_name
    )
    statistics.put_of_table(
        unit.connection, stored, columns, engine=update.engine, now_seconds=unit.now_seconds
    )
    statistics_state.put_table_state(unit.connection, stored, parameters, write_id)
    after = replace(
        table, parameters=parameters, write_id=table.write_id if write_id is None else write_id
    )
    current = ObjectStatistics(columns=columns, analyzed_seconds=unit.now_seconds)
    unit.events.append(
        object_events.table_statistics_updated(
            seen_table(after, update.valid_write_ids),
            current,
            unit.now_seconds,
            engine=update.engine,
            write_id=update.write_id,
            parameters=parameters,
        )
    )
    return True


def _set_of_partitions(unit: UnitOfWork, stored: StoredTable, update: StatisticsUpdate) -> bool:
    given = _distinct(update.objects)
    states = statistics_state.partition_states(unit.connection, stored, given, RowLock.EXCLUSIVE)
    _require_partitions(stored.table, given.keys() - states.keys(), is_merge=update.is_merge)
    old: Mapping[str, ObjectStatistics] = {}
    if update.is_merge:
        first = next(iter(given.values()))
        query = replace(_query_for(update, first), partition_names=tuple(states))
        old = statistics_of_partitions(unit.connection, stored, query)
    is_complete = True
    changes: list[tuple[PartitionState, tuple[ColumnStatistics, ...]]] = []
    states_after: list[tuple[PartitionState, Mapping[str, str], WriteId | None]] = []
    for name, state in states.items():
        columns, known = given[name], old.get(name)
        if update.is_merge:
            if known is not None and known.is_compliant is False:
                states_after.append((state, {}, _given(update.write_id)))
                is_complete = False
                continue
            columns = _mergeable(columns, state.parameters, known)
            if not columns:
                continue
        what = f"{stored.table.full_name} {name}"
        parameters, write_id = _state_after(
            stored.table,
            state.parameters,
            state.write_id,
            [column.column for column in columns],
            update,
            what,
        )
        changes.append((state, columns))
        states_after.append((state, parameters, write_id))
        unit.events.append(
            _partition_updated(unit, stored.table, state, columns, parameters, update)
        )
    statistics.put_of_partitions(
        unit.connection, stored, changes, engine=update.engine, now_seconds=unit.now_seconds
    )
    statistics_state.put_partition_states(unit.connection, states_after)
    return is_complete


def _require_partitions(table: Table, missing: Collection[str], *, is_merge: bool) -> None:
    """Raises NoSuchObjectError for partitions that are not there; a merge goes on without them."""
    for name in missing:
        if not is_merge:
            raise NoSuchObjectError(
                f"Partition for which stats is gathered doesn't exist: {name} of {table.full_name}"
            )
        _LOG.warning("%s has no partition %s: no statistics", table.full_name, name)


def _partition_updated(
    unit: UnitOfWork,
    table: Table,
    state: PartitionState,
    columns: tuple[ColumnStatistics, ...],
    parameters: Mapping[str, str],
    update: StatisticsUpdate,
) -> EventDraft:
    return object_events.partition_statistics_updated(
        table,
        [value for _, value in parse_partition_name(state.name)],
        ObjectStatistics(
            columns=columns, partition_name=state.name, analyzed_seconds=unit.now_seconds
        ),
        unit.now_seconds,
        engine=update.engine,
        write_id=update.write_id,
        parameters=parameters,
    )


def _distinct(
    objects: Sequence[ObjectStatistics],
) -> dict[str, tuple[ColumnStatistics, ...]]:
    """One statement may report a partition twice, if two of its tasks wrote there."""
    distinct: dict[str, tuple[ColumnStatistics, ...]] = {}
    for given in objects:
        name = given.partition_name or ""
        distinct[name] = all_merged(given.columns, distinct.get(name, ()))
    return distinct


def _query_for(update: StatisticsUpdate, columns: Sequence[ColumnStatistics]) -> StatisticsQuery:
    return StatisticsQuery(
        database_name=update.database_name,
        table_name=update.table_name,
        catalog_name=update.catalog_name,
        columns=[column.column for column in columns],
        engine=update.engine,
        valid_write_ids=update.valid_write_ids,
    )


def _mergeable(
    columns: Sequence[ColumnStatistics], parameters: Parameters, old: ObjectStatistics | None
) -> tuple[ColumnStatistics, ...]:
    """Those whose old statistics were right, with them (MetaStoreServerUtils.getMergableCols)."""
    accurate = set(accurate_columns(parameters))
    kept = [column for column in columns if column.column in accurate]
    return all_merged(kept, () if old is None else old.columns)


def _state_after(
    table: Table,
    parameters: Parameters,
    stored_write_id: int,
    columns: Sequence[str],
    update: StatisticsUpdate,
    what: str,
) -> tuple[dict[str, str], WriteId | None]:
    """What is stored beside new statistics: the parameters, and a write id for those of
    transactional tables. Raises MetaError where nobody could know who may believe them."""
    after = with_accurate_columns(parameters, columns)
    if not table.is_transactional:
        return after, None
    require_change_snapshot(
        what, parameters, after, update.write_id, update.valid_write_ids, is_of_columns=True
    )
    # Of a writer that has not seen the last change they are stored, but nobody believes them
    # (ObjectStore.updateTableColumnStatistics).
    is_writer_current = is_believable(
        parameters, stored_write_id, update.valid_write_ids, is_writer=True
    )
    return after if is_writer_current else without_trust(after), _given(update.write_id)


def require_change_snapshot(
    what: str,
    old: Parameters,
    new: Parameters,
    write_id: WriteId,
    valid_write_ids: str | None,
    *,
    is_of_columns: bool,
) -> None:
    """Raises MetaError, in Hive's words (ObjectStore.verifyStatsChangeCtx), for a change that does
    not say under which snapshot the statistics of ``what`` would be right."""
    if change_needs_write_id(old, new, write_id, valid_write_ids, is_of_columns=is_of_columns):
        raise MetaError(
            f"Cannot change stats state for a transactional table {what} without providing the "
            f"transactional write state for verification (new write ID {write_id}, valid write IDs "
            f"{valid_write_ids}; current state {old.get(ACCURATE)}; new state {new.get(ACCURATE)}"
        )


def _given(write_id: WriteId) -> WriteId | None:
    return write_id if write_id > 0 else None


def _distrust_table(unit: UnitOfWork, stored: StoredTable, write_id: WriteId) -> None:
    parameters = without_trust(stored.table.parameters)
    statistics_state.put_table_state(unit.connection, stored, parameters, _given(write_id))


def _check_columns(table: Table, columns: Sequence[ColumnStatistics]) -> None:
    known = {column.name for column in table.storage.columns}
    unknown = sorted({column.column for column in columns} - known)
    if unknown:
        raise MetaError(
            f"Column {', '.join(unknown)} doesn't exist in table {table.name} in database "
            f"{table.database_name}"
        )
