"""What lies below a directory of data, as dumps and copies look at it."""

from __future__ import annotations

from dataclasses import replace

from changemanager.filesystem.volume import FileKind
from changemanager.location import ListedFile, Location, list_tree
from hms_bridge.acid.names import is_hidden
from hms_bridge.errors import ReplError


def list_data(root: Location) -> tuple[ListedFile, ...]:
    """Everything below a directory, by paths relative to it; nothing if it is not there.

    The directory itself may be a symbolic link. Raises ReplError for one below it whose name is
    not hidden, or for one that leads nowhere: a look that does not follow it takes its rows for
    none, and the replica would lack them.
    """
    real = replace(root, path=root.volume.real_path(root.path))
    if real.status() is None:
        if _is_link(root):
            raise _link(root.uri)
        return ()
    listing = list_tree(real)
    for entry in listing:
        if entry.kind is FileKind.LINK and not _is_hidden(entry.path):
            raise _link(f"{root.uri}/{entry.path}")
    return listing


def visible_files(root: Location) -> tuple[ListedFile, ...]:
    """The files below a directory that readers see: neither they nor a directory above them has a
    hidden name. Raises ReplError as :func:`list_data` does."""
    return tuple(
        file for file in list_data(root) if file.kind is FileKind.FILE and not _is_hidden(file.path)
    )


def plain_files(root: Location) -> tuple[ListedFile, ...]:
    """Those of a table or partition without transactions: what lies in another partition's
    directory is not its own."""
    return tuple(file for file in visible_files(root) if "=" not in file.path.rpartition("/")[0])


def _is_link(place: Location) -> bool:
    real_parent = place.volume.real_path(place.parent.path).rstrip("/")
    return place.volume.real_path(place.path) != f"{real_parent}/{place.name}"


def _is_hidden(path: str) -> bool:
    return any(is_hidden(level) for level in path.split("/"))


def _link(uri: str) -> ReplError:
    return ReplError(
        f"{uri} is a symbolic link: what it leads to is neither archived nor copied. Put the file "
        "or directory itself there, or mount it there, then try again"
    )
