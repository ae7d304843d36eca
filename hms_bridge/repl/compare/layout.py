"""Whether two sets of files hold the same, as far as names, lengths and checksums tell. Pure.

Compactions of one side alone make other directories of the same rows. What a writer made is the
same file on both sides, or it was taken up by a compaction: then a directory of the other side,
which a compactor may have made, covers its write ids.
"""

from __future__ import annotations

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
        if one is not None and other is not None and _is_same(one, other):
            continue
        is_explained = _is_explained(one, other, source, replica)
        pairs.append(FilePair(source=one, replica=other, is_explained=is_explained))
    return tuple(pairs)


def _is_same(one: FoundFile, other: FoundFile) -> bool:
    return (one.size_bytes, one.checksum) == (other.size_bytes, other.checksum)


def _is_explained(
    one: FoundFile | None, other: FoundFile | None, source: FoundFiles, replica: FoundFiles
) -> bool:
    file = one or other
    if file is None:
        return True
    names = {directory.name for directory in source.directories}
    shared = {directory.name: directory for directory in replica.directories} if names else {}
    in_both = shared.get(file.directory.name) if file.directory is not None else None
    if in_both is not None and in_both.name in names:
        # What a load brought is a copy; what was compacted there need not be.
        return in_both.is_own
    if one is not None and other is not None:
        return False
    across = replica if other is None else source
    beside = {directory.name for directory in (source if other is None else replica).directories}
    others = [directory for directory in across.directories if directory.name not in beside]
    if any(directory.is_compacted and _covers(directory, file) for directory in others):
        return True
    made = file.directory
    if made is None or not made.is_compacted:
        return False
    if made.is_ahead:
        return True
    has_originals = any(found.directory is None for found in across.files)
    return (has_originals and made.name.is_base) or any(
        _overlap(made.name, directory.name) for directory in others
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
