"""Objects as clients sent them: records that remember what else their structs said.

Hive's events about a statement hold the objects of its call and not what was stored of them:
privileges, access types and transactions stand there, and fields that a client left out do not.
"""

from __future__ import annotations

from dataclasses import replace

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
from hms_bridge.wire.structs import Struct

_STORAGE = ("sd.skewedInfo", "sd.storedAsSubDirectories")


def received_table(struct: Struct) -> Table:
    """A table. Raises InvalidObjectError as :func:`table_from_struct` does."""
    table = table_from_struct(struct)
    optional = ("temporary", "rewriteEnabled", "writeId", *_STORAGE)
    return replace(table, sent=sent_fields(struct, table_to_struct(table), optional))


def received_partition(
    struct: Struct,
    database: str | None = None,
    table: str | None = None,
    catalog: str | None = None,
) -> Partition:
    """A partition. Raises InvalidObjectError as :func:`partition_from_struct` does."""
    partition = partition_from_struct(struct, database, table, catalog)
    optional = ("writeId", *_STORAGE)
    return replace(partition, sent=sent_fields(struct, partition_to_struct(partition), optional))


def received_database(struct: Struct) -> Database:
    """A database. Raises InvalidObjectError as :func:`database_from_struct` does."""
    database = database_from_struct(struct)
    optional = ("parameters",)
    return replace(database, sent=sent_fields(struct, database_to_struct(database), optional))
