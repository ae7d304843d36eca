"""Reading partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hms_bridge.errors import InvalidObjectError, MetaError, NoSuchObjectError
from hms_bridge.model.catalog import DEFAULT_PARTITION_VALUE, Partition, Table
from hms_bridge.model.partition_name import parse_partition_name
from hms_bridge.model.statistics_state import seen_partition
from hms_bridge.model.target import TableName
from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.names import given_partition_name, limit_of, table_of, values_of_name
from hms_bridge.server.served_metastore import ServedPartitions
from hms_bridge.wire.condition import read_condition
from hms_bridge.wire.convert_catalog import partition_to_struct
from hms_bridge.wire.partition_bytes import partitions_to_bytes
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.struct_bytes import EncodedStructs
from hms_bridge.wire.structs import Struct, hive


class PartitionCalls(Calls[ServedPartitions]):
    """Partitions, read. Filters are texts, or expressions in Java's serialised form, of which no
    object is ever made (wire/kryo): making them let clients run code in Hive (CVE-2022-41137)."""

    @answers("get_partition", "get_partition_with_auth")
    def get_partition(self, args: Struct) -> Struct:
        return partition_to_struct(self._get(table_of(args), args.part_vals))

    @answers("get_partition_req", of="req")
    def get_partition_req(self, request: Struct) -> Struct:
        name = table_of(request)
        partition = self._get(name, request.partVals)
        if request.validWriteIdList is not None:
            table = self._store.get_table(name.database, name.table, name.catalog)
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
        table = self._store.get_table(name.database, name.table, name.catalog)
        try:
            values = values_of_name(table, text)  # the name may have another order or case
        except InvalidObjectError as error:
            raise NoSuchObjectError(str(error)) from error
        return partition_to_struct(self._get(name, values))

    @answers("get_partitions", "get_partitions_with_auth")
    def get_partitions(self, args: Struct) -> EncodedStructs:
        return partitions_to_bytes(self._all(table_of(args), args.max_parts))

    @answers("get_partitions_req", of="req")
    def get_partitions_req(self, request: Struct) -> Struct:
        name = table_of(request)
        return hive.PartitionsResponse(
            partitions=partitions_to_bytes(self._all(name, request.maxParts))
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

    @answers("get_partitions_ps", "get_partitions_ps_with_auth")
    def get_partitions_by_values(self, args: Struct) -> EncodedStructs:
        """Those with the given values; "" for any."""
        return partitions_to_bytes(self._by_values(table_of(args), args.part_vals, args.max_parts))

    @answers("get_partitions_ps_with_auth_req", of="req")
    def get_partitions_by_values_req(self, request: Struct) -> Struct:
        """Those with the given values, or names."""
        name = table_of(request)
        if request.partNames is not None:
            partitions = self._by_names(name, request.partNames)
        else:
            partitions = self._by_values(name, request.partVals, request.maxParts)
        return hive.GetPartitionsPsWithAuthResponse(partitions=partitions_to_bytes(partitions))

    @answers("get_partition_names_ps")
    def get_names_by_values(self, args: Struct) -> list[str]:
        """Names of those with the given values; "" for any."""
        return self._names_by_values(table_of(args), args.part_vals or (), args.max_parts)

    @answers("get_partition_names_ps_req", of="req")
    def get_names_by_values_req(self, request: Struct) -> Struct:
        """Names of those with the given values; "" for any."""
        names = self._names_by_values(table_of(request), request.partValues or (), request.maxParts)
        return hive.GetPartitionNamesPsResponse(names=names)

    @answers("get_partitions_by_names")
    def get_partitions_by_names(self, args: Struct) -> EncodedStructs:
        return partitions_to_bytes(self._by_names(table_of(args), args.names or ()))

    @answers("get_partitions_by_names_req", of="req")
    def get_partitions_by_names_req(self, request: Struct) -> Struct:
        try:
            partitions = self._by_names(table_of(request), request.names or ())
        except NoSuchObjectError as error:  # another class than that of the older form
            raise InvalidObjectError(str(error)) from error
        return hive.GetPartitionsByNamesResult(partitions=partitions_to_bytes(partitions))

    @answers("get_partitions_by_filter")
    def get_partitions_by_filter(self, args: Struct) -> EncodedStructs:
        return partitions_to_bytes(self._by_filter(table_of(args), args.filter, args.max_parts))

    @answers("get_partitions_by_filter_req", of="req")
    def get_partitions_by_filter_req(self, request: Struct) -> EncodedStructs:
        return partitions_to_bytes(
            self._by_filter(table_of(request), request.filter, request.maxParts)
        )

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
        return hive.PartitionsByExprResult(
            partitions=partitions_to_bytes(partitions), hasUnknownPartitions=is_uncertain
        )

    @answers("get_partitions_spec_by_expr", of="req")
    def get_partition_specs_by_expression(self, request: Struct) -> Struct:
        """As get_partitions_by_expr, wrapped."""
        name = table_of(request)
        partitions, is_uncertain = self._by_condition(request)
        return hive.PartitionsSpecByExprResult(
            partitionsSpec=[self._spec(name, partitions)] if partitions else [],
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

    def _all(self, name: TableName, limit: int | None) -> Sequence[Partition]:
        return self._store.get_partitions(name.database, name.table, limit_of(limit), name.catalog)

    def _names(self, name: TableName, limit: int | None) -> tuple[str, ...]:
        return self._store.get_partition_names(
            name.database, name.table, limit_of(limit), name.catalog
        )

    def _by_names(self, name: TableName, names: Sequence[str]) -> Sequence[Partition]:
        return self._store.get_partitions_by_names(
            name.database, name.table, tuple(names), name.catalog
        )

    def _by_values(
        self, name: TableName, values: Sequence[str] | None, limit: int | None
    ) -> Sequence[Partition]:
        return self._store.get_partitions_by_values(
            name.database, name.table, tuple(values or ()), limit_of(limit), name.catalog
        )

    def _by_filter(
        self, name: TableName, text: str | None, limit: int | None
    ) -> Sequence[Partition]:
        if not text:
            return self._all(name, limit)
        return self._store.get_partitions_by_filter(
            name.database, name.table, text, limit_of(limit), name.catalog
        )

    def _by_condition(self, request: Struct) -> tuple[Sequence[Partition], bool]:
        name = table_of(request)
        return self._store.get_partitions_by_condition(
            name,
            read_condition(request.expr),
            max_parts=limit_of(request.maxParts),
            default_value=request.defaultPartitionName or DEFAULT_PARTITION_VALUE,
        )

    def _names_by_values(
        self, name: TableName, values: Sequence[str], limit: int | None
    ) -> list[str]:
        names = [n for n in self._names(name, None) if _has_values(n, values)]
        return names if limit_of(limit) < 0 else names[:limit]

    def _spec(self, name: TableName, partitions: Iterable[Partition]) -> Struct:
        table = self._store.get_table(name.database, name.table, name.catalog)
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


def _has_values(name: str, wanted: Sequence[str]) -> bool:
    values = [value for _, value in parse_partition_name(name)]
    if len(wanted) > len(values):
        raise MetaError(
            f"{len(wanted)} values were given for {len(values)} partition columns; give fewer"
        )
    return all(not given_value or given_value == value
               for given_value, value in zip(wanted, values, strict=False))  # fmt: skip
