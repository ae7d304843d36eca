"""Mutations of what a first dump that fails takes back; read by way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_FILE = "hms_bridge/repl/dump/source_mark.py"
_FAILED = "tests/repl/test_failed_first_dump.py::"

OF_FIRST_DUMPS = (
    Mutation(
        name="a first dump that fails leaves a pin and a source",
        file=_FILE,
        old="        if begun is None and was_source:\n",
        new="        if begun is None or not was_source:\n",
        test=f"{_FAILED}test_writers_that_do_not_end",
    ),
    Mutation(
        name="a dump that fails takes the pin of an earlier one",
        file="hms_bridge/repl/pins.py",
        old=" and begun is not None and begun in self.manifest.pins():\n",
        new=" and begun is not None:\n",
        test=f"{_FAILED}test_a_pin_that_somebody_took_meanwhile_stays",
    ),
    Mutation(
        name="a dump that fails takes back what was there before it",
        file=_FILE,
        old="            if not was_source:\n",
        new="            if True:\n",
        test=f"{_FAILED}test_what_was_a_source_before_stays_one",
    ),
    Mutation(
        name="a finished dump is not waited with: its pin goes though it may be loaded",
        file="hms_bridge/repl/dump/repl_dump.py",
        old="            self._dumps_as_planned(plan)\n\n        with (\n",
        new="            pass\n\n        with (\n",
        test=f"{_FAILED}test_a_finished_dump_keeps_both_though_something_fails_behind_it",
    ),
)
