"""Mutations of what was stamped by a wrong clock; read by way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_PINS = "tests/repl/test_pins_and_clocks.py::test_"
_SILENCE = "tests/service/test_silence_and_clocks.py::test_"
_HOLDS = "tests/cli/test_archive_pins.py::test_"

OF_WRONG_CLOCKS = (
    Mutation(
        name="a policy's pin of a time that is yet to come stays",
        file="hms_bridge/archive/times.py",
        within="_widen_pins_of_the_future",
        old="now_ms + CLOCKS_APART_MS_MAX",
        new="now_ms + 10 ** 15",
        test=f"{_PINS}the_log_keeps_what_happened_since_a_dump_by_a_fast_clock",
    ),
    Mutation(
        name="the plan of a purge believes a pin of a time that is yet to come",
        file="changemanager/plausible_time.py",
        within="TimeJudgement.is_yet_to_come",
        old="time_ms > self.now_ms + CLOCKS_APART_MS_MAX",
        new="False",
        test=f"{_PINS}the_plan_of_a_purge_knows_it_before_anybody_has_noted_the_time",
    ),
    Mutation(
        name="pins go by the clock of the host that dumps",
        file="hms_bridge/repl/pins.py",
        within="DumpPins.now_ms",
        old=("now_ms if self.manifest is None else stamp_ms(now_ms, self.manifest.known_times())"),
        new="now_ms",
        test=f"{_PINS}a_pin_goes_by_the_clock_that_stamps_the_archive",
    ),
    Mutation(
        name="a hold goes by the clock of the host where it is typed",
        file="hms_bridge/cli/archive_pins.py",
        within="hold",
        old="stamp_ms(store.clock.now_ms(), store.manifest.known_times())",
        new="store.clock.now_ms()",
        test=f"{_HOLDS}a_hold_by_a_host_that_is_behind_ends_no_sooner",
    ),
    Mutation(
        name="a step of the clock makes everybody silent at once",
        file="hms_bridge/service/silence.py",
        within="Silence.is_measured",
        old="self._ahead_ms is not None and ahead_ms > self._ahead_ms + STEP_MS",
        new="False",
        test=f"{_SILENCE}a_step_of_the_clock_ends_nobody_who_lives",
    ),
    Mutation(
        name="who died while the clock was ahead lives until that time",
        file="hms_bridge/txn/housekeeping.py",
        within="hear_anew",
        old="_T.TXN_LAST_HEARTBEAT > now + timeout_ms",
        new="_T.TXN_LAST_HEARTBEAT > now + 10 ** 15",
        test=f"{_SILENCE}who_died_while_the_clock_was_ahead_is_dead_soon",
    ),
    Mutation(
        name="replayed transactions end by the plain clock",
        file="hms_bridge/service/cleaning.py",
        within="_time_out_txns",
        old="time.before_ms(unit.settings.txn.repl_timeout_ms)",
        new="time.now_ms - unit.settings.txn.repl_timeout_ms",
        test=f"{_SILENCE}replayed_transactions_outlive_a_step",
    ),
    Mutation(
        name="a claim on file work of a time that is yet to come lasts until then",
        file="hms_bridge/archive/file_tasks.py",
        within="claim",
        old="_ROW.CLAIMED_AT_MS.between(now_ms - lease_ms, now_ms + lease_ms)",
        new="_ROW.CLAIMED_AT_MS >= now_ms - lease_ms",
        test=f"{_SILENCE}a_drop_that_died_by_a_fast_clock_is_carried_out",
    ),
    Mutation(
        name="an entry that a fast clock stamped waits until that time",
        file="hms_bridge/txn/cleaning.py",
        within="_judge_anew",
        old="column > now",
        new="column > 10 ** 15",
        test=f"{_SILENCE}what_a_fast_clock_compacted_is_cleaned_once_it_is_set_right",
    ),
)
