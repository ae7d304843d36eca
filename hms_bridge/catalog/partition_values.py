"""What a partition's value means in the type of its column, and casts between types.

The rules are those of Hive's ``PartitionPruner.prunePartitionNames``: the text of a value is
converted as a Java string is; what cannot be converted is NULL. Where a text is so odd that
Hive's answer is not known here, UndeterminedError is raised, and the caller says "perhaps"
(docs/hive/metastore.md §10).
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal

from hms_bridge.errors import HmsBridgeError
from hms_bridge.model.expression import ExpressionValue


class UndeterminedError(HmsBridgeError):
    """What a text means in Hive is not known."""


class UnknownTypeError(HmsBridgeError):
    """A type, or a cast between two, that has no meaning here."""


Read = Callable[[str], ExpressionValue]
Cast = Callable[[ExpressionValue], ExpressionValue]

INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "integer": 32, "bigint": 64}
_DECIMAL_DIGITS_MAX = 38
_CONTEXT = Context(prec=100, rounding=ROUND_HALF_UP, Emax=999_999, Emin=-999_999)
_INTEGER = re.compile(r"[+-]?\d{1,40}")
_TRUNCATED = re.compile(r"([+-]?)([0-9]{0,40})(?:\.[0-9]*)?")
_FLOAT = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?[fFdD]?)"
)
_HEXADECIMAL = re.compile(r"[+-]?0[xX].*[pP]", re.DOTALL)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_DECIMAL_TYPE = re.compile(r"decimal(?:\(\s*(\d{1,2})\s*(?:,\s*(\d{1,2})\s*)?\))?")
_DAY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)", re.ASCII)
_TIME = re.compile(r"[ T](\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?", re.ASCII)
_SPACE = "".join(map(chr, range(33)))
_FALSE = ("", "false", "0", "no", "off")


def kind_of(type_text: str) -> str:
    """``decimal(10,2)`` is a decimal."""
    return type_text.strip().lower().partition("(")[0]


def reader_of(type_text: str) -> Read:
    """How a value's text is read. Raises UnknownTypeError."""
    kind = kind_of(type_text)
    if kind in INTEGER_BITS:
        return _integer_reader(INTEGER_BITS[kind])
    if kind in ("char", "varchar", "decimal"):
        return _sized_reader(kind, type_text)
    plain: dict[str, Read] = {
        "string": lambda text: text,
        "boolean": lambda text: text.lower() not in _FALSE,
        "double": read_double,
        "float": lambda text: _as_float(read_double(text)),
        "date": read_date,
        "timestamp": read_timestamp,
    }
    if kind not in plain:
        raise UnknownTypeError(f"partition columns of type {type_text}")
    return plain[kind]


def _sized_reader(kind: str, type_text: str) -> Read:
    if kind == "decimal":
        digits, scale = _decimal_sizes(type_text)
        return lambda text: read_decimal(text, digits, scale)
    sizes = [int(size) for size in re.findall(r"\d{1,5}", type_text)]
    if len(sizes) != 1:
        raise UnknownTypeError(f"type {type_text}")
    if kind == "char":  # blanks at its end do not count
        return lambda text: text[: sizes[0]].rstrip(" ")
    return lambda text: text[: sizes[0]]


def _decimal_sizes(type_text: str) -> tuple[int, int]:
    """Digits and scale. Raises UnknownTypeError for what is no decimal of Hive's."""
    match = _DECIMAL_TYPE.fullmatch(type_text.strip().lower())
    digits, scale = (int(match[1] or 10), int(match[2] or 0)) if match else (0, 0)
    if not (0 <= scale <= digits and 1 <= digits <= _DECIMAL_DIGITS_MAX):
        raise UnknownTypeError(f"type {type_text}")
    return digits, scale


def _integer_reader(bits: int) -> Read:
    """Java's parseInt, or parseLong; shorter types take the low bits of an int."""

    def read(text: str) -> ExpressionValue:
        if _INTEGER.fullmatch(text) is None:
            return None
        number = int(text)
        return _wrapped(number, bits) if _is_within(number, max(bits, 32)) else None

    return read


def _is_within(number: int, bits: int) -> bool:
    return -(1 << (bits - 1)) <= number < 1 << (bits - 1)


def _wrapped(number: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (number + half) % (1 << bits) - half


def read_double(text: str) -> float | None:
    """Java's Double.parseDouble."""
    plain = text.strip(_SPACE)
    if _HEXADECIMAL.match(plain):
        raise UndeterminedError(f"'{text[:100]}' as a hexadecimal number")
    if _FLOAT.fullmatch(plain) is None:
        return None
    if plain.endswith(("NaN", "Infinity")):
        return float(plain)
    return float(plain.rstrip("fFdD"))


def _as_float(value: float | None) -> float | None:
    if value is None or math.isnan(value) or math.isinf(value):
        return value
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    # Java's cast gives an infinity.
    except OverflowError:
        return math.copysign(math.inf, value)


def read_decimal(text: str, digits: int, scale: int) -> Decimal | None:
    """Hive's HiveDecimal.create, then its precision and scale."""
    plain = text.strip(_SPACE)
    if _DECIMAL.fullmatch(plain) is None:
        return None
    return _fitted(_CONTEXT.create_decimal(plain), digits, scale)


def _fitted(number: Decimal, digits: int, scale: int) -> Decimal | None:
    # No decimal of Hive has so many digits; quantize would pass its own precision.
    if number.adjusted() > _DECIMAL_DIGITS_MAX:
        return None
    fitted = number.quantize(Decimal(1).scaleb(-scale), context=_CONTEXT)
    return fitted if fitted.adjusted() < digits - scale or not fitted else None


def read_date(text: str) -> tuple[int, ...] | None:
    """Year, month, day; what follows them is left (Hive's DateParser)."""
    plain = text.strip(_SPACE)
    match = _DAY.match(plain)
    if match is None:
        if re.match(r"[+-]|\d{4}-\d{1,2}-\d", plain):
            raise UndeterminedError(f"'{text[:100]}' as a date")
        return None
    year, month, day = (int(part) for part in match.groups())
    if year == 0 and month and day:
        raise UndeterminedError(f"'{text[:100]}' as a date")
    try:
        date(year, month, day)
    except ValueError:
        return None
    return year, month, day


def read_timestamp(text: str) -> tuple[int, ...] | None:
    """Year to nanoseconds; without a time, midnight."""
    plain = text.strip(_SPACE)
    day = read_date(plain)
    if day is None:
        return None
    rest = plain[_DAY.match(plain).end() :]  # type: ignore[union-attr]
    if not rest:
        return (*day, 0, 0, 0, 0)
    clock_time = _TIME.fullmatch(rest)
    if clock_time is None:
        raise UndeterminedError(f"'{text[:100]}' as a timestamp")
    hour, minute, second = (int(part) for part in clock_time.groups()[:3])
    if hour > 23 or minute > 59 or second > 59:
        raise UndeterminedError(f"'{text[:100]}' as a timestamp")
    return (*day, hour, minute, second, int((clock_time[4] or "").ljust(9, "0")))


def cast_of(source: str, target: str) -> Cast:
    """The cast between two types; NULL stays NULL. Raises UnknownTypeError."""
    cast = _cast_of(kind_of(source), kind_of(target), target)
    return lambda value: None if value is None else cast(value)


def _cast_of(source: str, target: str, target_text: str) -> Callable[..., ExpressionValue]:
    is_text = source in ("string", "varchar", "char")
    # A text that does not fit is NULL, a number that does not fit wraps round: so Hive converts.
    if target in INTEGER_BITS and is_text:
        return _truncating_reader(INTEGER_BITS[target])
    if is_text and target in ("double", "float", "decimal", "date", "timestamp", "varchar", "char"):
        return reader_of(target_text)
    if target == "string" and is_text:
        return lambda value: value
    if target == "string" and source in INTEGER_BITS:
        return str
    if target == "string" and source == "date":
        return lambda value: "{:04}-{:02}-{:02}".format(*value)
    if source in INTEGER_BITS and target in INTEGER_BITS:
        return lambda value: _wrapped(value, INTEGER_BITS[target])
    if source in (*INTEGER_BITS, "decimal") and target == "double":
        return float
    if source in (*INTEGER_BITS, "decimal") and target == "decimal":
        digits, scale = _decimal_sizes(target_text)
        return lambda value: _fitted(Decimal(value), digits, scale)
    if (source, target) == ("date", "timestamp"):
        return lambda value: (*value, 0, 0, 0, 0)
    if (source, target) == ("timestamp", "date"):
        return lambda value: value[:3]
    if source == target and source in ("double", "date", "timestamp"):
        return lambda value: value
    raise UnknownTypeError(f"a cast from {source} to {target}")


def _truncating_reader(bits: int) -> Read:
    """A text as an integer: what follows the point is left (Hive's LazyInteger)."""

    def read(text: str) -> ExpressionValue:
        match = _TRUNCATED.fullmatch(text.strip(_SPACE))
        if match is None:
            return None
        if not match[2]:
            if "." not in match.string:
                return None
            if len(match.string.lstrip("+-")) == 1:
                raise UndeterminedError(f"'{text}' as a number")
        number = int(f"{match[1]}{match[2] or 0}")
        return number if _is_within(number, bits) else None

    return read
