"""Column statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hms_bridge.errors import InvalidObjectError, MetaError, NoSuchObjectError
from hms_bridge.metadata_store import StatisticsStore
from hms_bridge.model.statistics import (
    HIVE,
    ChangedRows,
    ObjectStatistics,
    StatisticsQuery,
    StatisticsUpdate,
)
from hms_bridge.model.target import TableName
from hms_bridge.server.answers import answers
from hms_bridge.server.names import table_name
from hms_bridge.wire import convert_statistics
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.structs import Struct, hive


class StatisticsCalls:
    """Statistics that a snapshot may not believe are left out, as Hive does."""

    def __init__(self, store: StatisticsStore) -> None:
        self._store = store

    @answers("set_aggr_stats_for")
    def set_several(self, args: Struct) -> bool:
        """Replace or merge those of a table, or of partitions."""
        update = convert_statistics.update_from_struct(given(args.request, "request"))
        return update is None or self._store.set_column_statistics(update)

    @answers("update_table_column_statistics", "update_partition_column_statistics")
    def update_one(self, args: Struct) -> bool:
        """Replace those of a table or of a partition."""
        update = convert_statistics.update_of_one(given(args.stats_obj, "stats_obj"))
        return self._store.set_column_statistics(update)

    @answers("update_table_column_statistics_req", "update_partition_column_statistics_req")
    def update_one_req(self, args: Struct) -> Struct:
        """Replace those of a table or of a partition, in a transaction."""
        update = _single(convert_statistics.update_from_struct(given(args.req, "req")))
        return hive.SetPartitionsStatsResponse(result=self._store.set_column_statistics(update))

    @answers("get_table_column_statistics")
    def get_of_column(self, args: Struct) -> Struct:
        """Of one column of a table."""
        name = table_name(args.db_name, args.tbl_name)
        column = given_name(args.col_name, "col_name")
        return self._one(name, column, None)

    @answers("get_partition_column_statistics")
    def get_of_partition_column(self, args: Struct) -> Struct:
        """Of one column of a partition."""
        name = table_name(args.db_name, args.tbl_name)
        column = given_name(args.col_name, "col_name")
        return self._one(name, column, _partition_name(given(args.part_name, "part_name")))

    @answers("get_table_statistics_req")
    def get_of_table(self, args: Struct) -> Struct:
        """Of columns of a table."""
        request = given(args.request, "request")
        found = self._store.get_column_statistics(_query(request, is_of_partitions=False))
        columns = [column for statistics in _believable(found) for column in statistics.columns]
        return hive.TableStatsResult(tableStats=convert_statistics.statistics_to_structs(columns))

    @answers("get_partitions_statistics_req")
    def get_of_partitions(self, args: Struct) -> Struct:
        """Of columns of partitions, by partition."""
        request = given(args.request, "request")
        found = self._store.get_column_statistics(_query(request, is_of_partitions=True))
        return hive.PartitionsStatsResult(
            partStats={
                statistics.partition_name: convert_statistics.statistics_to_structs(
                    statistics.columns
                )
                for statistics in _believable(found)
            }
        )

    @answers("get_aggr_stats_for")
    def get_aggregated(self, args: Struct) -> Struct:
        """Of partitions together."""
        request = given(args.request, "request")
        found = self._store.get_aggregated_statistics(_query(request, is_of_partitions=True))
        return hive.AggrStats(
            colStats=convert_statistics.statistics_to_structs(found.columns),
            partsFound=found.partition_count,
        )

    @answers("delete_table_column_statistics")
    def delete_of_table(self, args: Struct) -> bool:
        """Of one column, or of all."""
        return self._delete(table_name(args.db_name, args.tbl_name), args, None)

    @answers("delete_partition_column_statistics")
    def delete_of_partition(self, args: Struct) -> bool:
        """Of one column of a partition, or of all."""
        partition = _partition_name(given(args.part_name, "part_name"))
        return self._delete(table_name(args.db_name, args.tbl_name), args, [partition])

    @answers("delete_column_statistics_req")
    def delete_several(self, args: Struct) -> bool:
        """Of several columns of a table, or of partitions."""
        request = given(args.req, "req")
        name = table_name(request.db_name, request.tbl_name, request.cat_name)
        partitions = [_partition_name(part_name) for part_name in request.part_names or ()]
        return self._store.delete_column_statistics(
            name.database,
            name.table,
            columns=request.col_names or (),
            partition_names=None if request.tableLevel else partitions,
            engine=request.engine,
            catalog=name.catalog,
        )

    @answers("find_columns_with_stats")
    def columns_with_statistics(self, args: Struct) -> list[str]:
        """Which columns a compactor may gather statistics of anew."""
        target = given(args.cr, "cr")
        found = self._store.get_columns_with_statistics(
            given_name(target.dbname, "dbname"),
            given_name(target.tablename, "tablename"),
            target.partitionname,
        )
        return list(found)

    @answers("update_transaction_statistics")
    def count_changed_rows(self, args: Struct) -> None:
        """How many rows a statement changed."""
        request = given(args.req, "req")
        self._store.count_changed_rows(
            ChangedRows(
                table_id=given(request.tableId, "tableId"),
                inserted=request.insertCount or 0,
                updated=request.updatedCount or 0,
                deleted=request.deletedCount or 0,
            )
        )

    def _one(self, name: TableName, column: str, partition: str | None) -> Struct:
        statistics = self._store.get_column_statistics(
            StatisticsQuery(
                database_name=name.database,
                table_name=name.table,
                catalog_name=name.catalog,
                columns=(column,),
                partition_names=None if partition is None else (partition,),
            )
        )
        if not statistics:
            raise NoSuchObjectError(
                f"Statistics for dbName={name.database}, tableName={name.table}, "
                f"columnName={column} is not available"
            )
        return convert_statistics.object_to_struct(
            statistics[0],
            database=name.database,
            table=name.table,
            catalog=name.catalog,
            engine=HIVE,
        )

    def _delete(self, name: TableName, args: Struct, partitions: list[str] | None) -> bool:
        return self._store.delete_column_statistics(
            name.database,
            name.table,
            columns=() if args.col_name is None else (args.col_name,),
            partition_names=partitions,
            engine=args.engine,
            catalog=name.catalog,
        )


def _single(update: StatisticsUpdate | None) -> StatisticsUpdate:
    if update is None or len(update.objects) != 1:
        raise MetaError("statistics of one table or partition have to be sent; send one of them")
    if update.is_merge:
        raise InvalidObjectError("Merge is not supported for non-aggregate stats")
    return update


def _query(request: Any, *, is_of_partitions: bool) -> StatisticsQuery:
    name = table_name(request.dbName, request.tblName, request.catName)
    names = given(request.partNames, "partNames") if is_of_partitions else None
    return StatisticsQuery(
        database_name=name.database,
        table_name=name.table,
        catalog_name=name.catalog,
        columns=given(request.colNames, "colNames"),
        partition_names=None
        if names is None
        else [_partition_name(part_name) for part_name in names],
        engine=request.engine or HIVE,
        valid_write_ids=request.validWriteIdList,
    )


def _believable(found: Sequence[ObjectStatistics]) -> list[ObjectStatistics]:
    return [statistics for statistics in found if statistics.is_compliant is not False]


def _partition_name(text: str) -> str:
    """With keys in lower case (HMSHandler.lowerCaseConvertPartName)."""
    parts = (part.partition("=") for part in text.split("/"))
    return "/".join(f"{key.lower()}{separator}{value}" for key, separator, value in parts)
