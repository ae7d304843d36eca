"""What a client may do with a table, decided by what it says that it understands.

Hive answers more (MetastoreDefaultTransformer): that a client may only read, or nothing, and which
capabilities it lacks. Nothing is refused here for a lack of capabilities, so only full access is
sent; Hive's clients send it back when they change a table, and its events show it.
"""

from __future__ import annotations

from collections.abc import Collection

from hms_bridge.model.catalog import Table, TableType

READ_ONLY = 2
"""All that there is for views."""
READ_WRITE = 8

_CONNECTOR_READ, _CONNECTOR_WRITE = "CONNECTORREAD", "CONNECTORWRITE"


def access_type(table: Table, capabilities: Collection[str]) -> int | None:
    """The number on the wire; None where Hive would answer less than full access."""
    has = frozenset(capabilities)
    match table.type:
        case TableType.EXTERNAL_TABLE if table.storage.bucket_count > 0:
            is_full = "HIVEBUCKET2" in has
        case TableType.EXTERNAL_TABLE:
            is_full = {"EXTREAD", "EXTWRITE"} <= has
        case TableType.MANAGED_TABLE if table.is_insert_only:
            is_full = bool({"HIVEMANAGEDINSERTWRITE", _CONNECTOR_WRITE} & has)
        case TableType.MANAGED_TABLE:
            is_full = not table.is_transactional or bool(
                {"HIVEFULLACIDWRITE", _CONNECTOR_WRITE} & has
            )
        case TableType.VIRTUAL_VIEW:
            return READ_ONLY if {"HIVESQL", _CONNECTOR_READ} & has else None
        case TableType.MATERIALIZED_VIEW:
            is_reader = bool({"HIVEFULLACIDREAD", _CONNECTOR_READ} & has)
            return READ_ONLY if is_reader and "HIVEMQT" in has else None
        case _:
            return None
    return READ_WRITE if is_full else None
