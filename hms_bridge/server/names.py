"""Names and settings that calls carry, in the form that the port takes."""

from __future__ import annotations

from collections.abc import Mapping

from hms_bridge.errors import InvalidObjectError, MetaError
from hms_bridge.model.catalog import Table
from hms_bridge.model.partition_name import parse_partition_name
from hms_bridge.model.properties import IF_PURGE
from hms_bridge.model.target import TableName
from hms_bridge.wire.catalog_names import split_catalog
from hms_bridge.wire.required import given
from hms_bridge.wire.structs import Struct

_DATABASES = ("dbName", "db_name", "dbname")
_TABLES = ("tblName", "tableName", "tbl_name", "table_name")
_CATALOGS = ("catName", "catalogName", "cat_name")


def table_name(database: str | None, table: str | None, catalog: str | None = None) -> TableName:
    """From a call's arguments; the catalog may stand in the database's name. Of an empty name
    there is nothing, which each verb says in its own way.

    Raises MetaError if a name is missing.
    """
    in_name, plain = split_catalog(database)
    plain = given(plain, "the database's name")
    return TableName(plain, given(table, "the table's name").lower(), (catalog or in_name).lower())


def table_of(struct: Struct) -> TableName:
    """The table that a call's arguments or request are about, whatever Hive calls their fields.

    Raises MetaError if a name is missing.
    """
    return table_name(*(_first(struct, names) for names in (_DATABASES, _TABLES, _CATALOGS)))


def _first(struct: Struct, names: tuple[str, ...]) -> str | None:
    return next((getattr(struct, name) for name in names if hasattr(struct, name)), None)


def context_of(args: Struct) -> Struct | None:
    """The EnvironmentContext of a call; None for its form without one."""
    context: Struct | None = getattr(args, "environment_context", None)
    return context


def environment_of(context: Struct | None) -> Mapping[str, str]:
    """The properties of an EnvironmentContext; none for None."""
    return {} if context is None else context.properties or {}


def is_purge(context: Struct | None) -> bool:
    """Whether a drop must bypass the trash."""
    return environment_of(context).get(IF_PURGE, "").lower() == "true"


def limit_of(count: int | None) -> int:
    """A number of rows; -1 for all, which is also what an unset one means."""
    return -1 if count is None or count < 0 else count


def pattern_of(pattern: str | None) -> str | None:
    """A name pattern; None for those that match everything."""
    return None if pattern in (None, "*", ".*") else pattern


def given_partition_name(text: str | None, what: str) -> str:
    """Raises MetaError for one that was not sent, or is empty."""
    name: str = given(text, what)
    if not name:
        raise MetaError("Partition name is invalid: it is empty; write it as key=value/key=value")
    return name


def values_of_name(table: Table, text: str) -> tuple[str, ...]:
    """The values in a partition's name, in the table's order, whatever order the name has.

    Raises InvalidObjectError for a name that does not fit the table.
    """
    columns = [column.name for column in table.partition_columns]
    try:
        parsed = dict(parse_partition_name(text))
    except MetaError as error:
        raise InvalidObjectError(str(error)) from error
    if sorted(parsed) != sorted(columns):
        raise InvalidObjectError(
            f"partition name {text} does not fit {table.full_name}, whose partition columns are "
            f"{', '.join(columns) or 'none'}"
        )
    return tuple(parsed[column] for column in columns)
