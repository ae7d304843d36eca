"""Gives a finished directory its final name, in one step where the file system can."""

from __future__ import annotations

from changemanager.durable import settle_names
from changemanager.filesystem.volume import Volume
from hms_bridge.errors import AcidFormatError


def rename_directory(volume: Volume, source: str, target: str) -> None:
    """Rename ``source`` to ``target``; never into it (HIVE-25600) and never over it.

    Its names survive a loss of power, the old ones before it has the new one, and the new one when
    this returns; the bytes of its files were brought to the disk by who wrote them.
    Object stores copy and delete: there a reader must be unable to see ``target`` before its
    transaction commits, which its write id or ``_v`` suffix ensures.
    Raises AcidFormatError if ``target`` exists, OSError if the file system says no.
    """
    try:
        settle_names(volume, source)
        volume.rename(source, target)
        settle_names(volume, target.rpartition("/")[0])
    except FileExistsError as error:
        raise AcidFormatError("is there already; another writer used this name", target) from error
