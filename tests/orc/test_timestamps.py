from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_bridge.errors import AcidFormatError
from hms_bridge.orc.timestamps import (
    BASE_SECONDS,
    TimestampForm,
    change_form,
    join_timestamps,
    split_timestamps,
    stored_seconds_to_wall,
    wall_to_stored,
)


def arrays(pairs: list[tuple[int, int]]) -> tuple[pa.Array, pa.Array]:
    return (
        pa.array([one for one, _ in pairs], pa.int64()),
        pa.array([one for _, one in pairs], pa.int32()),
    )


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-(10**12), 10**12), st.integers(0, 999_999_999))))
def test_parts_come_back(pairs: list[tuple[int, int]]) -> None:
    seconds, nanos = arrays(pairs)
    parts = join_timestamps(seconds, nanos, TimestampForm.PARTS, False)
    back = split_timestamps(parts)
    assert (back[0].to_pylist(), back[1].to_pylist()) == (seconds.to_pylist(), nanos.to_pylist())
    seconds, nanos = arrays([one for one in pairs if one[0] != -1 or one[1] < 1_000_000])
    stored, nanos = wall_to_stored(seconds, nanos)
    assert stored_seconds_to_wall(stored, nanos, "UTC").equals(seconds)


@pytest.mark.parametrize("nanos", [1_000_000, 500_000_000, 999_999_999])
def test_a_time_that_readers_would_show_a_second_later_is_refused(nanos: int) -> None:
    with pytest.raises(AcidFormatError, match="last second before 1970"):
        wall_to_stored(*arrays([(5, 0), (-1, nanos)]))


def test_the_seconds_around_it_are_exact() -> None:
    pairs = [(-2, 999_999_999), (-1, 0), (-1, 999_999), (0, 0), (0, 500_000_000)]
    seconds, nanos = arrays(pairs)
    stored, nanos = wall_to_stored(seconds, nanos)
    assert stored_seconds_to_wall(stored, nanos, "UTC").equals(seconds)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_units_split_downwards(unit: str) -> None:
    array = pa.array([-1, None, 1], pa.timestamp(unit))
    seconds, nanos = split_timestamps(array)
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    first = -1 * 10**9 // per_second
    assert seconds.to_pylist()[:2] == [first // 10**9, None]
    assert nanos.to_pylist()[:2] == [first % 10**9, None]


def test_microseconds_round_down() -> None:
    array = pa.array([-1, 1, 1999], pa.timestamp("ns"))
    micros = change_form(array, TimestampForm.MICROS, False)
    assert micros.cast(pa.int64()).to_pylist() == [-1, 0, 1]
    assert micros.type == pa.timestamp("us")


def test_what_a_form_cannot_hold_is_an_error() -> None:
    seconds, nanos = arrays([(253_402_300_799, 999_999_999)])
    micros = join_timestamps(seconds, nanos, TimestampForm.MICROS, True)
    assert micros.type == pa.timestamp("us", tz="UTC")
    with pytest.raises(AcidFormatError, match="outside"):
        join_timestamps(seconds, nanos, TimestampForm.NANOS, False)


def test_zones() -> None:
    # Stored: instants from 2015-01-01 of the writer's wall clock on; New York is 5 hours behind.
    seconds, nanos = arrays([(0, 0)])
    wall = stored_seconds_to_wall(seconds, nanos, "America/New_York")
    assert wall.to_pylist() == [BASE_SECONDS]
    with pytest.raises(AcidFormatError, match="Nowhere"):
        stored_seconds_to_wall(seconds, nanos, "Mars/Nowhere")


def test_exact_microseconds_are_whole_ones() -> None:
    seconds, nanos = arrays([(-1, 1_000), (5, 999_999_000)])
    exact = join_timestamps(seconds, nanos, TimestampForm.EXACT_MICROS, False)
    assert exact.equals(join_timestamps(seconds, nanos, TimestampForm.MICROS, False))
    with pytest.raises(AcidFormatError, match="more digits than microseconds"):
        join_timestamps(*arrays([(5, 0), (5, 1)]), TimestampForm.EXACT_MICROS, False)
    with pytest.raises(AcidFormatError, match="more digits than microseconds"):
        change_form(pa.array([1], pa.timestamp("ns")), TimestampForm.EXACT_MICROS, False)
