"""Brings to the disk what was written, where a file system has to be asked for it.

Elsewhere a change is durable when its call returns: `Durability` says what each file system means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from changemanager.filesystem.volume import FileKind, Volume


def settle_file(volume: Volume, path: str) -> None:
    """The bytes of a file that is closed survive a loss of power when this returns."""
    if volume.capabilities.has_sync:
        volume.sync_file(path)


def settle_names(volume: Volume, directory: str) -> None:
    """So do the names in a directory: those that came and those that went."""
    if volume.capabilities.has_sync:
        volume.sync_directory(directory)


Place = tuple[str, bool]
"""A path, and whether it is a directory."""


def in_order(settle: Callable[[Place], None], places: Iterator[Place]) -> None:
    """One after the other."""
    for place in places:
        settle(place)


def settle_tree(
    volume: Volume,
    directory: str,
    settle_each: Callable[[Callable[[Place], None], Iterator[Place]], None] = in_order,
) -> None:
    """So do a directory, everything below it, and its own name; links are not followed.

    ``settle_each`` does a step for each place; thousands of them mostly wait, and may do so side by
    side.
    """
    if not volume.capabilities.has_sync:
        return

    def settle(place: Place) -> None:
        path, is_directory = place
        if is_directory:
            volume.sync_directory(path)
        else:
            volume.sync_file(path)

    settle_each(settle, _places(volume, directory))
    volume.sync_directory(directory.rstrip("/").rpartition("/")[0] or "/")


def _places(volume: Volume, directory: str) -> Iterator[Place]:
    for status in volume.children(directory):
        path = f"{directory}/{status.name}"
        if status.kind is FileKind.DIRECTORY:
            yield from _places(volume, path)
        elif status.kind is FileKind.FILE:
            yield path, False
    yield directory, True
