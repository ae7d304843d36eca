"""Reading partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from hms_bridge.errors import InvalidObjectError, MetaError, NoSuchObjectError
from hms_bridge.model.catalog import DEFAULT_PARTITION_VALUE, Partition, Table
from hms_bridge.model.partition_name import parse_partition_name, partition_name
from hms_bridge.model.statistics import HIVE, StatisticsQuery
from hms_bridge.model.statistics_state import accurate_columns, seen_partition
from hms_bridge.model.target import TableName
from hms_bridge.server.answers import answers
from hms_bridge.server.names import given_partition_name, limit_of, table_of, values_of_name
from hms_bridge.server.partition_projection import narrowed
from hms_bridge.server.partition_reads import PartitionReads, has_values
from hms_bridge.wire.condition import read_condition
from hms_bridge.wire.convert_catalog import partition_to_struct
from hms_bridge.wire.convert_statistics import object_to_struct
from hms_bridge.wire.partition_bytes import partitions_to_bytes
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.struct_bytes import EncodedStructs
from hms_bridge.wire.structs import Struct, hive


class PartitionCalls(PartitionReads):
    """Partitions, read. Filters are texts, or expressions in Java's serialised form, of which no
    object is ever made (wire/kryo): making them let clients run code in Hive (CVE-2022-41137)."""

    @answers("get_partition")
    def get_partition(self, args: Struct) -> Struct:
        return partition_to_struct(self._get(table_of(args), args.part_vals))

    @answers("get_partition_req", of="req")
    def get_partition_req(self, request: Struct) -> Struct:
        name = table_of(request)
        partition = self._get(name, request.partVals)
        if request.validWriteIdList is not None:
            table = self._table(name)
            partition = seen_partition(table, partition, request.validWriteIdList)
        return hive.GetPartitionResponse(partition=partition_to_struct(partition))

    @answers("get_partition_by_name")
    def get_partition_by_name(self, args: Struct) -> Struct:
        name = table_of(args)
        text = given_partition_name(args.part_name, "part_name")
        partitions = self._store.get_partitions_by_names(
            name.database, name.table, (text,), name.catalog
        )
        if partitions:
            return partition_to_struct(partitions[0])
        table = self._table(name)
        try:
            values = values_of_name(table, text)  # the name may have another order or case
        except InvalidObjectError as error:
            raise NoSuchObjectError(str(error)) from error
        return partition_to_struct(self._get(name, values))

    @answers("get_partitions")
    def get_partitions(self, args: Struct) -> EncodedStructs:
        return partitions_to_bytes(self._all(table_of(args), args.max_parts))

    @answers("get_partitions_req", of="req")
    def get_partitions_req(self, request: Struct) -> Struct:
        name = table_of(request)
        return hive.PartitionsResponse(
            partitions=partitions_to_bytes(narrowed(request, self._all(name, request.maxParts)))
        )

    @answers("get_partitions_pspec")
    def get_partitions_pspec(self, args: Struct) -> list[Struct]:
        """All, wrapped."""
        name = table_of(args)
        return [self._spec(name, self._all(name, args.max_parts))]

    @answers("get_partition_names")
    def get_partition_names(self, args: Struct) -> list[str]:
        return list(self._names(table_of(args), args.max_parts))

    @answers("fetch_partition_names_req", of="partitionReq")
    def fetch_partition_names(self, request: Struct) -> list[str]:
        return list(self._names(table_of(request), request.maxParts))

    @answers("get_partition_names_req", of="req")
    def get_partition_names_req(self, request: Struct) -> list[str]:
        """Names of those that an expression selects, in the order that is asked for."""
        name = table_of(request)
        return list(
            self._store.get_partition_names_by_condition(
                name,
                read_condition(request.expr),
                max_parts=limit_of(request.maxParts),
                order=request.order or "",
                default_value=request.defaultPartitionName or DEFAULT_PARTITION_VALUE,
            )
        )

    @answers("get_partitions_ps")
    def get_partitions_by_values(self, args: Struct) -> EncodedStructs:
        """Those with the given values; "" for any."""
        return partitions_to_bytes(self._by_values(table_of(args), args.part_vals, args.max_parts))

    @answers("get_partition_names_ps")
    def get_names_by_values(self, args: Struct) -> list[str]:
        """Names of those with the given values; "" for any."""
        return self._names_by_values(table_of(args), args.part_vals, args.max_parts)

    @answers("get_partition_names_ps_req", of="req")
    def get_names_by_values_req(self, request: Struct) -> Struct:
        """Names of those with the given values; "" for any."""
        names = self._names_by_values(table_of(request), request.partValues, request.maxParts)
        return hive.GetPartitionNamesPsResponse(names=names)

    @answers("get_partitions_by_names")
    def get_partitions_by_names(self, args: Struct) -> EncodedStructs:
        return partitions_to_bytes(self._of_names(table_of(args), args.names))

    @answers("get_partitions_by_names_req", of="req")
    def get_partitions_by_names_req(self, request: Struct) -> Struct:
        """Those that exist, with statistics of their columns if the client wants them."""
        name = table_of(request)
        partitions = narrowed(request, self._of_names(name, request.names))
        if request.get_col_stats:
            structs = self._with_statistics(name, partitions, request.engine or HIVE)
            return hive.GetPartitionsByNamesResult(partitions=structs)
        return hive.GetPartitionsByNamesResult(partitions=partitions_to_bytes(partitions))

    @answers("get_partitions_by_filter")
    def get_partitions_by_filter(self, args: Struct) -> EncodedStructs:
        return partitions_to_bytes(self._by_filter(table_of(args), args.filter, args.max_parts))

    @answers("get_partitions_by_filter_req", of="req")
    def get_partitions_by_filter_req(self, request: Struct) -> EncodedStructs:
        partitions = self._by_filter(table_of(request), request.filter, request.maxParts)
        return partitions_to_bytes(narrowed(request, partitions))

    @answers("get_part_specs_by_filter")
    def get_specs_by_filter(self, args: Struct) -> list[Struct]:
        name = table_of(args)
        return [self._spec(name, self._by_filter(name, args.filter, args.max_parts))]

    @answers("get_num_partitions_by_filter")
    def count_partitions_by_filter(self, args: Struct) -> int:
        return self._store.count_partitions_by_filter(table_of(args), args.filter or "")

    @answers("get_partition_values", of="request")
    def get_partition_values(self, request: Struct) -> Struct:
        """Values of some partition columns. The order that is asked for is not heeded, as Hive's
        (docs/hive/metastore.md §24); a snapshot has all partitions."""
        name = table_of(request)
        keys = given(request.partitionKeys, "partitionKeys")
        rows = self._store.get_partition_values(
            name,
            [given_name(key.name, "a partition key's name") for key in keys],
            filter_text=request.filter or "",
            is_distinct=request.applyDistinct is not False,
            is_ascending=request.ascending is not False,
            max_parts=limit_of(request.maxParts),
        )
        return hive.PartitionValuesResponse(
            partitionValues=[hive.PartitionValuesRow(row=list(row)) for row in rows]
        )

    @answers("get_partitions_by_expr", of="req")
    def get_partitions_by_expression(self, request: Struct) -> Struct:
        """Those that an expression selects; "unknown" if it could not be decided for some, and
        the client filters itself."""
        partitions, is_uncertain = self._by_condition(request)
        shown = partitions_to_bytes(narrowed(request, partitions))
        return hive.PartitionsByExprResult(partitions=shown, hasUnknownPartitions=is_uncertain)

    @answers("get_partitions_spec_by_expr", of="req")
    def get_partition_specs_by_expression(self, request: Struct) -> Struct:
        """As get_partitions_by_expr, wrapped."""
        name = table_of(request)
        partitions, is_uncertain = self._by_condition(request)
        return hive.PartitionsSpecByExprResult(
            partitionsSpec=[self._spec(name, narrowed(request, partitions))] if partitions else [],
            hasUnknownPartitions=is_uncertain,
        )

    @answers("partition_name_to_vals")
    def name_to_values(self, args: Struct) -> list[str]:
        """``a=1/b=x`` to 1, x."""
        return [value for _, value in _parsed(args.part_name)]

    @answers("partition_name_to_spec")
    def name_to_spec(self, args: Struct) -> dict[str, str]:
        """``a=1/b=x`` to a: 1, b: x."""
        return dict(_parsed(args.part_name))

    @answers("partition_name_has_valid_characters")
    def has_valid_characters(self, args: Struct) -> bool:
        """Always, since names are escaped; Hive's pattern is empty by default too."""
        return args.part_vals is not None

    def _get(self, name: TableName, values: Sequence[str] | None) -> Partition:
        wanted = given(values, "the partition's values")
        return self._store.get_partition(name.database, name.table, wanted, name.catalog)

    def _of_names(self, name: TableName, names: Sequence[str] | None) -> Sequence[Partition]:
        try:
            return self._by_names(name, names)
        except NoSuchObjectError as error:  # as Hive, for these calls alone
            raise InvalidObjectError(str(error)) from error

    def _with_statistics(
        self, name: TableName, partitions: Sequence[Partition], engine: str
    ) -> list[Struct]:
        columns = self._table(name).partition_columns
        names = {partition_name(columns, partition.values): partition for partition in partitions}
        query = StatisticsQuery(
            database_name=name.database,
            table_name=name.table,
            catalog_name=name.catalog,
            columns=sorted({c for p in partitions for c in accurate_columns(p.parameters)}),
            partition_names=list(names),
            engine=engine,
        )
        structs: dict[str, Any] = {text: partition_to_struct(p) for text, p in names.items()}
        for of_partition in self._store.get_column_statistics(query):
            text = given(of_partition.partition_name, "the partition's name")
            accurate = accurate_columns(names[text].parameters)
            shown = replace(
                of_partition, columns=tuple(c for c in of_partition.columns if c.column in accurate)
            )
            if shown.columns:
                structs[text].colStats = object_to_struct(
                    shown, database=name.database, table=name.table, catalog=name.catalog,
                    engine=engine,
                )  # fmt: skip
        return list(structs.values())

    def _names_by_values(
        self, name: TableName, values: Sequence[str] | None, limit: int | None
    ) -> list[str]:
        wanted = given(values, "the partition's values")
        keys = self._table(name).partition_columns
        if not 0 < len(wanted) <= len(keys):
            raise MetaError(
                f"Incorrect number of partition values. numPartKeys={len(keys)}, "
                f"part_val={list(wanted)}; give 1 to {len(keys)}"
            )
        names = [n for n in self._names(name, None) if has_values(n, wanted)]
        return names if limit_of(limit) < 0 else names[:limit]

    def _spec(self, name: TableName, partitions: Iterable[Partition]) -> Struct:
        table = self._table(name)
        return partitions_to_spec(table, partitions)


def partitions_to_spec(table: Table, partitions: Iterable[Partition]) -> Struct:
    """A PartitionSpec that lists whole partitions."""
    structs = [partition_to_struct(partition) for partition in partitions]
    return hive.PartitionSpec(
        dbName=table.database_name,
        tableName=table.name,
        rootPath=table.storage.location,
        partitionList=hive.PartitionListComposingSpec(partitions=structs),
        catName=table.catalog_name,
    )


def _parsed(name: str | None) -> tuple[tuple[str, str], ...]:
    return parse_partition_name(name) if name else ()
