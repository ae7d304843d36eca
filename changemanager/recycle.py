"""What is to be archived of a directory, decided from its listing, and what was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from changemanager.errors import PathNotContainedError
from changemanager.filesystem.volume import FileKind, Placement
from changemanager.location import ListedFile
from changemanager.manifest import IntentFile


class RecycleKind(Enum):
    """Whether the source stays."""

    MOVE = "move"
    COPY = "copy"


@dataclass(frozen=True, kw_only=True, slots=True)
class RecyclePlan:
    """What a recycle would archive. Paths are relative to `source` (empty: a plain file)."""

    source: str
    kind: RecycleKind
    is_remaining_in_trash: bool
    files: tuple[ListedFile, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes that would be archived."""
        return sum(file.size_bytes for file in self.files)


def plan_recycle(
    source: str, listing: Sequence[ListedFile], *, kind: RecycleKind, is_purge: bool
) -> RecyclePlan:
    """Choose the files of a listing that the archive keeps. Raises PathNotContainedError.

    Hive tags what was moved without PURGE, so that its purge goes to the trash.
    """
    for file in listing:
        if file.kind not in {FileKind.FILE, FileKind.DIRECTORY}:
            raise PathNotContainedError(
                f"{source}/{file.path} is a symbolic link or a special file; remove it by hand, "
                "then try again",
                source,
            )
    return RecyclePlan(
        source=source,
        kind=kind,
        is_remaining_in_trash=kind is RecycleKind.MOVE and not is_purge,
        files=tuple(file for file in listing if file.kind is FileKind.FILE and not file.is_hidden),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptFile:
    """One file that is in the archive now. `placement` is None if its content was there before."""

    file: IntentFile
    placement: Placement | None

    @property
    def is_new(self) -> bool:
        """Whether the archive grew by it."""
        return self.placement is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class RecycleReport:
    """What a recycle did."""

    plan: RecyclePlan
    kept: tuple[KeptFile, ...]

    @property
    def archived_count(self) -> int:
        """Files newly archived: what Hive's recycle returns."""
        return sum(kept.is_new for kept in self.kept)
