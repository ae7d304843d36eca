"""What was done to files and tables, one log record for each deed, for people and programs.

A record's text is the deed and its facts as ``name=value``; the same stands in the record's
attributes ``deed`` and ``facts``, of which a log in JSON makes fields.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

Fact = str | int | bool | Sequence[str] | None


def log_deed(logger: logging.Logger, deed: str, **facts: Fact) -> None:
    """Log a deed with its facts (ids, paths, bytes); those that are None are left out."""
    if not logger.isEnabledFor(logging.INFO):
        return
    known = {name: value for name, value in facts.items() if value is not None}
    text = " ".join(f"{name}={_text(value)}" for name, value in known.items())
    logger.info("%s %s", deed, text, extra={"deed": deed, "facts": known})


def _text(value: Fact) -> str:
    if isinstance(value, str):
        return repr(value) if " " in value or not value else value
    if isinstance(value, Sequence):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
