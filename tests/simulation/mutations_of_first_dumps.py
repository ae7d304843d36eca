"""Mutations of what a first dump that fails takes back; read by way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_FILE = "hms_bridge/repl/dump/source_mark.py"
_FAILED = "tests/repl/test_failed_first_dump.py::"

OF_FIRST_DUMPS = (
    Mutation(
        name="a first dump that fails leaves a pin and a source",
        file=_FILE,
        within="marked_source",
        old="begun is None and was_source",
        new="begun is None or not was_source",
        test=f"{_FAILED}test_writers_that_do_not_end",
    ),
    Mutation(
        name="a dump that fails takes the pin of an earlier one",
        file="hms_bridge/repl/pins.py",
        within="DumpPins.take_back",
        old=("self.manifest is not None and begun is not None and (begun in self.manifest.pins())"),
        new="self.manifest is not None and begun is not None",
        test=f"{_FAILED}test_a_pin_that_somebody_took_meanwhile_stays",
    ),
    Mutation(
        name="a dump that fails takes back what was there before it",
        file=_FILE,
        within="marked_source",
        old=("if not was_source:\n    _unmark(source, request)"),
        new=("if True:\n    _unmark(source, request)"),
        test=f"{_FAILED}test_what_was_a_source_before_stays_one",
    ),
    Mutation(
        name="a finished dump is not waited with: its pin goes though it may be loaded",
        file="hms_bridge/repl/dump/repl_dump.py",
        within="ReplDump._run.require_unfinished",
        old="self._dumps_as_planned(plan)",
        new="pass",
        test=f"{_FAILED}test_a_finished_dump_keeps_both_though_something_fails_behind_it",
    ),
)
