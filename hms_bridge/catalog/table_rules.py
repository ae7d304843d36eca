"""Which tables may exist, and which may become which (Hive: TransactionalValidationListener). Pure.

The texts are those that a real metastore answers with, because clients look for them. Which
properties make a table what: docs/hive/acid.md §23.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hms_bridge.errors import InvalidOperationError, MetaError
from hms_bridge.model.catalog import DEFAULT_CATALOG, Column, Table
from hms_bridge.model.properties import (
    EXPECTED_KEY,
    EXPECTED_VALUE,
    EXTERNAL_PURGE,
    INSERT_ONLY,
    TRANSACTIONAL,
    TRANSACTIONAL_PROPERTIES,
    parameter,
)

DEFAULT_PROPERTIES = "default"

_ACID_FORMATS = ("OrcInputFormat", "OrcOutputFormat")
_LENIENT_SERDES = frozenset(
    {
        "org.apache.hadoop.hive.kudu.KuduSerDe",
        "org.apache.iceberg.mr.hive.HiveIcebergSerDe",
    }
)
"""SerDes that keep their own schema (metastore.allow.incompatible.col.type.changes.serdes)."""


def has_own_files(table: Table) -> bool:
    """Whether dropping the table deletes its files (Hive: managed, or external with purge)."""
    if table.is_view:
        return False
    if table.is_external:
        return (parameter(table.parameters, EXTERNAL_PURGE) or "").lower() == "true"
    return True


def with_acid_properties(table: Table) -> Table:
    """A new table as it is stored: ``transactional_properties=default`` is added.

    Raises MetaError for a table that cannot be transactional as it asks.
    """
    text = parameter(table.parameters, TRANSACTIONAL)
    properties = parameter(table.parameters, TRANSACTIONAL_PROPERTIES)
    if text is None or text.lower() == "false":
        return table
    if text.lower() != "true":
        raise MetaError(
            f"'transactional' property of TBLPROPERTIES may only have value 'true': "
            f"{table.full_name}"
        )
    _check_transactional(table, properties)
    if properties is not None:
        return table
    return replace(
        table, parameters={**table.parameters, TRANSACTIONAL_PROPERTIES: DEFAULT_PROPERTIES}
    )


def _check_transactional(table: Table, properties: str | None) -> None:
    if table.catalog_name != DEFAULT_CATALOG:
        raise MetaError(
            f"{table.catalog_name}.{table.full_name}: transactional tables are kept in catalog "
            f"'{DEFAULT_CATALOG}' only, because transactions know no catalogs; create it there"
        )
    if table.is_external:
        raise MetaError(
            f"{table.full_name} cannot be declared transactional because it's an external table"
        )
    if table.is_view:
        raise MetaError(f"{table.full_name} cannot be declared transactional because it's a view")
    if properties is not None and properties.lower() not in (DEFAULT_PROPERTIES, INSERT_ONLY):
        raise MetaError(
            f"Invalid transactional properties specified for {table.full_name} with the error "
            f"unknown value {properties} for transactional_properties"
        )
    if properties is None or properties.lower() == DEFAULT_PROPERTIES:
        _check_full_acid(table)


def _check_full_acid(table: Table) -> None:
    formats = (table.storage.input_format or "", table.storage.output_format or "")
    if not all(given.endswith(due) for given, due in zip(formats, _ACID_FORMATS, strict=True)):
        raise MetaError(
            f"The table must be stored using an ACID compliant format (such as ORC): "
            f"{table.full_name}"
        )
    if table.storage.sort_columns:
        raise MetaError(
            f"Table {table.full_name} cannot support full ACID functionality since it is sorted."
        )


def with_altered_acid_properties(old: Table, new: Table) -> Table:
    """An altered table as it is stored. ``transactional`` goes from false to true only.

    Raises MetaError for a change that is not allowed.
    """
    if old.is_transactional:
        if not new.is_transactional:
            raise MetaError(
                f"TBLPROPERTIES with 'transactional'='true' cannot be unset: {new.full_name}"
            )
        if _properties(old) != _properties(new):
            raise MetaError(
                "TBLPROPERTIES with 'transactional_properties' cannot be altered after the "
                "table is created"
            )
    return with_acid_properties(new)


def _properties(table: Table) -> str:
    text = parameter(table.parameters, TRANSACTIONAL_PROPERTIES)
    return (text or DEFAULT_PROPERTIES).lower()


def check_alteration(old: Table, new: Table) -> None:
    """Raises InvalidOperationError for partition columns or column types that cannot change.

    Rules of HiveAlterHandler.alterTable (docs/hive/metastore.md §26): partition columns keep their
    names and number; a column may only become one that can hold its values.
    """
    old_keys = [column.name.lower() for column in old.partition_columns]
    new_keys = [column.name.lower() for column in new.partition_columns]
    if not old.is_view and old_keys != new_keys:
        raise InvalidOperationError("partition keys can not be changed.")
    if old.is_view or old.storage.serde.library in _LENIENT_SERDES:
        return
    incompatible = incompatible_columns(old.storage.columns, new.storage.columns)
    if incompatible:
        raise InvalidOperationError(
            "The following columns have types incompatible with the existing columns in their "
            f"respective positions :\n{','.join(incompatible)}"
        )


def expected_parameter(environment: Mapping[str, str]) -> tuple[str, str] | None:
    """Name and value of the parameter that an ALTER TABLE expects; half of the pair expects none
    (HiveAlterHandler.alterTable; docs/hive/metastore.md §44)."""
    name, value = environment.get(EXPECTED_KEY), environment.get(EXPECTED_VALUE)
    return None if name is None or value is None else (name, value)


def check_expected_parameter(old: Table, new: Table, environment: Mapping[str, str]) -> None:
    """Raises MetaError if the table has not the parameter that is expected, or loses it."""
    expected = expected_parameter(environment)
    if expected is None:
        return
    name, value = expected
    if name not in new.parameters:
        raise MetaError(f"New value for expected key {name} is not set")
    there = old.parameters.get(name)
    if there != value:
        raise unexpected_parameter(
            name, f"'{'null' if there is None else there}'. The expected was value was '{value}'"
        )


def unexpected_parameter(name: str, value: str) -> MetaError:
    """Iceberg looks for the beginning of this text, and tries its commit again."""
    return MetaError(
        f"The table has been modified. The parameter value for key '{name}' is {value}"
    )


def incompatible_columns(old: tuple[Column, ...], new: tuple[Column, ...]) -> tuple[str, ...]:
    """Names of the new columns that cannot hold the values of the old column at their place.

    Columns are compared by position, because files map columns by position (docs/hive/acid.md §20).
    """
    return tuple(
        after.name
        for before, after in zip(old, new, strict=False)
        if not is_type_compatible(before.type, after.type)
    )


_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double")
_STRINGS = ("string", "varchar", "char")


def is_type_compatible(before: str, after: str) -> bool:
    """Whether values of one type can be read as the other (docs/hive/metastore.md §26;
    ColumnType.areColTypesCompatible)."""
    old, new = (
        text.strip().lower().partition("(")[0].partition("<")[0] for text in (before, after)
    )
    if old in (new, "void"):
        return True
    if old in _NUMBERS and new in _NUMBERS:
        return _NUMBERS.index(old) < _NUMBERS.index(new)
    if old in _STRINGS and new in (*_STRINGS, "double", "decimal"):
        return True
    if old in _NUMBERS and new == "decimal":
        return old not in ("float", "double")
    return new in _STRINGS and (old in _NUMBERS or old in ("date", "decimal", "timestamp"))
