"""Bounds of timestamps that were encoded by parts, as ORC's statistics keep them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hms_bridge.orc import proto

_NANOS_PER_MILLI: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class TimestampBounds:
    """Milliseconds (rounded down) of a timestamp column, from which any range's bounds come.

    `is_by_row`: one value a row, so that row groups have bounds of their own.
    """

    millis: pa.Array
    is_by_row: bool

    @staticmethod
    def of_parts(seconds: pa.Array, nanos: pa.Array, *, is_by_row: bool) -> TimestampBounds:
        """Of seconds and nanoseconds."""
        fraction = pc.divide(nanos.cast(pa.int64()), _NANOS_PER_MILLI)
        return TimestampBounds(pc.add(pc.multiply(seconds, 1000), fraction), is_by_row)

    def of_rows(self, start: int, stop: int) -> TimestampBounds:
        """Of a row group; without bounds of its own where values are not by row."""
        part = self.millis.slice(start, stop - start) if self.is_by_row else self.millis.slice(0, 0)
        return TimestampBounds(part, self.is_by_row)

    def applied(self, statistics: Any) -> Any:
        """These bounds with the counts of a column that was encoded as something else."""
        result = proto.ColumnStatistics(
            number_of_values=statistics.number_of_values, has_null=statistics.has_null
        )
        lowest, highest = (bound.as_py() for bound in pc.min_max(self.millis).values())
        if lowest is not None:
            bounds = result.timestamp_statistics
            bounds.minimum = bounds.minimum_utc = lowest
            bounds.maximum = bounds.maximum_utc = highest
        return result
