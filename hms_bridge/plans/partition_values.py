"""Values of partition columns: as the answer carries them, and as they are compared."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeAlias

import numpy as np

from hms_bridge.model.catalog import Column
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.orc.types import OrcKind
from hms_bridge.rows.scan import partition_value

Value: TypeAlias = bool | int | float | str | None
"""As JSON has it: a decimal as text, a date in days, a timestamp in microseconds of wall clock; a
number that is not finite as text, since JSON has none."""

_EPOCH = date(1970, 1, 1)
_EPOCH_TIME = datetime(1970, 1, 1)
_INTEGERS: Final = frozenset({OrcKind.BYTE, OrcKind.SHORT, OrcKind.INT, OrcKind.LONG})
_TEXTS: Final = frozenset({OrcKind.STRING, OrcKind.CHAR, OrcKind.VARCHAR})
_INTEGER_NAMES = {"byte", "tinyint", "short", "smallint", "integer", "int", "long", "bigint"}


def typed_value(column: Column, text: str) -> Value:
    """What a partition's text means to the column. Raises AcidFormatError if it means nothing."""
    value: Any = partition_value(column, text, 1)[0].as_py()
    match value:
        case datetime():
            since = value - _EPOCH_TIME
            return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        case date():
            return (value - _EPOCH).days
        case Decimal():
            return format(value, "f")
        case float() if not math.isfinite(value):
            return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
        case _:
            return value  # type: ignore[no-any-return]


class Comparison:
    """How values of one column are compared with literals."""

    def __init__(self, column: Column) -> None:
        kind = parse_hive_type(column.type)
        self._kind = kind.kind
        self._length = kind.maximum_length
        self.is_text = self._kind in _TEXTS

    def fits(self, type_name: str) -> bool:
        """Whether Spark compares such a literal with the column as :meth:`readings` do. A
        ``timestamp`` does not fit: it is a moment, and two moments may show one wall clock."""
        name = type_name.lower().partition("(")[0]
        if self._kind in _INTEGERS:
            return name in _INTEGER_NAMES
        if self.is_text:
            return name in {"string", "char", "varchar"}
        names = {
            OrcKind.BOOLEAN: "boolean",
            OrcKind.DATE: "date",
            OrcKind.TIMESTAMP: "timestamp_ntz",
            OrcKind.FLOAT: "float",
            OrcKind.DOUBLE: "double",
            OrcKind.DECIMAL: "decimal",
        }
        return name == names.get(self._kind)

    def readings(self, value: object) -> tuple[Any, ...]:
        """What a value may be in a comparison: one thing, but for char, which Spark compares padded
        here and as it is there. Nothing for what is no value of the type."""
        if self.is_text:
            if not isinstance(value, str):
                return ()
            bare = value.rstrip(" ")
            is_padded = self._kind is OrcKind.CHAR
            return (value, bare, bare.ljust(self._length)) if is_padded else (value,)
        match self._kind:
            case OrcKind.BOOLEAN:
                return (value,) if isinstance(value, bool) else ()
            case OrcKind.DECIMAL:
                return _decimal(value)
            case OrcKind.FLOAT | OrcKind.DOUBLE:
                return self._floating(value)
            case _:
                is_number = isinstance(value, int) and not isinstance(value, bool)
                return (value,) if is_number else ()

    def _floating(self, value: object) -> tuple[float, ...]:
        """Spark's NaN is above all and equal to itself, unlike Python's: it is not compared."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return ()
        number = float(np.float32(value)) if self._kind is OrcKind.FLOAT else float(value)
        return (number,) if math.isfinite(number) else ()


def _decimal(value: object) -> tuple[Decimal, ...]:
    try:
        number = Decimal(value) if isinstance(value, str) else None
    except InvalidOperation:
        return ()
    return (number,) if number is not None and number.is_finite() else ()
