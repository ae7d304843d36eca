"""Calls of several processes are one count, which a process that dies takes nothing from."""

from __future__ import annotations

import os
import signal

from hms_bridge.metrics.call_times import CallTimes
from hms_bridge.metrics.metric import openmetrics_text
from hms_bridge.model.call import AnsweredCall, CallOutcome
from tests.support.openmetrics import Exposition, read_exposition

SERIES = "hms_bridge_call_duration_seconds"
OK = AnsweredCall("get_table", CallOutcome.OK, 7)
SLOW = AnsweredCall("get_table", CallOutcome.OK, 60_000)
UNKNOWN = AnsweredCall(None, CallOutcome.REFUSED, 0)


def _told(times: CallTimes) -> Exposition:
    return read_exposition(openmetrics_text(times.samples()).decode())


def _in_a_process(times: CallTimes, number: int, *calls: AnsweredCall) -> None:
    child = os.fork()
    if child == 0:
        note = times.counter(number)
        for call in calls:
            note(call)
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_counts_of_killed_processes_stay_and_go_on() -> None:
    times = CallTimes(["get_table", "get_tables"], processes=2)
    assert times.samples() == []
    _in_a_process(times, 0, OK, OK, UNKNOWN)
    _in_a_process(times, 1, SLOW)
    assert _told(times).of(f"{SERIES}_count") == {
        ("get_table", "ok"): 3, ("unknown", "refused"): 1,
    }  # fmt: skip
    _in_a_process(times, 1, OK)
    told = _told(times)
    assert told.one(f"{SERIES}_count", "get_table", "ok") == 4
    assert told.one(f"{SERIES}_sum", "get_table", "ok") == 60 + 3 * 0.007
    buckets = {key[2]: n for key, n in told.of(f"{SERIES}_bucket").items() if key[1] == "ok"}
    assert (buckets["0.005"], buckets["0.01"], buckets["30.0"], buckets["+Inf"]) == (0, 3, 3, 4)
