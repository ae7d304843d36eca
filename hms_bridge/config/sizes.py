"""Numbers of bytes, as people write them: ``50MiB``, ``1.5 GB``, ``1000``."""

from __future__ import annotations

import re
from typing import Final

from hms_bridge.errors import ConfigError

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(I?)(B?)", re.IGNORECASE)
_POWERS: Final = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def parse_size(text: str) -> int:
    """Bytes. ``K``, ``KiB`` and the like count by 1024, ``KB`` and the like by 1000; at least one.

    Raises ConfigError for what is no such number.
    """
    matched = _SIZE.fullmatch(text.strip())
    if matched is None or (matched[3] and not (matched[2] and matched[4])):
        raise ConfigError(f"'{text}' is no number of bytes; write for example 1000, 50MiB or 1.5GB")
    number, unit = matched[1], matched[2].upper()
    factor = 1000 if unit and matched[4] and not matched[3] else 1024
    size_bytes = int(float(number) * factor ** _POWERS[unit])
    if size_bytes < 1:
        raise ConfigError(f"'{text}' is less than a byte; leave it out for no limit")
    return size_bytes
