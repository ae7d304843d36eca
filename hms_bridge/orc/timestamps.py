"""Timestamps between ORC's seconds and nanoseconds and Arrow.

Arrow's nanoseconds end in 2262 and its microseconds lose digits, so a lossless form stands beside
them: a struct of `seconds` since 1970-01-01 00:00:00 (rounded down) and `nanos` (0..999999999).
Timestamps without a zone are wall-clock times. The second that ORC does not keep apart:
docs/hive/acid.md §21.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
import pyarrow.compute as pc

from hms_bridge.errors import AcidFormatError
from hms_bridge.orc.calendar import floor_divide

PARTS_TYPE: Final = pa.struct([("seconds", pa.int64()), ("nanos", pa.int32())])
"""The lossless form."""
BASE_SECONDS: Final = 1_420_070_400
"""2015-01-01 00:00:00, from which ORC counts seconds."""
_NANOS_PER_SECOND: Final = 1_000_000_000
_NANOS_PER_MILLI: Final = 1_000_000
_UTC_NAMES: Final = frozenset({"UTC", "GMT", "Etc/UTC", "Etc/GMT", "Z", "Zulu", "Etc/Zulu", "UCT"})
_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": _NANOS_PER_SECOND}


class TimestampForm(Enum):
    """What Arrow type timestamps are given in."""

    MICROS = "us"
    """timestamp[us], rounded down: what Spark knows."""
    EXACT_MICROS = "us, exact"
    """timestamp[us]; AcidFormatError for a value with more digits."""
    NANOS = "ns"
    """timestamp[ns]; AcidFormatError outside of 1677..2262."""
    PARTS = "parts"
    """The lossless struct."""
    LOSSLESS = "lossless"
    """timestamp[ns] for stripes whose values fit into it, else the struct."""


_UNITS: Final = {
    TimestampForm.MICROS: "us",
    TimestampForm.EXACT_MICROS: "us",
    TimestampForm.NANOS: "ns",
}


def is_utc(timezone: str) -> bool:
    """Whether wall clocks of this zone show UTC."""
    return timezone in _UTC_NAMES


def arrow_timestamp(form: TimestampForm, is_instant: bool) -> pa.DataType:
    """The Arrow type of a form; LOSSLESS has no single one and is given as its struct."""
    if form in {TimestampForm.PARTS, TimestampForm.LOSSLESS}:
        return PARTS_TYPE
    return pa.timestamp(_UNITS[form], tz="UTC" if is_instant else None)


def stored_seconds_to_wall(seconds: pa.Array, nanos: pa.Array, timezone: str) -> pa.Array:
    """Wall-clock seconds of what the DATA stream holds.

    ORC's writers round towards zero when a fraction of a millisecond or more stands before the
    epoch, so readers take a second off (ORC: TimestampTreeReader); the last second before the
    epoch cannot be kept apart from the first after it.
    """
    base = BASE_SECONDS
    if not is_utc(timezone):
        base = int(datetime(2015, 1, 1, tzinfo=_zone(timezone)).timestamp())
    instant = pc.add(seconds, base)
    is_rounded = pc.and_(pc.less(instant, 0), pc.greater_equal(nanos, _NANOS_PER_MILLI))
    instant = pc.if_else(is_rounded, pc.subtract(instant, 1), instant)
    if is_utc(timezone):
        return instant
    zoned = instant.cast(pa.timestamp("s", tz=timezone))
    return pc.local_timestamp(zoned).cast(pa.int64())


def wall_to_stored(
    seconds: pa.Array, nanos: pa.Array, *, has_last_second: bool = False
) -> tuple[pa.Array, pa.Array]:
    """What the streams of a UTC writer hold for these wall-clock times: seconds, nanoseconds.

    Raises AcidFormatError for a time that a reader would take for a second later, unless
    ``has_last_second``: such a time stays as Arrow's C++ writer has it, half a second before 1970
    as second 0 and -500,000,000 nanoseconds. ORC's C++ reader understands that, its Java reader
    does not: only for rows that come from such a file.
    """
    is_lost = pc.and_(pc.equal(seconds, -1), pc.greater_equal(nanos, _NANOS_PER_MILLI))
    if has_last_second:
        seconds = pc.if_else(is_lost, 0, seconds)
        nanos = pc.if_else(is_lost, pc.subtract(nanos, _NANOS_PER_SECOND), nanos).cast(pa.int32())
    elif pc.any(is_lost).as_py():
        raise AcidFormatError(
            "a timestamp of the last second before 1970-01-01 00:00:00, with a fraction of a "
            "millisecond or more, cannot be stored in ORC: every reader would show it a second "
            "later; change the value, or keep it as a string"
        )
    is_rounded = pc.and_(pc.less(seconds, 0), pc.greater_equal(nanos, _NANOS_PER_MILLI))
    rounded = pc.if_else(is_rounded, pc.add(seconds, 1), seconds)
    return pc.subtract(rounded, BASE_SECONDS), nanos


def _zone(timezone: str) -> ZoneInfo:
    try:
        return ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise AcidFormatError(f"the writer's time zone {timezone!r} is unknown here") from error


def split_timestamps(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Seconds (int64) and nanoseconds (int32) of timestamps in any form."""
    if pa.types.is_struct(array.type):
        seconds, nanos = array.flatten()
        return seconds, nanos
    per_second = _PER_SECOND[array.type.unit]
    numbers = array.cast(pa.int64())
    seconds = floor_divide(numbers, per_second)
    rest = pc.subtract(numbers, pc.multiply(seconds, per_second))
    return seconds, pc.multiply(rest, _NANOS_PER_SECOND // per_second).cast(pa.int32())


def join_timestamps(
    seconds: pa.Array, nanos: pa.Array, form: TimestampForm, is_instant: bool
) -> pa.Array:
    """Timestamps of a form. Raises AcidFormatError for a value that the form cannot hold."""
    if form in {TimestampForm.PARTS, TimestampForm.LOSSLESS}:
        return pa.StructArray.from_arrays(
            [seconds, nanos], fields=list(PARTS_TYPE), mask=pc.is_null(seconds)
        )
    unit = _UNITS[form]
    per_second = _PER_SECOND[unit]
    digits_lost = _NANOS_PER_SECOND // per_second
    if form is TimestampForm.EXACT_MICROS:
        _require_no_more_digits(nanos, digits_lost)
    try:
        whole = pc.multiply_checked(seconds, per_second)
        fraction = floor_divide(nanos.cast(pa.int64()), digits_lost)
        numbers = pc.add_checked(whole, fraction)
    except pa.ArrowInvalid as error:
        raise AcidFormatError(
            f"a timestamp lies outside of what timestamp[{unit}] can hold;"
            " read microseconds or the lossless form"
        ) from error
    return numbers.cast(arrow_timestamp(form, is_instant))


def _require_no_more_digits(nanos: pa.Array, nanos_per_unit: int) -> None:
    whole = pc.multiply(pc.divide(nanos, nanos_per_unit), nanos_per_unit)
    if pc.any(pc.not_equal(whole, nanos)).as_py():
        raise AcidFormatError(
            "a timestamp has more digits than microseconds, which Spark would cut off before the "
            "row is written again; change such rows with Hive, or leave them out"
        )


def timestamp_texts(array: pa.Array) -> pa.Array:
    """Wall-clock timestamps as Hive reads them where a column has become text: as many decimals as
    there are, none for whole seconds (ORC: ConvertTreeReaderFactory.TIMESTAMP_FORMAT)."""
    seconds, nanos = split_timestamps(array)
    days = pc.strftime(seconds.cast(pa.timestamp("s")), "%Y-%m-%d %H:%M:%S")
    decimals = pc.utf8_rtrim(pc.utf8_lpad(nanos.cast(pa.string()), 9, "0"), "0")
    point = pc.if_else(pc.equal(nanos, 0), "", ".")
    return pc.binary_join_element_wise(days, point, decimals, "")


def change_form(array: pa.Array, form: TimestampForm, is_instant: bool) -> pa.Array:
    """Arrow timestamps in another form."""
    if form in {TimestampForm.NANOS, TimestampForm.LOSSLESS}:
        return array
    seconds, nanos = split_timestamps(array)
    return join_timestamps(seconds, nanos, form, is_instant)
