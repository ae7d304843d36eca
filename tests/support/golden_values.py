"""Arrow values as the goldens' rows.jsonl writes them (golden/acid/README)."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa

from hms_bridge.orc.types import OrcKind, OrcType

_EPOCH = datetime(1970, 1, 1)


def golden_value(value: Any, node: OrcType) -> Any:
    """One value of Arrow's to_pylist, read with timestamps as parts."""
    if value is None:
        return None
    match node.kind:
        case OrcKind.FLOAT | OrcKind.DOUBLE:
            return _golden_float(value, node.kind)
        case OrcKind.DECIMAL:
            return format(value, "f")
        case OrcKind.DATE:
            return value.isoformat()
        case OrcKind.TIMESTAMP:
            return timestamp_text(value["seconds"], value["nanos"])
        case OrcKind.BINARY:
            return base64.b64encode(value).decode()
        case OrcKind.LIST:
            return [golden_value(one, node.children[0]) for one in value]
        case OrcKind.MAP:
            key, item = node.children
            return [[golden_value(k, key), golden_value(v, item)] for k, v in value]
        case OrcKind.STRUCT:
            pairs = zip(value.items(), node.children, strict=True)
            return {name: golden_value(one, child) for (name, one), child in pairs}
        case OrcKind.UNION:
            tag = value["tag"]
            return {"tag": tag, "value": golden_value(value[f"field{tag}"], node.children[tag])}
        case _:
            return value


def _golden_float(value: float, kind: OrcKind) -> float | str:
    if not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    if kind is OrcKind.DOUBLE:
        return value
    single = pa.scalar(value, pa.float32())
    for digits in range(1, 10):
        shorter = float(f"{value:.{digits}g}")
        if pa.scalar(shorter, pa.float32()) == single:
            return shorter
    return value


def timestamp_text(seconds: int, nanos: int) -> str:
    """As Hive prints it: no trailing zeros in the fraction."""
    text = (_EPOCH + timedelta(seconds=seconds)).isoformat(sep=" ")
    return f"{text}.{nanos:09d}".rstrip("0") if nanos else text


def golden_rows(batch: pa.RecordBatch, table: OrcType) -> list[dict[str, Any]]:
    """Rows of a reader that gives every column of the table and ROW__ID."""
    rows = []
    for row in batch.to_pylist():
        row_id = row.pop("ROW__ID")
        values = {
            name: golden_value(row[name], child)
            for name, child in zip(table.names, table.children, strict=True)
        }
        rows.append({"row__id": list(row_id.values()), "values": values})
    return rows


def partition_value(text: str, node: OrcType) -> Any:
    """The value of a partition column from its (unescaped) directory name.

    Hive's row reader, by which the goldens were read, shows the default partition's own name where
    the column is a string, and null for any other type.
    """
    if text == "__HIVE_DEFAULT_PARTITION__" and node.kind is not OrcKind.STRING:
        return None
    match node.kind:
        case OrcKind.BYTE | OrcKind.SHORT | OrcKind.INT | OrcKind.LONG:
            return int(text)
        case OrcKind.DATE:
            return date.fromisoformat(text).isoformat()
        case _:
            return text


def table_type(columns: Sequence[Sequence[str]]) -> OrcType:
    """The struct of a state.json's columns."""
    from hms_bridge.orc.hive_types import parse_hive_type
    from hms_bridge.orc.types import struct_type

    return struct_type([name for name, _ in columns], [parse_hive_type(t) for _, t in columns])
