"""Brings a dump to the disk: thousands of small files, each of which mostly waits."""

from __future__ import annotations

from collections.abc import Iterator

from changemanager.filesystem.volume import FileKind
from changemanager.location import Location
from hms_bridge.repl.file_pool import FilePool


def settle_dump(dump: Location) -> None:
    """A directory, everything below it and its own name survive a loss of power when this returns,
    as after :func:`changemanager.durable.settle_tree`."""
    volume = dump.volume
    if not volume.capabilities.has_sync:
        return

    def sync(place: tuple[str, bool]) -> None:
        path, is_directory = place
        if is_directory:
            volume.sync_directory(path)
        else:
            volume.sync_file(path)

    with FilePool() as pool:
        pool.all(sync, _places(dump))
    volume.sync_directory(dump.parent.path)


def _places(directory: Location) -> Iterator[tuple[str, bool]]:
    """Paths of files and directories, and whether they are the latter."""
    for status in directory.volume.children(directory.path):
        child = directory.child(status.name)
        if status.kind is FileKind.DIRECTORY:
            yield from _places(child)
        elif status.kind is FileKind.FILE:
            yield child.path, False
    yield directory.path, True
