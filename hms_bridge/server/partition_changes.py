"""Adding, changing and dropping partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Column, Partition, Table
from hms_bridge.model.expression import ConditionToDrop
from hms_bridge.model.partition_name import partition_name
from hms_bridge.model.target import TableName
from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.names import (
    context_of,
    environment_of,
    given_partition_name,
    is_purge,
    table_name,
    table_of,
    values_of_name,
)
from hms_bridge.server.served_metastore import ServedPartitions
from hms_bridge.wire.condition import read_condition
from hms_bridge.wire.convert_catalog import (
    columns_from_structs,
    columns_to_structs,
    partition_to_struct,
)
from hms_bridge.wire.received import received_partition
from hms_bridge.wire.required import given
from hms_bridge.wire.structs import Struct, hive


class PartitionChangeCalls(Calls[ServedPartitions]):
    """Partitions, changed."""

    @answers("add_partition", "add_partition_with_environment_context", of="new_part")
    def add_partition(self, struct: Struct) -> Struct:
        return partition_to_struct(self._add(table_of(struct), [struct])[0])

    @answers("add_partitions", of="new_parts")
    def add_partitions(self, structs: Sequence[Struct]) -> int:
        if not structs:
            return 0
        first = structs[0]
        return len(self._add(table_of(first), structs))

    @answers("add_partitions_req", of="request")
    def add_partitions_req(self, request: Struct) -> Struct:
        """Add several; those that were added come back unless the client needs none."""
        name = table_of(request)
        columns = columns_from_structs(request.partitionColSchema)
        added = self._add(name, request.parts or (), columns, bool(request.ifNotExists))
        if request.needResult is False:
            return hive.AddPartitionsResult()
        return hive.AddPartitionsResult(
            partitions=[partition_to_struct(partition) for partition in added],
            partitionColSchema=columns_to_structs(columns) or None,
        )

    @answers("add_partitions_pspec", of="new_parts")
    def add_partitions_of_specs(self, specs: Sequence[Struct]) -> int:
        """Add several of one table, whole or like one storage; how many."""
        if not specs:
            return 0
        names = {table_of(spec) for spec in specs}
        if len(names) > 1:
            raise MetaError(
                f"specs of {len(names)} tables in one call: "
                f"{', '.join(sorted(map(str, names))[:2])}; send those of one table"
            )
        structs = [struct for spec in specs for struct in _structs_of_spec(spec)]
        return len(self._add(names.pop(), structs)) if structs else 0

    @answers("append_partition", "append_partition_with_environment_context")
    def append_partition(self, args: Struct) -> Struct:
        """Add one by its values; it is stored like its table."""
        return self._append(table_of(args), given(args.part_vals, "part_vals"))

    @answers("append_partition_by_name", "append_partition_by_name_with_environment_context")
    def append_partition_by_name(self, args: Struct) -> Struct:
        """Add one by its name; it is stored like its table."""
        name = table_of(args)
        return self._append(name, self._values_of(name, args.part_name))

    @answers("append_partition_req", of="appendPartitionsReq")
    def append_partition_req(self, request: Struct) -> Struct:
        """Add one by its values or its name; it is stored like its table."""
        name = table_of(request)
        return self._append(name, request.partVals or self._values_of(name, request.name))

    @answers("alter_partition", "alter_partition_with_environment_context")
    def alter_partition(self, args: Struct) -> None:
        name = table_of(args)
        parts = [given(args.new_part, "new_part")]
        self._alter(name, parts, environment_of(context_of(args)), is_event_each=True)

    @answers("alter_partitions", "alter_partitions_with_environment_context")
    def alter_partitions(self, args: Struct) -> None:
        name = table_of(args)
        self._alter(name, given(args.new_parts, "new_parts"), environment_of(context_of(args)))

    @answers("alter_partitions_req", of="req")
    def alter_partitions_req(self, request: Struct) -> Struct:
        """Replace several; the write id of the statement may come with them."""
        name = table_of(request)
        parts = given(request.partitions, "partitions")
        if request.writeId is not None and request.writeId > 0:
            for part in parts:
                part.writeId = request.writeId
        columns = columns_from_structs(request.partitionColSchema)
        environment = environment_of(request.environmentContext)
        self._alter(name, parts, environment, columns, valid_write_ids=request.validWriteIdList)
        return hive.AlterPartitionsResponse()

    @answers("drop_partition", "drop_partition_with_environment_context")
    def drop_partition(self, args: Struct) -> bool:
        name = table_of(args)
        text = self._name_of(name, args.part_vals)
        return self._drop(name, text, args.deleteData, context_of(args))

    @answers("drop_partition_by_name", "drop_partition_by_name_with_environment_context")
    def drop_partition_by_name(self, args: Struct) -> bool:
        name = table_of(args)
        text = given_partition_name(args.part_name, "part_name")
        return self._drop(name, text, args.deleteData, context_of(args))

    @answers("drop_partition_req", of="dropPartitionReq")
    def drop_partition_req(self, request: Struct) -> bool:
        name = table_of(request)
        text = request.partName or self._name_of(name, request.partVals)
        return self._drop(name, text, request.deleteData, request.environmentContext)

    @answers("drop_partitions_req", of="req")
    def drop_partitions_req(self, request: Struct) -> Struct:
        """Drop several by their names or by conditions; those that were dropped come back."""
        name = table_of(request)
        parts = given(request.parts, "parts")
        dropped: Sequence[Partition]
        if parts.exprs is not None:
            dropped = self._drop_by_conditions(name, request, parts.exprs)
        elif parts.names is not None:
            dropped = self._drop_by_names(name, request, parts.names)
        else:
            raise MetaError("Partition spec is not set")
        if request.needResult is False:
            return hive.DropPartitionsResult()
        return hive.DropPartitionsResult(partitions=[partition_to_struct(p) for p in dropped])

    @answers("rename_partition")
    def rename_partition(self, args: Struct) -> None:
        name = table_of(args)
        self._rename(name, given(args.part_vals, "part_vals"), given(args.new_part, "new_part"))

    @answers("rename_partition_req", of="req")
    def rename_partition_req(self, request: Struct) -> Struct:
        """Give one other values. To keep the old directory for readers is not offered."""
        if request.clonePart:
            raise MetaError(
                "a partition cannot be renamed by a copy here; set "
                "hive.acid.rename.partition.makecopy=false in the client"
            )
        name = table_of(request)
        self._rename(name, given(request.partVals, "partVals"), given(request.newPart, "newPart"))
        return hive.RenamePartitionResponse()

    @answers("exchange_partition")
    def exchange_partition(self, args: Struct) -> Struct:
        """Move partitions to another table; the answer is empty, as Hive's."""
        self._exchange(args)
        return hive.Partition(createTime=0, lastAccessTime=0)

    @answers("exchange_partitions")
    def exchange_partitions(self, args: Struct) -> list[Struct]:
        """Move partitions to another table; those that were moved, as they are now."""
        return [partition_to_struct(partition) for partition in self._exchange(args)]

    def _rename(self, name: TableName, values: Sequence[str], struct: Struct) -> None:
        self._store.rename_partition(
            name.database,
            name.table,
            tuple(values),
            _partition(name, struct, ()),
            catalog=name.catalog,
        )

    def _exchange(self, args: Struct) -> tuple[Partition, ...]:
        source = table_name(args.source_db, args.source_table_name)
        target = table_name(args.dest_db, args.dest_table_name)
        return self._store.exchange_partitions(
            given(args.partitionSpecs, "partitionSpecs"), source, target
        )

    def _drop_by_names(
        self, name: TableName, request: Struct, names: Sequence[str]
    ) -> Sequence[Partition]:
        dropped = self._store.get_partitions_by_names(
            name.database, name.table, names, name.catalog
        )
        self._store.drop_partitions(
            name.database,
            name.table,
            names,
            catalog=name.catalog,
            is_data_deleted=bool(request.deleteData),
            is_purge=is_purge(request.environmentContext),
            is_if_exists=request.ifExists is not False,
        )
        return dropped

    def _drop_by_conditions(
        self, name: TableName, request: Struct, expressions: Sequence[Struct]
    ) -> tuple[Partition, ...]:
        is_whole_ignored = bool(request.ignoreProtection)
        return self._store.drop_partitions_by_conditions(
            name,
            [
                ConditionToDrop(
                    condition=read_condition(given(expression.expr, "expr")),
                    archive_level=0 if is_whole_ignored else expression.partArchiveLevel or 0,
                )
                for expression in expressions
            ],
            is_data_deleted=bool(request.deleteData),
            is_purge=is_purge(request.environmentContext),
            is_if_exists=request.ifExists is not False,
        )

    def _add(
        self,
        name: TableName,
        structs: Sequence[Struct],
        columns: tuple[Column, ...] = (),
        is_if_not_exists: bool = False,
    ) -> tuple[Partition, ...]:
        try:
            partitions = [_named(name, struct, columns) for struct in structs]
        except MetaError:
            self._table(name)  # that there is none goes before what is sent for it
            raise
        return self._store.add_partitions(
            name.database,
            name.table,
            partitions,
            is_if_not_exists=is_if_not_exists,
            catalog=name.catalog,
        )

    def _append(self, name: TableName, values: Sequence[str]) -> Struct:
        table = self._table(name)
        if table.is_view:
            raise MetaError("Cannot append a partition to a view")
        partition = Partition(
            values=tuple(values),
            database_name=name.database,
            table_name=name.table,
            catalog_name=name.catalog,
            storage=replace(table.storage, location=None),
        )
        added = self._store.add_partitions(
            name.database, name.table, [partition], catalog=name.catalog
        )
        return partition_to_struct(added[0])

    def _alter(
        self,
        name: TableName,
        structs: Sequence[Struct],
        environment: Mapping[str, str],
        columns: tuple[Column, ...] = (),
        *,
        is_event_each: bool = False,
        valid_write_ids: str | None = None,
    ) -> None:
        self._store.alter_partitions(
            name.database,
            name.table,
            [_whole(name, struct, columns) for struct in structs],
            environment=environment,
            catalog=name.catalog,
            is_event_each=is_event_each,
            valid_write_ids=valid_write_ids,
        )

    def _drop(
        self, name: TableName, text: str, is_deleted: bool | None, context: Struct | None
    ) -> bool:
        self._store.drop_partitions(
            name.database,
            name.table,
            (text,),
            catalog=name.catalog,
            is_data_deleted=bool(is_deleted),
            is_purge=is_purge(context),
        )
        return True

    def _table(self, name: TableName) -> Table:
        return self._store.get_table(name.database, name.table, name.catalog)

    def _name_of(self, name: TableName, values: Sequence[str] | None) -> str:
        columns = self._table(name).partition_columns
        return partition_name(columns, given(values, "the partition's values"))

    def _values_of(self, name: TableName, text: str | None) -> tuple[str, ...]:
        return values_of_name(self._table(name), given_partition_name(text, "the partition's name"))


def _partition(name: TableName, struct: Struct, columns: tuple[Column, ...]) -> Partition:
    """A partition of the call's table. Newer clients send the columns once for all."""
    if not struct.values:
        raise MetaError("The partition values cannot be null or empty.")
    partition = received_partition(struct, name.database, name.table, name.catalog)
    if (partition.database_name, partition.table_name) != (name.database, name.table):
        raise MetaError(
            f"a partition of {partition.database_name}.{partition.table_name} was sent among "
            f"those of {name.database}.{name.table}; send each table's apart"
        )
    if columns and not partition.storage.columns:
        partition = replace(partition, storage=replace(partition.storage, columns=columns))
    return replace(partition, catalog_name=name.catalog)


def _named(name: TableName, struct: Struct, columns: tuple[Column, ...]) -> Partition:
    """One that names its table, as Hive wants it though the call does."""
    if not struct.dbName or not struct.tableName:
        raise MetaError("The database and table name must be set in the partition.")
    return _partition(name, struct, columns)


def _whole(name: TableName, struct: Struct, columns: tuple[Column, ...]) -> Partition:
    """A change of one, which says what columns it has."""
    partition = _named(name, struct, columns)
    if struct.sd.cols is None and not columns:
        raise MetaError(f"partition {list(partition.values)} has no sd.cols; send a list")
    return partition


def _structs_of_spec(spec: Struct) -> Iterator[Struct]:
    """Of a list as they are; those that share a storage each with a place below its own (Hive:
    PartitionSpecWithSharedSDProxy)."""
    if spec.partitionList is not None:
        yield from spec.partitionList.partitions or ()
    elif spec.sharedSDPartitionSpec is not None:
        storage = given(spec.sharedSDPartitionSpec.sd, "sd")
        for part in spec.sharedSDPartitionSpec.partitions or ():
            struct = hive.Partition(
                sd=hive.StorageDescriptor(**vars(storage)),
                dbName=spec.dbName,
                tableName=spec.tableName,
            )
            for field in ("values", "createTime", "lastAccessTime", "parameters"):
                value = getattr(part, field)
                if value is not None:
                    setattr(struct, field, value)
            if storage.location is not None:
                struct.sd.location = storage.location + given(part.relativePath, "relativePath")
            yield struct
    else:
        raise MetaError("a spec has neither a list of partitions nor a shared storage; send one")
