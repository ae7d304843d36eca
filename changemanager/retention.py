"""The purge: what is expired and needed by nobody goes, one bad file never stops it.

The clock of a file is the time it was archived last: the manifest's, or the file's modification
time where that is later (a Hive beside us refreshes only that) or alone (Hive's own files). A file
goes when its age is strictly more than the retention. Whatever is not understood stays and is
reported: other names, directories, unknown times, names without a checksum.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from changemanager.archive import REMAIN_IN_TRASH, ChangeManager
from changemanager.clock import Clock
from changemanager.errors import ChangeManagerConfigError, ChangeManagerError
from changemanager.filesystem.volume import FileKind
from changemanager.journal import tell
from changemanager.location import Location
from changemanager.manifest import ArchiveEntry, ArchiveManifest, EntryState
from changemanager.transfer import PART_PREFIX, give_new_name
from changemanager.uri import parse_archive_name

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchivedItem:
    """One name of the cmroot, with what the manifest knows of it.

    `is_present` False: the manifest has an entry, the directory no file. `is_tagged`: Hive's
    remain-in-trash, from the manifest or the file (files are asked only once they are expired).
    `problem`: why the file could not be looked at; empty if it could.
    """

    name: str
    kind: FileKind
    size_bytes: int
    mtime_ms: int | None
    entry: ArchiveEntry | None
    is_tagged: bool
    is_present: bool = True
    problem: str = ""

    @property
    def clock_ms(self) -> int | None:
        """When it was archived last, as far as anyone knows."""
        times = [self.mtime_ms, self.entry.archived_at_ms if self.entry else None]
        return max((time for time in times if time is not None), default=None)


class Disposition(Enum):
    """What the purge does with a name."""

    DELETE = "delete"
    TRASH = "trash"
    FORGET = "forget"
    """No file, an expired entry: the row goes."""
    YOUNG = "young"
    PINNED = "pinned"
    NO_TRASH = "no trash"
    """Dropped without PURGE, and no trash directory is configured."""
    NO_TIME = "no time"
    NO_CHECKSUM = "no checksum"
    """`<name>_null`, which Hive makes on a file system without checksums."""
    UNKNOWN = "unknown"
    """A directory, or a name that no ChangeManager makes."""

    @property
    def is_kept(self) -> bool:
        """Whether the file stays."""
        return self not in {Disposition.DELETE, Disposition.TRASH, Disposition.FORGET}


@dataclass(frozen=True, kw_only=True, slots=True)
class PurgeDecision:
    """One name, what becomes of it, and why; `holders` are who pins it (overridden or not)."""

    item: ArchivedItem
    disposition: Disposition
    reason: str
    holders: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PurgePlan:
    """What a purge would do at one time. `overridden` holders were set aside on purpose."""

    cmroot: str
    now_ms: int
    retain_ms: int
    overridden: frozenset[str]
    decisions: tuple[PurgeDecision, ...]

    @property
    def removals(self) -> tuple[PurgeDecision, ...]:
        """What would go."""
        return tuple(one for one in self.decisions if not one.disposition.is_kept)

    @property
    def freed_bytes(self) -> int:
        """Bytes that would leave the cmroot."""
        return sum(one.item.size_bytes for one in self.removals if one.item.is_present)

    def of(self, disposition: Disposition) -> tuple[PurgeDecision, ...]:
        """The decisions of one kind."""
        return tuple(one for one in self.decisions if one.disposition is disposition)


_DEEDS = {
    Disposition.DELETE: "purged",
    Disposition.TRASH: "moved to trash",
    Disposition.FORGET: "forgotten",
}
_WAITING_FOR_TIME = frozenset(
    {Disposition.DELETE, Disposition.TRASH, Disposition.FORGET, Disposition.NO_TRASH}
)


def is_expired(clock_ms: int, now_ms: int, retain_ms: int) -> bool:
    """Whether an age is more than the retention; one that is just as long is not."""
    return now_ms - clock_ms > retain_ms


def plan_purge(
    items: Sequence[ArchivedItem],
    *,
    cmroot: str,
    now_ms: int,
    retain_ms: int,
    holders: Mapping[str, tuple[str, ...]],
    overridden: frozenset[str] = frozenset(),
    has_trash: bool,
) -> PurgePlan:
    """Decide for every name, without any I/O.

    Raises ChangeManagerConfigError for a retention that is not longer than 0.
    """
    if retain_ms <= 0:
        raise ChangeManagerConfigError(
            "hive.repl.cm.retain must be longer than 0: a purge would remove everything"
        )

    def decide(item: ArchivedItem) -> PurgeDecision:
        held = holders.get(item.name, ())
        disposition, reason = _recognise(item, has_trash=has_trash)
        if disposition in _WAITING_FOR_TIME:
            clock_ms = item.clock_ms
            if _is_interrupted(item) and not item.is_present:
                reason = "its purge was interrupted after the file was gone"
            elif clock_ms is None:
                disposition, reason = Disposition.NO_TIME, "neither row nor modification time"
            elif not is_expired(clock_ms, now_ms, retain_ms):
                disposition = Disposition.YOUNG
                reason = f"expires in {_span(clock_ms + retain_ms - now_ms + 1)}"
            elif set(held) - overridden:
                disposition = Disposition.PINNED
                reason = "held by " + ", ".join(sorted(set(held) - overridden))
            elif held:
                reason += "; overridden: " + ", ".join(held)
        return PurgeDecision(item=item, disposition=disposition, reason=reason, holders=held)

    return PurgePlan(
        cmroot=cmroot,
        now_ms=now_ms,
        retain_ms=retain_ms,
        overridden=overridden,
        decisions=tuple(decide(item) for item in items),
    )


def _span(milliseconds: int) -> str:
    """The two largest units: ``9 d 23 h``, ``2 min 5 s``; nothing below a second."""
    left, parts = max(1, milliseconds // 1000), list[str]()
    for name, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


def _is_interrupted(item: ArchivedItem) -> bool:
    return item.entry is not None and item.entry.state is EntryState.PURGING


def _recognise(item: ArchivedItem, *, has_trash: bool) -> tuple[Disposition, str]:
    """What would become of an item if it were expired and not held."""
    parsed = parse_archive_name(item.name)
    is_part = item.name.startswith(PART_PREFIX)
    is_null = parsed is not None and parsed.checksum is None
    rules = (
        (not item.is_present, Disposition.FORGET, "the manifest has a row, the cmroot no file"),
        (
            item.kind is not FileKind.FILE,
            Disposition.UNKNOWN,
            f"a {item.kind.value}, which no ChangeManager makes",
        ),
        (bool(item.problem), Disposition.UNKNOWN, item.problem),
        (is_part, Disposition.DELETE, "an unfinished copy"),
        (is_null, Disposition.NO_CHECKSUM, "Hive had no checksum: its content cannot be proved"),
        (
            parsed is None and item.entry is None,
            Disposition.UNKNOWN,
            "the name is not <name>_<checksum>",
        ),
        (
            item.is_tagged and not has_trash,
            Disposition.NO_TRASH,
            "dropped without PURGE, and no trash directory is set",
        ),
        (item.is_tagged, Disposition.TRASH, "expired, dropped without PURGE"),
    )
    for applies, disposition, reason in rules:
        if applies:
            return disposition, reason
    return Disposition.DELETE, "expired"


@dataclass(frozen=True, kw_only=True, slots=True)
class PurgeReport:
    """What a purge did. `failed` has name and reason of what should have gone and did not."""

    plan: PurgePlan
    deleted: tuple[str, ...]
    trashed: tuple[str, ...]
    forgotten: tuple[str, ...]
    failed: tuple[tuple[str, str], ...]
    freed_bytes: int


def take_inventory(archive: ChangeManager, manifest: ArchiveManifest) -> tuple[ArchivedItem, ...]:
    """Every name of the cmroot and every entry of the manifest, by name.

    A cmroot that is not there is an empty one.
    """
    cmroot = archive.cmroot
    entries = manifest.entries(cmroot.uri)
    statuses = cmroot.volume.children(cmroot.path) if cmroot.status() is not None else ()
    items: dict[str, ArchivedItem] = {}
    for status in statuses:
        entry = entries.get(status.name)
        items[status.name] = ArchivedItem(
            name=status.name,
            kind=status.kind,
            size_bytes=status.size_bytes,
            mtime_ms=status.mtime_ms,
            entry=entry,
            is_tagged=entry is not None and entry.is_remaining_in_trash,
        )
    for name in entries.keys() - items.keys():
        items[name] = ArchivedItem(
            name=name,
            kind=FileKind.FILE,
            size_bytes=entries[name].size_bytes,
            mtime_ms=None,
            entry=entries[name],
            is_tagged=entries[name].is_remaining_in_trash,
            is_present=False,
        )
    return tuple(items[name] for name in sorted(items))


class Purge:
    """Plans and runs the purge of one cmroot."""

    def __init__(self, archive: ChangeManager, manifest: ArchiveManifest, clock: Clock) -> None:
        self._archive = archive
        self._manifest = manifest
        self._clock = clock

    def plan(self, *, overridden: Collection[str] = ()) -> PurgePlan:
        """What a purge would do now. `overridden` names holders whose pins do not count."""
        now_ms, retain_ms = self._clock.now_ms(), self._archive.config.retain_ms
        items: list[ArchivedItem] = []
        expired: list[str] = []
        for item in take_inventory(self._archive, self._manifest):
            if item.clock_ms is not None and is_expired(item.clock_ms, now_ms, retain_ms):
                expired.append(item.name)
                items.append(self._with_tag(item))
            else:
                items.append(item)
        return plan_purge(
            items,
            cmroot=self._archive.cmroot.uri,
            now_ms=now_ms,
            retain_ms=retain_ms,
            holders=self._manifest.holders(self._archive.cmroot.uri, expired, now_ms),
            overridden=frozenset(overridden),
            has_trash=self._archive.trash is not None,
        )

    def _with_tag(self, item: ArchivedItem) -> ArchivedItem:
        cmroot = self._archive.cmroot
        if item.is_tagged or not item.is_present or item.kind is not FileKind.FILE:
            return item
        if not cmroot.volume.keeps_attributes(cmroot.path):
            return item
        try:
            tag = cmroot.volume.attribute(cmroot.child(item.name).path, REMAIN_IN_TRASH)
        except OSError as error:
            return replace(item, problem=f"its attributes cannot be read: {error}")
        return replace(item, is_tagged=tag is not None)

    def run(self, plan: PurgePlan) -> PurgeReport:
        """Carry a plan out. What changed since it was made stays; every file stands by itself."""
        done: dict[Disposition, list[str]] = {
            Disposition.DELETE: [],
            Disposition.TRASH: [],
            Disposition.FORGET: [],
        }
        failed: list[tuple[str, str]] = []
        freed_bytes = 0
        for decision in plan.decisions:
            if decision.disposition.is_kept:
                if _is_interrupted(decision.item):
                    self._manifest.release_purge(plan.cmroot, decision.item.name)
                continue
            try:
                why_not = self._remove(decision, plan)
            except (OSError, ChangeManagerError) as error:
                why_not = str(error) or type(error).__name__
            if why_not is None:
                if decision.holders:
                    _LOG.warning(
                        "purged %s although %s held it", decision.item.name, decision.holders
                    )
                done[decision.disposition].append(decision.item.name)
                tell(
                    _LOG,
                    _DEEDS[decision.disposition],
                    name=decision.item.name,
                    cmroot=plan.cmroot,
                    bytes=decision.item.size_bytes,
                    archived_at_ms=decision.item.clock_ms,
                    reason=decision.reason,
                    overridden=decision.holders or None,
                )
                freed_bytes += decision.item.size_bytes if decision.item.is_present else 0
            else:
                failed.append((decision.item.name, why_not))
        return PurgeReport(
            plan=plan,
            deleted=tuple(done[Disposition.DELETE]),
            trashed=tuple(done[Disposition.TRASH]),
            forgotten=tuple(done[Disposition.FORGET]),
            failed=tuple(failed),
            freed_bytes=freed_bytes,
        )

    def _remove(self, decision: PurgeDecision, plan: PurgePlan) -> str | None:
        """Remove one file; why not, if the world has changed since the plan."""
        item = decision.item
        is_ours = not item.name.startswith(PART_PREFIX)
        if is_ours and not self._manifest.claim_purge(
            plan.cmroot,
            item.name,
            seen_archived_at_ms=item.entry.archived_at_ms if item.entry else None,
            overridden_holders=plan.overridden,
            now_ms=self._clock.now_ms(),
        ):
            return "it was archived again, or pinned, since the plan was made"
        try:
            why_not = self._changed(item)
            if why_not is None and item.is_present:
                self._take_away(item, decision.disposition)
        except (OSError, ChangeManagerError):
            if is_ours:
                self._manifest.release_purge(plan.cmroot, item.name)
            raise
        if not is_ours:
            return why_not
        if why_not is None:
            self._manifest.record_purged(plan.cmroot, item.name, self._clock.now_ms())
        else:
            self._manifest.release_purge(plan.cmroot, item.name)
        return why_not

    def _changed(self, item: ArchivedItem) -> str | None:
        """How the file differs from what the plan saw; None if it does not."""
        place = self._archive.cmroot.child(item.name)
        status = place.status()
        if status is None:
            return None
        if not item.is_present:
            return "a file of that name has come"
        if (status.kind, status.size_bytes, status.mtime_ms) != (
            item.kind,
            item.size_bytes,
            item.mtime_ms,
        ):
            return "the file was written or touched since the plan was made"
        return self._unproved(item, place)

    def _unproved(self, item: ArchivedItem, place: Location) -> str | None:
        """A short checksum may be a date: without a row, only the content proves the name."""
        parsed = parse_archive_name(item.name)
        if item.entry is not None or parsed is None or parsed.checksum is None:
            return None
        if len(parsed.checksum) == 8 and place.checksum_like(parsed.checksum) != parsed.checksum:
            return "its content does not have the checksum of its name"
        return None

    def _take_away(self, item: ArchivedItem, disposition: Disposition) -> None:
        place = self._archive.cmroot.child(item.name)
        if place.status() is None:
            return
        trash = self._archive.trash
        if disposition is Disposition.TRASH and trash is not None:
            self._move_to_trash(place, trash)
        else:
            place.volume.remove_file(place.path)

    def _move_to_trash(self, place: Location, trash: Location) -> None:
        """As Hadoop's trash: the cmroot's own path below the trash directory."""
        target = trash.child(self._archive.cmroot.path.strip("/")).child(place.name)
        trash.volume.make_directory(target.parent.path)
        status = target.status()
        if status is None:
            give_new_name(place, target, place.checksum(), self._archive.new_token)
        elif target.checksum_like(place.checksum()) != place.checksum():
            raise FileExistsError(f"{target.uri} is there with other content; move it away")
        if place.status() is not None:
            place.volume.remove_file(place.path)
