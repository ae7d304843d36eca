"""Whether two sets of files hold the same, as far as names, lengths and checksums show. Pure.

Compactions of one side alone make other directories of the same rows. What a writer made is the
same file on both sides, or it was taken up by a compaction: then a directory of the other side,
which a compactor may have made, covers its write ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hms_bridge.acid.names import DirectoryName
from hms_bridge.repl.compare.described import FoundDirectory, FoundFile, FoundFiles


@dataclass(frozen=True, kw_only=True, slots=True)
class FilePair:
    """A file that is not the same on both sides; None: a side lacks it. ``is_explained``: a
    compaction may be why."""

    source: FoundFile | None
    replica: FoundFile | None
    is_explained: bool


def unequal_files(source: FoundFiles, replica: FoundFiles) -> tuple[FilePair, ...]:
    """Files that only one side has, or that differ, ordered by path."""
    ours = {file.path: file for file in source.files}
    theirs = {file.path: file for file in replica.files}
    pairs = []
    for path in sorted({*ours, *theirs}):
        one, other = ours.get(path), theirs.get(path)
        if one is None or other is None or not _is_same(one, other):
            is_explained = _is_explained(one, other, source, replica)
            pairs.append(FilePair(source=one, replica=other, is_explained=is_explained))
    return tuple(pairs)


def _is_same(one: FoundFile, other: FoundFile) -> bool:
    return (one.size_bytes, one.checksum) == (other.size_bytes, other.checksum)


def _is_explained(
    one: FoundFile | None, other: FoundFile | None, source: FoundFiles, replica: FoundFiles
) -> bool:
    """Whether a compaction may be why a file of the source, or the replica's, is not on both."""
    file = one or other
    if file is None:
        return True
    shared = _shared_directory(file, source, replica)
    if shared is not None:
        # What a load brought is a copy; what was compacted there need not be.
        return shared.is_own
    if one is not None and other is not None:
        return False
    here, across = (source, replica) if other is None else (replica, source)
    beside = {directory.name for directory in here.directories}
    only_across = [directory for directory in across.directories if directory.name not in beside]
    return _was_taken_up(file, only_across) or _took_up(file, across, only_across)


def _shared_directory(
    file: FoundFile, source: FoundFiles, replica: FoundFiles
) -> FoundDirectory | None:
    """A file's directory as the replica has it, if both have it."""
    if file.directory is None:
        return None
    name = file.directory.name
    if not any(directory.name == name for directory in source.directories):
        return None
    by_name = {directory.name: directory for directory in replica.directories}
    return by_name.get(name)


def _was_taken_up(file: FoundFile, only_across: Sequence[FoundDirectory]) -> bool:
    """Whether a compaction of the other side may have its rows."""
    return any(directory.is_compacted and _covers(directory, file) for directory in only_across)


def _took_up(file: FoundFile, across: FoundFiles, only_across: Sequence[FoundDirectory]) -> bool:
    """Whether it is of a compaction, which may have rows that the other side has elsewhere."""
    made = file.directory
    if made is None or not made.is_compacted:
        return False
    if made.is_ahead:
        return True
    has_originals = any(known_file.directory is None for known_file in across.files)
    return (has_originals and made.name.is_base) or any(
        _overlap(made.name, directory.name) for directory in only_across
    )


def _covers(compacted: FoundDirectory, file: FoundFile) -> bool:
    wide = compacted.name
    if file.directory is None:
        return wide.is_base
    narrow = file.directory.name
    if wide.is_base:
        return wide.max_write_id >= narrow.max_write_id
    return (
        wide.kind is narrow.kind
        and wide.min_write_id <= narrow.min_write_id
        and narrow.max_write_id <= wide.max_write_id
    )


def _overlap(one: DirectoryName, other: DirectoryName) -> bool:
    """Whether some write id may be in both."""
    if one.is_base or other.is_base:
        return True
    return (
        one.kind is other.kind
        and one.min_write_id <= other.max_write_id
        and other.min_write_id <= one.max_write_id
    )
