"""How long a server's calls took. The one figure that is kept and not asked for: by this server,
of its own clients, since it began."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence

from hms_bridge.metrics.metric import Metric, Sample, Spread
from hms_bridge.model.call import AnsweredCall

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_UNKNOWN_METHOD = "unknown"

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
    """Counts calls on any thread. Labels are of methods that the server knows, so their number is
    bounded."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spreads: dict[tuple[str, str], Spread] = defaultdict(lambda: Spread(_BUCKETS))

    def note(self, call: AnsweredCall) -> None:
        """Count an answered call under its method and outcome, in seconds."""
        key = (call.method or _UNKNOWN_METHOD, call.outcome.value)
        with self._lock:
            self._spreads[key].add(call.duration_ms / 1000)

    def samples(self) -> Sequence[Sample]:
        """One for each method and outcome, in that order; later calls change none."""
        with self._lock:
            spreads = {key: spread.copy() for key, spread in self._spreads.items()}
        return [CALL_DURATION.at(spread, *key) for key, spread in sorted(spreads.items())]
