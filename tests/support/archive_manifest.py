"""A manifest in memory: the shortest thing that keeps the port's promises."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from changemanager.errors import ArchiveBusyError, IntentError
from changemanager.figures import ArchiveFigures
from changemanager.given_up import GivenUp, HeldFiles
from changemanager.location import is_below
from changemanager.manifest import (
    LEASE_MS,
    ArchivedFile,
    ArchiveEntry,
    ArchiveIntent,
    EntryState,
    IntentState,
    Pin,
    ReservedFile,
)
from changemanager.plausible_time import KnownTimes, TimeGap, TimeJudgement, judge

_UNKNOWN_CLOCK = 0


def _purge(cmroot: str, name: str) -> str:
    return f"purge {cmroot} {name}"


class InMemoryManifest:
    """Implements `changemanager.manifest.ArchiveManifest` in dictionaries."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], ArchiveEntry] = {}
        self._intents: dict[str, ArchiveIntent] = {}
        self._pins: dict[str, Pin] = {}
        self._leases: dict[str, tuple[str, int]] = {}
        self._seen_ms = 0
        self._gaps: tuple[TimeGap, ...] = ()
        self.store_ms: int | None = None
        self._id: str | None = None
        self._announced: dict[str, Mapping[str, str | int | None]] = {}

    def announce(self, holder: str, facts: Mapping[str, str | int | None]) -> None:
        self._announced[holder] = facts

    def announced(self, prefix: str) -> tuple[str, ...]:
        return tuple(sorted(holder for holder in self._announced if holder.startswith(prefix)))

    def settle_announced(self, holder: str, *, is_finished: bool) -> bool:  # noqa: ARG002
        return self._announced.pop(holder, None) is not None

    def store_id(self, new_id: str) -> str:
        self._id = self._id or new_id
        return self._id

    def reserve(self, cmroot: str, files: Sequence[ReservedFile], now_ms: int) -> None:
        known = {file.name: self._entries.get((cmroot, file.name)) for file in files}
        purging = [
            name for name, entry in known.items() if entry and entry.state is EntryState.PURGING
        ]
        busy = tuple(one for one in purging if not self._is_free(_purge(cmroot, one), now_ms))
        if busy:
            raise ArchiveBusyError(f"being purged: {', '.join(busy)}; try again", busy)
        for file in files:
            entry = known[file.name]
            if entry is not None and entry.state is EntryState.PURGING:
                self._leases.pop(_purge(cmroot, file.name), None)
                is_of_hives_file = entry.archived_at_ms == _UNKNOWN_CLOCK
                entry = None if is_of_hives_file else replace(entry, state=EntryState.RESERVED)
            if entry is None or entry.state is EntryState.PURGED:
                entry = ArchiveEntry(
                    cmroot=cmroot,
                    name=file.name,
                    checksum=file.checksum,
                    size_bytes=file.size_bytes,
                    state=EntryState.RESERVED,
                    archived_at_ms=now_ms,
                )
            self._put(replace(entry, archived_at_ms=max(now_ms, entry.archived_at_ms)))

    def record_archived(self, cmroot: str, files: Sequence[ArchivedFile], now_ms: int) -> None:
        live = {EntryState.RESERVED, EntryState.ARCHIVED}
        for file in files:
            entry = self._entries.get((cmroot, file.name))
            if entry is None or entry.state not in live:
                raise IntentError(f"{file.name} was not reserved")
        for file in files:
            entry = self._entries[cmroot, file.name]
            known = {(origin.uri, origin.context) for origin in entry.origins}
            is_new = (file.origin.uri, file.origin.context) not in known
            self._put(
                replace(
                    entry,
                    state=EntryState.ARCHIVED,
                    archived_at_ms=max(now_ms, entry.archived_at_ms),
                    is_remaining_in_trash=entry.is_remaining_in_trash or file.is_remaining_in_trash,
                    origins=(*entry.origins, file.origin) if is_new else entry.origins,
                )
            )

    def withdraw(self, cmroot: str, names: Collection[str]) -> None:
        for name in names:
            entry = self._entries.get((cmroot, name))
            if entry and entry.state is EntryState.RESERVED and not entry.origins:
                del self._entries[cmroot, name]

    def entries(
        self, cmroot: str, names: Collection[str] | None = None
    ) -> Mapping[str, ArchiveEntry]:
        return {
            entry.name: entry
            for entry in self._entries.values()
            if entry.cmroot == cmroot
            and (entry.state is not EntryState.PURGED if names is None else entry.name in names)
        }

    def archived_below(self, cmroot: str, directory: str) -> tuple[ArchiveEntry, ...]:
        prefix = directory.rstrip("/") + "/"
        kept = [
            replace(
                entry, origins=tuple(one for one in entry.origins if one.uri.startswith(prefix))
            )
            for entry in self._entries.values()
            if entry.cmroot == cmroot
        ]
        return tuple(entry for entry in kept if entry.origins)

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
        entry = self._entries.get((cmroot, name))
        if entry is not None and entry.state is EntryState.PURGED:
            entry = None
        if (entry.archived_at_ms if entry else None) != seen_archived_at_ms:
            return False
        if set(self.holders(cmroot, [name], now_ms).get(name, ())) - set(overridden_holders):
            return False
        if not self._take_lease(_purge(cmroot, name), owner, now_ms):
            return False
        if entry is None:
            entry = ArchiveEntry(
                cmroot=cmroot,
                name=name,
                checksum="",
                size_bytes=0,
                state=EntryState.PURGING,
                archived_at_ms=_UNKNOWN_CLOCK,
            )
        self._put(replace(entry, state=EntryState.PURGING))
        return True

    def holds_purge(self, cmroot: str, name: str, *, owner: str, now_ms: int) -> bool:
        entry = self._entries.get((cmroot, name))
        is_purging = entry is not None and entry.state is EntryState.PURGING
        return is_purging and self.renew_lease(_purge(cmroot, name), owner, now_ms)

    def release_purge(self, cmroot: str, name: str, *, owner: str | None, now_ms: int) -> bool:
        entry = self._entries.get((cmroot, name))
        if entry is None or entry.state is not EntryState.PURGING:
            return False
        lease = _purge(cmroot, name)
        is_mine = self._leases.get(lease, ("", 0))[0] == owner
        if not (self._is_free(lease, now_ms) if owner is None else is_mine):
            return False
        self._leases.pop(lease, None)
        if entry.archived_at_ms == _UNKNOWN_CLOCK:
            del self._entries[cmroot, name]
        else:
            self._put(replace(entry, state=EntryState.ARCHIVED))
        return True

    def record_purged(self, cmroot: str, name: str, *, owner: str, now_ms: int) -> bool:
        entry = self._entries.get((cmroot, name))
        lease = _purge(cmroot, name)
        is_mine = self._leases.get(lease, ("", 0))[0] == owner
        if entry is None or entry.state is not EntryState.PURGING or not is_mine:
            return False
        self._leases.pop(lease)
        self._put(replace(entry, state=EntryState.PURGED, archived_at_ms=now_ms))
        return True

    def live_purges(self, cmroot: str, now_ms: int) -> frozenset[str]:
        return frozenset(
            entry.name
            for entry in self._entries.values()
            if entry.cmroot == cmroot
            and entry.state is EntryState.PURGING
            and not self._is_free(_purge(cmroot, entry.name), now_ms)
        )

    def roots(self) -> tuple[str, ...]:
        return tuple(sorted({root for root, _ in self._entries}))

    def amend(
        self,
        cmroot: str,
        name: str,
        seen: ArchiveEntry | None,
        wanted: ArchiveEntry | None,
        now_ms: int,
    ) -> bool:
        entry = self._entries.get((cmroot, name))
        if entry is not None and entry.state is EntryState.PURGED:
            entry = None
        now = (entry.state, entry.archived_at_ms) if entry else None
        if now != ((seen.state, seen.archived_at_ms) if seen else None):
            return False
        if not self._is_free(_purge(cmroot, name), now_ms):
            return False
        self._entries.pop((cmroot, name), None)
        if wanted is not None:
            self._put(replace(wanted, cmroot=cmroot))
        return True

    def forget_purged(self, cmroot: str, before_ms: int) -> int:
        gone = [
            key
            for key, entry in self._entries.items()
            if entry.cmroot == cmroot
            and entry.state is EntryState.PURGED
            and entry.archived_at_ms < before_ms
        ]
        for key in gone:
            del self._entries[key]
        return len(gone)

    def add_intents(self, intents: Sequence[ArchiveIntent]) -> tuple[ArchiveIntent, ...]:
        return tuple(map(self._add_intent, intents))

    def _add_intent(self, intent: ArchiveIntent) -> ArchiveIntent:
        for other in self._intents.values():
            if other.victim == intent.victim and other.state.is_open:
                return other
        self._intents[intent.intent_id] = intent
        return intent

    def intent(self, intent_id: str) -> ArchiveIntent | None:
        return self._intents.get(intent_id)

    def intents(
        self, states: Collection[IntentState], *, victims: Collection[str] | None = None
    ) -> tuple[ArchiveIntent, ...]:
        found = [
            intent
            for intent in self._intents.values()
            if intent.state in states and (victims is None or intent.victim in victims)
        ]
        return tuple(sorted(found, key=lambda one: (one.created_at_ms, one.intent_id)))

    def advance_intents(
        self,
        intent_ids: Collection[str],
        from_state: IntentState,
        to_state: IntentState,
        now_ms: int,
        reason: str = "",
    ) -> frozenset[str]:
        moved = {
            intent_id: intent
            for intent_id in intent_ids
            if (intent := self._intents.get(intent_id)) is not None and intent.state is from_state
        }
        for intent_id, intent in moved.items():
            self._intents[intent_id] = replace(
                intent, state=to_state, updated_at_ms=now_ms, reason=reason
            )
        return frozenset(moved)

    def finish_intents(self, locations: Collection[str], now_ms: int) -> int:
        ids = [
            one.intent_id
            for one in self.intents([IntentState.DELETED])
            if any(is_below(one.victim, location) for location in locations)
        ]
        return len(self.advance_intents(ids, IntentState.DELETED, IntentState.DONE, now_ms))

    def forget_intents(self, before_ms: int) -> int:
        over = {IntentState.DONE, IntentState.ABANDONED}
        gone = [
            intent.intent_id
            for intent in self._intents.values()
            if intent.state in over and intent.updated_at_ms < before_ms
        ]
        for intent_id in gone:
            del self._intents[intent_id]
        return len(gone)

    def put_pin(self, pin: Pin, *, is_wider: bool = False) -> tuple[str, ...]:
        before = self._pins.get(pin.holder)
        mark = before.given_up if is_wider and before is not None else None
        self._pins[pin.holder] = replace(pin, given_up=mark)
        return tuple(
            sorted(
                entry.name
                for entry in self._entries.values()
                if entry.state is EntryState.PURGING and entry.name in pin.names
            )
        )

    def give_up(self, holder: str, *, seen_created_at_ms: int, given_up: GivenUp) -> bool:
        pin = self._pins.get(holder)
        if pin is None or pin.created_at_ms != seen_created_at_ms:
            return False
        self._pins[holder] = replace(pin, given_up=pin.given_up or given_up)
        return True

    def held_files(self, holder: str) -> tuple[HeldFiles, ...]:
        pin, hours = self._pins.get(holder), dict[int, list[ArchiveEntry]]()
        for entry in self._entries.values():
            is_there = entry.state is EntryState.ARCHIVED
            if pin is not None and is_there and pin.holds(entry.name, entry):
                hours.setdefault(entry.archived_at_ms // 3_600_000, []).append(entry)
        return tuple(
            HeldFiles(
                oldest_ms=min(entry.archived_at_ms for entry in entries),
                size_bytes=sum(entry.size_bytes for entry in entries),
            )
            for _, entries in sorted(hours.items())
        )

    def remove_pin(self, holder: str) -> bool:
        return self._pins.pop(holder, None) is not None

    def pins(self) -> tuple[Pin, ...]:
        return tuple(self._pins[holder] for holder in sorted(self._pins))

    def holders(
        self, cmroot: str, names: Collection[str], now_ms: int
    ) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for name in names:
            entry = self._entries.get((cmroot, name))
            who = {
                pin.holder
                for pin in self._pins.values()
                if pin.is_live(now_ms) and pin.holds(name, entry)
            }
            who |= {
                f"intent:{intent.intent_id}"
                for intent in self._intents.values()
                if intent.state.is_open
                and intent.cmroot == cmroot
                and any(file.archive_name == name for file in intent.files)
            }
            if who:
                found[name] = tuple(sorted(who))
        return found

    def _take_lease(self, name: str, owner: str, now_ms: int) -> bool:
        if self._leases.get(name, (owner, 0))[0] != owner and not self._is_free(name, now_ms):
            return False
        self._leases[name] = (owner, now_ms)
        return True

    def take_leases(self, names: Collection[str], owner: str, now_ms: int) -> frozenset[str]:
        return frozenset(name for name in names if self._take_lease(name, owner, now_ms))

    def renew_lease(self, name: str, owner: str, now_ms: int) -> bool:
        if self._leases.get(name, ("", 0))[0] != owner:
            return False
        self._leases[name] = (owner, now_ms)
        return True

    def _end_lease(self, name: str, owner: str) -> None:
        if self._leases.get(name, ("", 0))[0] == owner:
            del self._leases[name]

    def end_leases(self, names: Collection[str], owner: str) -> None:
        for name in names:
            self._end_lease(name, owner)

    def lease_owner(self, name: str) -> str | None:
        return self._leases[name][0] if name in self._leases else None

    def forget_leases(self, before_ms: int) -> int:
        gone = [name for name, (_, held_ms) in self._leases.items() if held_ms < before_ms]
        for name in gone:
            del self._leases[name]
        return len(gone)

    def _is_free(self, name: str, now_ms: int) -> bool:
        held = self._leases.get(name)
        return held is None or abs(now_ms - held[1]) > LEASE_MS

    def known_times(self) -> KnownTimes:
        return KnownTimes(store_ms=self.store_ms, seen_ms=self._seen_ms, gaps=self._gaps)

    def note_time(self, now_ms: int) -> TimeJudgement:
        judged = judge(now_ms, self.known_times())
        self._seen_ms = judged.seen_ms
        if not judged.refusal:
            self._gaps = judged.gaps
        return judged

    def trust_time(self, now_ms: int) -> tuple[TimeGap, ...]:
        judged = self.note_time(now_ms)
        if judged.refusal:
            return ()
        self._gaps = ()
        return judged.gaps

    def figures(self, cmroot: str, now_ms: int) -> ArchiveFigures:
        kept = [
            entry for entry in self.entries(cmroot).values() if entry.state is EntryState.ARCHIVED
        ]
        open_ones = self.intents([state for state in IntentState if state.is_open])
        return ArchiveFigures(
            file_count=len(kept),
            size_bytes=sum(entry.size_bytes for entry in kept),
            oldest_archived_at_ms=min((entry.archived_at_ms for entry in kept), default=None),
            pin_count=sum(pin.is_live(now_ms) for pin in self._pins.values()),
            given_up_count=sum(pin.given_up is not None for pin in self._pins.values()),
            open_intent_count=len(open_ones),
            oldest_open_intent_ms=min((one.created_at_ms for one in open_ones), default=None),
            abandoned_intent_count=len(self.intents([IntentState.ABANDONED])),
        )

    def _put(self, entry: ArchiveEntry) -> None:
        self._entries[entry.cmroot, entry.name] = entry
