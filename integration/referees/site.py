"""Hadoop's site files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape


def write_site(path: Path, settings: Mapping[str, str]) -> Path:
    """Write `settings` as a Hadoop configuration file and return its path."""
    rows = "\n".join(
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in settings.items()
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"<configuration>\n{rows}\n</configuration>\n")
    return path
