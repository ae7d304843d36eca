"""Looks that what takes the place of victims is there, whole and on the disk, before they go.

Names say what covers what; they say nothing of bytes. A crash of the machine can leave a directory
with files that are empty, full of zeros, or cut off, if their writer did not bring them to the disk
(Hive on a local file system does not).
"""

from __future__ import annotations

from changemanager.durable import settle_tree
from changemanager.filesystem.volume import FileKind
from changemanager.location import Location, list_tree
from cleaner.errors import CleanerError
from hms_bridge.acid.names import is_hidden, is_side_file
from hms_bridge.errors import AcidFormatError
from hms_bridge.orc.tail import MAGIC, read_tail


def require_whole(directory: Location, *, is_full_acid: bool) -> None:
    """Afterwards a loss of power does not take the directory any more.

    Every file that claims to be ORC has a tail that fits; none ends in zeros; none is empty, but of
    insert-only tables, where an empty bucket is an empty file. Raises CleanerError, OSError.
    """
    if directory.status() is None:
        raise CleanerError(f"{directory.uri} is gone, which took the place of others; they stay")
    for file in list_tree(directory):
        name = file.path.rpartition("/")[2]
        if file.kind is not FileKind.FILE or is_hidden(name) or is_side_file(name):
            continue
        reason = _damage(directory.child(file.path), file.size_bytes, is_full_acid)
        if reason is not None:
            raise CleanerError(
                f"{directory.uri}/{file.path} is damaged ({reason}); what it replaces was not "
                "deleted: move this directory away, and compact the table again"
            )
    settle_tree(directory.volume, directory.path)


def _damage(file: Location, size_bytes: int, is_full_acid: bool) -> str | None:
    if not size_bytes:
        return "it is empty" if is_full_acid else None
    with file.volume.open_input(file.path) as stream:
        first = stream.read(len(MAGIC))
        stream.seek(-1, 2)
        last = stream.read(1)
    if last == b"\0":
        return "it ends in zeros"
    if first != MAGIC:
        return None
    try:
        read_tail(file.volume, file.path)
    except AcidFormatError as error:
        return str(error)
    return None
