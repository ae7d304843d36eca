"""What is to be removed, what became of it, and how a victim differs from what was planned."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from changemanager.errors import ChangeManagerError, LeaseLostError
from changemanager.filesystem.volume import FileKind
from changemanager.journal import log_deed
from changemanager.location import ListedFile, Location
from changemanager.manifest import ArchiveContext, ArchiveIntent, IntentState
from changemanager.recycle import KeptFile

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Removal:
    """A victim that, as whoever asks knows now, may go. With ``seen`` only what is still as it was
    seen then, and the directories that are empty without it."""

    victim: str
    root: str
    context: ArchiveContext
    is_archived: bool
    is_purge: bool = True
    seen: Sequence[ListedFile] | None = None


SameCheck = Callable[[Sequence[Removal]], Sequence[ChangeManagerError | None]]
"""Asked of victims before they are touched: of each, why it may not go any more. What it raises
stops all of them."""


def always_same(removals: Sequence[Removal]) -> Sequence[ChangeManagerError | None]:
    """The check of victims that nobody can give another meaning."""
    return [None] * len(removals)


@dataclass(frozen=True, kw_only=True, slots=True)
class DeletionReport:
    """What became of one victim. `intent` is None if it was not there at all; `left` are files that
    stay because they were not seen."""

    victim: str
    intent: ArchiveIntent | None
    kept: tuple[KeptFile, ...] = ()
    deleted_count: int = 0
    is_resumed: bool = False
    left: tuple[str, ...] = ()

    @property
    def archived_count(self) -> int:
        """Files newly archived by this call."""
        return sum(file.is_new for file in self.kept)

    @property
    def size_bytes(self) -> int:
        """Bytes that the victim had when it was planned."""
        return sum(file.size_bytes for file in self.intent.files) if self.intent else 0


def unplanned_changes(
    intent: ArchiveIntent,
    listing: Iterable[ListedFile],
    *,
    is_time_compared: bool,
    is_new_left: bool = False,
) -> tuple[str, ...]:
    """How a victim differs from its row, except for files that are gone; pure.

    Times are compared only while nothing was archived: archiving sets them. With ``is_new_left``
    what is not in the row is no difference, because it stays.
    """
    known = {file.path: file for file in intent.files}
    changes = []
    for found in listing:
        planned = known.get(found.path)
        if found.kind is FileKind.DIRECTORY or (planned is None and is_new_left):
            continue
        if planned is None or found.kind is not FileKind.FILE:
            changes.append(f"{found.path} is new")
        elif planned.size_bytes != found.size_bytes:
            changes.append(f"{found.path} has {found.size_bytes} bytes, not {planned.size_bytes}")
        elif is_time_compared and planned.mtime_ms != found.mtime_ms:
            changes.append(f"{found.path} was written since")
    return tuple(changes)


def log_deletion(intent: ArchiveIntent, deleted_count: int, *, is_resumed: bool) -> None:
    """Say what was deleted, and of whom."""
    log_deed(
        _LOG,
        "deleted",
        path=intent.victim,
        files=deleted_count,
        bytes=sum(file.size_bytes for file in intent.files),
        **intent.context.facts,
        cmroot=intent.cmroot,
        removal=intent.intent_id,
        resumed=True if is_resumed else None,
    )


@dataclass(eq=False, slots=True)
class RemovalWork:
    """A removal on its way: its row, once it has one, and what was done for it in this try."""

    removal: Removal
    place: Location
    intent: ArchiveIntent | None = None
    is_resumed: bool = False
    is_archived_now: bool = False
    is_deleted_now: bool = False
    kept: tuple[KeptFile, ...] = ()
    listing: Mapping[str, ListedFile] = field(default_factory=dict)
    """What was in it when it was looked at last, before it is deleted."""
    deleted_count: int = 0
    left: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    """What was in it, below it."""
    error: ChangeManagerError | OSError | None = None

    @property
    def row(self) -> ArchiveIntent:
        """The row of a work that has one."""
        assert self.intent is not None
        return self.intent

    @property
    def outcome(self) -> DeletionReport | ChangeManagerError | OSError:
        """What became of it."""
        return self.error or DeletionReport(
            victim=self.place.uri,
            intent=self.intent,
            kept=self.kept,
            deleted_count=self.deleted_count,
            is_resumed=self.is_resumed,
            left=self.left,
        )

    @contextmanager
    def failing(self) -> Iterator[None]:
        """What goes wrong within is this work's failure, and no other's; a lost lease is all's."""
        try:
            yield
        except LeaseLostError:
            raise
        except (ChangeManagerError, OSError) as error:
            self.error = error


def fail_changed(works: Sequence[RemovalWork], check: SameCheck) -> None:
    """Those that may not go any more have failed; their rows stay as they are."""
    errors = check([work.removal for work in works]) if works else ()
    for work, error in zip(works, errors, strict=True):
        if error is not None:
            work.error = error


def in_state(works: Iterable[RemovalWork], state: IntentState) -> list[RemovalWork]:
    """Those that have not failed, and whose rows are in the state."""
    return [
        work for work in works if work.error is None and work.intent and work.row.state is state
    ]
