from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from hms_bridge.model.id_ranges import IdRanges
from hms_bridge.model.ids import MAX_ID

pairs = st.lists(st.tuples(st.integers(-3, 40), st.integers(-3, 40)), max_size=8)


@given(pairs, st.integers(-3, 45))
def test_ranges_are_the_sorted_ids_in_them(given_pairs: list[tuple[int, int]], at: int) -> None:
    plain = sorted(
        {one for first, last in given_pairs for one in range(first, last + 1) if one > 0}
    )
    ranges: IdRanges[int] = IdRanges.of(given_pairs)
    assert list(ranges) == plain
    assert (len(ranges), ranges[:3], ranges[-2:]) == (len(plain), (*plain[:3],), (*plain[-2:],))
    assert (at in ranges) == (at in plain)
    assert bisect_left(ranges, at) == bisect_left(plain, at)


@given(pairs)
def test_equal_ids_are_equal_ranges(given_pairs: list[tuple[int, int]]) -> None:
    ranges: IdRanges[int] = IdRanges.of(given_pairs)
    one_by_one: IdRanges[int] = IdRanges.of((one, one) for one in ranges)
    assert (ranges, hash(ranges)) == (one_by_one, hash(one_by_one))


def test_all_ids_that_there_may_be_are_one_range() -> None:
    ranges: IdRanges[int] = IdRanges.of([(1, MAX_ID), (7, 9)])
    assert (len(ranges), ranges[-1], ranges[MAX_ID // 2]) == (MAX_ID, MAX_ID, 2**62)
    assert (MAX_ID in ranges, "7" in ranges) == (True, False)
