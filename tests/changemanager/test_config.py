"""Settings and durations with Hive's rules."""

from __future__ import annotations

from typing import Any

import pytest

from changemanager.config import ChangeManagerConfig, DurationUnit, parse_duration_ms
from changemanager.errors import ChangeManagerConfigError

HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10", 10 * HOUR_MS),
        ("10d", 240 * HOUR_MS),
        ("10 days", 240 * HOUR_MS),
        ("24h", 24 * HOUR_MS),
        ("24hours", 24 * HOUR_MS),
        ("90m", 90 * 60_000),
        ("90min", 90 * 60_000),
        ("90 minutes", 90 * 60_000),
        ("3600s", HOUR_MS),
        ("3600sec", HOUR_MS),
        ("1500ms", 1500),
        ("1500msec", 1500),
        ("2500us", 2),
        ("2500usec", 2),
        ("2500000ns", 2),
        ("2500000nsec", 2),
        (" 5L ", 5 * HOUR_MS),
        ("7D", 168 * HOUR_MS),
    ],
)
def test_durations_as_hives_time_validator_reads_them(text: str, expected: int) -> None:
    assert parse_duration_ms(text, DurationUnit.HOURS) == expected


@pytest.mark.parametrize("text", ["", "d", "ten", "1.5h", "10w", "1h30m", "--1", "5-"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ChangeManagerConfigError, match="is no duration"):
        parse_duration_ms(text, DurationUnit.HOURS)


@pytest.mark.parametrize("retain_ms", [0, -1])
def test_a_retention_of_nothing_is_refused(retain_ms: int) -> None:
    with pytest.raises(ChangeManagerConfigError, match="hive.repl.cm.retain must be longer than 0"):
        ChangeManagerConfig(cmroot="/cm", retain_ms=retain_ms)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cmroot": " "}, "hive.repl.cmrootdir is empty"),
        ({"cmroot": "/a#b"}, "contains '#'"),
        ({"cmroot": "/cm", "interval_seconds": 0.0}, "hive.repl.cm.interval"),
        ({"cmroot": "/cm", "name_length_max": 20}, "max-component-length"),
    ],
)
def test_other_settings_that_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ChangeManagerConfigError, match=message):
        ChangeManagerConfig(**{"retain_ms": HOUR_MS, **given})
