"""The manifest of archived files over the metastore's own database: a method, a transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from changemanager.manifest import (
    ArchivedFile,
    ArchiveEntry,
    ArchiveIntent,
    IntentState,
    KnownTimes,
    Pin,
    ReservedFile,
)
from hms_bridge.archive import intents, leases, pins, purges, records, times
from hms_bridge.archive import store_id as ids
from hms_bridge.service.unit_of_work import Transactions, UnitOfWork


class SqlArchiveManifest:
    """Implements ``changemanager.manifest.ArchiveManifest``."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def reserve(self, cmroot: str, files: Sequence[ReservedFile], now_ms: int) -> None:
        """See the port."""
        self._transactions.write(
            lambda unit: records.reserve(unit.connection, _root(unit, cmroot), files, now_ms)
        )

    def record_archived(self, cmroot: str, files: Sequence[ArchivedFile], now_ms: int) -> None:
        """See the port."""
        self._transactions.write(
            lambda unit: records.record_archived(
                unit.connection, _root(unit, cmroot), files, now_ms
            )
        )

    def withdraw(self, cmroot: str, names: Collection[str]) -> None:
        """See the port."""
        self._transactions.write(
            lambda unit: records.withdraw(unit.connection, _root(unit, cmroot), names)
        )

    def entries(
        self, cmroot: str, names: Collection[str] | None = None
    ) -> Mapping[str, ArchiveEntry]:
        """See the port."""
        return self._transactions.read(
            lambda c: records.entries(c, records.known_root(c, cmroot), names)
        )

    def archived_below(self, cmroot: str, directory: str) -> tuple[ArchiveEntry, ...]:
        """See the port."""
        return self._transactions.read(
            lambda c: records.archived_below(c, records.known_root(c, cmroot), directory)
        )

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
        """See the port."""
        return self._transactions.write(
            lambda unit: purges.claim_purge(
                unit.connection,
                _root(unit, cmroot),
                name,
                seen_archived_at_ms=seen_archived_at_ms,
                overridden_holders=overridden_holders,
                owner=owner,
                now_ms=now_ms,
            )
        )

    def holds_purge(self, cmroot: str, name: str, *, owner: str, now_ms: int) -> bool:
        """See the port."""
        return self._transactions.write(
            lambda unit: purges.holds_purge(
                unit.connection, _root(unit, cmroot), name, owner=owner, now_ms=now_ms
            )
        )

    def release_purge(self, cmroot: str, name: str, *, owner: str | None, now_ms: int) -> bool:
        """See the port."""
        return self._transactions.write(
            lambda unit: purges.release_purge(
                unit.connection, _root(unit, cmroot), name, owner=owner, now_ms=now_ms
            )
        )

    def record_purged(self, cmroot: str, name: str, *, owner: str, now_ms: int) -> bool:
        """See the port."""
        return self._transactions.write(
            lambda unit: purges.record_purged(
                unit.connection, _root(unit, cmroot), name, owner=owner, now_ms=now_ms
            )
        )

    def live_purges(self, cmroot: str, now_ms: int) -> frozenset[str]:
        """See the port."""
        return self._transactions.read(
            lambda c: purges.live_purges(c, records.known_root(c, cmroot), now_ms)
        )

    def roots(self) -> tuple[str, ...]:
        """See the port."""
        return self._transactions.read(records.roots)

    def amend(
        self,
        cmroot: str,
        name: str,
        seen: ArchiveEntry | None,
        wanted: ArchiveEntry | None,
        now_ms: int,
    ) -> bool:
        """See the port."""
        return self._transactions.write(
            lambda unit: records.amend(
                unit.connection, _root(unit, cmroot), name, seen, wanted, now_ms
            )
        )

    def forget_purged(self, cmroot: str, before_ms: int) -> int:
        """See the port."""
        return self._transactions.write(
            lambda unit: purges.forget_purged(unit.connection, _root(unit, cmroot), before_ms)
        )

    def take_lease(self, name: str, owner: str, now_ms: int) -> bool:
        """See the port."""
        return self._transactions.write(
            lambda unit: leases.take(unit.connection, name, owner, now_ms)
        )

    def renew_lease(self, name: str, owner: str, now_ms: int) -> bool:
        """See the port."""
        return self._transactions.write(
            lambda unit: leases.renew(unit.connection, name, owner, now_ms)
        )

    def end_lease(self, name: str, owner: str) -> None:
        """See the port."""
        self._transactions.write(lambda unit: leases.end(unit.connection, name, owner))

    def lease_owner(self, name: str) -> str | None:
        """See the port."""
        return self._transactions.read(lambda c: leases.owner_of(c, name))

    def forget_leases(self, before_ms: int) -> int:
        """See the port."""
        return self._transactions.write(lambda unit: leases.forget(unit.connection, before_ms))

    def known_times(self) -> KnownTimes:
        """See the port."""
        return self._transactions.read(lambda c: times.known_times(c, self._transactions.clock))

    def note_time(self, now_ms: int) -> None:
        """See the port."""
        self._transactions.write(lambda unit: times.note_time(unit.connection, now_ms))

    def add_intent(self, intent: ArchiveIntent) -> ArchiveIntent:
        """See the port."""
        return self._transactions.write(lambda unit: intents.add_intent(unit.connection, intent))

    def intent(self, intent_id: str) -> ArchiveIntent | None:
        """See the port."""
        return self._transactions.read(lambda c: intents.intent(c, intent_id))

    def intents(
        self,
        states: Collection[IntentState],
        *,
        victim: str | None = None,
        compaction_id: int | None = None,
    ) -> tuple[ArchiveIntent, ...]:
        """See the port."""
        return self._transactions.read(
            lambda c: intents.intents(c, states, victim=victim, compaction_id=compaction_id)
        )

    def advance_intent(
        self,
        intent_id: str,
        from_state: IntentState,
        to_state: IntentState,
        now_ms: int,
        reason: str = "",
    ) -> bool:
        """See the port."""
        return self._transactions.write(
            lambda unit: intents.advance_intent(
                unit.connection, intent_id, from_state, to_state, now_ms, reason
            )
        )

    def forget_intents(self, before_ms: int) -> int:
        """See the port."""
        return self._transactions.write(
            lambda unit: intents.forget_intents(unit.connection, before_ms)
        )

    def put_pin(self, pin: Pin) -> tuple[str, ...]:
        """See the port."""
        return self._transactions.write(lambda unit: pins.put_pin(unit.connection, pin))

    def remove_pin(self, holder: str) -> bool:
        """See the port."""
        return self._transactions.write(lambda unit: pins.remove_pin(unit.connection, holder))

    def store_id(self, new_id: str) -> str:
        """See the port."""
        return self._transactions.write(lambda unit: ids.store_id(unit.connection, new_id))

    def pins(self) -> tuple[Pin, ...]:
        """See the port."""
        return self._transactions.read(pins.pins)

    def holders(
        self, cmroot: str, names: Collection[str], now_ms: int
    ) -> Mapping[str, tuple[str, ...]]:
        """See the port."""
        return self._transactions.read(
            lambda c: pins.holders(c, records.known_root(c, cmroot), names, now_ms, records.entries)
        )


def _root(unit: UnitOfWork, cmroot: str) -> str:
    return records.known_root(unit.connection, cmroot)
