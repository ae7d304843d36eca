"""Mutations of the judge of time, and of what asks it; read by way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Edit, Mutation

_JUDGE = "changemanager/plausible_time.py"
_PURE = "tests/changemanager/test_plausible_time.py::test_"
_JUMPS = "tests/service/test_clock_jumps.py::test_"
_TOGETHER = "tests/archive/test_purges_together.py::test_"
_LOG = "tests/notification/test_event_log.py::test_"

OF_TIME = (
    Mutation(
        name="a gap that another judgement knew counts",
        file=_JUDGE,
        within="judge",
        old="[*known.gaps, *new_gaps]",
        new="new_gaps",
        test=f"{_PURE}of_a_jump_one_day_counts",
        is_simulated=True,
    ),
    Mutation(
        name="all of a gap counts",
        file=_JUDGE,
        within="TimeGap.doubtful_ms",
        old="max(0, self.after_ms - self.before_ms - SILENCE_MS)",
        new="0",
        test=f"{_JUMPS}a_dump_that_waits_loses_nothing",
        is_simulated=True,
    ),
    Mutation(
        name="the newest sign of life ends a gap",
        file=_JUDGE,
        within="KnownTimes.neighbours",
        old=(
            "signs = sorted((sign for sign in self.signs_ms if self.seen_ms < "
            "sign <= now_ms))\n"
            "first = [self.seen_ms] if self.seen_ms else []"
        ),
        new=("signs = [max((sign for sign in (*self.signs_ms, self.seen_ms)))]\nfirst = []"),
        test=f"{_PURE}of_a_jump_one_day_counts",
        is_simulated=True,
    ),
    Mutation(
        name="what was before a gap is as old as the clock says",
        file=_JUDGE,
        within="TimeJudgement.age_ms",
        old="self.now_ms - since_ms - uncounted_ms",
        new="self.now_ms - since_ms",
        test=f"{_JUMPS}a_dump_that_waits_loses_nothing",
        is_simulated=True,
    ),
    Mutation(
        name="events from before a gap are as old as the clock says",
        file=_JUDGE,
        within="TimeJudgement.before_ms",
        old="time_ms <= gap.after_ms",
        new="False",
        test=f"{_JUMPS}after_a_jump_all_ages_go_on_from_before_it",
    ),
    Mutation(
        name="a clock that came back hides the next jump",
        file=_JUDGE,
        within="judge",
        old="TimeJudgement(now_ms=now_ms, gaps=gaps, seen_ms=now_ms)",
        new="TimeJudgement(now_ms=now_ms, gaps=gaps, seen_ms=known.seen_ms)",
        test=f"{_JUMPS}a_clock_that_comes_back_and_jumps_again_proves_nothing",
        is_simulated=True,
    ),
    Mutation(
        name="a gap goes with a clock that is a little behind",
        file=_JUDGE,
        within="judge",
        old="(gap for gap in left if gap.is_doubted)",
        new="(gap for gap in left if gap.is_doubted and gap in known.gaps)",
        test=f"{_PURE}a_clock_that_comes_back_ends_the_gap",
    ),
    Mutation(
        name="there are ages where the clocks differ",
        file=_JUDGE,
        within="TimeJudgement.before_ms",
        old="self.refusal",
        new="False",
        test=f"{_PURE}nothing_has_an_age_where_clocks_differ",
    ),
    Mutation(
        name="the database keeps no gap",
        file="hms_bridge/archive/times.py",
        within="note_time",
        old="judged.gaps != known.gaps and (not judged.refusal)",
        new="False",
        test=f"{_JUMPS}after_a_jump_all_ages_go_on_from_before_it",
        is_simulated=True,
    ),
    Mutation(
        name="in a database that nobody judged the newest sign is all",
        file="hms_bridge/archive/times.py",
        within="known_times",
        old=("not known.seen_ms or any((gap.is_doubted for gap in known.neighbours(now_ms)))"),
        new=("known.seen_ms and any((gap.is_doubted for gap in known.neighbours(now_ms)))"),
        test=f"{_JUMPS}where_nobody_looked_at_the_clock_before_events_are_signs_of_life",
    ),
    Mutation(
        name="a confirmed gap does not count",
        file="hms_bridge/archive/times.py",
        within="",
        old="_GAP.TRUSTED_AT_MS.is_",
        new="_GAP.BEFORE_MS.is_not",
        test=f"{_JUMPS}confirmed_time_counts",
    ),
    Mutation(
        name="a hold ends by the clock alone",
        file="changemanager/purge.py",
        within="Purge._holders",
        old=("[replace(pin, expires_at_ms=None) for pin in pins if _lasts(pin, time)]"),
        new="list[Pin]()",
        test=f"{_JUMPS}after_a_jump_all_ages_go_on_from_before_it",
    ),
    Mutation(
        name="an event of a clock that was set back leaves a hole",
        file="hms_bridge/notification/event_log.py",
        within="purge_first",
        old="kept is not None",
        new="False",
        test=f"{_LOG}a_purge_makes_no_hole",
    ),
    Mutation(
        name="an event of a clock that was ahead keeps the log",
        file="hms_bridge/notification/event_log.py",
        within="purge_first",
        old="first.time.between(*young)",
        new="first.time >= young[0]",
        test=f"{_LOG}a_time_that_is_yet_to_come_keeps_nothing",
    ),
    Mutation(
        name="what another purge took is a failure",
        file="changemanager/purge.py",
        within="Purge._remove",
        old="self._is_purged_by_another(item)",
        new="False",
        also=(
            Edit(
                "changemanager/purge.py",
                "Purge._take_away",
                "_ANOTHER_PURGE",
                "None",
            ),
        ),
        test=f"{_TOGETHER}purges_at_once_take_each_file_once",
    ),
    Mutation(
        name="what was pinned since the plan counts as taken by another purge",
        file="changemanager/purge.py",
        within="Purge._is_purged_by_another",
        old="is_over and self._archive.cmroot.child(name).status() is None",
        new="is_over",
        test=f"{_TOGETHER}a_file_that_was_pinned_since_the_plan_is_a_failure",
    ),
)
