"""Hive's texts for durations: ``24h``, ``10d``, or a bare number in the key's own unit."""

from __future__ import annotations

import re

from hms_bridge.errors import ConfigError

_MILLISECONDS = {
    "d": 86_400_000.0, "day": 86_400_000.0, "days": 86_400_000.0,
    "h": 3_600_000.0, "hour": 3_600_000.0, "hours": 3_600_000.0,
    "m": 60_000.0, "min": 60_000.0, "minute": 60_000.0, "minutes": 60_000.0,
    "s": 1_000.0, "sec": 1_000.0, "second": 1_000.0, "seconds": 1_000.0,
    "ms": 1.0, "msec": 1.0, "millisecond": 1.0, "milliseconds": 1.0,
    "us": 0.001, "usec": 0.001, "microsecond": 0.001, "microseconds": 0.001,
    "ns": 0.000_001, "nsec": 0.000_001, "nanosecond": 0.000_001, "nanoseconds": 0.000_001,
}  # fmt: skip
_DURATION = re.compile(r"\s*(-?\d+)\s*([a-zA-Z]*)\s*")


def parse_duration_ms(text: str, default_unit: str) -> int:
    """Milliseconds. A bare number is in ``default_unit`` (Hive: HiveConf.toTime).

    Raises ConfigError for a text that is no duration.
    """
    match = _DURATION.fullmatch(text)
    unit = (match.group(2) or default_unit).lower() if match else ""
    if match is None or unit not in _MILLISECONDS:
        raise ConfigError(f"'{text}' is no duration; write a number and a unit, as in 24h or 30m")
    return int(int(match.group(1)) * _MILLISECONDS[unit])


def format_duration_ms(milliseconds: int) -> str:
    """The shortest exact text: ``10d``, ``36h``, ``90s``, ``5ms``."""
    for unit in ("d", "h", "m", "s"):
        size = int(_MILLISECONDS[unit])
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"
