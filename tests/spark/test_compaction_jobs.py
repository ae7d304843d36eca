"""Several entries in one Spark job: each has its own end, whatever the others come to."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.compaction.executor import CompactionExecutor, EntryTasks, TaskResult, always
from hms_bridge.compaction.kernel import BucketKernel, LocalExecutor
from hms_bridge.compaction.plan import BucketTask, CompactionPlan
from hms_bridge.compaction.shared_job import SharedJobs
from hms_bridge.compaction.worker import Worker
from hms_bridge.errors import CompactionError
from hms_bridge.model.compaction import CompactionRequest, CompactionState, CompactionType
from hms_bridge.model.target import Target
from hms_bridge.model.txn import TxnState
from hms_bridge.spark.compaction_job import SparkExecutor
from hms_bridge.spark.session import tries_of_a_task
from hms_bridge.spark.tasks import CompactionTask
from tests.support.world import WHO, World

TABLES = ("first", "second", "third")


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    for name in TABLES:
        world.create_table(name)
        world.insert(name, (1, name), (2, "two"))
        world.insert(name, (3, "three"))
        world.delete(name, 2)
    return world


@dataclass(frozen=True, kw_only=True)
class ProcessKiller(BucketKernel):
    """A kernel whose process is killed at the table of this name, as by a host without memory."""

    killed_at: str

    def __call__(self, task: BucketTask, root: str, temporary: str) -> TaskResult:
        if root.rstrip("/").endswith(self.killed_at):
            os._exit(9)
        return super().__call__(task, root, temporary)


def _kernel() -> BucketKernel:
    return BucketKernel(resolver=FsspecResolver())


def _entry(world: World, name: str, temporary: Path) -> EntryTasks:
    plan = world.worker().plan(Target("db", name), CompactionType.MINOR)
    assert isinstance(plan, CompactionPlan)
    root = world.root(name)
    return EntryTasks(tasks=plan.tasks, root=root.uri, temporary=(temporary / name).as_uri())


def _job_count(spark: Any) -> int:
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))


def test_one_job_answers_as_one_process_does(world: World, spark: Any, tmp_path: Path) -> None:
    entries = [_entry(world, name, tmp_path / "spark") for name in TABLES]
    before = _job_count(spark)
    answers = SparkExecutor(spark=spark, kernel=_kernel()).run_all(entries)
    assert _job_count(spark) == before + 1
    for name, answer in zip(TABLES, answers, strict=True):
        here = _entry(world, name, tmp_path / "local")
        wanted = LocalExecutor(kernel=_kernel()).run(
            here.tasks, root=here.root, temporary=here.temporary
        )
        assert not isinstance(answer, CompactionError)
        assert _named(answer) == _named(wanted)


def _named(results: tuple[TaskResult, ...]) -> list[TaskResult]:
    """Without the name of the try."""
    return [
        replace(result, files=tuple(replace(file, written_as="") for file in result.files))
        for result in results
    ]


def test_a_damaged_file_fails_its_own_entry(world: World, spark: Any, tmp_path: Path) -> None:
    entries = [_entry(world, name, tmp_path / "spark") for name in TABLES]
    damaged = list(world.path("second").glob("delta_*/bucket_*"))
    assert damaged
    for path in damaged:
        path.write_bytes(b"no ORC at all")
    first, second, third = SparkExecutor(spark=spark, kernel=_kernel()).run_all(entries)
    assert isinstance(second, CompactionError)
    assert "second/delta_" in str(second)
    for answer in (first, third):
        assert not isinstance(answer, CompactionError)
        assert answer[0].rows_read == 3


def test_a_failure_of_one_of_several_buckets_moves_nobodys_results(
    world: World, spark: Any, tmp_path: Path
) -> None:
    """Each entry after it got a result of the one before it, and failed, too."""
    entries = [_entry(world, name, tmp_path / "spark") for name in TABLES]
    first, *others = entries
    broken = replace(first, tasks=(_of_missing_files(first), *first.tasks, *first.tasks))
    answers = SparkExecutor(spark=spark, kernel=_kernel()).run_all([broken, *others])
    assert isinstance(answers[0], CompactionError)
    for entry, answer in zip(others, answers[1:], strict=True):
        here = LocalExecutor(kernel=_kernel()).run(
            entry.tasks, root=entry.root, temporary=(tmp_path / "local").as_uri()
        )
        assert not isinstance(answer, CompactionError)
        assert _named(answer) == _named(here)
        for result in answer:
            for file in result.files:
                assert (Path(entry.temporary.removeprefix("file://")) / file.written_as).is_file()


def test_a_task_that_takes_its_process_down_fails_its_own_entry(
    world: World, spark: Any, tmp_path: Path
) -> None:
    entries = [_entry(world, name, tmp_path / "spark") for name in TABLES]
    kernel = ProcessKiller(resolver=FsspecResolver(), killed_at="/second")
    first, second, third = SparkExecutor(spark=spark, kernel=kernel).run_all(entries)
    assert isinstance(second, CompactionError)
    for answer in (first, third):
        assert not isinstance(answer, CompactionError)
        assert answer[0].rows_read == 3


def test_a_failure_is_raised_while_spark_tries_again(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another host may see what this one does not; the last try tells it as a value."""
    entry = replace(_entry(world, "first", tmp_path), root=(tmp_path / "nothing").as_uri())
    task = CompactionTask(kernel=_kernel(), tries=4)
    tries = iter([0, 2, 3])
    monkeypatch.setattr("hms_bridge.spark.tasks._tries_before", lambda: next(tries))
    work = (_of_missing_files(entry), entry.root, entry.temporary)
    for _ in range(2):
        with pytest.raises(OSError, match="delta_"):
            task(work)
    failure = task(work)
    assert "delta_" in getattr(failure, "reason", "")


def _of_missing_files(entry: EntryTasks) -> BucketTask:
    task = entry.tasks[0]
    assert task.rows is not None
    files = tuple(replace(file, path=f"/nothing{file.path}") for file in task.rows.files)
    return replace(task, rows=replace(task.rows, files=files))


@pytest.mark.parametrize(
    ("master", "setting", "tries"),
    [
        ("local[2]", "7", 1),  # which a local master does not look at
        ("local[2, 3]", "7", 3),
        ("local[*]", None, 1),
        ("local", None, 1),
        ("spark://host:7077", None, 4),
        ("yarn", "7", 7),
    ],
)
def test_tries_are_those_of_spark(master: str, setting: str | None, tries: int) -> None:
    class Context:
        def __init__(self) -> None:
            self.master = master

        def getConf(self) -> dict[str, str]:  # noqa: N802  (Spark's name)
            return {"spark.task.maxFailures": setting} if setting else {}

    assert tries_of_a_task(Context()) == tries  # type: ignore[arg-type]


def test_workers_beside_each_other_end_each_for_itself(world: World, spark: Any) -> None:
    """Their entries share jobs; that of the damaged table fails, and readers see the same rows."""
    before = {name: world.rows(name) for name in TABLES}
    for name in TABLES:
        world.metastore.compact(
            CompactionRequest(target=Target("db", name), type=CompactionType.MAJOR)
        )
    kernel = ProcessKiller(resolver=FsspecResolver(), killed_at="/second")
    job = SparkExecutor(spark=spark, kernel=kernel)
    shared = SharedJobs(job=job)
    with ThreadPoolExecutor(3) as threads:
        outcomes = list(threads.map(lambda n: _worker(world, shared, n).run_once(), range(3)))
    states = {outcome.entry.target.table: outcome.state for outcome in outcomes if outcome}
    assert states == {"first": "compacted", "second": "failed", "third": "compacted"}
    assert {name: world.rows(name) for name in TABLES} == before
    assert not [path for name in TABLES for path in world.names(name) if path.startswith("_tmp")]
    entries = {entry.target.table: entry.state for entry in world.metastore.show_compactions()}
    assert entries["second"] is CompactionState.FAILED
    assert not [txn for txn in world.metastore.get_open_txns().txns if txn.state is TxnState.OPEN]


def _worker(world: World, executor: CompactionExecutor, number: int) -> Worker:
    identity = replace(WHO, worker_id=f"host-{number}")
    return Worker(world.metastore, always(executor), world.resolve, identity)
