"""What Hive offers to its own threads only: the initiator's, cleaner's, housekeeper's verbs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from changemanager.plausible_time import TimeJudgement, judge
from hms_bridge.archive import file_tasks, pins, times
from hms_bridge.backend.connection import Connection
from hms_bridge.backend.work import Work, sql
from hms_bridge.catalog import databases, partition_marks, target_marks
from hms_bridge.catalog.places import Owner
from hms_bridge.errors import DatabaseGoneError
from hms_bridge.model.catalog import Table
from hms_bridge.model.cleaning_view import CleaningView
from hms_bridge.model.compaction import (
    Compaction,
    CompactionState,
    ShowCompactionsRequest,
)
from hms_bridge.model.deletion import DeletionVerdict
from hms_bridge.model.event_block import kept_since_seconds
from hms_bridge.model.target import Scope, TableName, Target
from hms_bridge.model.target_mark import TargetMark
from hms_bridge.notification import event_log, events, hook_points
from hms_bridge.notification.event_sizes import EventSizes
from hms_bridge.service.aborts import log_abort
from hms_bridge.service.foundation import Foundation, VerbFamily
from hms_bridge.service.late_policies import tell_late_policies
from hms_bridge.service.silence import Silence
from hms_bridge.service.unit_of_work import UnitOfWork, reads, writes
from hms_bridge.txn import (
    aborted_writes,
    cleaning,
    compaction_history,
    compaction_queue,
    housekeeping,
    late_writers,
    open_txns,
    potential_compactions,
    valid_write_ids,
)
from hms_bridge.txn.history_purge import OVERTAKEN_AFTER_MS, HistoryPurge
from hms_bridge.txn.readers import are_listed

ROUNDS_MAX = 1000
"""How often a step of housekeeping that has a limit is repeated in one run."""
_DUMP_SECONDS_MAX = 86_400
"""A policy's pin says when its last dump began to write, by the clock of its machine. The dump's
last event is older by the time that it had planned and waited."""
_LOG = logging.getLogger(__name__)


def _target_marks(
    connection: Connection, targets: Sequence[Target]
) -> tuple[TargetMark | None, ...]:
    marks = target_marks.find_marks(connection, targets)
    return tuple(
        None if mark is None else _with_moves(connection, target, *mark)
        for target, mark in zip(targets, marks, strict=True)
    )


def _with_moves(
    connection: Connection, target: Target, mark: TargetMark, is_moving: bool
) -> TargetMark:
    if not is_moving:
        return mark
    moves = file_tasks.move_locations(connection, target.database, target.table)
    return replace(mark, moves=moves or (mark.location,))


def _cleaning_views(work: Work, tables: Sequence[TableName]) -> tuple[CleaningView, ...]:
    """Each statement sees at least what those before it saw."""
    connection = work.connection
    names = [str(table) for table in tables]
    databases = {table.database.lower() for table in tables}
    watermarks = {
        database: open_txns.min_open_txn_watermark(work, database) for database in sorted(databases)
    }
    txns = open_txns.get_open_txns(work, excluded_types=frozenset()).snapshot()
    write_ids = valid_write_ids.get_valid_write_ids(work, names, txns)
    state = CompactionState.READY_FOR_CLEANING
    ready = [
        ShowCompactionsRequest(scope=Scope(table.database, table.table), state=state)
        for table in tables
    ]
    entries = compaction_history.show_each(connection, ready)
    since = valid_write_ids.aborted_since(connection, names)
    return tuple(
        CleaningView(
            watermark=watermarks[table.database.lower()],
            txns=txns,
            write_ids=write_ids[place],
            ready=entries[place],
            since=since[place],
        )
        for place, table in enumerate(tables)
    )


class CleaningVerbs(VerbFamily):
    """The CleaningStore."""

    def __init__(self, foundation: Foundation) -> None:
        super().__init__(foundation)
        self._event_sizes = EventSizes()
        self._history = HistoryPurge()
        self._is_clock_refused = False
        self._silence = Silence(foundation.transactions.clock)

    find_ready_to_clean = reads(cleaning.find_ready_to_clean)
    find_ready_to_clean_aborts = reads(aborted_writes.find_ready_to_clean_aborts)
    readers = reads(cleaning.readers)
    find_potential_compactions = reads(potential_compactions.find_potential_compactions)
    mark_cleanings_started = writes(cleaning.mark_cleanings_started)
    mark_cleaning_postponed = writes(cleaning.mark_cleaning_postponed)
    retry_failed_cleanings = writes(cleaning.retry_failed_cleanings)
    forget_aborted_components = writes(aborted_writes.forget_aborted_components)
    cleaning_views = reads(_cleaning_views)
    target_marks = reads(sql(_target_marks))
    are_listed = reads(are_listed)
    min_open_txn_watermark = reads(open_txns.min_open_txn_watermark)
    revoke_timed_out_workers = writes(compaction_queue.revoke_timed_out_workers)

    def default_location(self, database: str, table: str) -> str:
        stored = self._transactions.read(lambda c: databases.require_database(c, database.lower()))
        return self._roots.table_location(stored.database, table.lower(), is_external=False)

    def may_be_deleted(self, location: str) -> DeletionVerdict:
        return self._transactions.read(lambda c: self._files.rule.verdicts(c, [location])[0])

    def find_holder(self, location: str, database: str) -> str | None:  # noqa: ARG002 - the port
        rule = self._files.rule
        return self._transactions.read(lambda c: rule.holder(c, location))

    def strangers_in(
        self, places: Sequence[tuple[Table, Sequence[str]]]
    ) -> tuple[Mapping[str, str], ...]:
        asked = [(directories, Owner(table=table)) for table, directories in places]
        return self._transactions.read(
            lambda c: tuple(self._files.rule.strangers_of_each(c, asked))
        )

    def run_housekeeping(self) -> None:
        """Each step is a transaction of its own; at last, file work that others left undone. One
        that fails, as a hook refuses what it is given of it, holds up none of the others; the first
        failure is raised when all have had their turn."""
        self._transactions.look_for_hooks()
        failures: list[Exception] = []
        for step in self._steps():
            try:
                step()
            except DatabaseGoneError:
                raise
            except Exception as error:  # one that is for ever would stop all of it for ever
                failures.append(error)
        for further in failures[1:]:
            _LOG.error("a further step of the housekeeping failed: %s", further)
        if failures:
            raise failures[0]

    def _steps(self) -> Iterator[Callable[[], object]]:
        write, most = self._transactions.write, housekeeping.ROWS_MAX
        yield partial(write, housekeeping.hear_anew)
        if write(self._is_silence_measured):
            yield partial(self._repeat, _time_out_txns)
            yield partial(self._repeat, housekeeping.time_out_locks, most)
            yield partial(write, housekeeping.time_out_rebuild_locks)
        for step in (
            _settle_compactions,
            _give_back_abandoned,
            _revoke_workers,
            late_writers.forget_late_writers,
        ):
            yield partial(write, step)
        for portion in (
            housekeeping.forget_write_sets,
            housekeeping.forget_write_ids,
            housekeeping.forget_txns,
        ):
            yield partial(self._repeat, portion, most)
        yield self._purge_by_age
        if self._transactions.is_heard:
            yield partial(write, tell_late_policies)
        yield self._file_work.resume

    def _is_silence_measured(self, unit: UnitOfWork) -> bool:
        return self._silence.is_measured(unit.now_ms, unit.settings.txn.timeout_ms)

    def _purge_by_age(self) -> None:
        """What is old goes; nothing is old by a clock that is refused."""
        now_ms = self._transactions.clock.now_ms()
        time = self._transactions.write(lambda unit: times.note_time(unit, now_ms))
        if time.refusal and not self._is_clock_refused:
            _LOG.warning("no event is purged: %s. Set the wrong clock right", time.refusal)
        self._is_clock_refused = bool(time.refusal)
        old_ms = time.before_ms(OVERTAKEN_AFTER_MS)
        self._transactions.write(lambda unit: self._history.purge(unit, old_ms))
        self._repeat(partial(_purge_events, self._event_sizes, time))
        self._transactions.write(partial(_purge_marks, time))
        if self._transactions.is_heard:
            self._repeat(partial(_purge_points, time))

    def _repeat(self, step: Callable[[UnitOfWork], int], full: int = 1) -> None:
        """While it finds as many as it takes at once."""
        for _ in range(ROUNDS_MAX):
            if self._transactions.write(step) < full:
                return


def _time_out_txns(unit: UnitOfWork) -> int:
    # Nobody beats for what a load replays, so age decides, which counts no doubtful time.
    time = judge(unit.clock.now_ms(), times.known_times(unit))
    replays_before_ms = time.before_ms(unit.settings.txn.repl_timeout_ms)
    outcome = housekeeping.time_out_txns(unit, replays_before_ms)
    log_abort(unit, outcome)
    return len(outcome.aborted)


def _revoke_workers(unit: UnitOfWork) -> int:
    timeout_ms = unit.settings.compactor.worker_timeout_ms
    return compaction_queue.revoke_timed_out_workers(unit, timeout_ms)


def _give_back_abandoned(unit: UnitOfWork) -> int:
    return _log_failed(unit, housekeeping.give_back_abandoned(unit))


def _settle_compactions(unit: UnitOfWork) -> int:
    return _log_failed(unit, housekeeping.settle_compactions(unit))


def _log_failed(unit: UnitOfWork, failed: Sequence[Compaction]) -> int:
    unit.events += [events.compaction_failed(entry, unit.now_seconds) for entry in failed]
    return len(failed)


def _purge_marks(time: TimeJudgement, unit: UnitOfWork) -> int:
    ttl_ms = unit.settings.events.mark_ttl_ms
    return partition_marks.purge(unit.connection, time.before_ms(ttl_ms)) if ttl_ms else 0


def _purge_points(time: TimeJudgement, unit: UnitOfWork) -> int:
    """What events older than that would be purged for, whoever still wants to hear it."""
    before = time.before_ms(unit.settings.event_ttl_ms) // 1000
    return hook_points.purge(unit.connection, before, time.now_ms // 1000)


def _purge_events(sizes: EventSizes, time: TimeJudgement, unit: UnitOfWork) -> int:
    """What is older than its time to live goes, unless a dump is still to come that needs it."""
    settings = unit.settings
    before = time.before_ms(settings.event_ttl_ms) // 1000
    too_old = min(before, time.before_ms(settings.repl.event_budget_ms) // 1000)
    since = {policy: ms // 1000 for policy, ms in pins.needed_since_ms(unit.connection).items()}
    needed = [seconds - _DUMP_SECONDS_MAX for seconds in since.values()]
    given_up = too_old
    budget_bytes = settings.repl.event_budget_bytes
    # Without a limit, or with nobody who needs what is old, nothing has to be summed.
    if budget_bytes is not None and min([before, *needed]) < before:
        blocks = sizes.blocks(unit.connection, before)
        kept_since = kept_since_seconds(blocks, budget_bytes, before)
        given_up = too_old if kept_since is None else max(too_old, kept_since)
    purged_before = max(given_up, min([before, *needed]))
    gone = event_log.purge(unit.connection, purged_before, time.now_ms // 1000)
    for policy, seconds in since.items():
        if gone:
            _tell_given_up(policy, seconds, too_old=too_old, given_up=given_up)
    return gone


def _tell_given_up(policy: str, seconds: int, *, too_old: int, given_up: int) -> None:
    budget = "hms.bridge.repl.events.budget" + (".bytes" if given_up > too_old else "")
    if seconds < given_up:
        _LOG.warning(
            "%s is given up: its next dump needs events that are older than what %s allows, and "
            "they are purged. Its replica has to be bootstrapped anew; 'cm release %s' if it is "
            "replicated no more",
            policy,
            budget,
            policy,
        )
    elif seconds - _DUMP_SECONDS_MAX < given_up:
        _LOG.warning(
            "%s will be given up within a day, at the end of %s: dump before that, or raise the "
            "budget; 'repl lag' tells how long is left",
            policy,
            budget,
        )
