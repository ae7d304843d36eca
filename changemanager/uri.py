"""Names of archived files, and the texts in which dumps and events name a file.

Hive 3 and 4 write `fileUri#checksum#cmRootUri#subDir`, always with three `#`; checksum and cmroot
are written together or not at all. Hive 2.3 writes `fileUri#checksum`. Nothing is escaped, so a
path with `#` cannot be written, nor one with `]` in a list of files (`]` joins them).
Source: Hive's ReplChangeManager (docs/hive/replication.md §2, §8).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from changemanager.config import NAME_LENGTH_MAX
from changemanager.errors import EncodedUriError

NULL_CHECKSUM = "null"
"""What Hive writes as the checksum of a file on a file system that has none."""

_ARCHIVE_NAME = re.compile(r"(?P<base>.+)_(?P<checksum>[0-9a-f]{8}|[0-9a-f]{56}|null)", re.DOTALL)
_LIST_SEPARATOR = re.compile(r"\s*]\s*")
_PARTS = 4


def archive_name(base_name: str, checksum: str, length_max: int = NAME_LENGTH_MAX) -> str:
    """The name of a file in the cmroot: `<base name>_<checksum>`.

    A longer name is cut to one less than the limit (ReplChangeManager.getCMPath), which loses the
    end of its checksum. Lengths are Java's: a character outside the basic plane counts as two.
    """
    name = f"{base_name}_{checksum}"
    java = name.encode("utf-16-le", "surrogatepass")
    if len(java) <= 2 * length_max:
        return name
    return java[: 2 * (length_max - 1)].decode("utf-16-le", "ignore")


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchiveName:
    """A name in the cmroot, taken apart. `checksum` is None where Hive had none (`_null`)."""

    base_name: str
    checksum: str | None


def parse_archive_name(name: str) -> ArchiveName | None:
    """Take a name of the cmroot apart; None for a name that no ChangeManager makes.

    Names that were cut, and Hive 2.3's names (a checksum alone), are None too.
    """
    match = _ARCHIVE_NAME.fullmatch(name)
    if match is None or name.startswith("."):
        return None
    checksum = match["checksum"]
    return ArchiveName(
        base_name=match["base"], checksum=None if checksum == NULL_CHECKSUM else checksum
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodedUri:
    """A file as dumps and events name it; parts that are not there are None."""

    uri: str
    checksum: str | None = None
    cmroot: str | None = None
    sub_directory: str | None = None

    @property
    def base_name(self) -> str:
        """The file's own name."""
        return self.uri.rpartition("/")[2]


def java_split(text: str, separator: re.Pattern[str]) -> list[str]:
    """Split as Java's String.split does: empty parts at the end are dropped."""
    parts = separator.split(text)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


def encode_uri(file: EncodedUri) -> str:
    """Write a file reference in the form of Hive 3 and 4. Raises EncodedUriError.

    A checksum of "" is what Hive's clients send where the file system has none: the archive is
    named then, as ReplChangeManager.encodeFileUri does; read again it is none.
    """
    has_archive = file.checksum is not None and bool(file.cmroot)
    parts = (
        file.uri,
        file.checksum or "" if has_archive else "",
        file.cmroot or "" if has_archive else "",
        file.sub_directory or "",
    )
    for part in parts:
        if "#" in part or "\n" in part or "\r" in part:
            raise EncodedUriError(
                f"{part!r} contains '#' or a line end and cannot be named in a dump; "
                "move the data to a path without it"
            )
    if not file.uri:
        raise EncodedUriError("a file reference needs a path")
    return "#".join(parts)


_FRAGMENT = re.compile("#")


def decode_uri(text: str) -> EncodedUri:
    """Read a file reference of Hive 2.3, 3 or 4 (ReplChangeManager.decodeFileUri).

    Raises EncodedUriError where Hive would guess: no path, more than four parts, or a
    sub-directory that leaves its table.
    """
    parts = java_split(text.rstrip("\r\n"), _FRAGMENT)
    if not parts[0] or len(parts) > _PARTS:
        raise EncodedUriError(
            f"{text!r} is no file reference: it should be path#checksum#cmroot#sub-directory"
        )
    uri, checksum, cmroot, sub_directory = (*parts, *[""] * (_PARTS - len(parts)))
    levels = sub_directory.split("/")
    if sub_directory.startswith("/") or ".." in levels or "." in levels:
        raise EncodedUriError(f"{text!r} names a sub-directory that is not below its table")
    return EncodedUri(
        uri=uri,
        checksum=checksum or None,
        cmroot=cmroot or None,
        sub_directory=sub_directory or None,
    )


def join_uris(encoded: Sequence[str]) -> str:
    """Join encoded references as write events keep them. Raises EncodedUriError for a `]`."""
    for text in encoded:
        if "]" in text:
            raise EncodedUriError(f"{text!r} contains ']', which separates the files of an event")
    return "]".join(encoded)


def split_uris(text: str) -> tuple[str, ...]:
    """The encoded references of a write event; blanks around them are dropped."""
    if not text.strip():
        return ()
    return tuple(java_split(text, _LIST_SEPARATOR))
