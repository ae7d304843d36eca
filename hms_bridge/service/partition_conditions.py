"""Verbs of partitions that a condition of Hive's compiler selects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hms_bridge.archive.file_tasks import FileTask
from hms_bridge.backend.connection import Connection
from hms_bridge.backend.work import sql
from hms_bridge.catalog import partitions, tables
from hms_bridge.catalog.found_partitions import StoredPartition
from hms_bridge.catalog.partition_expression import BoundExpression, bind_expression
from hms_bridge.catalog.partition_filter import Node, parse_filter, with_texts_unescaped
from hms_bridge.catalog.partition_matches import Matches, matches
from hms_bridge.catalog.partition_order import in_order
from hms_bridge.catalog.partition_predicate import bind_filter
from hms_bridge.catalog.partition_values import UnknownTypeError
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.catalog.tables import StoredTable
from hms_bridge.catalog.value_rows import rows_of_keys, rows_of_names
from hms_bridge.errors import MetaError, NoSuchObjectError
from hms_bridge.model.catalog import DEFAULT_PARTITION_VALUE, Partition
from hms_bridge.model.expression import Condition, ConditionToDrop, FilterText, Unread
from hms_bridge.model.target import TableName
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.partition_queries import require_named
from hms_bridge.service.unit_of_work import UnitOfWork, reads_whole

_EVERYTHING = BoundExpression(lambda _: True)


def _get_partitions_by_condition(
    connection: Connection,
    name: TableName,
    condition: Condition,
    *,
    max_parts: int = -1,
    default_value: str = DEFAULT_PARTITION_VALUE,
) -> tuple[Sequence[Partition], bool]:
    stored = require_named(connection, *name.parts)
    chosen = _choose(connection, stored, condition, default_value)
    selected = partitions.load_matches(connection, stored, chosen, max_parts)
    return selected.listed(), chosen.is_uncertain


def _get_partition_names_by_condition(
    connection: Connection,
    name: TableName,
    condition: Condition,
    *,
    max_parts: int = -1,
    order: str = "",
    default_value: str = DEFAULT_PARTITION_VALUE,
) -> tuple[str, ...]:
    stored = require_named(connection, *name.parts)
    chosen = _choose(connection, stored, condition, default_value)
    if chosen.is_uncertain:
        raise MetaError(_why_undecided(stored, condition, "their names are not known"))
    names = [name for name, _ in chosen.selected]
    names = in_order(names, stored.table.partition_columns, order, default_value)
    return tuple(names if max_parts < 0 else names[:max_parts])


def _count_partitions_by_filter(connection: Connection, name: TableName, filter_text: str) -> int:
    tree = parse_filter(filter_text)
    stored = require_named(connection, *name.parts)
    return len(_names_selected(connection, stored, tree))


def _get_partition_values(
    connection: Connection,
    name: TableName,
    keys: Sequence[str],
    *,
    filter_text: str = "",
    is_distinct: bool = True,
    is_ascending: bool = True,
    max_parts: int = -1,
) -> tuple[tuple[str, ...], ...]:
    if not keys:
        raise MetaError("no key of partitions is asked for; give some of the partition columns")
    tree = parse_filter(filter_text)
    stored = require_named(connection, *name.parts)
    names = _names_selected(connection, stored, tree)
    if not filter_text:
        rows = rows_of_keys(names, stored.table, keys, is_distinct=is_distinct)
        return tuple(rows if max_parts <= 0 else rows[:max_parts])
    chosen = names if is_ascending else names[::-1]
    return tuple(rows_of_names(chosen if max_parts < 0 else chosen[:max_parts]))


def _names_selected(
    connection: Connection, stored: StoredTable, tree: Node | None
) -> tuple[str, ...]:
    """Names of those that a filter selects, sorted; no partition is loaded."""
    if tree is None:
        return partitions.partition_names(connection, stored)
    bound = bind_filter(tree, stored.table.partition_columns)
    chosen = matches(connection, stored, bound.selects, bound)
    return tuple(name for name, _ in chosen.selected)


class PartitionConditionVerbs(VerbFamily):
    """Not in the port: only the server is asked in this form (ServedMetastore).

    What cannot be decided selects a partition for a reader, who then filters itself, and is
    refused where partitions would be dropped.
    """

    get_partitions_by_condition = reads_whole(sql(_get_partitions_by_condition))
    get_partition_names_by_condition = reads_whole(sql(_get_partition_names_by_condition))
    count_partitions_by_filter = reads_whole(sql(_count_partitions_by_filter))
    get_partition_values = reads_whole(sql(_get_partition_values))

    def drop_partitions_by_conditions(
        self,
        name: TableName,
        conditions: Sequence[ConditionToDrop],
        *,
        is_data_deleted: bool = True,
        is_purge: bool = False,
        is_if_exists: bool = False,
    ) -> tuple[Partition, ...]:
        key = TableName.lower(*name.parts)
        looked = None
        if is_data_deleted:
            looked = self._drops.look_at_partitions(
                key, lambda c, stored: _to_drop(c, stored, conditions, is_if_exists=is_if_exists)
            )

        def work(unit: UnitOfWork) -> tuple[Sequence[FileTask], tuple[Partition, ...]]:
            stored = tables.require_table(unit.connection, *key.parts, RowLock.SHARED)
            to_drop = _to_drop(
                unit.connection,
                stored,
                conditions,
                is_if_exists=is_if_exists,
                lock=RowLock.EXCLUSIVE,
            )
            tasks = self._drops.drop_partitions(
                unit, stored, to_drop, looked=looked, is_purge=is_purge
            )
            return tasks, tuple(stored_partition.partition for stored_partition in to_drop)

        tasks, dropped = self._transactions.write(work)
        self._drops.carry_out(tasks)
        return dropped


def _choose(
    connection: Connection,
    stored: StoredTable,
    condition: Condition,
    default_value: str,
    lock: RowLock = RowLock.NONE,
) -> Matches:
    bound = _bound(stored, condition, default_value)
    return matches(connection, stored, bound.verdict, bound, lock)


def _bound(stored: StoredTable, condition: Condition, default_value: str) -> BoundExpression:
    columns = stored.table.partition_columns
    if condition is None:
        return _EVERYTHING
    if isinstance(condition, Unread):
        return BoundExpression(lambda _: None)
    if isinstance(condition, FilterText):
        return _bound_filter(stored, condition)
    try:
        return bind_expression(condition, columns, default_value)
    except UnknownTypeError:
        return BoundExpression(lambda _: None)


def _bound_filter(stored: StoredTable, condition: FilterText) -> BoundExpression:
    """MSCK's text: ``(d='2024-01-01' AND n='9') OR …``. Values are compared as they are written in
    names, whatever type their column has (MsckPartitionExpressionProxy)."""
    tree = parse_filter(condition.text)
    if tree is None:
        return _EVERYTHING
    columns = [replace(column, type="string") for column in stored.table.partition_columns]
    chosen = bind_filter(with_texts_unescaped(tree), columns)
    return BoundExpression(
        chosen.selects, chosen.required_values, chosen.places, chosen.rules_out, chosen.bounds
    )


def _to_drop(
    connection: Connection,
    stored: StoredTable,
    conditions: Sequence[ConditionToDrop],
    *,
    is_if_exists: bool,
    lock: RowLock = RowLock.NONE,
) -> Sequence[StoredPartition]:
    dropped: dict[str, StoredPartition] = {}
    for wanted in conditions:
        chosen = _choose(connection, stored, wanted.condition, DEFAULT_PARTITION_VALUE, lock)
        if chosen.is_uncertain:
            reason = _why_undecided(stored, wanted.condition, "none is dropped")
            raise MetaError(f"Unexpected unknown partitions to drop: {reason}")
        loaded = partitions.load_matches(connection, stored, chosen, lock=lock).stored()
        if not loaded and not is_if_exists:
            raise NoSuchObjectError(
                f"Some partitions to drop are missing of {stored.table.full_name}"
            )
        for partition in loaded:
            _check_archive(partition.partition, wanted.archive_level)
        dropped.update({partition.name: partition for partition in loaded})
    return list(dropped.values())


def _check_archive(partition: Partition, archive_level: int) -> None:
    """Raises MetaError for a part of a Hadoop archive (ALTER TABLE … ARCHIVE PARTITION)."""
    if partition.parameters.get("is_archived") == "true" and (
        _archiving_level(partition.parameters, len(partition.values)) < archive_level
    ):
        raise MetaError(
            "Cannot drop a subset of partitions in an archive, partition "
            f"{', '.join(partition.values)}"
        )


def _archiving_level(parameters: Mapping[str, str], default: int) -> int:
    text = parameters.get("archiving_level", "")
    return int(text) if text.isascii() and text.isdigit() else default


def _why_undecided(stored: StoredTable, condition: Condition, result: str) -> str:
    reason = "a value is none of its column's type"
    if isinstance(condition, Unread):
        reason = f"the condition could not be read ({condition.reason})"
    elif not isinstance(condition, FilterText | None):
        try:
            bind_expression(condition, stored.table.partition_columns)
        except UnknownTypeError as error:
            reason = f"the condition has {error}"
    return (
        f"partitions of {stored.table.full_name} may match or not, because {reason}; {result}: "
        "give a simpler condition, or their names"
    )
