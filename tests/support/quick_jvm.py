"""A JVM for sessions of a few seconds: they are over before a better compiler has paid."""

from __future__ import annotations

from collections.abc import MutableMapping

_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def prefer_quick_start(environment: MutableMapping[str, str]) -> None:
    """Spark's launcher reads this variable; what is set already stays."""
    environment.setdefault("SPARK_SUBMIT_OPTS", _OPTIONS)
