"""Days of the hybrid calendar (Julian before 1582-10-15) and of the proleptic Gregorian one.

ORC's older writers, and Hive to this day, store early days so that the hybrid calendar shows the
label the user wrote. Converting keeps the label, not the day. The hybrid calendar has no labels
from 1582-10-05 to 1582-10-14: Hive moves them by ten days, silently (docs/hive/acid.md §21); here
they are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hms_bridge.errors import AcidFormatError
from hms_bridge.orc.numbers import whole_number

SWITCH_DAY: Final = -141_427
"""1582-10-15, the first Gregorian day, in days since 1970-01-01."""
_GAP_DAY: Final = SWITCH_DAY - 10
"""1582-10-05, the first label that the hybrid calendar lacks."""
SECONDS_PER_DAY: Final = 86_400

_EPOCH_JULIAN_DAY: Final = 2_440_588
_DAYS_PER_400_YEARS: Final = 146_097


def _civil_from_julian_day(julian_day: int) -> tuple[int, int, int]:
    """Year, month, day of the Julian calendar."""
    c = julian_day + 32_082
    d = (4 * c + 3) // 1461
    e = c - 1461 * d // 4
    m = (5 * e + 2) // 153
    return d - 4800 + m // 10, m + 3 - 12 * (m // 10), e - (153 * m + 2) // 5 + 1


def _civil_from_days(days: int) -> tuple[int, int, int]:
    """Year, month, day of the proleptic Gregorian calendar."""
    shifted = days + 719_468
    era = shifted // _DAYS_PER_400_YEARS
    day_of_era = shifted - era * _DAYS_PER_400_YEARS
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    m = (5 * day_of_year + 2) // 153
    month = m + 3 if m < 10 else m - 9
    return (
        year_of_era + era * 400 + (month <= 2),
        month,
        day_of_year - (153 * m + 2) // 5 + 1,
    )


def _days_before(year: int, month: int, day: int) -> int:
    """Days from a March-based year's start; shared by both calendars."""
    return (153 * ((month + 9) % 12) + 2) // 5 + day - 1 + 365 * (year - (month <= 2))


def proleptic_day(hybrid_day: int) -> int:
    """The proleptic day that has the label of this hybrid day."""
    if hybrid_day >= SWITCH_DAY:
        return hybrid_day
    year, month, day = _civil_from_julian_day(hybrid_day + _EPOCH_JULIAN_DAY)
    y = year - (month <= 2)
    return _days_before(year, month, day) + y // 4 - y // 100 + y // 400 - 719_468


def hybrid_day(proleptic: int) -> int:
    """The hybrid day that shows the label of this proleptic day.

    Raises AcidFormatError for a label that the hybrid calendar lacks.
    """
    if proleptic >= SWITCH_DAY:
        return proleptic
    year, month, day = _civil_from_days(proleptic)
    if proleptic >= _GAP_DAY:
        raise AcidFormatError(
            f"the day {year}-{month:02}-{day:02} cannot be stored: in the calendar of Hive's ORC "
            "files 1582-10-15 comes after 1582-10-04 (Hive itself would store another day); change "
            "the value, or keep it as a string"
        )
    y = year - (month <= 2)
    return _days_before(year, month, day) + y // 4 - 719_470


DayConversion = Callable[[int], int]


def convert_dates(dates: pa.Array, convert: DayConversion) -> pa.Array:
    """A date32 array with its early days converted; the array itself if there are none."""
    days = dates.view(pa.int32())
    converted = _convert_days(days.cast(pa.int64()), convert)
    return dates if converted is None else converted.cast(pa.int32()).view(pa.date32())


def convert_seconds(seconds: pa.Array, convert: DayConversion) -> pa.Array:
    """An int64 array of seconds since 1970-01-01 00:00:00 with its early days converted."""
    limit = whole_number(SWITCH_DAY * SECONDS_PER_DAY, pa.int64())
    if not pc.any(pc.less(seconds, limit)).as_py():
        return seconds
    days = floor_divide(seconds, SECONDS_PER_DAY)
    converted = _convert_days(days, convert)
    if converted is None:
        return seconds
    shift = pc.multiply(pc.subtract(converted, days), SECONDS_PER_DAY)
    return pc.add(seconds, shift)


def _convert_days(days: pa.Array, convert: DayConversion) -> pa.Array | None:
    is_early = pc.less(days, whole_number(SWITCH_DAY, days.type))
    if not pc.any(is_early).as_py():
        return None
    early = pc.unique(days.filter(is_early))
    converted = pa.array([convert(day) for day in early.to_pylist()], pa.int64())
    converted_early = converted.take(pc.index_in(days, value_set=early))
    return pc.coalesce(converted_early, days)


def floor_divide(numbers: pa.Array, divisor: int) -> pa.Array:
    """Integer quotients rounded down; pyarrow's own go towards zero."""
    quotients = pc.divide(numbers, divisor)
    is_above = pc.greater(pc.multiply(quotients, divisor), numbers)
    return pc.if_else(is_above, pc.subtract(quotients, 1), quotients)
