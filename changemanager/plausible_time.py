"""The judge of time: how old something is, before anything is deleted for its age.

A clock that is a year ahead makes everything expired. Whoever writes then writes with that clock,
so a sign of life after a jump proves nothing. Only time counts that somebody lived through: of a
gap between two signs of life a day counts, the rest not, until an administrator confirms it.
The store keeps such gaps; what is written later does not close them.

With a day's purges at 10:00 on the 1st and 2nd, and the next sign of life on the 12th at 10:00, the
gap is of 10 days. A file archived on the 2nd at 9:00 is then a day and an hour old, not 10 days: a
clock that jumped takes no file, and after an outage that really was files stay 9 days longer.
A clock that comes back shrinks the gap to what is left of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

from changemanager.clock import moment_text, span_text

CLOCKS_APART_MS_MAX = 600_000
"""More than this between this host's clock and the database's is doubted."""
SILENCE_MS = 86_400_000
"""So much of the time for which there is no sign of life counts all the same."""
GAPS_MAX = 100
"""So many gaps are kept one by one; of more the oldest become one."""


@dataclass(frozen=True, slots=True, order=True)
class TimeGap:
    """Two times, milliseconds since 1970, between which nothing is known to have happened."""

    before_ms: int
    after_ms: int

    @property
    def doubtful_ms(self) -> int:
        """So much of it does not count."""
        return max(0, self.after_ms - self.before_ms - SILENCE_MS)

    @property
    def is_doubted(self) -> bool:
        """Whether it is kept; what is done once a day is not done to the minute."""
        return self.doubtful_ms > CLOCKS_APART_MS_MAX

    def until(self, time_ms: int) -> TimeGap:
        """What of it lies before a time."""
        return TimeGap(self.before_ms, min(self.after_ms, time_ms))


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownTimes:
    """Times that a store knows. `store_ms`: its own clock, None if it has none of its own.

    `seen_ms`: when the clock was judged last, 0 for never. `signs_ms`: when anything else is known
    to have happened, in any order. `gaps`: those that nobody has confirmed.
    """

    store_ms: int | None
    seen_ms: int = 0
    signs_ms: tuple[int, ...] = ()
    gaps: tuple[TimeGap, ...] = ()

    @property
    def newest_ms(self) -> int:
        """The newest time at which anything happened; 0 for nothing."""
        return max((self.seen_ms, *self.signs_ms))

    def neighbours(self, now_ms: int) -> tuple[TimeGap, ...]:
        """From each sign of life since the last judgement to the next one, up to now."""
        signs = sorted(sign for sign in self.signs_ms if self.seen_ms < sign <= now_ms)
        first = [self.seen_ms] if self.seen_ms else []
        return tuple(TimeGap(*pair) for pair in pairwise([*first, *signs, now_ms]))


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeJudgement:
    """What is to be thought of a time. `gaps` are those that do not count, disjoint, oldest first;
    `new_gaps` those of them that no judgement knew before. `refusal`: why nothing has an age now;
    empty if it has. `seen_ms`: the time by which the next one is judged."""

    now_ms: int
    gaps: tuple[TimeGap, ...] = ()
    new_gaps: tuple[TimeGap, ...] = ()
    refusal: str = ""
    seen_ms: int = 0

    @property
    def doubtful_ms(self) -> int:
        """How much time does not count."""
        return sum(gap.doubtful_ms for gap in self.gaps)

    def age_ms(self, since_ms: int) -> int:
        """How much time has surely gone by since a time; below 0 for one that is yet to come."""
        if self.refusal:
            return min(0, self.now_ms - since_ms)
        uncounted_ms = sum(gap.doubtful_ms - gap.until(since_ms).doubtful_ms for gap in self.gaps)
        return self.now_ms - since_ms - uncounted_ms

    def before_ms(self, age_ms: int) -> int:
        """The time before which everything is older than an age; 0 if nothing is."""
        if self.refusal:
            return 0
        time_ms = self.now_ms - age_ms
        for gap in reversed(self.gaps):
            if time_ms <= gap.after_ms:
                time_ms -= gap.doubtful_ms
        return max(0, time_ms)

    def is_yet_to_come(self, time_ms: int) -> bool:
        """Whether a time was stamped by a clock that was ahead, and says nothing now."""
        return time_ms > self.now_ms + CLOCKS_APART_MS_MAX

    def is_over(self, since_ms: int, until_ms: int) -> bool:
        """Whether as much time has gone by as was given from one time to another."""
        return self.age_ms(since_ms) >= until_ms - since_ms

    @property
    def doubt(self) -> str:
        """Why not all of the time counts; empty if it does."""
        if self.refusal or not self.gaps:
            return self.refusal
        gaps = ", ".join(
            f"{moment_text(gap.before_ms)} to {moment_text(gap.after_ms)}" for gap in self.gaps
        )
        return (
            f"{span_text(self.doubtful_ms)} do not count, as nothing is known to have happened "
            f"from {gaps}: either nobody was here, or the clock is ahead"
        )

    def confirmed(self) -> TimeJudgement:
        """The same for somebody who says that the time is right."""
        return TimeJudgement(now_ms=self.now_ms, seen_ms=self.seen_ms)

    def within(self, age_ms: int) -> TimeJudgement:
        """The same with those gaps alone for which something seems to be older than an age."""
        gaps = tuple(gap for gap in self.gaps if self.now_ms - gap.after_ms <= age_ms)
        return replace(self, gaps=gaps)


def judge(now_ms: int, known: KnownTimes) -> TimeJudgement:
    """What to think of a time by what is known; pure."""
    if known.store_ms is not None and abs(now_ms - known.store_ms) > CLOCKS_APART_MS_MAX:
        apart = span_text(abs(now_ms - known.store_ms))
        side = "ahead of" if now_ms > known.store_ms else "behind"
        return TimeJudgement(
            now_ms=now_ms,
            gaps=_joined(known.gaps),
            refusal=f"this host's clock is {apart} {side} the database's",
            seen_ms=known.seen_ms,
        )
    if known.seen_ms > now_ms + CLOCKS_APART_MS_MAX:
        # The clock was ahead, or is behind now. What it jumped over is yet to come.
        left = (gap.until(now_ms) for gap in known.gaps)
        gaps = _joined(gap for gap in left if gap.is_doubted)
        return TimeJudgement(now_ms=now_ms, gaps=gaps, seen_ms=now_ms)
    new_gaps = tuple(gap for gap in known.neighbours(now_ms) if gap.is_doubted)
    return TimeJudgement(
        now_ms=now_ms,
        gaps=_joined([*known.gaps, *new_gaps]),
        new_gaps=new_gaps,
        seen_ms=max(known.seen_ms, now_ms),
    )


def _joined(gaps: Iterable[TimeGap]) -> tuple[TimeGap, ...]:
    """Disjoint ones that cover the same; of more than GAPS_MAX the oldest cover more."""
    joined: list[TimeGap] = []
    for gap in sorted(gaps):
        if joined and gap.before_ms < joined[-1].after_ms:
            last = joined.pop()
            gap = TimeGap(last.before_ms, max(last.after_ms, gap.after_ms))  # noqa: PLW2901
        joined.append(gap)
    too_many = max(0, len(joined) - GAPS_MAX)
    if too_many:
        joined[: too_many + 1] = [TimeGap(joined[0].before_ms, joined[too_many].after_ms)]
    return tuple(joined)


def stamp_ms(now_ms: int, known: KnownTimes) -> int:
    """The time at which something happens now: never before what happened already."""
    if known.store_ms is not None:
        return max(known.store_ms, known.seen_ms)
    return max(now_ms, known.newest_ms)


def is_not_behind(now_ms: int, known: KnownTimes) -> bool:
    """Whether a time that lies after now must be wrong: the clock is not the one that is."""
    if known.store_ms is not None:
        return abs(now_ms - known.store_ms) <= CLOCKS_APART_MS_MAX
    return known.newest_ms <= now_ms + CLOCKS_APART_MS_MAX
