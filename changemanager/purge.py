"""The purge: carries a plan out, file by file; one bad file never stops it.

A file is deleted under a name that only this purge knows (`aside`), and only while its claim on the
file is its own.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from changemanager.archive import REMAIN_IN_TRASH, ChangeManager
from changemanager.aside import ASIDE_PREFIX, aside_name, put_back, settle_asides
from changemanager.attribution import holders_of_strays, original_location
from changemanager.budget import outlived
from changemanager.clock import Clock
from changemanager.directories_above import DirectoriesAbove
from changemanager.errors import ChangeManagerError, ClockDoubtError
from changemanager.filesystem.volume import FileKind, FileStatus
from changemanager.given_up import GivenUp
from changemanager.journal import log_deed
from changemanager.location import Location
from changemanager.manifest import ArchiveManifest, EntryState, Pin
from changemanager.plausible_time import TimeJudgement, judge
from changemanager.retention import (
    ArchivedItem,
    Disposition,
    PinEnd,
    PurgeDecision,
    PurgePlan,
    is_expired,
    is_interrupted,
    plan_purge,
    take_inventory,
)
from changemanager.sharing import holders_of_others
from changemanager.transfer import PART_PREFIX
from changemanager.trash import empty_trash, move_to_trash, trash_place
from changemanager.uri import parse_archive_name

_LOG = logging.getLogger(__name__)

_DEEDS = {
    Disposition.DELETE: "purged",
    Disposition.TRASH: "moved to trash",
    Disposition.FORGET: "forgotten",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class PurgeReport:
    """What a purge did. `failed` has name and reason of what should have gone and did not."""

    plan: PurgePlan
    deleted: tuple[str, ...]
    trashed: tuple[str, ...]
    forgotten: tuple[str, ...]
    failed: tuple[tuple[str, str], ...]
    freed_bytes: int
    purged_by_others: tuple[str, ...] = ()
    """Names that another purge took first."""
    emptied: tuple[str, ...] = ()
    """Names that left the trash, too."""
    given_up: tuple[PinEnd, ...] = ()
    """Pins that outlived their budget, and are written down as such."""


@dataclass(frozen=True, slots=True)
class _Claim:
    """One purge's claim on one file; nobody else has its owner."""

    cmroot: str
    name: str
    owner: str


_ANOTHER_PURGE = "another purge took it first"
_LOST = "another process took it over; this one changed nothing more"
_TOUCHED = "the file was written or touched since the plan was made"


def _log_removal(decision: PurgeDecision, cmroot: str) -> None:
    item = decision.item
    overridden = tuple(holder for holder in decision.holders if holder not in decision.given_up)
    if overridden:
        _LOG.warning("purged %s although %s held it", item.name, overridden)
    log_deed(
        _LOG,
        _DEEDS[decision.disposition],
        name=item.name,
        cmroot=cmroot,
        bytes=item.size_bytes,
        archived_at_ms=item.clock_ms,
        reason=decision.reason,
        overridden=overridden or None,
        given_up=decision.given_up or None,
    )


class Purge:
    """Plans and runs the purge of one cmroot."""

    def __init__(self, archive: ChangeManager, manifest: ArchiveManifest, clock: Clock) -> None:
        self._archive = archive
        self._manifest = manifest
        self._clock = clock

    def plan(
        self, *, overridden: Collection[str] = (), is_clock_trusted: bool = False
    ) -> PurgePlan:
        """What a purge would do now. `overridden` names holders whose pins do not count;
        `is_clock_trusted`: somebody says that the time is right, whatever is known of it."""
        time, retain_ms = self._time(), self._archive.config.retain_ms
        if is_clock_trusted:
            time = time.confirmed()
        items: list[ArchivedItem] = []
        expired: set[str] = set()
        for item in take_inventory(self._archive, self._manifest):
            if item.clock_ms is not None and is_expired(item.clock_ms, time, retain_ms):
                # Only of what may go: the tag is an attribute of the file, one call each.
                expired.add(item.name)
                items.append(self.with_tag(item))
            else:
                items.append(item)
        config = self._archive.config
        # Before it is asked who holds what: a pin that is put meanwhile is none that was seen.
        pins = self._manifest.pins()
        holders = self._holders([item for item in items if item.name in expired], pins, time)
        return plan_purge(
            items,
            cmroot=self._archive.cmroot.uri,
            time=time,
            retain_ms=retain_ms,
            holders=holders,
            overridden=frozenset(overridden),
            outlived=outlived(items, holders, pins, config.budget, time),
            has_trash=self._archive.trash is not None,
            trash_retain_ms=config.trash_retain_ms,
        )

    def _time(self) -> TimeJudgement:
        return judge(self._clock.now_ms(), self._manifest.known_times())

    def settle(self) -> tuple[str, ...]:
        """End what purges that died left; the names. To be called before `plan`.

        What they had moved aside is put back. A file that is there is archived as before; one
        that is gone is recorded as purged. What a live purge is at work on is left alone.
        """
        archive, manifest = self._archive, self._manifest
        cmroot, now_ms = archive.cmroot, self._clock.now_ms()
        before_ms = self._time().before_ms(archive.config.retain_ms)
        done = list(settle_asides(cmroot, manifest, self._clock, before_ms))
        live = manifest.live_purges(cmroot.uri, now_ms)
        for name, entry in manifest.entries(cmroot.uri).items():
            if entry.state is not EntryState.PURGING or name in live:
                continue
            if cmroot.child(name).status() is not None:
                manifest.release_purge(cmroot.uri, name, owner=None, now_ms=now_ms)
            else:
                self._record_gone(name, entry.archived_at_ms, now_ms)
            done.append(name)
        return tuple(dict.fromkeys(done))

    def _record_gone(self, name: str, archived_at_ms: int, now_ms: int) -> None:
        """Whoever pins a file that is gone cannot have it any more."""
        root, owner = self._archive.cmroot.uri, self._archive.new_token()
        holders = self._manifest.holders(root, [name], now_ms).get(name, ())
        if self._manifest.claim_purge(
            root,
            name,
            seen_archived_at_ms=archived_at_ms,
            overridden_holders=holders,
            owner=owner,
            now_ms=now_ms,
        ):
            self._manifest.record_purged(root, name, owner=owner, now_ms=now_ms)

    def _holders(
        self, expired: Collection[ArchivedItem], pins: Collection[Pin], time: TimeJudgement
    ) -> Mapping[str, tuple[str, ...]]:
        """Who holds what is expired: as the manifest says, for files without origins as the files
        themselves say, and of everything the metastores beside this one. A pin whose end has come
        for doubtful time alone holds on; one of what is archived from a time on that is yet to come
        was set by a clock that was ahead, and holds what was archived before, too."""
        now_ms = time.now_ms
        lasting = [replace(pin, expires_at_ms=None) for pin in pins if _lasts(pin, time)]
        lasting += [
            replace(pin, archived_since_ms=None)
            for pin in pins
            if pin.archived_since_ms is not None and time.is_yet_to_come(pin.archived_since_ms)
        ]
        cmroot = self._archive.cmroot
        own_id = self._manifest.store_id(self._archive.new_token())
        others = holders_of_others(cmroot, own_id) if expired else ()
        in_manifest = self._manifest.holders(cmroot.uri, [item.name for item in expired], now_ms)
        known = {
            item.name: (
                *in_manifest.get(item.name, ()),
                *(pin.holder for pin in lasting if pin.holds(item.name, item.entry)),
                *others,
            )
            for item in expired
        }
        known = {name: holders for name, holders in known.items() if holders}
        strays = [
            item
            for item in expired
            if item.is_present
            and item.kind is FileKind.FILE
            and not (item.entry and item.entry.origins)
            and not item.name.startswith((PART_PREFIX, ASIDE_PREFIX))
        ]
        pins = [*pins, *lasting]
        if not strays or not any(pin.database for pin in pins):
            return known
        originals = {item.name: original_location(cmroot.child(item.name)) for item in strays}
        by_name = dict(known)
        for name, holders in holders_of_strays(originals, strays, pins, now_ms).items():
            by_name[name] = tuple(sorted({*known.get(name, ()), *holders}))
        return by_name

    def with_tag(self, item: ArchivedItem) -> ArchivedItem:
        """The item, with Hive's tag if its file has one."""
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
        """Carry a plan out. What changed since it was made stays; every file stands by itself.

        Raises ClockDoubtError, and deletes nothing, if the clock of the plan disagrees with the
        database's and nobody says that it is right.
        """
        if plan.time.refusal:
            raise ClockDoubtError(
                f"nothing was purged from {plan.cmroot}: {plan.doubt}. Check the clock; if it is "
                "right, run 'hms-bridge cm purge --trust-clock' once"
            )
        self._manifest.note_time(plan.time.now_ms)
        given_up = self._give_up(plan)
        holders = frozenset(end.holder for end in given_up)
        done: dict[Disposition, list[str]] = {disposition: [] for disposition in _DEEDS}
        failed: list[tuple[str, str]] = []
        others: list[str] = []
        freed_bytes = 0
        above = DirectoriesAbove()
        for decision in plan.decisions:
            if decision.disposition.is_kept:
                self._release_interrupted(decision.item, plan.cmroot)
                continue
            try:
                why_not = self._remove(decision, plan, holders, above)
            except (OSError, ChangeManagerError) as error:
                why_not = str(error) or type(error).__name__
            if why_not == _ANOTHER_PURGE:
                others.append(decision.item.name)
                continue
            if why_not is not None:
                failed.append((decision.item.name, why_not))
                continue
            _log_removal(decision, plan.cmroot)
            done[decision.disposition].append(decision.item.name)
            freed_bytes += decision.item.size_bytes if decision.item.is_present else 0
        return PurgeReport(
            plan=plan,
            deleted=tuple(done[Disposition.DELETE]),
            trashed=tuple(done[Disposition.TRASH]),
            forgotten=tuple(done[Disposition.FORGET]),
            failed=tuple(failed),
            purged_by_others=tuple(others),
            freed_bytes=freed_bytes,
            emptied=empty_trash(self._archive, plan.time),
            given_up=given_up,
        )

    def _give_up(self, plan: PurgePlan) -> tuple[PinEnd, ...]:
        """Write down which pins outlived their budget, before the first of their files goes; those
        that are still the pins that the plan saw."""
        done = []
        for end in plan.ends:
            mark = GivenUp(at_ms=plan.time.now_ms, reason=end.reason)
            if not self._manifest.give_up(
                end.holder, seen_created_at_ms=end.created_at_ms, given_up=mark
            ):
                continue
            _LOG.warning(
                "%s is given up: %s. %d files of %d bytes that it kept are purged now; 'hms-bridge "
                "repl status' says what to do",
                end.holder,
                end.reason,
                end.file_count,
                end.size_bytes,
            )
            done.append(end)
        return tuple(done)

    def _release_interrupted(self, item: ArchivedItem, cmroot: str) -> None:
        """A purge that died had claimed what is kept now."""
        if is_interrupted(item):
            self._manifest.release_purge(cmroot, item.name, owner=None, now_ms=self._clock.now_ms())

    def _remove(
        self,
        decision: PurgeDecision,
        plan: PurgePlan,
        given_up: frozenset[str],
        above: DirectoriesAbove,
    ) -> str | None:
        """Remove one file; why not, if the world has changed since the plan."""
        item = decision.item
        # An unfinished copy: only its writer knows the name, so there is nothing to claim.
        if item.name.startswith(PART_PREFIX):
            why_not = self._changed(item)
            if why_not is None:
                with suppress(FileNotFoundError):
                    place = self._archive.cmroot.child(item.name)
                    place.volume.remove_file(place.path)
            return why_not
        claim = _Claim(plan.cmroot, item.name, self._archive.new_token())
        if not self._manifest.claim_purge(
            plan.cmroot,
            item.name,
            seen_archived_at_ms=item.entry.archived_at_ms if item.entry else None,
            overridden_holders=plan.overridden | (given_up & set(decision.given_up)),
            owner=claim.owner,
            now_ms=self._clock.now_ms(),
        ):
            if self._is_purged_by_another(item):
                return _ANOTHER_PURGE
            return "it was archived again, pinned, or claimed, since the plan was made"
        try:
            why_not = self._changed(item)
            if why_not is None and item.is_present:
                why_not = self._take_away(claim, decision, above)
        except (OSError, ChangeManagerError):
            self._release(claim)
            raise
        if why_not not in {None, _ANOTHER_PURGE}:
            self._release(claim)
            return why_not
        is_recorded = self._manifest.record_purged(
            plan.cmroot, item.name, owner=claim.owner, now_ms=self._clock.now_ms()
        )
        return why_not if is_recorded else _LOST

    def _is_purged_by_another(self, item: ArchivedItem) -> bool:
        """Whether another purge has claimed the file as it was planned, or taken it away."""
        root, name = self._archive.cmroot.uri, item.name
        # First: a claim that ends between both looks leaves a row that says how.
        if name in self._manifest.live_purges(root, self._clock.now_ms()):
            return True
        entry = self._manifest.entries(root, [name]).get(name)
        is_over = entry is None or entry.state is EntryState.PURGED
        return is_over and self._archive.cmroot.child(name).status() is None

    def _release(self, claim: _Claim) -> None:
        self._manifest.release_purge(
            claim.cmroot, claim.name, owner=claim.owner, now_ms=self._clock.now_ms()
        )

    def _changed(self, item: ArchivedItem) -> str | None:
        """How the file differs from what the plan saw; None if it does not."""
        place = self._archive.cmroot.child(item.name)
        status = place.status()
        if status is None:
            return None
        if not item.is_present:
            return "a file of that name has come"
        if _is_touched(item, status):
            return _TOUCHED
        return self._unproved(item, place)

    def _unproved(self, item: ArchivedItem, place: Location) -> str | None:
        """A short checksum may be a date: without a row, only the content proves the name."""
        parsed = parse_archive_name(item.name)
        if item.entry is not None or parsed is None or parsed.checksum is None:
            return None
        if len(parsed.checksum) == 8 and place.checksum_like(parsed.checksum) != parsed.checksum:
            return "its content does not have the checksum of its name"
        return None

    def _take_away(
        self, claim: _Claim, decision: PurgeDecision, above: DirectoriesAbove
    ) -> str | None:
        """Move the file aside, and delete it there if the claim is still this purge's, and no Hive
        has archived its content anew, which knows no claims (ReplChangeManager.recycle touches)."""
        place = self._archive.cmroot.child(claim.name)
        if place.status() is None:
            return _ANOTHER_PURGE
        aside = self._archive.cmroot.child(aside_name(claim.name, claim.owner))
        if not self._is_held(claim):
            return _LOST
        place.volume.rename(place.path, aside.path)
        try:
            # Again, now that nobody else knows where the file is: the claim may have run out before
            # the rename, and somebody may have archived the content anew.
            if not self._is_held(claim):
                put_back(aside, place)
                return _LOST
            status = aside.status() if aside.volume.capabilities.has_atomic_rename else None
            if status is not None and _is_touched(decision.item, status):
                put_back(aside, place)
                return _TOUCHED
            trash = trash_place(self._archive)
            if decision.disposition is Disposition.TRASH and trash is not None:
                move_to_trash(aside, trash.child(claim.name), self._archive.new_token, above)
            else:
                aside.volume.remove_file(aside.path)
        except (OSError, ChangeManagerError):
            put_back(aside, place)
            raise
        return None

    def _is_held(self, claim: _Claim) -> bool:
        return self._manifest.holds_purge(
            claim.cmroot, claim.name, owner=claim.owner, now_ms=self._clock.now_ms()
        )


def _is_touched(item: ArchivedItem, status: FileStatus) -> bool:
    seen = item.kind, item.size_bytes, item.mtime_ms
    return (status.kind, status.size_bytes, status.mtime_ms) != seen


def _lasts(pin: Pin, time: TimeJudgement) -> bool:
    """Whether a pin's end has come, and would not have if only time counts that went by surely."""
    end_ms = pin.expires_at_ms
    return (
        end_ms is not None
        and not pin.is_live(time.now_ms)
        and not time.is_over(pin.created_at_ms, end_ms)
    )
