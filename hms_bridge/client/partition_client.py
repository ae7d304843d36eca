"""Partitions over thrift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hms_bridge.client.catalog_client import CatalogClient, context_of, purge_context
from hms_bridge.errors import InvalidOperationError
from hms_bridge.model.catalog import DEFAULT_CATALOG, Partition
from hms_bridge.wire.catalog_names import join_catalog
from hms_bridge.wire.convert_catalog import partition_from_struct, partition_to_struct
from hms_bridge.wire.structs import Struct, hive

_SHORT_MAX = 32767


class PartitionClient(CatalogClient):
    """What CatalogStore has of partitions, beside the rest of it."""

    def add_partitions(
        self,
        database: str,
        table: str,
        partitions: Sequence[Partition],
        *,
        is_if_not_exists: bool = False,
        catalog: str = DEFAULT_CATALOG,
    ) -> tuple[Partition, ...]:
        request = hive.AddPartitionsRequest(
            dbName=database,
            tblName=table,
            parts=[partition_to_struct(partition) for partition in partitions],
            ifNotExists=is_if_not_exists,
            needResult=True,
            catName=catalog,
        )
        with self.missing_table_reported(database, table, catalog):
            answer = self._caller.call("add_partitions_req", request=request)
        return _partitions(answer.partitions or (), database, table, catalog)

    def get_partition(
        self, database: str, table: str, values: Sequence[str], catalog: str = DEFAULT_CATALOG
    ) -> Partition:
        struct = self._read("get_partition", catalog, database, table, part_vals=list(values))
        return partition_from_struct(struct, database, table, catalog)

    def get_partition_names(
        self, database: str, table: str, max_parts: int = -1, catalog: str = DEFAULT_CATALOG
    ) -> tuple[str, ...]:
        limit = _short(max_parts)
        names = self._read("get_partition_names", catalog, database, table, max_parts=limit)
        if not names:
            self.get_table(database, table, catalog)  # Hive answers nothing for unknown ones
        return tuple(_first(sorted(names), max_parts))

    def get_partitions(
        self, database: str, table: str, max_parts: int = -1, catalog: str = DEFAULT_CATALOG
    ) -> tuple[Partition, ...]:
        limit = _short(max_parts)
        structs = self._read("get_partitions", catalog, database, table, max_parts=limit)
        return _partitions(_first(structs, max_parts), database, table, catalog)

    def get_partitions_by_names(
        self, database: str, table: str, names: Sequence[str], catalog: str = DEFAULT_CATALOG
    ) -> tuple[Partition, ...]:
        with self.missing_table_reported(database, table, catalog):
            structs = self._read(
                "get_partitions_by_names", catalog, database, table, names=list(names)
            )
        if not structs:
            self.get_table(database, table, catalog)
        return _partitions(structs, database, table, catalog)

    def get_partitions_by_values(
        self,
        database: str,
        table: str,
        prefix: Sequence[str],
        max_parts: int = -1,
        catalog: str = DEFAULT_CATALOG,
    ) -> tuple[Partition, ...]:
        if not prefix:
            return self.get_partitions(database, table, max_parts, catalog)
        structs = self._read(
            "get_partitions_ps",
            catalog,
            database,
            table,
            part_vals=list(prefix),
            max_parts=_short(max_parts),
        )
        return _partitions(_first(structs, max_parts), database, table, catalog)

    def get_partitions_by_filter(
        self,
        database: str,
        table: str,
        filter_text: str,
        max_parts: int = -1,
        catalog: str = DEFAULT_CATALOG,
    ) -> tuple[Partition, ...]:
        structs = self._read(
            "get_partitions_by_filter",
            catalog,
            database,
            table,
            filter=filter_text,
            max_parts=_short(max_parts),
        )
        return _partitions(_first(structs, max_parts), database, table, catalog)

    def alter_partitions(
        self,
        database: str,
        table: str,
        partitions: Sequence[Partition],
        *,
        environment: Mapping[str, str] | None = None,
        catalog: str = DEFAULT_CATALOG,
        is_event_each: bool = False,
        valid_write_ids: str | None = None,
    ) -> None:
        """With ``is_event_each``, each is a call of its own."""
        if is_event_each and len(partitions) > 1:
            for partition in partitions:
                self.alter_partitions(
                    database,
                    table,
                    [partition],
                    environment=environment,
                    catalog=catalog,
                    is_event_each=True,
                    valid_write_ids=valid_write_ids,
                )
            return
        structs = [partition_to_struct(partition) for partition in partitions]
        context = context_of(environment)
        write_ids = {partition.write_id for partition in partitions}
        request = hive.AlterPartitionsRequest(
            catName=catalog,
            dbName=database,
            tableName=table,
            partitions=structs,
            environmentContext=context,
            writeId=write_ids.pop() if len(write_ids) == 1 else None,
            validWriteIdList=valid_write_ids,
        )
        old = {
            "db_name": join_catalog(catalog, database),
            "tbl_name": table,
            "new_parts": structs,
            "environment_context": context or context_of({}),
        }
        calls: tuple[tuple[str, dict[str, Any]], ...] = (
            ("alter_partitions_req", {"req": request}),
            ("alter_partitions_with_environment_context", old),
        )
        if is_event_each and structs:
            single = {**old, "new_part": structs[0]}
            del single["new_parts"]
            calls = (("alter_partition_with_environment_context", single),)
        try:
            self._caller.call_first_known(calls)
        except InvalidOperationError:
            for partition in partitions:
                self.get_partition(database, table, partition.values, catalog)
            raise

    def drop_partitions(
        self,
        database: str,
        table: str,
        names: Sequence[str],
        *,
        catalog: str = DEFAULT_CATALOG,
        is_data_deleted: bool = True,
        is_purge: bool = False,
        is_if_exists: bool = False,
    ) -> None:
        request = hive.DropPartitionsRequest(
            dbName=database,
            tblName=table,
            parts=hive.RequestPartsSpec(names=list(names)),
            deleteData=is_data_deleted,
            ifExists=is_if_exists,
            environmentContext=purge_context(is_purge),
            needResult=False,
            catName=catalog,
        )
        self._caller.call("drop_partitions_req", req=request)

    def _read(self, name: str, catalog: str, database: str, table: str, **others: Any) -> Any:
        return self._caller.repeat(
            name, db_name=join_catalog(catalog, database), tbl_name=table, **others
        )


def _partitions(
    structs: Sequence[Struct], database: str, table: str, catalog: str
) -> tuple[Partition, ...]:
    return tuple(partition_from_struct(s, database, table, catalog) for s in structs)


def _short(max_parts: int) -> int:
    """The wire has 16 bits for it; more is asked as all, and cut here."""
    return max_parts if 0 <= max_parts <= _SHORT_MAX else -1


def _first(items: Sequence[Any], max_parts: int) -> Sequence[Any]:
    return items if max_parts < 0 else items[:max_parts]
