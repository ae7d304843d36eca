"""The manifest: what is archived, from where, since when, and who still needs it.

The port stands beside Hive's own file names and attributes and never replaces them: a file without
a row here is Hive's, and is treated by its modification time. Three protocols, one store:

* records: one entry per archived file. RESERVED → ARCHIVED → PURGING → PURGED.
* intents: the write-ahead rows of archive-then-delete. PLANNED → ARCHIVED → DELETED → DONE.
* pins: who forbids the purge of what.

Every method is one atomic step that survives a crash once it returned. `reserve` and `claim_purge`
exclude each other: whichever comes second sees what the first one did. That is what makes it safe
to delete a source because its copy "is in the archive already".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from changemanager.announced import AnnouncementStore
from changemanager.figures import ArchiveFigureStore
from changemanager.given_up import GivenUp, GivenUpStore
from changemanager.plausible_time import KnownTimes, TimeGap, TimeJudgement

LEASE_MS = 300_000
"""How long after its owner's last sign of life a claim is free."""


class ArchiveCause(Enum):
    """Why a file was replaced; the value is what a store keeps. What Hive archives when:
    docs/hive/replication.md §5."""

    OBSOLETE = "obsolete"
    ABORTED = "aborted"
    DROP_TABLE = "drop_table"
    DROP_PARTITION = "drop_partition"
    DROP_FUNCTION = "drop_function"
    TRUNCATE = "truncate"
    RENAME = "rename"
    REQUEST = "request"


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchiveContext:
    """On whose behalf files are archived or deleted, as far as it is known.

    `location` is the directory of the table (or partition) as a URI: dumps name files below it.
    """

    cause: ArchiveCause
    location: str | None = None
    database: str | None = None
    table: str | None = None
    partition: str | None = None
    txn_id: int | None = None
    compaction_id: int | None = None

    @property
    def facts(self) -> Mapping[str, str | int | None]:
        """Why and of what a file was archived, for :func:`log_deed`; None is left out there."""
        return {
            "cause": self.cause.value,
            "database": self.database,
            "table": self.table,
            "partition": self.partition,
            "transaction": self.txn_id,
            "entry": self.compaction_id,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchiveOrigin:
    """One place that an archived file came from.

    `uri` is the whole path that the file had; `directory` its directory as dumps name it (below
    the table or partition), such as `delta_0000005_0000005_0000`, empty if it is not known.
    """

    uri: str
    directory: str
    context: ArchiveContext
    archived_at_ms: int


class EntryState(Enum):
    """The life of an archived file; the value is what a store keeps."""

    RESERVED = "r"
    """About to be archived; the file may or may not be there. Shields it from the purge."""
    ARCHIVED = "a"
    """Durable and verified."""
    PURGING = "p"
    """Being deleted; nobody may count on the file any more."""
    PURGED = "x"
    """Gone; kept as history until forgotten."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchiveEntry:
    """What is known of one file of the cmroot. `archived_at_ms` is the clock of its retention."""

    cmroot: str
    name: str
    checksum: str
    size_bytes: int
    state: EntryState
    archived_at_ms: int
    is_remaining_in_trash: bool = False
    origins: tuple[ArchiveOrigin, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ReservedFile:
    """A file that is about to be archived under `name`."""

    name: str
    checksum: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchivedFile:
    """A file that now is in the archive under `name`, durable and verified."""

    name: str
    origin: ArchiveOrigin
    is_remaining_in_trash: bool


class ArchiveRecords(Protocol):
    """What is archived."""

    def reserve(self, cmroot: str, files: Sequence[ReservedFile], now_ms: int) -> None:
        """Announce files before they are looked for or written in the cmroot. All or none.

        A new or PURGED name becomes RESERVED (a PURGED one without its old origins and tag); a
        known one keeps its state; the clock of every one moves to `now_ms`, never back.
        Raises ArchiveBusyError if any of them is PURGING, unless that claim has run out: then it
        is over, and the file RESERVED.
        """
        ...

    def record_archived(self, cmroot: str, files: Sequence[ArchivedFile], now_ms: int) -> None:
        """Reserved files are in the archive: ARCHIVED, clock to `now_ms` (never back).

        An origin is known by uri and context: the same one twice stays one, with its first time.
        The trash tag stays once it is set. Raises IntentError for a name that was not reserved.
        """
        ...

    def withdraw(self, cmroot: str, names: Collection[str]) -> None:
        """Take back reservations that came to nothing: RESERVED rows without origins vanish."""
        ...

    def entries(
        self, cmroot: str, names: Collection[str] | None = None
    ) -> Mapping[str, ArchiveEntry]:
        """Entries by name: those asked for, or all that are not PURGED."""
        ...

    def archived_below(self, cmroot: str, directory: str) -> tuple[ArchiveEntry, ...]:
        """Entries of any state with origins whose uri is below a directory, and these origins
        only. What was purged since is among them until it is forgotten.
        """
        ...

    def claim_purge(
        self,
        cmroot: str,
        name: str,
        *,
        seen_archived_at_ms: int | None,
        overridden_holders: Collection[str],
        owner: str,
        now_ms: int,
    ) -> bool:
        """Take a file for deletion: PURGING, if nothing has happened since the purge looked.

        False, and no change, if its clock is not what was seen (None: no row, or a PURGED one), if
        a live pin of a holder not overridden, or an open intent, holds it, or if another owner's
        claim has not run out (`LEASE_MS`). A row that is PURGING with the same clock, whose claim
        has run out, is claimed again. A name without a row gets one, with the clock 0 and no
        checksum. `owner` is a text that nobody else has.
        """
        ...

    def holds_purge(self, cmroot: str, name: str, *, owner: str, now_ms: int) -> bool:
        """Whether a claim is still this owner's; if so, its lease starts anew."""
        ...

    def release_purge(self, cmroot: str, name: str, *, owner: str | None, now_ms: int) -> bool:
        """A claimed file was not deleted: back to ARCHIVED; a row that the claim made vanishes.

        False, and no change, in other states and for another owner's claim. `owner` None gives
        back a claim that has run out, whose ever it was.
        """
        ...

    def record_purged(self, cmroot: str, name: str, *, owner: str, now_ms: int) -> bool:
        """A claimed file is gone: PURGED, clock `now_ms`; False if the claim is another's."""
        ...

    def live_purges(self, cmroot: str, now_ms: int) -> frozenset[str]:
        """Names that somebody purges at this moment: PURGING, with a claim that has not run out."""
        ...

    def roots(self) -> tuple[str, ...]:
        """Every cmroot of which there are rows, sorted."""
        ...

    def amend(
        self,
        cmroot: str,
        name: str,
        seen: ArchiveEntry | None,
        wanted: ArchiveEntry | None,
        now_ms: int,
    ) -> bool:
        """Put an entry with its origins in the place of the one that was seen; None is no row, or
        a PURGED one.

        False, and no change, if state or clock are not those that were seen, or a live purge is
        at work on it.
        """
        ...

    def forget_purged(self, cmroot: str, before_ms: int) -> int:
        """Drop the history of files purged before a time; how many."""
        ...


class IntentState(Enum):
    """The life of an archive-then-delete; the value is what a store keeps."""

    PLANNED = "p"
    """The victim is listed; files may be in their place, in the archive, or both."""
    ARCHIVED = "a"
    """Every file that must be kept is in the archive, durable and verified."""
    DELETED = "d"
    """The victim is gone."""
    DONE = "s"
    """Whoever asked has recorded it."""
    ABANDONED = "x"
    """Stopped, with a reason: the directory was no longer what the plan saw."""

    @property
    def is_open(self) -> bool:
        """Whether files may still have to be moved or deleted."""
        return self in {IntentState.PLANNED, IntentState.ARCHIVED}


@dataclass(frozen=True, kw_only=True, slots=True)
class IntentFile:
    """One file of a victim: its identity when it was planned.

    `path` is relative to the victim (empty: the victim is this file). `archive_name` and
    `checksum` are None for a file that is deleted without being archived.
    """

    path: str
    size_bytes: int
    mtime_ms: int | None
    checksum: str | None = None
    archive_name: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchiveIntent:
    """The write-ahead row of one archive-then-delete. `cmroot` is None if nothing is archived."""

    intent_id: str
    victim: str
    cmroot: str | None
    files: tuple[IntentFile, ...]
    context: ArchiveContext
    is_remaining_in_trash: bool
    state: IntentState
    created_at_ms: int
    updated_at_ms: int
    reason: str = ""

    @property
    def archived_files(self) -> tuple[IntentFile, ...]:
        """The files that must be in the archive before anything is deleted."""
        return tuple(file for file in self.files if file.archive_name is not None)


class ArchiveIntents(Protocol):
    """What is being archived and deleted."""

    def add_intents(self, intents: Sequence[ArchiveIntent]) -> tuple[ArchiveIntent, ...]:
        """Store new intents, of different victims: all or none, in their order. For a victim that
        has an open one already, that one is the answer."""
        ...

    def intent(self, intent_id: str) -> ArchiveIntent | None:
        """One intent; None if it is unknown."""
        ...

    def intents(
        self, states: Collection[IntentState], *, victims: Collection[str] | None = None
    ) -> tuple[ArchiveIntent, ...]:
        """Intents in these states (of these victims), oldest first (then by id)."""
        ...

    def advance_intents(
        self,
        intent_ids: Collection[str],
        from_state: IntentState,
        to_state: IntentState,
        now_ms: int,
        reason: str = "",
    ) -> frozenset[str]:
        """Move those on that are in `from_state`, in one step; which. Others do not change."""
        ...

    def finish_intents(self, locations: Collection[str], now_ms: int) -> int:
        """Those at or below one of the locations that are DELETED become DONE; how many."""
        ...

    def forget_intents(self, before_ms: int) -> int:
        """Drop intents that are DONE or ABANDONED and were last touched before a time; how many."""
        ...


class PinKind(Enum):
    """Who pins; the value is what a store keeps."""

    DUMP = "d"
    """A dump that is not loaded yet; it names its files."""
    POLICY = "p"
    """A replica that has not come so far yet."""
    HOLD = "h"
    """A person."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pin:
    """One holder's claim on archived files: those named, and those of a database or table.

    `names` are archive names (`uri.archive_name`), also of files that are not archived yet.
    `database` without `table` means all of its tables; `archived_since_ms` narrows the database
    to entries whose clock is at that time or later. `expires_at_ms` None: until it is removed.
    `given_up`: that it outlived its budget (`budget`); a new pin has none.
    """

    holder: str
    kind: PinKind
    reason: str
    created_at_ms: int
    expires_at_ms: int | None = None
    names: frozenset[str] = frozenset()
    database: str | None = None
    table: str | None = None
    archived_since_ms: int | None = None
    given_up: GivenUp | None = None

    def is_live(self, now_ms: int) -> bool:
        """Whether the pin has not expired."""
        return self.expires_at_ms is None or now_ms < self.expires_at_ms

    def holds(self, name: str, entry: ArchiveEntry | None) -> bool:
        """Whether it covers an archived file (its entry, if it has one)."""
        if name in self.names:
            return True
        if self.database is None or entry is None:
            return False
        if self.archived_since_ms is not None and entry.archived_at_ms < self.archived_since_ms:
            return False
        return any(
            origin.context.database == self.database
            and (self.table is None or origin.context.table == self.table)
            for origin in entry.origins
        )


class ArchivePins(GivenUpStore, Protocol):
    """Who still needs what."""

    def put_pin(self, pin: Pin, *, is_wider: bool = False) -> tuple[str, ...]:
        """Store a pin, in the place of an older one of the same holder.

        That the older one was given up is over with it, unless the new one only holds more of the
        same (`is_wider`). Returns those of its names that are PURGING: too late for them. Pin
        first, then look whether the files are there.
        """
        ...

    def remove_pin(self, holder: str) -> bool:
        """Remove a holder's pin; False if there was none."""
        ...

    def store_id(self, new_id: str) -> str:
        """The id of the database that pins stand in; ``new_id`` becomes it if it has none."""
        ...

    def pins(self) -> tuple[Pin, ...]:
        """All pins, live or expired, by holder."""
        ...

    def holders(
        self, cmroot: str, names: Collection[str], now_ms: int
    ) -> Mapping[str, tuple[str, ...]]:
        """Who holds which of these names: holders of live pins, and `intent:<id>` of open intents.

        Names that nobody holds are not in the answer; holders are sorted.
        """
        ...


class ArchiveLeases(Protocol):
    """Who works on what, so that two do not do the same, and what a dead one held is free."""

    def take_leases(self, names: Collection[str], owner: str, now_ms: int) -> frozenset[str]:
        """Take them, or say that their owner is alive, in one step: those that are the owner's now,
        without others' that have not run out.

        A lease runs out `LEASE_MS` after its owner's last sign of life. `owner` is a text that
        nobody else has.
        """
        ...

    def renew_lease(self, name: str, owner: str, now_ms: int) -> bool:
        """The owner is alive; False if another one has taken it, or it was given back."""
        ...

    def end_leases(self, names: Collection[str], owner: str) -> None:
        """Give them back; no effect on another's."""
        ...

    def lease_owner(self, name: str) -> str | None:
        """Who has it, even if it has run out."""
        ...

    def forget_leases(self, before_ms: int) -> int:
        """Drop leases of which nothing was heard since a time; how many."""
        ...


class ArchiveTimes(Protocol):
    """What the store knows of the time."""

    def known_times(self) -> KnownTimes:
        """What is known now; if there was no sign of life for long, signs of each day since."""
        ...

    def note_time(self, now_ms: int) -> TimeJudgement:
        """Judge this time, and keep what follows for the next judgement, in one step. What is
        refused is not kept."""
        ...

    def trust_time(self, now_ms: int) -> tuple[TimeGap, ...]:
        """Somebody confirms that the time up to now went by; the gaps that count from now on."""
        ...


class ArchiveManifest(
    ArchiveRecords,
    ArchiveIntents,
    ArchivePins,
    ArchiveLeases,
    ArchiveTimes,
    ArchiveFigureStore,
    AnnouncementStore,
    Protocol,
):
    """The whole port."""
