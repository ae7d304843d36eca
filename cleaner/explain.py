"""Why an entry is cleaned now, or what it waits for, and what would go."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum

from changemanager.clock import span_text
from changemanager.errors import ChangeManagerError
from cleaner.plan import EntryPlan
from cleaner.planner import CleaningPlanner
from hms_bridge.errors import HmsBridgeError, NoSuchObjectError
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.compaction import (
    LOCATION,
    Compaction,
    CompactionState,
    CompactionType,
    ShowCompactionsRequest,
)
from hms_bridge.model.ids import CompactionId, TxnId
from hms_bridge.model.properties import NO_CLEANUP
from hms_bridge.model.txn import TxnInfo, TxnState


class Readiness(Enum):
    """How an entry stands."""

    READY = "ready"
    GONE = "table is gone"
    BLOCKED = "blocked by open transactions"
    LOCKED = "blocked by locks"
    UNCOMMITTED = "compaction not committed"
    BEHIND = "behind another entry"
    WAITING = "waiting"
    REFUSED = "refused by no_cleanup"
    UNREADABLE = "cannot be looked at"

    @property
    def is_ready(self) -> bool:
        """Whether the next pass ends the entry."""
        return self in {Readiness.READY, Readiness.GONE}


@dataclass(frozen=True, kw_only=True, slots=True)
class EntryExplanation:
    """One entry: how it stands, why, who blocks it, and what goes when its time has come."""

    entry: Compaction
    readiness: Readiness
    reason: str
    blockers: tuple[TxnInfo, ...] = ()
    plan: EntryPlan | None = None


def explain_entries(
    metastore: LocalMetastore,
    planner: CleaningPlanner,
    *,
    ready: Sequence[Compaction],
    aborted: Sequence[Compaction],
    now_ms: int,
    retention_ms: int,
) -> tuple[EntryExplanation, ...]:
    """Every entry that is ready for cleaning, by id, then the clean-ups of aborted writes."""
    queue = _Queue(metastore, ready, now_ms, retention_ms)
    explained = []
    for entry in queue.entries:
        readiness, reason, blockers = queue.judge(entry)
        explained.append(_with_plan(planner, entry, readiness, reason, blockers))
    for entry in aborted:
        why = "too many aborted writes" if entry.has_too_many_aborts else "old aborted writes"
        explained.append(_with_plan(planner, entry, Readiness.READY, why, ()))
    return tuple(explained)


def explain_waiting(
    metastore: LocalMetastore,
    *,
    seen: Collection[CompactionId],
    ready: Sequence[Compaction],
    now_ms: int,
    retention_ms: int,
) -> tuple[EntryExplanation, ...]:
    """Every entry that is ready for cleaning and was not ``seen`` by a pass, by id."""
    queue = _Queue(metastore, ready, now_ms, retention_ms)
    explained = []
    for entry in queue.waiting:
        if entry.id not in seen:
            readiness, reason, blockers = queue.judge(entry)
            if readiness.is_ready:
                readiness = Readiness.WAITING
                reason = "another cleaner is at work on its table, or it became ready just now"
            explained.append(
                EntryExplanation(entry=entry, readiness=readiness, reason=reason, blockers=blockers)
            )
    return tuple(explained)


class _Queue:
    """The queue and the open transactions, as they are now."""

    def __init__(
        self,
        metastore: LocalMetastore,
        ready: Sequence[Compaction],
        now_ms: int,
        retention_ms: int,
    ) -> None:
        entries = metastore.show_compactions(
            ShowCompactionsRequest(state=CompactionState.READY_FOR_CLEANING)
        )
        self.waiting = sorted(entries, key=lambda entry: entry.id)
        self.entries = [
            entry for entry in self.waiting if entry.type is not CompactionType.ABORT_TXN_CLEANUP
        ]
        self._ready = {entry.id for entry in ready}
        self._txns = {txn.id: txn for txn in metastore.get_open_txns_info()}
        self._readers = metastore.readers(self.entries)
        self._now_ms = now_ms
        self._retention_ms = retention_ms

    def judge(self, entry: Compaction) -> tuple[Readiness, str, tuple[TxnInfo, ...]]:
        if entry.type is CompactionType.ABORT_TXN_CLEANUP:
            return Readiness.WAITING, self._waiting_text(entry), ()
        if entry.id in self._ready and entry.is_never_created:
            return Readiness.READY, f"its table was never made: {entry.properties[LOCATION]}", ()
        if entry.id in self._ready:
            return Readiness.READY, "no open transaction began before it was committed", ()
        if entry.next_txn_id is None or entry.txn_id in self._txns:
            return self._judge_uncommitted(entry)
        blockers = self._blockers(entry, entry.next_txn_id)
        if blockers:
            shown = ", ".join(_txn_text(txn, self._now_ms) for txn in blockers)
            return Readiness.BLOCKED, f"transactions that may read its inputs: {shown}", blockers
        if entry.id in self._readers.locks:
            shown = ", ".join(map(str, self._readers.locks[entry.id]))
            return Readiness.LOCKED, f"locks of readers without a transaction: {shown}", ()
        if entry.next_txn_id >= self._readers.watermarks[entry.target.database]:
            reason = f"a transaction up to {entry.next_txn_id} may still appear"
            return Readiness.BLOCKED, reason, ()
        ahead = self._ahead(entry)
        if ahead is not None:
            return Readiness.BEHIND, f"entry {ahead.id} of the same target comes first", ()
        return Readiness.WAITING, self._waiting_text(entry), ()

    def _judge_uncommitted(self, entry: Compaction) -> tuple[Readiness, str, tuple[TxnInfo, ...]]:
        txn = self._txns.get(entry.txn_id) if entry.txn_id else None
        if txn is None:
            return Readiness.UNCOMMITTED, "no commit of its transaction is recorded", ()
        if txn.state is TxnState.ABORTED:
            reason = f"its transaction {txn.id} was aborted: nothing of it may be used"
            return Readiness.UNCOMMITTED, reason, ()
        reason = f"its transaction is open: {_txn_text(txn, self._now_ms)}"
        return Readiness.UNCOMMITTED, reason, (txn,)

    def _blockers(self, entry: Compaction, next_txn_id: TxnId) -> tuple[TxnInfo, ...]:
        elsewhere = self._readers.elsewhere[entry.target.database]
        return tuple(
            self._txns[txn_id]
            for txn_id in sorted(self._txns)
            if txn_id <= next_txn_id
            and txn_id not in elsewhere
            and self._txns[txn_id].state is TxnState.OPEN
        )

    def _ahead(self, entry: Compaction) -> Compaction | None:
        same = [
            other
            for other in self.entries
            if other.target == entry.target and other.id in self._ready and other.id != entry.id
        ]
        return min(same, key=lambda other: other.id, default=None)

    def _waiting_text(self, entry: Compaction) -> str:
        last_ms = max((entry.committed_ms or 0) + self._retention_ms, entry.cleaner_started_ms or 0)
        left_ms = max(0, last_ms + entry.retry_retention_ms - self._now_ms)
        if not left_ms and entry.error_message:  # an entry that cannot be read
            return entry.error_message
        why = f": {entry.error_message}" if entry.error_message else ""
        return f"tried again in {span_text(left_ms)}{why}"


def _with_plan(
    planner: CleaningPlanner,
    entry: Compaction,
    readiness: Readiness,
    reason: str,
    blockers: tuple[TxnInfo, ...],
) -> EntryExplanation:
    plan = None
    if entry.is_never_created:
        return EntryExplanation(entry=entry, readiness=readiness, reason=reason, blockers=blockers)
    try:
        target = planner.target(entry)
        if target.is_refused:
            readiness, reason = Readiness.REFUSED, f"the property {NO_CLEANUP} is true"
        lists = planner.lists(target, is_for_everyone=readiness is Readiness.READY)
        plan = planner.plan(entry, target, lists)
    except NoSuchObjectError as error:
        readiness, reason = Readiness.GONE, str(error)
    except (HmsBridgeError, ChangeManagerError, OSError) as error:
        readiness, reason = Readiness.UNREADABLE, str(error)
    return EntryExplanation(
        entry=entry, readiness=readiness, reason=reason, blockers=blockers, plan=plan
    )


def wait_text(explanation: EntryExplanation, now_ms: int) -> str:
    """In a few words, for a line about a whole pass."""
    target, blockers = explanation.entry.target, explanation.blockers
    if not blockers:
        return f"{target}, {explanation.readiness.value}: {explanation.reason}"
    shown = ", ".join(txn.text(now_ms) for txn in blockers)
    word = "transaction" if len(blockers) == 1 else "transactions"
    return f"{target}, blocked by {word} {shown}"


def _txn_text(txn: TxnInfo, now_ms: int) -> str:
    kind = txn.type.name.lower().replace("_", " ")
    return f"{txn.id} ({kind}, {txn.user}@{txn.host}, open for {txn.age_text(now_ms)})"
