"""Brings to the disk what was written, where a file system has to be asked for it.

Elsewhere a change is durable when its call returns: `Durability` says what each file system means.
"""

from __future__ import annotations

from changemanager.filesystem.volume import FileKind, Volume


def settle_file(volume: Volume, path: str) -> None:
    """The bytes of a file that is closed survive a loss of power when this returns."""
    if volume.capabilities.has_sync:
        volume.sync_file(path)


def settle_names(volume: Volume, directory: str) -> None:
    """So do the names in a directory: those that came and those that went."""
    if volume.capabilities.has_sync:
        volume.sync_directory(directory)


def settle_tree(volume: Volume, directory: str) -> None:
    """So do a directory, everything below it, and its own name; links are not followed."""
    if volume.capabilities.has_sync:
        _settle_below(volume, directory)
        volume.sync_directory(directory.rstrip("/").rpartition("/")[0] or "/")


def _settle_below(volume: Volume, directory: str) -> None:
    for status in volume.children(directory):
        path = f"{directory}/{status.name}"
        if status.kind is FileKind.DIRECTORY:
            _settle_below(volume, path)
        elif status.kind is FileKind.FILE:
            volume.sync_file(path)
    volume.sync_directory(directory)
