"""Compare manifest and archive both ways, and bring them together again.

The files are the truth of what is there, the manifest of where it came from and since when. So a
repair makes, moves and drops rows; it never deletes a file, and never shortens a retention. A lost
manifest is rebuilt from names, times and Hive's attribute `user.original-loc`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from changemanager.archive import ChangeManager
from changemanager.aside import ASIDE_PREFIX, moved_aside
from changemanager.attribution import original_location, owner_of
from changemanager.clock import Clock
from changemanager.errors import ChangeManagerError
from changemanager.filesystem.volume import FileKind
from changemanager.location import parse_uri, spellings
from changemanager.manifest import (
    ArchiveCause,
    ArchiveContext,
    ArchiveEntry,
    ArchiveManifest,
    ArchiveOrigin,
    EntryState,
)
from changemanager.plausible_time import is_not_behind
from changemanager.purge import Purge
from changemanager.retention import ArchivedItem, take_inventory
from changemanager.transfer import PART_PREFIX
from changemanager.uri import parse_archive_name

FUTURE_MS = 86_400_000
"""A time so far ahead of now is the trace of a wrong clock."""
_WEAK_LENGTH = 8


class FindingKind(Enum):
    """In what manifest and archive differ."""

    NO_ROW = "a file without a row"
    MOVED = "a file whose row names another archive"
    NO_FILE = "a row without a file"
    HALF = "archived, but not recorded"
    WITHDRAWN = "announced, but never archived"
    FUTURE = "a time in the future"
    INTERRUPTED = "an interrupted purge"
    DAMAGED = "other content than its name says"
    UNKNOWN = "not understood"

    @property
    def is_repaired(self) -> bool:
        """Whether a repair can mend it; the rest is for people."""
        return self not in {FindingKind.DAMAGED, FindingKind.UNKNOWN}


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One name that is not as it should be. A repair puts `wanted` in the place of `seen`.

    `other_root`: the archive whose row is taken over.
    """

    name: str
    kind: FindingKind
    detail: str
    seen: ArchiveEntry | None = None
    wanted: ArchiveEntry | None = None
    other_root: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FsckFacts:
    """What `plan_fsck` needs to know besides the inventory.

    `elsewhere`: rows of other archives, by name, whose own file is not there. `damaged`: names
    whose content was read and is not theirs. `held`: who holds a name. `live`: names that a purge
    is at work on. `is_clock_believed`: nothing is known to have happened after now.
    """

    cmroot: str
    now_ms: int
    originals: Mapping[str, str | None]
    elsewhere: Mapping[str, ArchiveEntry]
    damaged: Collection[str]
    held: Mapping[str, tuple[str, ...]]
    live: Collection[str]
    is_clock_believed: bool


def plan_fsck(items: Iterable[ArchivedItem], facts: FsckFacts) -> tuple[Finding, ...]:
    """What differs, by name; pure."""
    looked = list(items)
    names = [item.name for item in looked]
    # What a purge is at work on changes while it is looked at.
    spared = {*facts.live, *moved_aside(names, names)}
    findings = (_look(item, facts) for item in looked if item.name not in spared)
    return tuple(finding for finding in findings if finding is not None)


def _look(item: ArchivedItem, facts: FsckFacts) -> Finding | None:
    if item.name.startswith(PART_PREFIX):
        return None
    if item.name.startswith(ASIDE_PREFIX):
        return Finding(name=item.name, kind=FindingKind.INTERRUPTED, detail="moved aside")
    if not item.is_present:
        return _without_file(item, facts)
    if item.kind is not FileKind.FILE:
        return _unknown(item, f"a {item.kind.value}")
    if item.name in facts.damaged:
        return _damaged(item, "its bytes do not have the checksum of its name")
    if item.entry is None:
        return _without_row(item, facts)
    return _with_row(item, item.entry, facts)


def _with_row(item: ArchivedItem, entry: ArchiveEntry, facts: FsckFacts) -> Finding | None:
    if entry.checksum and entry.size_bytes != item.size_bytes:
        return _damaged(item, f"{item.size_bytes} bytes, its row says {entry.size_bytes}")
    if entry.state is EntryState.PURGING:
        return Finding(name=item.name, kind=FindingKind.INTERRUPTED, detail="claimed", seen=entry)
    if max(entry.archived_at_ms, item.mtime_ms or 0) > facts.now_ms + FUTURE_MS:
        if not facts.is_clock_believed:
            return _unknown(item, "its time is in the future, or the clock is behind: check it")
        wanted = replace(entry, archived_at_ms=facts.now_ms)
        detail = "it would be kept too long; its retention is to begin now"
        return _finding(item, FindingKind.FUTURE, detail, entry, wanted)
    # A file gets its name in the archive as a whole, so only the record is missing.
    if entry.state is EntryState.RESERVED and not _is_being_archived(item, facts):
        wanted = replace(entry, state=EntryState.ARCHIVED)
        return _finding(item, FindingKind.HALF, "its archiving died", entry, wanted)
    return None


def _without_file(item: ArchivedItem, facts: FsckFacts) -> Finding | None:
    entry = item.entry
    if entry is None or _is_being_archived(item, facts):
        return None
    if entry.state is EntryState.PURGING:
        return Finding(name=item.name, kind=FindingKind.INTERRUPTED, detail="claimed", seen=entry)
    if entry.state is EntryState.RESERVED and not entry.origins:
        return _finding(item, FindingKind.WITHDRAWN, "its archiving died", entry, None)
    holders = facts.held.get(item.name, ())
    detail = "still needed by " + ", ".join(holders) if holders else "needed by nobody"
    wanted = replace(entry, state=EntryState.PURGED, archived_at_ms=facts.now_ms)
    return _finding(item, FindingKind.NO_FILE, detail, entry, wanted)


def _without_row(item: ArchivedItem, facts: FsckFacts) -> Finding | None:
    other = facts.elsewhere.get(item.name)
    if other is not None and other.size_bytes == item.size_bytes:
        wanted = replace(other, cmroot=facts.cmroot, state=EntryState.ARCHIVED)
        return replace(
            _finding(item, FindingKind.MOVED, f"from {other.cmroot}", None, wanted),
            other_root=other.cmroot,
        )
    parsed = parse_archive_name(item.name)
    if parsed is None or parsed.checksum is None:
        return _unknown(item, "the name is not <name>_<checksum>")
    if item.mtime_ms is None:
        return _unknown(item, "its time is not known")
    original = facts.originals.get(item.name)
    wanted = ArchiveEntry(
        cmroot=facts.cmroot,
        name=item.name,
        checksum=parsed.checksum,
        size_bytes=item.size_bytes,
        state=EntryState.ARCHIVED,
        # Hive's own purge goes by the modification time (ReplChangeManager.CMClearer).
        archived_at_ms=min(item.mtime_ms, facts.now_ms),
        is_remaining_in_trash=item.is_tagged,
        origins=_origins(original, min(item.mtime_ms, facts.now_ms)),
    )
    return _finding(
        item, FindingKind.NO_ROW, f"from {original or 'an unknown place'}", None, wanted
    )


def _origins(original: str | None, at_ms: int) -> tuple[ArchiveOrigin, ...]:
    owner = owner_of(original)
    if original is None or owner is None:
        return ()
    database, table = owner
    context = ArchiveContext(cause=ArchiveCause.REQUEST, database=database, table=table)
    directory = parse_uri(original).path.rpartition("/")[0].rpartition("/")[2]
    return (
        ArchiveOrigin(uri=original, directory=directory, context=context, archived_at_ms=at_ms),
    )


def _is_being_archived(item: ArchivedItem, facts: FsckFacts) -> bool:
    return any(holder.startswith("intent:") for holder in facts.held.get(item.name, ()))


def _finding(
    item: ArchivedItem,
    kind: FindingKind,
    detail: str,
    seen: ArchiveEntry | None,
    wanted: ArchiveEntry | None,
) -> Finding:
    return Finding(name=item.name, kind=kind, detail=detail, seen=seen, wanted=wanted)


def _unknown(item: ArchivedItem, detail: str) -> Finding:
    return Finding(name=item.name, kind=FindingKind.UNKNOWN, detail=detail)


def _damaged(item: ArchivedItem, detail: str) -> Finding:
    return Finding(name=item.name, kind=FindingKind.DAMAGED, detail=detail, seen=item.entry)


class Fsck:
    """Looks, and repairs."""

    def __init__(self, archive: ChangeManager, manifest: ArchiveManifest, clock: Clock) -> None:
        self._archive = archive
        self._manifest = manifest
        self._clock = clock

    def plan(self, *, is_content_read: bool = False) -> tuple[Finding, ...]:
        """What differs; nothing is changed. `is_content_read`: every file is read and compared
        with its name, not only those whose checksum is short and whose row is missing."""
        cmroot, now_ms = self._archive.cmroot, self._clock.now_ms()
        purge = Purge(self._archive, self._manifest, self._clock)
        items = [
            purge.with_tag(item) if item.entry is None else item
            for item in take_inventory(self._archive, self._manifest)
        ]
        strays = [item for item in items if item.entry is None and item.is_present]
        facts = FsckFacts(
            cmroot=cmroot.uri,
            now_ms=now_ms,
            originals={item.name: original_location(cmroot.child(item.name)) for item in strays},
            elsewhere=self._elsewhere({item.name for item in strays}),
            damaged={item.name for item in items if self._is_damaged(item, is_content_read)},
            held=self._manifest.holders(cmroot.uri, [item.name for item in items], now_ms),
            live=self._manifest.live_purges(cmroot.uri, now_ms),
            is_clock_believed=is_not_behind(now_ms, self._manifest.known_times()),
        )
        return plan_fsck(items, facts)

    def _elsewhere(self, names: Collection[str]) -> Mapping[str, ArchiveEntry]:
        """Rows of archives that have not these files (any more): this one was moved here."""
        entries: dict[str, ArchiveEntry] = {}
        if not names:
            return entries
        for root in self._manifest.roots():
            if root in spellings(self._archive.cmroot.uri):
                continue
            for name, entry in self._manifest.entries(root, names).items():
                if entry.state is EntryState.ARCHIVED and self._is_at(root, name) is not True:
                    entries[name] = entry
        return entries

    def _is_at(self, root: str, name: str) -> bool | None:
        """Whether another archive has a file; None if it cannot be looked at (it is gone, too?)."""
        try:
            return self._archive.resolve(root).child(name).status() is not None
        except (ChangeManagerError, OSError):
            return None

    def _is_damaged(self, item: ArchivedItem, is_content_read: bool) -> bool:
        parsed = parse_archive_name(item.name)
        if parsed is None or parsed.checksum is None or not item.is_present:
            return False
        if item.kind is not FileKind.FILE:
            return False
        is_weak = item.entry is None and len(parsed.checksum) == _WEAK_LENGTH
        if not (is_weak or is_content_read):
            return False
        place = self._archive.cmroot.child(item.name)
        try:
            return place.checksum_like(parsed.checksum) != parsed.checksum
        except FileNotFoundError:
            return False

    def repair(self, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        """Mend what can be mended; what was mended. What changed since the plan stays as it is."""
        mended = [
            finding for finding in findings if finding.kind.is_repaired and self._mend(finding)
        ]
        return tuple(mended)

    def _mend(self, finding: Finding) -> bool:
        manifest, root = self._manifest, self._archive.cmroot.uri
        if finding.kind is FindingKind.INTERRUPTED:
            Purge(self._archive, manifest, self._clock).settle()
            return True
        now_ms = self._clock.now_ms()
        place = self._archive.cmroot.child(finding.name)
        is_without_file = finding.kind in {FindingKind.NO_FILE, FindingKind.WITHDRAWN}
        if (place.status() is None) is not is_without_file:
            return False
        if not manifest.amend(root, finding.name, finding.seen, finding.wanted, now_ms):
            return False
        if finding.kind is FindingKind.FUTURE and place.volume.capabilities.can_set_mtime:
            place.volume.set_mtime(place.path, now_ms)
        other = finding.other_root
        # Only where the file is certainly gone: an archive out of reach keeps its row.
        if other is not None and self._is_at(other, finding.name) is False:
            seen = manifest.entries(other, [finding.name]).get(finding.name)
            manifest.amend(other, finding.name, seen, None, now_ms)
        return True
