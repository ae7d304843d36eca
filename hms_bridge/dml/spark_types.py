"""Hive's type texts in Spark SQL's words. Text only: nothing here imports PySpark."""

from __future__ import annotations

import re

_LENGTH = re.compile(r"\b(?:var)?char\(\d+\)")
_LOCAL = "timestamp with local time zone"


def spark_type(hive_type: str) -> str:
    """The Spark type that holds every value of a Hive type.

    A Hive timestamp has no zone: ``timestamp_ntz``; what ``timestamp`` alone means is a setting of
    the session. char and varchar become ``string``; their
    lengths are enforced where rows are written.
    """
    text = _LENGTH.sub("string", hive_type.lower())
    parts = text.split(_LOCAL)
    return "timestamp_ltz".join(re.sub(r"\btimestamp\b", "timestamp_ntz", part) for part in parts)
