"""Which version of this program runs."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def own_version() -> str:
    """As installed; ``unknown`` where only the sources are, as in a zip that Spark ships."""
    try:
        return version("hms-bridge")
    except PackageNotFoundError:
        return "unknown"
