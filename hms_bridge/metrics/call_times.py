"""How long a server's calls took. The one figure that is kept and not asked for: by this server,
of its own clients, since it began.

It is kept in memory that the server's processes share. So each of them knows the calls of all, and
what a process counted stays when that process is gone: a sum that fell because one of several
began anew would look to a monitor like thousands of calls that never were.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import product

from hms_bridge.metrics.metric import Metric, Sample, Spread
from hms_bridge.model.call import AnsweredCall, CallOutcome
from hms_bridge.shared_numbers import shared_numbers

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_UNKNOWN_METHOD = "unknown"
_WIDTH = len(_BUCKETS) + 2
"""A count for each bucket, one of what is above, and the sum."""

CALL_DURATION = Metric(
    "hms_bridge_call_duration_seconds",
    "Calls of thrift clients of this server, since it began, by how long each took from when its "
    "message was there until the answer was ready. Outcome: ok, refused (what was asked for is "
    "not there, or not allowed), failed. Methods that it does not know are one: unknown.",
    ("method", "outcome"),
    "seconds",
    _BUCKETS,
)


class CallTimes:
    """Counts calls on any thread of so many processes, which are forked after this is made. Labels
    are of ``methods``, those that the server knows, so their number is bounded."""

    def __init__(self, methods: Iterable[str], processes: int = 1) -> None:
        outcomes = [outcome.value for outcome in CallOutcome]
        self._keys = tuple(sorted(product({*methods, _UNKNOWN_METHOD}, outcomes)))
        self._places = {key: number * _WIDTH for number, key in enumerate(self._keys)}
        size = len(self._keys) * _WIDTH
        shared = shared_numbers(processes * size)
        self._pages = [shared[n * size : (n + 1) * size] for n in range(processes)]

    def counter(self, process: int = 0) -> Callable[[AnsweredCall], None]:
        """What counts the answered calls of one process, under their method and outcome, in
        seconds. One that follows it goes on where it stopped."""
        page, lock, places = self._pages[process], threading.Lock(), self._places

        def note(call: AnsweredCall) -> None:
            seconds = call.duration_ms / 1000
            place = places[call.method or _UNKNOWN_METHOD, call.outcome.value]
            with lock:
                page[place + bisect_left(_BUCKETS, seconds)] += 1
                page[place + _WIDTH - 1] += seconds

        return note

    def samples(self) -> Sequence[Sample]:
        """One for each method and outcome that there was, in that order, of all processes; later
        calls change none."""
        spreads = ((key, self._spread(self._places[key])) for key in self._keys)
        return [CALL_DURATION.at(spread, *key) for key, spread in spreads if any(spread.counts)]

    def _spread(self, place: int) -> Spread:
        rows = [page[place : place + _WIDTH].tolist() for page in self._pages]
        sums = [sum(column) for column in zip(*rows, strict=True)]
        return Spread(_BUCKETS, tuple(int(count) for count in sums[:-1]), sums[-1])
