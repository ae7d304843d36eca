"""The worker over a real metastore: what it publishes, and what any failure leaves behind."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from changemanager.location import FsspecResolver
from hms_bridge.acid.markers import ACID_VERSION_FILE
from hms_bridge.compaction import kernel
from hms_bridge.compaction.kernel import BucketKernel, LocalExecutor
from hms_bridge.errors import CompactionError, MetastoreUnavailableError
from hms_bridge.model.catalog import (
    Column,
    SortColumn,
    Table,
)
from hms_bridge.model.compaction import (
    CompactionRequest,
    CompactionState,
    CompactionType,
    ShowCompactionsRequest,
    VerifyMode,
)
from hms_bridge.model.event import EventType, NotificationRequest
from hms_bridge.model.ids import EventId
from hms_bridge.model.target import Target
from hms_bridge.model.txn import (
    TxnState,
    TxnType,
)
from hms_bridge.rows.deletes import DeleteEvents
from tests.support.passing import Interrupted, Passing
from tests.support.world import COLUMNS, WHO, World, world_to_compact


@pytest.fixture
def world(tmp_path: Path) -> World:
    return world_to_compact(World(tmp_path))


@pytest.mark.parametrize(
    ("kind", "outputs"),
    [
        (CompactionType.MAJOR, {"base_0000003"}),
        (CompactionType.MINOR, {"delta_0000001_0000003", "delete_delta_0000001_0000003"}),
    ],
)
def test_a_compaction_is_published_whole(
    world: World, kind: CompactionType, outputs: set[str]
) -> None:
    before, names = world.rows(), world.names()
    world.request_compaction(kind=kind)
    outcome = world.worker().run_once()
    assert outcome is not None
    assert outcome.state == "compacted"
    new = world.names() - names
    assert {name.rpartition("_v")[0] for name in new} == outputs
    assert all((world.path() / name / ACID_VERSION_FILE).read_bytes() == b"2" for name in new)
    assert world.rows() == before
    assert world.state() is CompactionState.READY_FOR_CLEANING
    (entry,) = world.metastore.show_compactions()
    assert entry.highest_write_id == 3
    assert entry.hadoop_job_id == f"process-{os.getpid()}"
    assert world.worker().run_once() is None


def test_request_and_commit_are_events(world: World) -> None:
    world.request_compaction()
    world.worker().run_once()
    events = world.metastore.get_next_notification(NotificationRequest(last_event_id=EventId(0)))
    kinds = [event.type for event in events]
    assert kinds.index(EventType.REQUEST_COMPACTION) < kinds.index(EventType.COMMIT_COMPACTION)


def test_too_little_to_do_is_left_to_the_cleaner(world: World) -> None:
    world.request_compaction()
    world.worker().run_once()
    world.insert("t", (77, "one delta is not enough"))
    world.request_compaction(kind=CompactionType.MINOR)
    outcome = world.worker().run_once()
    assert outcome is not None
    assert outcome.plan is None
    assert outcome.state == "compacted"
    assert "the cleaner has something to remove" in outcome.message


def test_the_same_compaction_is_not_queued_twice(world: World) -> None:
    world.request_compaction()
    world.worker().run_once()
    again = world.metastore.compact(
        CompactionRequest(target=Target("db", "t"), type=CompactionType.MINOR)
    )
    assert not again.is_accepted


@pytest.mark.parametrize("change", ["sorted", "insert-only", "gone"])
def test_what_cannot_be_compacted_is_refused(
    world: World, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.request_compaction()
    table = world.metastore.get_table("db", "t")
    if change == "gone":
        monkeypatch.setattr(world.metastore, "get_table", functools.partial(_gone, world))
    elif change == "sorted":
        changed = _with(table, sort_columns=(SortColumn(name="id"),))
        monkeypatch.setattr(world.metastore, "get_table", lambda *_: changed)
    else:
        parameters = {**table.parameters, "transactional_properties": "insert_only"}
        changed = replace(table, parameters=parameters)
        monkeypatch.setattr(world.metastore, "get_table", lambda *_: changed)
    outcome = world.worker().run_once()
    assert outcome is not None
    assert outcome.state == "refused"
    assert world.state() is CompactionState.REFUSED


def _gone(world: World, *_: str) -> Table:
    from hms_bridge.errors import NoSuchObjectError

    raise NoSuchObjectError(f"{world.database}.t is not there any more")


def _with(table: Table, **changes: Any) -> Table:
    return replace(table, storage=replace(table.storage, **changes))


def test_a_task_that_loses_rows_publishes_nothing(world: World) -> None:
    """I1: the counts of what was read and written are compared before anything is renamed."""
    real = LocalExecutor(kernel=BucketKernel(resolver=FsspecResolver()))

    class Losing:
        job_id = "losing"

        def run(self, tasks: Any, *, root: str, temporary: str) -> Any:
            results = real.run(tasks, root=root, temporary=temporary)
            return tuple(replace(one, rows_read=one.rows_read + 1) for one in results)

    before, names = world.rows(), world.names()
    world.request_compaction()
    outcome = world.worker(executor=Losing()).run_once()
    assert outcome is not None
    assert outcome.state == "failed"
    assert "nothing was published" in outcome.message
    assert (world.rows(), world.names()) == (before, names)
    assert world.state() is CompactionState.FAILED


class Dying(Passing):
    """A metastore that stops answering at its nth call, for good."""

    def __init__(self, inner: Any, calls_left: int) -> None:
        super().__init__(inner)
        self.calls_left = calls_left

    def __getattr__(self, name: str) -> Any:
        method = super().__getattr__(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if self.calls_left <= 0:
                raise MetastoreUnavailableError("killed here")
            self.calls_left -= 1
            return method(*args, **kwargs)

        return call


def test_a_worker_killed_anywhere_loses_and_doubles_nothing(world: World) -> None:
    """Readers see the same rows whatever call is the worker's last; a later worker goes on."""
    before = world.rows()
    for calls in range(40):
        world.request_compaction()
        dying = Dying(world.metastore, calls)
        try:
            outcome = world.worker(metastore=dying).run_once()
        except MetastoreUnavailableError:
            outcome = None
        assert world.rows() == before, f"after {calls} calls"
        if outcome is not None and outcome.state == "compacted" and dying.calls_left > 0:
            break
        for txn in world.metastore.get_open_txns_info():
            if txn.state is TxnState.OPEN and txn.type is TxnType.COMPACTION:
                world.metastore.abort_txns([txn.id])  # what the time-out does
        world.metastore.revoke_timed_out_workers(-1)
        assert world.rows() == before
        while (again := world.worker().run_once()) is not None:
            assert again.state in ("compacted", "refused"), again.message
        assert world.rows() == before
        world.insert("t", (100 + calls, "more"), (200 + calls, "more"))
        world.delete("t", 200 + calls)
        before = world.rows()
    else:
        pytest.fail("the worker never came to its end")


@pytest.mark.parametrize("cut_off", ["find_next_compaction", "open_txns", "lock", "run"])
def test_an_interrupted_worker_gives_its_entry_up(world: World, cut_off: str) -> None:
    """Nothing has to time out before the next one can begin."""
    inner = LocalExecutor(kernel=BucketKernel(resolver=FsspecResolver()))
    interrupting = Interrupted(world.metastore, ctrl_c, after=cut_off)
    executor = Interrupted(inner, ctrl_c, after=cut_off)
    before, names = world.rows(), world.names()
    world.request_compaction()
    with _plain_interrupts(), pytest.raises(KeyboardInterrupt):
        world.worker(metastore=interrupting, executor=executor).run_once()
    (entry,) = world.metastore.show_compactions()
    assert (entry.state, entry.error_message) == (CompactionState.FAILED, "interrupted")
    assert (world.rows(), world.names()) == (before, names)
    states = [txn.state for txn in world.metastore.get_open_txns_info()]
    assert TxnState.OPEN not in states
    world.request_compaction()
    again = world.worker().run_once()
    assert again is not None
    assert again.state == "compacted"


def test_an_interrupt_after_the_commit_is_too_late(world: World) -> None:
    world.request_compaction()
    interrupting = Interrupted(world.metastore, ctrl_c, after="commit_txn")
    with _plain_interrupts(), pytest.raises(KeyboardInterrupt):
        world.worker(metastore=interrupting).run_once()
    assert world.state() is CompactionState.READY_FOR_CLEANING


def ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


@contextmanager
def _plain_interrupts() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_worker_that_lost_its_entry_publishes_nothing(world: World) -> None:
    """I9: the entry was given to another worker while this one was working."""
    before = world.rows()
    world.request_compaction()
    inner = LocalExecutor(kernel=BucketKernel(resolver=FsspecResolver()))
    other = world.worker(who=replace(WHO, worker_id="host-2"))

    class Slow:
        job_id = "slow"

        def run(self, tasks: Any, *, root: str, temporary: str) -> Any:
            results = inner.run(tasks, root=root, temporary=temporary)
            world.metastore.revoke_timed_out_workers(-1)
            taken = other.run_once()
            assert taken is not None
            assert taken.state == "compacted"
            return results

    outcome = world.worker(executor=Slow()).run_once()
    assert outcome is not None
    assert outcome.state == "failed"
    assert world.rows() == before
    assert world.state() is CompactionState.READY_FOR_CLEANING


def test_a_worker_whose_transaction_is_over_publishes_nothing(world: World) -> None:
    """I9: it was given up for lost while it worked. (Its commit would be refused, too, and what it
    published be seen by nobody; but it would lie there until a cleaner comes.)"""
    before, names = world.rows(), world.names()
    world.request_compaction()
    inner = LocalExecutor(kernel=BucketKernel(resolver=FsspecResolver()))

    class Slow:
        job_id = "slow"

        def run(self, tasks: Any, *, root: str, temporary: str) -> Any:
            results = inner.run(tasks, root=root, temporary=temporary)
            (entry,) = world.metastore.show_compactions(ShowCompactionsRequest())
            assert entry.txn_id is not None
            world.abort(entry.txn_id)
            published.append(world.names())
            return results

    published: list[set[str]] = []
    watched = Interrupted(
        world.metastore, lambda: published.append(world.names()), before="mark_compacted"
    )
    outcome = world.worker(metastore=watched, executor=Slow()).run_once()
    assert outcome is not None
    assert outcome.state == "failed"
    assert len(published) == 1
    assert (world.rows(), world.names()) == (before, names)


def test_a_compaction_ends_below_open_writes(world: World) -> None:
    """I1: what a write brings that is still open is not in the compaction, and not covered."""
    late = world.begin()
    late_write_id = late.write_id("t")
    world.insert("t", (77, "later"))
    before, names = world.rows(), world.names()
    world.request_compaction()
    outcome = world.worker().run_once()
    assert outcome is not None
    assert outcome.state == "compacted"
    assert outcome.entry.highest_write_id == late_write_id - 1
    (base,) = world.names() - names
    assert base.rpartition("_v")[0] == f"base_{late_write_id - 1:07d}"
    late.commit()
    assert world.rows() == before


def test_the_plan_changes_nothing(world: World) -> None:
    world.request_compaction()
    names = world.names()
    plan = world.worker().plan(Target("db", "t"), CompactionType.MAJOR)
    assert [output.format() for output in plan.outputs] == ["base_0000003"]  # type: ignore[union-attr]
    assert world.names() == names
    assert world.state() is CompactionState.INITIATED


@pytest.mark.parametrize("name", ["_tmp_compaction_v0000001", "_tmp_write_v0000001"])
def test_leftovers_of_the_dead_are_removed(world: World, name: str) -> None:
    dead = world.path() / name
    dead.mkdir()
    (dead / "junk").write_text("x")
    stranger = world.path() / "_somebody_elses"
    stranger.mkdir()
    world.request_compaction()
    world.worker().run_once()
    assert not dead.exists()
    assert stranger.exists()


def test_what_a_later_worker_writes_stays(world: World) -> None:
    """Its transaction was opened after the look at transactions, so it is not known as open."""
    later = world.path() / "_tmp_compaction_v9999999"
    later.mkdir()
    world.request_compaction()
    world.worker().run_once()
    assert later.exists()


def test_a_file_whose_name_is_no_text_ends_the_entry(world: World) -> None:
    """Neither a database nor thrift takes such a name in the reason."""
    world.insert("t", (1, "a"))
    world.insert("t", (2, "b"))
    (world.path() / os.fsdecode(b"b\xff")).write_text("somebody's")
    world.request_compaction()
    outcome = world.worker().run_once()
    assert outcome is not None
    assert outcome.state == "failed"
    assert world.state() is CompactionState.FAILED


def test_compaction_errors_name_the_target(world: World) -> None:
    from hms_bridge.compaction.target import find_target

    with pytest.raises(CompactionError, match=r"default\.nowhere is gone"):
        find_target(world.metastore, Target("default", "nowhere"))


def test_a_column_that_came_before_the_snapshot_is_kept(world: World) -> None:
    """ALTER TABLE and an INSERT of another come between the first look and the snapshot."""
    wide = (*COLUMNS, Column(name="w", type="string"))
    table = world.metastore.get_table("db", "t")

    def alter() -> None:
        world.metastore.alter_table("db", "t", _with(table, columns=wide))
        world.insert("t", (77, "seven", "new"))

    world.request_compaction()
    altering = Interrupted(world.metastore, alter, before="open_txns")
    outcome = world.worker(metastore=altering).run_once()
    assert outcome is not None
    assert outcome.state == "compacted"
    rows = {row["id"]: row["w"] for row in world.rows()}
    assert rows[77] == "new"
    assert rows[0] is None


@pytest.mark.parametrize("change", ["altered", "made anew"])
def test_a_table_that_changed_during_the_work_gets_nothing(world: World, change: str) -> None:
    inner = LocalExecutor(kernel=BucketKernel(resolver=FsspecResolver()))
    table = world.metastore.get_table("db", "t")

    class Slow:
        job_id = "slow"

        def run(self, tasks: Any, *, root: str, temporary: str) -> Any:
            results = inner.run(tasks, root=root, temporary=temporary)
            if change == "altered":
                wide = (*COLUMNS, Column(name="w", type="string"))
                world.metastore.alter_table("db", "t", _with(table, columns=wide))
            else:
                world.metastore.drop_table("db", "t")
                world.metastore.create_table(replace(table, id=0))
            return results

    world.request_compaction()
    names = world.names()
    outcome = world.worker(executor=Slow()).run_once()
    assert outcome is not None
    assert outcome.state == "failed"
    assert "try again" in outcome.message
    assert world.names() == (names if change == "altered" else set())


def _drop_one(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.slice(1)


def _double_one(batch: pa.RecordBatch) -> pa.RecordBatch:
    last = batch.slice(batch.num_rows - 1).to_pylist()[0]
    again = dict(last, rowId=last["rowId"] + 1)
    return pa.RecordBatch.from_pylist([*batch.to_pylist(), again], schema=batch.schema)


def _renumber_one(batch: pa.RecordBatch) -> pa.RecordBatch:
    rows = batch.to_pylist()
    rows[-1]["rowId"] += 5
    return pa.RecordBatch.from_pylist(rows, schema=batch.schema)


def _change_a_value(batch: pa.RecordBatch) -> pa.RecordBatch:
    rows = batch.to_pylist()
    rows[0]["row"]["v"] = "another"
    return pa.RecordBatch.from_pylist(rows, schema=batch.schema)


@pytest.mark.parametrize(
    ("spoil", "found_by"),
    [
        (_drop_one, {VerifyMode.COUNTS, VerifyMode.KEYS, VerifyMode.FULL}),
        (_double_one, {VerifyMode.COUNTS, VerifyMode.KEYS, VerifyMode.FULL}),
        (_renumber_one, {VerifyMode.KEYS, VerifyMode.FULL}),
        (_change_a_value, {VerifyMode.FULL}),
    ],
)
@pytest.mark.parametrize("verify", list(VerifyMode))
def test_what_the_kernel_spoils_is_not_published(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Any,
    found_by: set[VerifyMode],
    verify: VerifyMode,
) -> None:
    """The kernel's own counts agree: it spoils rows between its reader and its writer (I1)."""
    right = kernel._insert_events
    monkeypatch.setattr(kernel, "_insert_events", lambda batch: spoil(right(batch)))
    names = world.names()
    world.request_compaction()
    executor = LocalExecutor(kernel=BucketKernel(resolver=FsspecResolver(), verify=verify))
    outcome = world.worker(executor=executor).run_once()
    assert outcome is not None
    if verify in found_by:
        assert outcome.state == "failed"
        assert "nothing was published" in outcome.message
        assert world.names() == names
    else:
        assert outcome.state == "compacted"


@pytest.mark.parametrize("kind", [CompactionType.MAJOR, CompactionType.MINOR])
def test_a_reader_that_forgets_deletes_is_found_out(
    world: World, monkeypatch: pytest.MonkeyPatch, kind: CompactionType
) -> None:
    """Deleted rows would be there again; delete events would be lost."""
    monkeypatch.setattr(DeleteEvents, "victims", lambda *_: None)
    monkeypatch.setattr(kernel, "_delete_events", lambda *_: iter(()))
    names = world.names()
    world.request_compaction(kind=kind)
    outcome = world.worker().run_once()
    assert outcome is not None
    assert outcome.state == "failed"
    assert "a reader sees" in outcome.message
    assert world.names() == names
