"""What a table is to Spark: its kind, and its columns in Spark's words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final

from hms_bridge.errors import AcidFormatError
from hms_bridge.metastore import CatalogStore
from hms_bridge.model.catalog import Column, Table
from hms_bridge.model.properties import FILE_BYTES, INSERT_ONLY, ROW_COUNT, parameter
from hms_bridge.model.statistics_state import is_basic_accurate
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.orc.types import OrcKind, OrcType
from hms_bridge.plans.formats import format_of
from hms_bridge.plans.requests import PlanError, Refusal

ACID, OTHER = "acid", "other"
TIMESTAMPS: Final = ("timestamp", "timestamp_ntz")
"""What Hive's ``timestamp`` may be in a session of Spark's."""
_SUMMED_PARTITIONS_MAX = 200
"""Of more partitions no sizes are summed: a table is loaded several times a statement."""
_NOT_IN_PARTITIONS = frozenset(
    {OrcKind.BINARY, OrcKind.TIMESTAMP_INSTANT, OrcKind.LIST, OrcKind.MAP, OrcKind.STRUCT}
)
_SPARK_NAMES: Final = {
    OrcKind.BOOLEAN: "boolean",
    OrcKind.BYTE: "byte",
    OrcKind.SHORT: "short",
    OrcKind.INT: "integer",
    OrcKind.LONG: "long",
    OrcKind.FLOAT: "float",
    OrcKind.DOUBLE: "double",
    OrcKind.STRING: "string",
    OrcKind.BINARY: "binary",
    OrcKind.DATE: "date",
    OrcKind.TIMESTAMP_INSTANT: "timestamp",
}
_ORC_NAMES: Final = {
    OrcKind.BYTE: "tinyint",
    OrcKind.SHORT: "smallint",
    OrcKind.INT: "int",
    OrcKind.LONG: "bigint",
    OrcKind.TIMESTAMP: "timestamp",
    OrcKind.TIMESTAMP_INSTANT: "timestamp with local time zone",
}


def kind_of(table: Table) -> str:
    """Full ACID, insert-only, or anything that is read by other means. Of a materialized view the
    rows that it keeps are read, as Hive does when it is named."""
    if table.is_view or not table.is_in_txn_tables:
        return OTHER
    return INSERT_ONLY if table.is_insert_only else ACID


def loaded(catalog: CatalogStore, table: Table, timestamps: str) -> dict[str, Any]:
    """The answer to ``table/load``. Raises PlanError for what Spark cannot read here."""
    kind = kind_of(table)
    if kind == OTHER:
        return {"kind": kind}
    answer = {
        "kind": kind,
        "format": format_of(table),
        "definition": definition(table),
        "schema": spark_schema(table, timestamps),
        "partition_columns": [column.name for column in table.partition_columns],
        "properties": dict(table.parameters) | _described(table),
    }
    return answer | _buckets(table) | _statistics(catalog, table)


def _buckets(table: Table) -> dict[str, Any]:
    """How rows are CLUSTERED, if they are."""
    columns = {column.name: column for column in table.storage.columns}
    by = [columns[name] for name in table.storage.bucket_columns if name in columns]
    if not by or table.storage.bucket_count < 1:
        return {}
    return {
        "buckets": {
            "count": table.storage.bucket_count,
            "columns": [column.name for column in by],
            "type": row_text(by),
        }
    }


def _described(table: Table) -> dict[str, str]:
    """Properties of Spark's own, which DESCRIBE EXTENDED shows."""
    own = {"location": table.storage.location, "owner": table.owner}
    return {key: value for key, value in own.items() if value}


def definition(table: Table) -> str:
    """Changes with the columns, their types, the place, and when another table has the name."""
    storage = table.storage
    parts = [
        [[column.name, column.type] for column in storage.columns],
        [[column.name, column.type] for column in table.partition_columns],
        [kind_of(table), storage.location, storage.input_format, list(storage.bucket_columns)],
        [table.id, table.create_time],
        [storage.serde.library, sorted(storage.serde.parameters.items())],
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def spark_schema(table: Table, timestamps: str) -> dict[str, Any]:
    """Spark's JSON of a struct, partition columns last. Raises PlanError naming a column whose
    type Spark cannot hold."""
    fields = []
    for column in (*table.storage.columns, *table.partition_columns):
        kind = column_type(table, column)
        metadata = {} if column.comment is None else {"comment": column.comment}
        fields.append(_field(column.name, _spark_type(kind, timestamps), metadata))
    for column in table.partition_columns:
        if column_type(table, column).kind in _NOT_IN_PARTITIONS:
            raise _refused(table, column, "such a partition column is not read here")
    return {"type": "struct", "fields": fields}


def column_type(table: Table, column: Column) -> OrcType:
    """Raises PlanError naming the column for a type that ORC or Spark cannot hold."""
    try:
        kind = parse_hive_type(column.type)
    except AcidFormatError as error:
        raise _refused(table, column, str(error)) from error
    if any(node.kind is OrcKind.UNION for node in kind.preorder()):
        raise _refused(table, column, "Spark has no uniontype")
    for node in kind.preorder():
        if len({name.lower() for name in node.names}) < len(node.names):
            raise _refused(table, column, "names of fields differ in case only")
    return kind


def row_text(columns: Sequence[Column]) -> str:
    """The stored columns as one type, as ORC writes it."""
    fields = (f"{_quoted(c.name)}:{_orc_text(parse_hive_type(c.type))}" for c in columns)
    return f"struct<{','.join(fields)}>"


def _refused(table: Table, column: Column, why: str) -> PlanError:
    return PlanError(
        Refusal.REFUSED,
        f"column {column.name} of {table.full_name} is {column.type}: {why}; read the table with "
        "Hive, or with hms-bridge sql without that column",
    )


def _statistics(catalog: CatalogStore, table: Table) -> dict[str, int]:
    """Sums that somebody stored; none if one of them is missing."""
    described = [table.parameters]
    if table.is_partitioned:
        most = _SUMMED_PARTITIONS_MAX + 1
        partitions = catalog.get_partitions(table.database_name, table.name, most)
        if not 0 < len(partitions) < most:
            return {}
        described = [partition.parameters for partition in partitions]
    sizes = [_count(parameter(stored, FILE_BYTES)) for stored in described]
    rows = [
        _count(parameter(stored, ROW_COUNT)) if is_basic_accurate(stored) else None
        for stored in described
    ]
    answer = {"size_bytes": _sum(sizes), "row_count": _sum(rows)}
    return {name: value for name, value in answer.items() if value is not None}


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() else None


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _field(name: str, kind: object, metadata: dict[str, str]) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def _spark_type(node: OrcType, timestamps: str) -> Any:
    children = [_spark_type(child, timestamps) for child in node.children]
    match node.kind:
        case OrcKind.STRUCT:
            named = zip(node.names, children, strict=True)
            return {"type": "struct", "fields": [_field(name, kind, {}) for name, kind in named]}
        case OrcKind.LIST:
            return {"type": "array", "elementType": children[0], "containsNull": True}
        case OrcKind.MAP:
            return {
                "type": "map",
                "keyType": children[0],
                "valueType": children[1],
                "valueContainsNull": True,
            }
        case OrcKind.TIMESTAMP:
            return timestamps
        case OrcKind.DECIMAL | OrcKind.CHAR | OrcKind.VARCHAR:
            return _sized(node)
        case _:
            return _SPARK_NAMES[node.kind]


def _orc_text(node: OrcType) -> str:
    children = [_orc_text(child) for child in node.children]
    match node.kind:
        case OrcKind.STRUCT:
            fields = zip(map(_quoted, node.names), children, strict=True)
            return f"struct<{','.join(f'{name}:{kind}' for name, kind in fields)}>"
        case OrcKind.LIST:
            return f"array<{children[0]}>"
        case OrcKind.MAP:
            return f"map<{children[0]},{children[1]}>"
        case OrcKind.DECIMAL | OrcKind.CHAR | OrcKind.VARCHAR:
            return _sized(node)
        case _:
            return _ORC_NAMES.get(node.kind) or _SPARK_NAMES[node.kind]


def _sized(node: OrcType) -> str:
    """Spark and ORC write these alike."""
    if node.kind is OrcKind.DECIMAL:
        return f"decimal({node.precision},{node.scale})"
    return f"{node.kind.name.lower()}({node.maximum_length})"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
