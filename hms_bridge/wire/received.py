"""Objects as clients sent them: records that remember what else their structs said.

Hive's events about a statement hold the objects of its call and not what was stored of them:
privileges, access types and transactions stand there, and fields that a client left out do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Database, Partition, Table
from hms_bridge.wire.convert_catalog import (
    database_from_struct,
    database_to_struct,
    partition_from_struct,
    partition_to_struct,
    table_from_struct,
    table_to_struct,
)
from hms_bridge.wire.object_json import sent_fields
from hms_bridge.wire.required import given
from hms_bridge.wire.structs import Struct

_STORAGE = ("sd.skewedInfo", "sd.storedAsSubDirectories")


def received_table(struct: Struct) -> Table:
    """A table. Raises MetaError for what Hive cannot do without, and InvalidObjectError as
    :func:`table_from_struct` does."""
    given(struct.dbName, "Table.dbName")
    name = given(struct.tableName, "Table.tableName")
    storage = _storage_of(struct, f"table {name}")
    if storage.location == "":
        raise MetaError(f"table {name} has an empty sd.location; leave that field out")
    _require_columns((*given(storage.cols, "Table.sd.cols"), *(struct.partitionKeys or ())))
    table = table_from_struct(struct)
    optional = ("temporary", "rewriteEnabled", "writeId", *_STORAGE)
    return replace(table, sent=sent_fields(struct, table_to_struct(table), optional))


def received_partition(
    struct: Struct,
    database: str | None = None,
    table: str | None = None,
    catalog: str | None = None,
) -> Partition:
    """A partition. Raises MetaError for what Hive cannot do without, and InvalidObjectError as
    :func:`partition_from_struct` does."""
    storage = _storage_of(struct, f"partition {struct.values}")
    _require_columns(storage.cols or ())
    partition = partition_from_struct(struct, database, table, catalog)
    optional = ("writeId", *_STORAGE)
    return replace(partition, sent=sent_fields(struct, partition_to_struct(partition), optional))


def received_database(struct: Struct) -> Database:
    """A database. Raises InvalidObjectError as :func:`database_from_struct` does."""
    database = database_from_struct(struct)
    optional = ("parameters",)
    return replace(database, sent=sent_fields(struct, database_to_struct(database), optional))


def _storage_of(struct: Struct, name: str) -> Struct:
    if struct.sd is None:
        raise MetaError(f"{name} has no storage descriptor; set the field sd")
    storage: Struct = struct.sd
    if storage.serdeInfo is None:
        raise MetaError(f"Invalid SerDeInfo object: {name} has none; set sd.serdeInfo")
    return storage


def _require_columns(columns: Iterable[Struct]) -> None:
    for column in columns:
        if column.name is None or not column.type:
            raise MetaError(f"column {column.name!r} has type {column.type!r}; give both")
