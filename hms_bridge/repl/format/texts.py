"""Small texts of a dump, read and written through any file system."""

from __future__ import annotations

import json

from changemanager.filesystem.volume import FileKind, Placement
from changemanager.location import Location
from changemanager.transfer import PART_PREFIX
from hms_bridge.errors import DumpIncompleteError, ReplError

_READ_BYTES = 1 << 20
DUMP_MODE_MAX = 0o770
"""Of a dump's directories: definitions of tables hold secrets (`hive.sql.dbcp.password`)."""


def compact_json(fields: object) -> str:
    """Without blanks, as Hive writes it."""
    return json.dumps(fields, separators=(",", ":"))


def read_text(location: Location, bytes_max: int) -> str:
    """The text of a file. Raises DumpIncompleteError if it is not there, ReplError if too long."""
    text = read_text_if_there(location, bytes_max)
    if text is None:
        raise DumpIncompleteError(f"{location.uri}: missing; the dump is incomplete: dump again")
    return text


def read_text_if_there(location: Location, bytes_max: int) -> str | None:
    """The text of a file, None without it. Raises ReplError if it is too long or no UTF-8."""
    status = location.status()
    if status is None:
        return None
    if status.kind is not FileKind.FILE:
        raise ReplError(f"{location.uri}: {status.kind.value} where a file is due")
    pieces, size = [], 0
    with location.volume.open_input(location.path) as stream:
        while data := stream.read(_READ_BYTES):
            size += len(data)
            if size > bytes_max:
                raise ReplError(f"{location.uri}: longer than the {bytes_max} bytes it may have")
            pieces.append(data)
    try:
        return b"".join(pieces).decode()
    except UnicodeDecodeError:
        raise ReplError(f"{location.uri}: no UTF-8 text; it is damaged: dump again") from None


def make_dump_directory(location: Location) -> None:
    """A directory of a dump, with those above it, for its owner and group alone."""
    location.volume.make_directory(location.path, limit=DUMP_MODE_MAX)


def write_text(location: Location, text: str) -> None:
    """Write a file of a dump whole, in the place of an older one; directories above it are made."""
    make_dump_directory(location.parent)
    if location.status() is not None:
        location.volume.remove_file(location.path)
    location.volume.write_new(location.path, [text.encode()])


def write_fresh(location: Location, text: str) -> None:
    """Write a file into a directory that is there and has none of its name: one step, once."""
    location.volume.write_new(location.path, [text.encode()])


def ensure_content(location: Location, content: bytes, *, limit: int = 0o777) -> None:
    """A small file with this content and no other, whole or not there at any moment. ``limit``: of
    the directories above it, where they are not there."""
    part = location.parent.child(PART_PREFIX + location.name)
    if part.status() is not None:
        location.volume.remove_file(part.path)
    if location.status() is not None:
        if b"".join(location.chunks()) == content:
            return
        raise ReplError(f"{location.uri} has other content than it should; move it away")
    location.volume.make_directory(location.parent.path, limit=limit)
    location.volume.write_new(part.path, [content])
    if location.volume.place(part.path, location.path) is not Placement.MOVED:
        location.volume.remove_file(part.path)


def is_there(location: Location) -> bool:
    """Whether anything has this name."""
    return location.status() is not None


def child_directories(location: Location) -> tuple[str, ...]:
    """Names of the directories in a directory, sorted; none if it is not there. Raises ReplError
    for a symbolic link, which may stand for a directory that would be left out."""
    try:
        children = location.volume.children(location.path)
    except FileNotFoundError:
        return ()
    for child in children:
        if child.kind is FileKind.LINK:
            raise ReplError(
                f"{location.child(child.name).uri} is a symbolic link, and a dump has none: put "
                "the directory or file itself there, or copy the dump again"
            )
    return tuple(child.name for child in children if child.kind is FileKind.DIRECTORY)


def remove_tree(location: Location) -> None:
    """Remove a directory and everything in it, links as links. No error if it is not there."""
    status = location.status()
    if status is None:
        return
    if status.kind is not FileKind.DIRECTORY:
        location.volume.remove_file(location.path)
        return
    for child in location.volume.children(location.path):
        remove_tree(location.child(child.name))
    location.volume.remove_empty_directory(location.path)
