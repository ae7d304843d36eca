"""What is believed of a dump: nothing that could leave the target's own directories.

Dump directories may come from anywhere. Names, sub-directories and URIs are checked before they
become paths, and texts have limits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from changemanager.checksum import is_checksum
from changemanager.errors import ChangeManagerError
from changemanager.location import parse_uri
from changemanager.uri import EncodedUri, decode_uri
from hms_bridge.acid.names import DirectoryName, is_hidden
from hms_bridge.errors import MetaError, ReplError
from hms_bridge.model.partition_name import parse_partition_name
from hms_bridge.repl.format.passed_kinds import PASSED_BY_DEFAULT

_KNOWN_MAX = 4096
_NAME = re.compile(r"[^\x00-\x1f\x7f/\\.][^\x00-\x1f\x7f/\\]{0,255}")


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpRules:
    """Limits on what a dump may contain. ``schemes``: of file systems that it may name; a bare path
    counts as ``file``. ``passed_kinds``: events without effect on the replica.
    """

    schemes: frozenset[str] = frozenset(
        {"file", "hdfs", "webhdfs", "s3", "s3a", "s3n", "gs", "abfs", "abfss"}
    )
    passed_kinds: frozenset[str] = PASSED_BY_DEFAULT
    text_bytes_max: int = 256 << 20
    files_max: int = 10_000_000
    events_max: int = 10_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpedFile:
    """One line of a file list, checked.

    ``sub_directory`` is where the file goes below its table or partition on the target: a base or
    delta without visibility suffix first, if the table is transactional; empty for the root.
    """

    uri: str
    checksum: str | None
    cmroot: str | None
    sub_directory: str
    source_directory: str

    @property
    def name(self) -> str:
        """The file's own name, as it will be on the target."""
        return self.uri.rpartition("/")[2]

    @property
    def encoded(self) -> EncodedUri:
        """The reference as the dump has it."""
        return EncodedUri(
            uri=self.uri,
            checksum=self.checksum,
            cmroot=self.cmroot,
            sub_directory=self.source_directory or None,
        )

    @property
    def relative_path(self) -> str:
        """Its path below the table or partition on the target."""
        return f"{self.sub_directory}/{self.name}" if self.sub_directory else self.name

    @property
    def is_compacted(self) -> bool:
        """Whether a compactor wrote it: its source directory has a visibility suffix."""
        name = DirectoryName.parse(self.source_directory.partition("/")[0])
        return name is not None and name.visibility_txn_id > 0


def checked_name(text: str, what: str) -> str:
    """A name of an object or directory, in lower case. Raises ReplError if it is no plain name."""
    if not _NAME.fullmatch(text):
        raise ReplError(f"{text!r} is no name of a {what}; the dump is damaged or forged")
    return text.lower()


def given_name(text: str, what: str) -> str:
    """The same for a name that a person gave. Raises ReplError if it is no plain name."""
    if not _NAME.fullmatch(text):
        raise ReplError(f"{text!r} is no name of a {what}; give its name alone, as in Hive")
    return text.lower()


def checked_partition(text: str) -> str:
    """A partition name ``a=1/b=2``. Raises ReplError for anything that is none."""
    try:
        parse_partition_name(text)
    except MetaError:
        raise ReplError(f"{text!r} is no partition; the dump is damaged or forged") from None
    levels = text.split("/")
    if any("=" not in level or not _NAME.fullmatch(level) for level in levels):
        raise ReplError(f"{text!r} is no partition; the dump is damaged or forged")
    return text


def checked_file(line: str, rules: DumpRules, where: str, *, is_transactional: bool) -> DumpedFile:
    """Read one line of a file list. Raises ReplError, naming ``where``."""
    try:
        encoded = decode_uri(line)
        _require_allowed(encoded, rules)
        name = parse_uri(encoded.uri).path.rpartition("/")[2]
    except ChangeManagerError as error:
        raise ReplError(f"{where}: {error}; the dump is damaged or forged") from error
    if not _NAME.fullmatch(name) or is_hidden(name) or name != encoded.base_name:
        raise ReplError(f"{where}: {encoded.uri!r} names no data file; the dump is damaged")
    if encoded.checksum is not None and not is_checksum(encoded.checksum):
        raise ReplError(f"{where}: {encoded.checksum!r} is no checksum; the dump is damaged")
    source_directory = encoded.sub_directory or ""
    _require_visible(source_directory, where)
    return DumpedFile(
        uri=encoded.uri,
        checksum=encoded.checksum,
        cmroot=encoded.cmroot,
        sub_directory=(
            target_directory(source_directory) if is_transactional else source_directory
        ),
        source_directory=source_directory,
    )


@lru_cache(maxsize=_KNOWN_MAX)  # of a list with many files most have the same
def target_directory(source_directory: str) -> str:
    """Where a sub-directory goes on the target: without the source's visibility suffix.

    The target's transaction counter is another one, so the suffix would hide the directory there.
    A compacted delta has no statement id (Hive: CopyUtils and ReplUtils;
    docs/hive/replication.md §19).
    """
    first, separator, rest = source_directory.partition("/")
    name = DirectoryName.parse(first)
    if name is None or not name.visibility_txn_id:
        return source_directory
    if name.is_base:
        stripped = DirectoryName.base(name.max_write_id)
    elif name.is_delete:
        stripped = DirectoryName.delete_delta(name.min_write_id, name.max_write_id)
    else:
        stripped = DirectoryName.delta(name.min_write_id, name.max_write_id)
    return f"{stripped.format()}{separator}{rest}"


def require_allowed_uri(uri: str, rules: DumpRules) -> None:
    """Raises ReplError unless a dump may name this place; whether a load reads it, its roots say
    (``repl/load/source_roots.py``)."""
    parsed = parse_uri(uri)
    if (parsed.scheme or "file") not in rules.schemes:
        raise ReplError(
            f"{uri!r} is on {parsed.scheme}:, which dumps may not name here "
            f"(allowed: {', '.join(sorted(rules.schemes))})"
        )


def _require_allowed(encoded: EncodedUri, rules: DumpRules) -> None:
    require_allowed_uri(encoded.uri, rules)
    if encoded.cmroot is not None:
        require_allowed_uri(encoded.cmroot, rules)


def _require_visible(directory: str, where: str) -> None:
    levels = directory.split("/") if directory else []
    if any(not _NAME.fullmatch(level) or is_hidden(level) for level in levels):
        raise ReplError(f"{where}: {directory!r} is no directory of data; the dump is damaged")
