"""How old something is, by a clock that may have jumped."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from changemanager.plausible_time import (
    CLOCKS_APART_MS_MAX,
    GAPS_MAX,
    SILENCE_MS,
    KnownTimes,
    TimeGap,
    TimeJudgement,
    judge,
    stamp_ms,
)

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
NOW = 1_700_000_000_000
SEEN = KnownTimes(store_ms=None, seen_ms=NOW)


@pytest.mark.parametrize("jump_ms", [-HOUR_MS, 0, HOUR_MS, DAY_MS, DAY_MS + CLOCKS_APART_MS_MAX])
def test_small_steps_are_believed(jump_ms: int) -> None:
    judged = judge(NOW + jump_ms, SEEN)
    assert not judged.gaps
    assert judged.age_ms(NOW - DAY_MS) == DAY_MS + jump_ms
    assert judged.before_ms(DAY_MS) == NOW + jump_ms - DAY_MS


@pytest.mark.parametrize("days", [40, 365])
@pytest.mark.parametrize("signs_ms", [(), (NOW - HOUR_MS,), (NOW + 366 * DAY_MS,)])
def test_of_a_jump_one_day_counts(days: int, signs_ms: tuple[int, ...]) -> None:
    now_ms = NOW + days * DAY_MS
    # Whoever wrote after it did so by the same clock.
    written = (*signs_ms, now_ms - 5000)
    judged = judge(now_ms, replace(SEEN, signs_ms=written))
    assert judged.new_gaps == judged.gaps == (TimeGap(NOW, now_ms - 5000),)
    assert judged.age_ms(NOW - HOUR_MS) == HOUR_MS + SILENCE_MS + 5000
    assert judged.age_ms(now_ms - 2000) == 2000
    assert judged.doubt
    assert judged.confirmed().age_ms(NOW) == days * DAY_MS
    # Later judgements know the gap, whatever has happened since.
    later_ms = now_ms + 5 * DAY_MS
    since = replace(SEEN, seen_ms=later_ms - 5, signs_ms=(later_ms,), gaps=judged.gaps)
    assert judge(later_ms, since).new_gaps == ()
    assert judge(later_ms, since).age_ms(NOW) == 6 * DAY_MS + 5000


def test_signs_of_every_day_leave_no_gap() -> None:
    signs = tuple(NOW + days * DAY_MS for days in range(1, 30))
    assert judge(NOW + 30 * DAY_MS, replace(SEEN, signs_ms=signs)).gaps == ()
    lacking = signs[:9] + signs[14:]
    (gap,) = judge(NOW + 30 * DAY_MS, replace(SEEN, signs_ms=lacking)).gaps
    assert gap == TimeGap(NOW + 9 * DAY_MS, NOW + 15 * DAY_MS)


def test_where_nothing_was_ever_judged_signs_are_all() -> None:
    nothing = KnownTimes(store_ms=None)
    assert judge(NOW, nothing).gaps == ()
    (gap,) = judge(NOW, replace(nothing, signs_ms=(NOW - 5 * DAY_MS, 0))).gaps[-1:]
    assert gap == TimeGap(NOW - 5 * DAY_MS, NOW)


def test_a_clock_that_comes_back_ends_the_gap() -> None:
    ahead = judge(NOW + 40 * DAY_MS, SEEN)
    known = replace(SEEN, seen_ms=ahead.seen_ms, gaps=ahead.gaps)
    back = judge(NOW + HOUR_MS, known)
    assert (back.gaps, back.seen_ms) == ((), NOW + HOUR_MS)
    # By clocks that are a little apart nothing comes back.
    (left,) = judge(NOW + 40 * DAY_MS - CLOCKS_APART_MS_MAX - 1, known).gaps
    assert left == TimeGap(NOW, NOW + 40 * DAY_MS - CLOCKS_APART_MS_MAX - 1)
    assert judge(NOW + 40 * DAY_MS - CLOCKS_APART_MS_MAX, known).gaps == ahead.gaps


@pytest.mark.parametrize("apart_ms", [-CLOCKS_APART_MS_MAX - 1, CLOCKS_APART_MS_MAX + 1])
def test_nothing_has_an_age_where_clocks_differ(apart_ms: int) -> None:
    judged = judge(NOW + apart_ms, replace(SEEN, store_ms=NOW))
    assert "10 min 0 s" in judged.refusal
    assert judged.doubt == judged.refusal
    assert judged.age_ms(0) == judged.before_ms(1) == 0
    assert judged.seen_ms == NOW
    assert not judged.is_over(0, 1)
    assert judged.confirmed().age_ms(0) == NOW + apart_ms
    near = apart_ms // (CLOCKS_APART_MS_MAX + 1) * CLOCKS_APART_MS_MAX
    assert not judge(NOW + near, replace(SEEN, store_ms=NOW)).refusal


def test_where_the_database_has_a_clock_a_jump_of_both_is_a_gap() -> None:
    now_ms = NOW + 40 * DAY_MS
    judged = judge(now_ms, replace(SEEN, store_ms=now_ms))
    assert judged.gaps == (TimeGap(NOW, now_ms),)


def test_times_that_are_given() -> None:
    judged = judge(NOW + 40 * DAY_MS, SEEN)
    assert not judged.is_over(NOW - HOUR_MS, NOW + 2 * DAY_MS)
    assert judged.is_over(NOW - HOUR_MS, NOW + DAY_MS)
    assert judged.is_over(NOW + 39 * DAY_MS, NOW + 39 * DAY_MS)


def test_old_gaps_matter_for_long_ages_alone() -> None:
    judged = TimeJudgement(now_ms=NOW, gaps=(TimeGap(NOW - 40 * DAY_MS, NOW - 20 * DAY_MS),))
    assert judged.within(20 * DAY_MS).gaps == judged.gaps
    assert judged.within(20 * DAY_MS - 1).doubt == ""


def test_of_many_gaps_the_oldest_become_one() -> None:
    gaps = [TimeGap(NOW + 3 * n * DAY_MS, NOW + (3 * n + 2) * DAY_MS) for n in range(GAPS_MAX + 1)]
    known = KnownTimes(store_ms=None, seen_ms=gaps[-1].after_ms, gaps=tuple(gaps))
    judged = judge(gaps[-1].after_ms + 1, known)
    assert len(judged.gaps) == GAPS_MAX
    assert judged.gaps[0] == TimeGap(NOW, NOW + 5 * DAY_MS)
    assert judged.gaps[1:] == tuple(gaps[2:])


def test_a_stamp_is_never_before_what_was_seen() -> None:
    known = replace(SEEN, signs_ms=(NOW + 5,))
    assert stamp_ms(NOW - DAY_MS, known) == NOW + 5
    assert stamp_ms(NOW + 9, known) == NOW + 9
    assert stamp_ms(NOW + 9, replace(known, store_ms=NOW - DAY_MS)) == NOW
    assert stamp_ms(NOW + 9, replace(known, store_ms=NOW + 7)) == NOW + 7


days = st.integers(0, 400).map(lambda hours: hours * 6 * HOUR_MS)
gaps_of_weeks = st.lists(st.tuples(days, days), max_size=5)


@given(gaps_of_weeks, st.integers(0, 60), st.integers(0, 60))
@example([(0, 2 * DAY_MS)], 0, 1)  # the end of a gap itself is in it
def test_ages_and_the_times_before_which_they_begin_agree(
    pairs: list[tuple[int, int]], age_days: int, since_days: int
) -> None:
    known = tuple(TimeGap(NOW - a - b, NOW - a) for a, b in pairs)
    judged = judge(NOW, KnownTimes(store_ms=None, seen_ms=NOW, gaps=known))
    since_ms, age_ms = NOW - since_days * DAY_MS, age_days * DAY_MS
    is_older = judged.age_ms(since_ms) > age_ms
    assert is_older == (since_ms < judged.before_ms(age_ms))
    # Never older than by the clock, and what came first is not younger.
    assert judged.age_ms(since_ms) <= NOW - since_ms
    assert judged.age_ms(since_ms - HOUR_MS) >= judged.age_ms(since_ms)
