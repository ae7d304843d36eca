"""Gives a finished directory its final name, in one step where the file system can."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hms_bridge.errors import AcidFormatError


def publish_directory(fs: Any, source: str, target: str) -> None:
    """Rename ``source`` to ``target``; never into it (HIVE-25600) and never over it.

    ``fs`` is an fsspec file system. Object stores copy and delete: there a reader must be unable
    to see ``target`` before its transaction commits, which its write id or ``_v`` suffix ensures.
    Raises AcidFormatError if ``target`` exists.
    """
    if fs.exists(target):
        raise AcidFormatError("is there already; another writer used this name", target)
    if "file" in _protocols(fs):
        # shutil.move, which fsspec uses here, would nest or copy where rename fails.
        Path(source).rename(target)
    else:
        fs.mv(source, target, recursive=True)


def _protocols(fs: Any) -> tuple[str, ...]:
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)
