"""Column statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hms_bridge.errors import InvalidInputError, MetaError, NoSuchObjectError
from hms_bridge.metadata_store import StatisticsStore
from hms_bridge.model.partition_name import with_lower_keys
from hms_bridge.model.statistics import (
    HIVE,
    ChangedRows,
    ObjectStatistics,
    StatisticsQuery,
    StatisticsUpdate,
)
from hms_bridge.model.target import TableName
from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.names import table_of
from hms_bridge.wire import convert_statistics
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.structs import Struct, hive


class StatisticsCalls(Calls[StatisticsStore]):
    """Statistics that a snapshot may not believe are left out, as Hive does."""

    @answers("set_aggr_stats_for", of="request")
    def set_several(self, request: Struct) -> bool:
        update = convert_statistics.update_from_struct(request)
        return update is None or self._store.set_column_statistics(update)

    @answers("update_table_column_statistics", "update_partition_column_statistics", of="stats_obj")
    def update_one(self, statistics: Struct) -> bool:
        return self._store.set_column_statistics(convert_statistics.update_of_one(statistics))

    @answers(
        "update_table_column_statistics_req", "update_partition_column_statistics_req", of="req"
    )
    def update_one_req(self, request: Struct) -> Struct:
        update = _single(convert_statistics.update_from_struct(request))
        return hive.SetPartitionsStatsResponse(result=self._store.set_column_statistics(update))

    @answers("get_table_column_statistics")
    def get_of_column(self, args: Struct) -> Struct:
        return self._one(table_of(args), given_name(args.col_name, "col_name"), None)

    @answers("get_partition_column_statistics")
    def get_of_partition_column(self, args: Struct) -> Struct:
        name = table_of(args)
        column = given_name(args.col_name, "col_name")
        return self._one(name, column, with_lower_keys(given(args.part_name, "part_name")))

    @answers("get_table_statistics_req", of="request")
    def get_of_table(self, request: Struct) -> Struct:
        of_table = self._store.get_column_statistics(_query(request, is_of_partitions=False))
        columns = [column for statistics in _believable(of_table) for column in statistics.columns]
        return hive.TableStatsResult(tableStats=convert_statistics.statistics_to_structs(columns))

    @answers("get_partitions_statistics_req", of="request")
    def get_of_partitions(self, request: Struct) -> Struct:
        of_partitions = self._store.get_column_statistics(_query(request, is_of_partitions=True))
        return hive.PartitionsStatsResult(
            partStats={
                statistics.partition_name: convert_statistics.statistics_to_structs(
                    statistics.columns
                )
                for statistics in _believable(of_partitions)
            }
        )

    @answers("get_aggr_stats_for", of="request")
    def get_aggregated(self, request: Struct) -> Struct:
        aggregated = self._store.get_aggregated_statistics(_query(request, is_of_partitions=True))
        return hive.AggrStats(
            colStats=convert_statistics.statistics_to_structs(aggregated.columns),
            partsFound=aggregated.partition_count,
        )

    @answers("delete_table_column_statistics")
    def delete_of_table(self, args: Struct) -> bool:
        return self._delete(table_of(args), args, None)

    @answers("delete_partition_column_statistics")
    def delete_of_partition(self, args: Struct) -> bool:
        partition = with_lower_keys(given(args.part_name, "part_name"))
        return self._delete(table_of(args), args, [partition])

    @answers("delete_column_statistics_req", of="req")
    def delete_several(self, request: Struct) -> bool:
        name = table_of(request)
        partitions = [with_lower_keys(part_name) for part_name in request.part_names or ()]
        return self._store.delete_column_statistics(
            name.database,
            name.table,
            columns=request.col_names or (),
            partition_names=None if request.tableLevel else partitions,
            engine=request.engine,
            catalog=name.catalog,
        )

    @answers("find_columns_with_stats", of="cr")
    def columns_with_statistics(self, target: Struct) -> list[str]:
        """Which columns a compactor may gather statistics of anew."""
        columns = self._store.get_columns_with_statistics(
            given_name(target.dbname, "dbname"),
            given_name(target.tablename, "tablename"),
            target.partitionname,
        )
        return list(columns)

    @answers("update_transaction_statistics", of="req")
    def count_changed_rows(self, request: Struct) -> None:
        """How many rows a statement changed."""
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
        raise InvalidInputError("Merge is not supported for non-aggregate stats")
    return update


def _query(request: Any, *, is_of_partitions: bool) -> StatisticsQuery:
    name = table_of(request)
    names = given(request.partNames, "partNames") if is_of_partitions else None
    return StatisticsQuery(
        database_name=name.database,
        table_name=name.table,
        catalog_name=name.catalog,
        columns=given(request.colNames, "colNames"),
        partition_names=None
        if names is None
        else [with_lower_keys(part_name) for part_name in names],
        engine=request.engine or HIVE,
        valid_write_ids=request.validWriteIdList,
    )


def _believable(objects: Sequence[ObjectStatistics]) -> list[ObjectStatistics]:
    return [statistics for statistics in objects if statistics.is_compliant is not False]
