"""Verbs of transactions and write ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from changemanager.clock import span_text
from hms_bridge.backend.work import sql
from hms_bridge.catalog.parameters import set_commit_key, set_repl_last_id
from hms_bridge.clock import steady_ms
from hms_bridge.errors import MetaError, MetastoreError, TxnAbortedError
from hms_bridge.model.ids import TxnId
from hms_bridge.model.txn import (
    AbortReason,
    AbortTxnRequest,
    AllocateWriteIdsRequest,
    CommitTxnRequest,
    OpenTxnsRequest,
    ReplLastId,
    TableWriteIdState,
    TxnToWriteId,
    TxnType,
    WriteEvent,
)
from hms_bridge.notification import events, write_log
from hms_bridge.service import turn_rules
from hms_bridge.service.aborts import as_told, log_abort
from hms_bridge.service.foundation import Foundation, VerbFamily
from hms_bridge.service.replica_gate import (
    ask_write_refusal,
    expect_writable,
    require_follower,
    require_replicated,
)
from hms_bridge.service.unit_of_work import (
    Alike,
    Look,
    Turn,
    UnitOfWork,
    reads,
    shares,
    writes,
)
from hms_bridge.txn import (
    abort,
    commit,
    components,
    heartbeat,
    min_history,
    open_txns,
    replication,
    valid_write_ids,
    write_id_state,
    write_ids,
)
from hms_bridge.txn.abort import AbortOutcome
from hms_bridge.txn.asked_write_ids import expect_write_ids
from hms_bridge.txn.commit import CommitOutcome
from hms_bridge.txn.foresight import Foresight
from hms_bridge.txn.open_limit import OpenTxnLimit
from hms_bridge.txn.open_txns import OpenedTxns

OPEN_ATTEMPTS_MAX = 3


def _commit_txn(unit: UnitOfWork, request: CommitTxnRequest) -> None:
    outcome = commit.commit_txn(unit, request)
    if outcome.refusal is not None:
        log_abort(unit, outcome.abort)
        # Raised only after the abort is committed, else it would be rolled back.
        unit.failure = TxnAbortedError(outcome.refusal)
        return
    if request.repl_last_id is not None:
        name = request.repl_last_id.database_name
        require_replicated(unit.connection, name, "no position of a replication")
        set_repl_last_id(unit.connection, request.repl_last_id)
    if request.key_value is not None:
        set_commit_key(unit.connection, request.key_value)
    if outcome.txn_id is None:
        return
    if request.type is TxnType.REPL_CREATED and request.write_events:
        write_log.add_events(
            unit.connection, outcome.txn_id, request.write_events, unit.now_seconds
        )
    _log_commit(unit, outcome)


def _commit_replays(unit: UnitOfWork, requests: Sequence[CommitTxnRequest]) -> None:
    """What each of them would do by itself; of a replication's positions the last one stays."""
    positions: dict[ReplLastId, ReplLastId] = {}
    written: list[tuple[TxnId, WriteEvent]] = []
    for request in requests:
        if request.type is not TxnType.REPL_CREATED or request.key_value is not None:
            raise MetaError(f"transaction {request.txn_id} replays none: commit it by itself")
        outcome = commit.commit_txn(unit, request)
        if outcome.refusal is not None:
            raise TxnAbortedError(outcome.refusal)
        if request.repl_last_id is not None:
            objects = replace(request.repl_last_id, last_repl_id=0)
            positions.pop(objects, None)  # the order is that of the last of each
            positions[objects] = request.repl_last_id
        if outcome.txn_id is not None:
            written += [(outcome.txn_id, event) for event in request.write_events]
            _log_commit(unit, outcome)
    for position in positions.values():
        name = position.database_name
        require_replicated(unit.connection, name, "no position of a replication")
        set_repl_last_id(unit.connection, position)
    write_log.add_replayed(unit.connection, written, unit.now_seconds)


def _ask_commits(unit: UnitOfWork, requests: Sequence[CommitTxnRequest]) -> Look[None] | None:
    ask = commit.ask_commits(unit.connection, [request.txn_id for request in requests])
    if ask is None:
        return None

    def look(_is_in_turn: bool) -> Sequence[None] | None:
        outcomes = ask()
        if outcomes is None:
            return None
        for outcome in outcomes.values():
            _log_commit(unit, outcome)
        return [None] * len(requests)

    return look


def _expect_commits(
    unit: UnitOfWork, foresight: Foresight, requests: Sequence[CommitTxnRequest]
) -> Callable[[], Sequence[None]] | None:
    outcomes = commit.expect_commits(
        unit.connection, [request.txn_id for request in requests], foresight
    )
    if outcomes is None:
        return None
    for outcome in outcomes.values():
        _log_commit(unit, outcome)
    return lambda: [None] * len(requests)


def _alike_commits(request: CommitTxnRequest) -> Alike[None] | None:
    if not turn_rules.is_bare(request):
        return None
    return Alike("commit", request, _ask_commits, _expect_commits)


def _log_open(unit: UnitOfWork, opened: OpenedTxns, kind: TxnType) -> None:
    if opened.is_event_due:
        unit.events.append(events.txns_opened(opened.ids, unit.now_seconds))
    unit.news.append(lambda foresight: foresight.opened(opened.ids, kind))


def _log_commit(unit: UnitOfWork, outcome: CommitOutcome) -> None:
    if outcome.txn_id is not None:
        ended = (outcome.txn_id,)
        unit.news.append(lambda foresight: foresight.forget(ended))
    if outcome.is_event_due and outcome.txn_id is not None:
        unit.events.append(
            events.txn_committed(outcome.txn_id, as_told(outcome.written), unit.now_seconds)
        )
        unit.events += [
            events.compaction_committed(compaction, unit.now_seconds)
            for compaction in outcome.compactions
        ]


def _abort_txn(unit: UnitOfWork, request: AbortTxnRequest) -> None:
    log_abort(unit, abort.abort_txn(unit, request))


def _abort_txns(
    unit: UnitOfWork, ids: Sequence[TxnId], reason: AbortReason = AbortReason.QUERY
) -> None:
    log_abort(unit, abort.abort_txns(unit, ids, reason))


def _allocate_table_write_ids(
    unit: UnitOfWork, request: AllocateWriteIdsRequest
) -> tuple[TxnToWriteId, ...]:
    """Refused too: a table of a replica where the transaction replays none of the source's, and a
    replayed one where the database is no replica."""
    asked = None
    if request.repl_policy is None:
        refusal = ask_write_refusal(unit.connection, request.database_name)
        asked = write_ids.ask_write_ids(unit.connection, request)
        _require_writable(request, refusal)
    else:
        what = f"no replayed write id of {request.table_name}"
        require_replicated(unit.connection, request.database_name, what)
        require_follower(unit.connection, request.database_name, what)
    given = write_ids.allocate_table_write_ids(unit.connection, request, asked)
    _log_write_ids(unit, request, given.new)
    return given.pairs


def _ask_for_all(
    unit: UnitOfWork, requests: Sequence[AllocateWriteIdsRequest]
) -> Look[tuple[TxnToWriteId, ...]]:
    """Of one table and a transaction each, as one request that names all of them; but each has its
    event. Whoever replays the log gives write ids in its order, so that is theirs."""
    refusal = ask_write_refusal(unit.connection, requests[0].database_name)
    txn_ids = tuple(txn_id for request in requests for txn_id in request.txn_ids)
    together = replace(requests[0], txn_ids=txn_ids)
    asked = write_ids.ask_write_ids(unit.connection, together)

    def look(is_in_turn: bool) -> Sequence[tuple[TxnToWriteId, ...]] | None:
        _require_writable(together, refusal)
        if not (is_in_turn or (asked is not None and asked.given)):
            return None
        given = write_ids.allocate_table_write_ids(unit.connection, together, asked)
        for pair in sorted(given.new, key=lambda pair: pair.write_id):
            _log_write_ids(unit, requests[0], [pair])
        return _pairs_of(requests, given.pairs)

    return look


def _expect_write_ids(
    unit: UnitOfWork, foresight: Foresight, requests: Sequence[AllocateWriteIdsRequest]
) -> Callable[[], Sequence[tuple[TxnToWriteId, ...]]] | None:
    database, table = requests[0].database_name.lower(), requests[0].table_name.lower()
    first = foresight.next_write_id(database, table)
    if first is None:
        return None
    expect_writable(unit.connection, database)
    txn_ids = sorted({txn_id for request in requests for txn_id in request.txn_ids})
    pairs = expect_write_ids(unit.connection, txn_ids, database, table, first)
    for pair in pairs:
        _log_write_ids(unit, requests[0], [pair])
    return lambda: _pairs_of(requests, pairs)


def _pairs_of(
    requests: Sequence[AllocateWriteIdsRequest], pairs: Sequence[TxnToWriteId]
) -> Sequence[tuple[TxnToWriteId, ...]]:
    return [tuple(pair for pair in pairs if pair.txn_id in request.txn_ids) for request in requests]


def _require_writable(request: AllocateWriteIdsRequest, refusal: Callable[[], str | None]) -> None:
    text = refusal()
    if text is not None:
        raise MetaError(f"no write id of {request.table_name}: {text}")


def _alike_write_ids(
    request: AllocateWriteIdsRequest,
) -> Alike[tuple[TxnToWriteId, ...]] | None:
    if not turn_rules.is_new_write(request):
        return None
    kind = ("write id", request.database_name.lower(), request.table_name.lower())
    return Alike(kind, request, _ask_for_all, _expect_write_ids)


def _log_write_ids(
    unit: UnitOfWork, request: AllocateWriteIdsRequest, new: Sequence[TxnToWriteId]
) -> None:
    if new:
        database, table = request.database_name.lower(), request.table_name.lower()
        unit.events.append(events.write_ids_allocated(database, table, new, unit.now_seconds))
        unit.news.append(lambda foresight: foresight.wrote(database, table, new))


def _repl_table_write_id_state(unit: UnitOfWork, state: TableWriteIdState) -> None:
    """Unlike Hive, which logs only OPEN_TXN, the aborts are logged too: a consumer of the log
    would else wait for these transactions for ever."""
    applied = write_id_state.repl_table_write_id_state(unit, state)
    if applied.opened:
        unit.events.append(events.txns_opened(applied.opened, unit.now_seconds))
    log_abort(unit, AbortOutcome(aborted=applied.aborted))


def _as_one(requests: Sequence[OpenTxnsRequest]) -> OpenTxnsRequest:
    """Of equal requests for one each, the one that asks for as many."""
    return requests[0] if len(requests) == 1 else replace(requests[0], count=len(requests))


class TransactionVerbs(VerbFamily):
    """The TransactionStore."""

    def __init__(self, foundation: Foundation) -> None:
        super().__init__(foundation)
        self._limit = OpenTxnLimit(self._settings.txn, self._clock)

    get_open_txns = reads(open_txns.get_open_txns)
    get_open_txn_rows = reads(open_txns.get_open_txn_rows)
    get_open_txns_info = reads(open_txns.get_open_txns_info)

    def open_txns(self, request: OpenTxnsRequest) -> tuple[TxnId, ...]:
        for attempt in range(OPEN_ATTEMPTS_MAX):
            opened = self._transactions.write(
                lambda unit: self._open(unit, request), partial(self._turn, request, attempt)
            )
            if opened.deadline_ms is None or steady_ms(self._clock) < opened.deadline_ms:
                return opened.ids
            # Others may have counted these ids as dead while they were being committed.
            self.abort_txns(opened.ids, AbortReason.NONE)
        timeout_ms = self._settings.txn.open_timeout_ms
        raise MetaError(
            f"opening a transaction took longer than {span_text(timeout_ms)} "
            f"{OPEN_ATTEMPTS_MAX} times; the database is too slow: try again later, or raise "
            "hive.txn.opentxn.timeout on all servers"
        )

    def _turn(self, request: OpenTxnsRequest, attempt: int) -> Turn[OpenedTxns]:
        alike: Alike[OpenedTxns] | None = None
        if turn_rules.is_single(request):
            # Where ids are expected, what the openers' lock takes counts as their time, too.
            kind = ("open", attempt, request)
            expect = None if attempt else self._expect_for_all
            alike = Alike(kind, request, self._ask_for_all, expect)
        return turn_rules.of_open(request), alike

    def _open(self, unit: UnitOfWork, request: OpenTxnsRequest) -> OpenedTxns:
        self._limit.check(unit.connection)
        if request.repl_policy is not None:
            name = request.repl_policy.rpartition(".")[0]
            require_follower(unit.connection, name, "no replayed transaction")
        self._draw()
        opened = open_txns.open_txns(unit, request)
        _log_open(unit, opened, request.type)
        return opened

    def _ask_for_all(
        self, unit: UnitOfWork, requests: Sequence[OpenTxnsRequest]
    ) -> Look[OpenedTxns] | None:
        """Of equal requests, as one that asks for as many; but each has its event."""
        if len(requests) > self._settings.txn.open_batch_max:
            return None
        self._limit.check(unit.connection)
        self._draw()
        ask = open_txns.ask_to_open(unit, _as_one(requests))

        def look(_is_in_turn: bool) -> Sequence[OpenedTxns]:
            return self._each(unit, requests, ask())

        return look

    def _draw(self) -> None:
        """Ids that are not expected: those of others in the same batch come after them."""
        if self._transactions.foresight is not None:
            self._transactions.foresight.draw()

    def _expect_for_all(
        self, unit: UnitOfWork, foresight: Foresight, requests: Sequence[OpenTxnsRequest]
    ) -> Callable[[], Sequence[OpenedTxns]] | None:
        if len(requests) > self._settings.txn.open_batch_max:
            return None
        first = foresight.next_id(len(requests))
        if first is None:
            return None
        self._limit.check(unit.connection)
        together = open_txns.expect_to_open(unit, _as_one(requests), first)
        if together is None:
            return None
        each = self._each(unit, requests, together)
        return lambda: each

    def _each(
        self, unit: UnitOfWork, requests: Sequence[OpenTxnsRequest], together: OpenedTxns
    ) -> Sequence[OpenedTxns]:
        each = [together]
        if len(requests) > 1:
            each = [
                OpenedTxns(
                    ids=(txn_id,),
                    is_event_due=together.is_event_due,
                    deadline_ms=together.deadline_ms,
                )
                for txn_id in together.ids
            ]
        for opened in each:
            _log_open(unit, opened, requests[0].type)
        return each

    def get_txn_timeout_ms(self) -> int:
        return self._settings.txn.timeout_ms

    def heeds_fences(self) -> bool:
        return True

    commit_txn = shares(_commit_txn, turn_rules.of_commit, _alike_commits)

    def commit_replays(self, requests: Sequence[CommitTxnRequest]) -> None:
        try:
            self._transactions.write(lambda unit: _commit_replays(unit, requests))
        except MetastoreError:
            # None of them is done: each by itself, so that those before a refused one stay.
            for request in requests:
                self.commit_txn(request)

    abort_txn = shares(_abort_txn, turn_rules.of_abort)
    abort_txns = shares(_abort_txns, turn_rules.of_aborts)
    get_latest_txn_in_conflict = reads(sql(commit.latest_txn_in_conflict))
    heartbeat_txn_range = writes(heartbeat.heartbeat_txn_range)
    heartbeat = shares(heartbeat.heartbeat, turn_rules.of_heartbeat)
    add_dynamic_partitions = writes(sql(components.add_dynamic_partitions))
    add_write_ids_to_min_history = writes(sql(min_history.add_write_ids))

    allocate_table_write_ids = shares(
        _allocate_table_write_ids, turn_rules.of_write_ids, _alike_write_ids
    )
    get_valid_write_ids = reads(valid_write_ids.get_valid_write_ids)
    get_max_allocated_write_id = reads(sql(write_ids.get_max_allocated_write_id))
    seed_write_id = writes(sql(write_ids.seed_write_id))
    seed_txn_id = writes(sql(write_ids.seed_txn_id))
    get_replayed_txns = reads(sql(replication.replayed_txns))
    repl_table_write_id_state = writes(_repl_table_write_id_state)
