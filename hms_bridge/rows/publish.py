"""Gives a finished directory its final name, in one step where the file system can."""

from __future__ import annotations

from typing import Any

from changemanager.filesystem.opening import volume_of
from hms_bridge.errors import AcidFormatError


def publish_directory(fs: Any, source: str, target: str) -> None:
    """Rename ``source`` to ``target``; never into it (HIVE-25600) and never over it.

    ``fs`` is an fsspec file system. Object stores copy and delete: there a reader must be unable
    to see ``target`` before its transaction commits, which its write id or ``_v`` suffix ensures.
    Raises AcidFormatError if ``target`` exists, OSError if the file system says no.
    """
    try:
        volume_of(fs).rename(source, target)
    except FileExistsError as error:
        raise AcidFormatError("is there already; another writer used this name", target) from error
