"""Setuptools' own backend, but that no wheel is made without Spark's jar of these very sources."""

from __future__ import annotations

from typing import Any

import build_jar
from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403


def build_wheel(*arguments: Any, **options: Any) -> str:
    """Raises SystemExit if the jar is another one."""
    if not build_jar.is_current():
        raise SystemExit("hms_bridge/spark/jars has no jar of these sources: run make setup first")
    return str(build_meta.build_wheel(*arguments, **options))
