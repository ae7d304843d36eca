"""The worker: takes an entry from the queue, compacts, publishes.

1. Claim the oldest entry; 2. open a COMPACTION transaction, name it in the entry, lock the target
SHARED_READ and keep both alive; 3. take the transaction list, list the directory, look at the table
again, then plan; 4. record what the compaction will reach; 5. write below
``_tmp_compaction_v<txn>``; 6. compare what a second reader sees of inputs and outputs, and look
whether the table is still the same; 7. rename each output into place, still invisible for its
``_v<txn>`` suffix; 8. mark the entry compacted; 9. commit, which makes all outputs visible at once.
A kill at any point leaves either the state before, with directories that nobody sees and the
cleaner removes, or the state after (I9). Hive's steps: docs/hive/compaction.md §4, §10.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from changemanager.filesystem.volume import Volume
from changemanager.journal import log_deed
from changemanager.location import Resolver
from hms_bridge.compaction.executor import ExecutorFor, TaskResult
from hms_bridge.compaction.plan import CompactionPlan, NothingToCompact, plan_compaction
from hms_bridge.compaction.snapshot import CompactorSnapshot, take_snapshot
from hms_bridge.compaction.target import CompactionTarget, find_target
from hms_bridge.directories.rename import rename_directory
from hms_bridge.directories.staging import (
    forget_dead_temporaries,
    hidden_name,
    token_of,
    write_version_file,
)
from hms_bridge.errors import CompactionError, HmsBridgeError
from hms_bridge.interrupts import HeldInterrupts
from hms_bridge.metastore import Metastore
from hms_bridge.model.compaction import Compaction, CompactionType
from hms_bridge.model.counted import counted
from hms_bridge.model.ids import NO_TXN, TxnId
from hms_bridge.model.lock import LockState
from hms_bridge.model.target import Target
from hms_bridge.model.txn import AbortReason, TxnType
from hms_bridge.session.locked_transaction import read_lock
from hms_bridge.session.min_history import register_reader
from hms_bridge.session.transaction import Client, Transaction, open_transaction

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerIdentity:
    """Who works: stands in the queue and in SHOW COMPACTIONS."""

    worker_id: str
    version: str
    user: str
    host: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CompactionOutcome:
    """What became of an entry. ``state`` is compacted, refused or failed."""

    entry: Compaction
    state: str
    message: str
    plan: CompactionPlan | None = None
    results: tuple[TaskResult, ...] = ()


class Worker:
    """Compacts queue entries, one a call of ``run_once``."""

    def __init__(
        self,
        metastore: Metastore,
        executor_for: ExecutorFor,
        resolver: Resolver,
        identity: WorkerIdentity,
        *,
        pool_name: str | None = None,
        is_default_pool: bool = False,
    ) -> None:
        """``is_default_pool``: takes also what it cannot do, and refuses that for good; for a
        metastore over thrift whose default pool nobody else serves."""
        self._metastore = metastore
        self._executor_for = executor_for
        self._resolver = resolver
        self._identity = identity
        self._pool_name = pool_name
        self._is_default_pool = is_default_pool

    def run_once(self) -> CompactionOutcome | None:
        """Take one entry to its end; None if the queue is empty.

        An interrupt gives the entry up (it counts as failed) and is raised then.
        """
        with HeldInterrupts() as held:  # until there is something that can be given up
            entry = self._metastore.find_next_compaction(
                self._identity.worker_id,
                self._identity.version,
                self._pool_name,
                is_selective=not self._is_default_pool,
            )
            if entry is None:
                return None
            outcome = self._take(entry, held)
        _log_outcome(outcome)
        return outcome

    def _take(self, entry: Compaction, held: HeldInterrupts) -> CompactionOutcome:
        """Whatever fails before there is a transaction, by whose end others would hear of it, does
        not leave the entry claimed."""
        try:
            try:
                target = find_target(self._metastore, entry.target)
            except CompactionError as error:
                self._metastore.mark_refused(replace(entry, error_message=str(error)))
                return CompactionOutcome(entry=entry, state="refused", message=str(error))
            return self._in_transaction(entry, target, held)
        except HmsBridgeError as error:
            self._give_up(entry, None, _as_text(error))
            raise

    def run_until_idle(self, is_ending: Callable[[], bool] = lambda: False) -> int:
        """Take entries until the queue is empty, or the process ``is_ending``; how many were
        taken."""
        count = 0
        while not is_ending() and self.run_once() is not None:
            count += 1
        return count

    def plan(self, wanted: Target, kind: CompactionType) -> CompactionPlan | NothingToCompact:
        """What would be done now, for ``--dry-run``; nothing is opened or written."""
        target = find_target(self._metastore, wanted)
        return self._decide(
            kind,
            target,
            take_snapshot(self._metastore, self._resolver, target, TxnId(0)),
            TxnId(0),
        )

    def _in_transaction(
        self, entry: Compaction, target: CompactionTarget, held: HeldInterrupts
    ) -> CompactionOutcome:
        user = self._identity.user
        client = Client(user=user, host=self._identity.host, agent=None)
        failed = entry
        try:
            with open_transaction(
                self._metastore,
                client,
                kind=TxnType.COMPACTION,
                abort_reason=AbortReason.COMPACTION,
            ) as transaction:
                failed = replace(entry, txn_id=transaction.id)
                # At once, so that the entry of a worker that dies can be given back by this id.
                self._metastore.update_compactor_state(replace(failed, run_as=user), transaction.id)
                held.release()
                return self._compact(entry, target, transaction)
        except (HmsBridgeError, OSError) as error:
            if failed is entry:
                raise  # there was no transaction
            reason = _as_text(error)
            _LOG.warning("compaction %d of %s failed: %s", entry.id, entry.target, reason)
            self._give_up(failed, target, reason)
            return CompactionOutcome(entry=failed, state="failed", message=reason)
        except BaseException as error:
            if failed is not entry and self._is_unfinished(failed):
                self._give_up(failed, target, _reason(error))
            raise

    def _is_unfinished(self, entry: Compaction) -> bool:
        """Whether its transaction was not committed, as far as can be known."""
        try:
            return any(txn.id == entry.txn_id for txn in self._metastore.get_open_txns().txns)
        except HmsBridgeError:
            return True

    def _root(self, target: CompactionTarget) -> tuple[Volume, str]:
        location = self._resolver(target.location)
        return location.volume, location.path

    def _decide(
        self,
        kind: CompactionType,
        target: CompactionTarget,
        snapshot: CompactorSnapshot,
        txn_id: TxnId,
    ) -> CompactionPlan | NothingToCompact:
        return plan_compaction(
            snapshot.state,
            snapshot.write_ids,
            kind=kind,
            txn_id=txn_id,
            columns=target.table.storage.columns,
            is_bucketed=bool(target.table.storage.bucket_columns),
        )

    def _compact(
        self, entry: Compaction, target: CompactionTarget, transaction: Transaction
    ) -> CompactionOutcome:
        txn_id = transaction.id
        answer = transaction.lock([read_lock(target.table, entry.target.partition)])
        if answer.state is not LockState.ACQUIRED:
            raise CompactionError(f"{entry.target} is locked by another; try again later")
        register_reader(self._metastore, txn_id, [target.table.full_name], own_compaction=entry.id)
        snapshot = take_snapshot(self._metastore, self._resolver, target, txn_id)
        target = self._look_again(entry, target)
        plan = self._decide(entry.type, target, snapshot, txn_id)
        highest = snapshot.write_ids.high_watermark
        claimed = replace(
            entry, highest_write_id=highest, txn_id=txn_id, run_as=self._identity.user
        )
        if isinstance(plan, NothingToCompact):
            return self._finish_without_work(claimed, plan, txn_id)
        self._metastore.update_compactor_state(claimed, txn_id)
        executor = self._executor_for(plan.input_size_bytes)
        self._metastore.set_hadoop_job_id(executor.job_id, entry.id)
        volume, root = self._root(target)
        name = hidden_name(token_of("compaction", txn_id))
        temporary = f"{root}/{name}"
        self._forget_dead_temporaries(target, snapshot)
        # Tasks run elsewhere: they are sent the file system, too.
        place = self._resolver(target.location)
        results = executor.run(plan.tasks, root=place.uri, temporary=place.child(name).uri)
        _check(plan, results)
        for output in plan.outputs:
            directory = f"{temporary}/{output.format()}"
            volume.make_working_directory(directory)
            write_version_file(volume, directory)
        gather(volume, temporary, results)
        self._require_same(entry, target)
        transaction.heartbeat.check()
        for output in plan.outputs:
            rename_directory(volume, f"{temporary}/{output.format()}", f"{root}/{output.format()}")
        self._remove_temporary(target, txn_id)  # on an object store nothing is left of it
        self._metastore.mark_compacted(claimed)
        rows = sum(file.row_count for result in results for file in result.files)
        return CompactionOutcome(
            entry=claimed,
            state="compacted",
            message=f"{len(plan.inputs)} inputs became "
            f"{', '.join(made.format() for made in plan.outputs)} with {counted(rows, 'event')}",
            plan=plan,
            results=results,
        )

    def _look_again(self, entry: Compaction, target: CompactionTarget) -> CompactionTarget:
        """The table as it is after the snapshot: no row that was seen has a column that it lacks.

        Raises CompactionError if it is another one by now.
        """
        current = find_target(self._metastore, entry.target)
        if not current.is_same_place(target):
            raise CompactionError(f"{entry.target} was made anew or moved meanwhile; try again")
        return current

    def _require_same(self, entry: Compaction, target: CompactionTarget) -> None:
        if not find_target(self._metastore, entry.target).is_same(target):
            raise CompactionError(
                f"{entry.target} was altered, made anew or moved while it was compacted; nothing "
                "was published: try again"
            )

    def _finish_without_work(
        self, entry: Compaction, plan: NothingToCompact, txn_id: TxnId
    ) -> CompactionOutcome:
        if plan.has_leftovers:
            self._metastore.update_compactor_state(entry, txn_id)
            self._metastore.mark_compacted(entry)
            message = f"{plan.reason}; the cleaner has something to remove"
            return CompactionOutcome(entry=entry, state="compacted", message=message)
        self._metastore.mark_refused(replace(entry, error_message=plan.reason))
        return CompactionOutcome(entry=entry, state="refused", message=plan.reason)

    def _give_up(self, entry: Compaction, target: CompactionTarget | None, message: str) -> None:
        """After the abort, so that what was published stays invisible for good. Without a target
        nothing was written."""
        failed = replace(entry, error_message=message[:2000])
        steps: list[Callable[[], None]] = [lambda: self._metastore.mark_failed(failed)]
        if target is not None:
            steps.append(lambda: self._remove_temporary(target, entry.txn_id or NO_TXN))
        for step in steps:
            try:
                step()
            except (HmsBridgeError, OSError) as error:
                _LOG.warning("after a failed compaction of %s: %s", entry.target, error)

    def _remove_temporary(self, target: CompactionTarget, txn_id: TxnId) -> None:
        volume, root = self._root(target)
        temporary = f"{root}/{hidden_name(token_of('compaction', txn_id))}"
        if volume.status(temporary) is not None:
            volume.remove_tree(temporary)

    def _forget_dead_temporaries(
        self, target: CompactionTarget, snapshot: CompactorSnapshot
    ) -> None:
        """In the root, and in the table's own directory, where statements stage their files."""
        roots = {self._resolver(target.location).path: self._resolver(target.location)}
        own = target.table.storage.location
        if target.table.is_partitioned and own:
            roots[self._resolver(own).path] = self._resolver(own)
        for place in roots.values():
            try:
                names = forget_dead_temporaries(place.volume, place.path, snapshot.txns)
            except OSError as error:  # its tasks may still write, or it is another user's
                _LOG.warning("cannot remove what dead writers left: %s", error)
                continue
            for name in names:
                log_deed(_LOG, "deleted", path=place.child(name).uri, cause="dead writer")


def _log_outcome(outcome: CompactionOutcome) -> None:
    entry, plan = outcome.entry, outcome.plan
    files = [file for result in outcome.results for file in result.files]
    log_deed(
        _LOG,
        outcome.state,
        entry=entry.id,
        transaction=entry.txn_id,
        type=entry.type.name.lower(),
        database=entry.target.database,
        table=entry.target.table,
        partition=entry.target.partition,
        inputs=plan.inputs if plan else None,
        outputs=[directory.format() for directory in plan.outputs] if plan else None,
        read_bytes=plan.input_size_bytes if plan else None,
        bytes=sum(file.size_bytes for file in files) if plan else None,
        highest_write_id=entry.highest_write_id,
        reason=None if plan else outcome.message,
    )


def gather(volume: Volume, temporary: str, results: tuple[TaskResult, ...]) -> None:
    """Give the files of the tries that counted their names in the output directories."""
    for result in results:
        for file in result.files:
            written, final = f"{temporary}/{file.written_as}", f"{temporary}/{file.path}"
            status = volume.status(written)
            if status is None or status.size_bytes != file.size_bytes:
                raise CompactionError(f"{written} has changed since it was checked; try again")
            volume.rename(written, final)


def _reason(error: BaseException) -> str:
    if isinstance(error, Exception):
        return f"unexpected {type(error).__name__}: {_as_text(error)}"
    return "interrupted"


def _as_text(error: Exception) -> str:
    """Names of files may have bytes that no text has; no database, log or wire takes them."""
    return str(error).encode("utf-8", "backslashreplace").decode()


def _check(plan: CompactionPlan, results: tuple[TaskResult, ...]) -> None:
    """Nothing was lost or doubled (I1): every event that was read was written, once."""
    if [result.bucket_id for result in results] != [task.bucket_id for task in plan.tasks]:
        raise CompactionError("the tasks' results do not fit the plan; nothing was published")
    for task, result in zip(plan.tasks, results, strict=True):
        written = sum(file.row_count for file in result.files)
        if written != result.rows_read + result.delete_events_read:
            raise CompactionError(
                f"bucket {task.bucket_id}: {result.rows_read + result.delete_events_read} events "
                f"were read but {written} written; nothing was published"
            )
        difference = _difference(result)
        if difference is not None:
            raise CompactionError(
                f"bucket {task.bucket_id}: {difference}; nothing was published. Keep the inputs, "
                "and report this with the table's definition"
            )


def _difference(result: TaskResult) -> str | None:
    """What a second reader found wrong (compaction/verify.py)."""
    if result.verification is None:
        return "its executor has not verified what it wrote"
    return result.verification.difference
