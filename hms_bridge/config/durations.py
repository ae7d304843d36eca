"""Hive's texts for durations: ``24h``, ``10d``, or a bare number in the key's own unit."""

from __future__ import annotations

from changemanager.config import DurationUnit
from changemanager.config import parse_duration_ms as parse_with_unit
from changemanager.errors import ChangeManagerConfigError
from hms_bridge.errors import ConfigError

_UNITS = {unit.suffix: unit for unit in DurationUnit}


def parse_duration_ms(text: str, default_unit: str) -> int:
    """Milliseconds. A bare number is in ``default_unit``, a suffix such as ``h``.

    Raises ConfigError for a text that is no duration.
    """
    try:
        return parse_with_unit(text, _UNITS[default_unit])
    except ChangeManagerConfigError:
        raise ConfigError(
            f"'{text}' is no duration; write a number and a unit, as in 24h or 30m"
        ) from None
