"""Column statistics over thrift. Metastores before 4.0 keep them for one engine only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hms_bridge.client.caller import Client
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.compaction import CompactionType
from hms_bridge.model.statistics import (
    AggregatedStatistics,
    ChangedRows,
    ObjectStatistics,
    StatisticsQuery,
    StatisticsUpdate,
)
from hms_bridge.wire.catalog_names import join_catalog
from hms_bridge.wire.convert_statistics import statistics_from_struct, update_to_struct
from hms_bridge.wire.structs import Struct, hive


class StatisticsClient(Client):
    """StatisticsStore over thrift."""

    def set_column_statistics(self, update: StatisticsUpdate) -> bool:
        """Raises NoSuchObjectError, MetaError. A Hive metastore answers false to every merge of
        partitions."""
        done: bool = self._caller.call("set_aggr_stats_for", request=update_to_struct(update))
        return done

    def get_column_statistics(self, query: StatisticsQuery) -> tuple[ObjectStatistics, ...]:
        names = {"dbName": query.database_name, "tblName": query.table_name}
        more: dict[str, Any] = names | {
            "catName": query.catalog_name,
            "colNames": list(query.columns),
            "engine": query.engine,
            "validWriteIdList": query.valid_write_ids,
        }
        if query.partition_names is None:
            of_table = hive.TableStatsRequest(**more)
            answer = self._caller.repeat("get_table_statistics_req", request=of_table)
            return (_object(answer.tableStats, None),) if answer.tableStats else ()
        request = hive.PartitionsStatsRequest(partNames=list(query.partition_names), **more)
        answer = self._caller.repeat("get_partitions_statistics_req", request=request)
        return tuple(_object(structs, name) for name, structs in sorted(answer.partStats.items()))

    def get_aggregated_statistics(self, query: StatisticsQuery) -> AggregatedStatistics:
        request = hive.PartitionsStatsRequest(
            dbName=query.database_name,
            tblName=query.table_name,
            catName=query.catalog_name,
            colNames=list(query.columns),
            partNames=list(query.partition_names or ()),
            engine=query.engine,
            validWriteIdList=query.valid_write_ids,
        )
        answer = self._caller.repeat("get_aggr_stats_for", request=request)
        return AggregatedStatistics(
            columns=tuple(statistics_from_struct(struct) for struct in answer.colStats or ()),
            partition_count=answer.partsFound or 0,
        )

    def delete_column_statistics(
        self,
        database: str,
        table: str,
        *,
        columns: Sequence[str] = (),
        partition_names: Sequence[str] | None = None,
        engine: str | None = None,
        catalog: str = DEFAULT_CATALOG,
    ) -> bool:
        request = hive.DeleteColumnStatisticsRequest(
            cat_name=catalog,
            db_name=database,
            tbl_name=table,
            part_names=list(partition_names or ()),
            col_names=list(columns),
            engine=engine,
            tableLevel=partition_names is None,
        )
        forms: list[tuple[str, dict[str, Any]]] = [
            ("delete_column_statistics_req", {"req": request})
        ]
        if len(columns) == 1 and (partition_names is None or len(partition_names) == 1):
            old: dict[str, Any] = {
                "db_name": join_catalog(catalog, database),
                "tbl_name": table,
                "col_name": columns[0],
                "engine": engine,
            }
            if partition_names is None:
                forms.append(("delete_table_column_statistics", old))
            else:
                named = old | {"part_name": partition_names[0]}
                forms.append(("delete_partition_column_statistics", named))
        _, done = self._caller.call_first_known(tuple(forms))
        return bool(done)

    def get_columns_with_statistics(
        self,
        database: str,
        table: str,
        partition_name: str | None = None,
        catalog: str = DEFAULT_CATALOG,  # noqa: ARG002 (transactional tables are in one catalog)
    ) -> tuple[str, ...]:
        target = hive.CompactionInfoStruct(
            id=0,
            dbname=database,
            tablename=table,
            partitionname=partition_name,
            type=CompactionType.MAJOR.number,
        )
        columns = self._caller.repeat("find_columns_with_stats", cr=target)
        return tuple(sorted(columns))

    def count_changed_rows(self, changed: ChangedRows) -> None:
        """Never repeated: it would count twice."""
        request = hive.UpdateTransactionalStatsRequest(
            tableId=changed.table_id,
            insertCount=changed.inserted,
            updatedCount=changed.updated,
            deletedCount=changed.deleted,
        )
        self._caller.call("update_transaction_statistics", req=request)


def _object(structs: Sequence[Struct], partition: str | None) -> ObjectStatistics:
    return ObjectStatistics(
        columns=tuple(statistics_from_struct(struct) for struct in structs),
        partition_name=partition,
    )
