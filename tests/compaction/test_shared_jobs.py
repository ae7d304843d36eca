"""Entries of several workers in one job: what goes together, and whose answer is whose."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from hms_bridge.compaction.executor import EntryTasks, TaskResult
from hms_bridge.compaction.plan import BucketTask
from hms_bridge.compaction.shared_job import ENTRIES_MAX, JOBS_AT_ONCE, SharedJobs, TakenInTurns
from hms_bridge.errors import CompactionError
from hms_bridge.model.ids import WriteId
from hms_bridge.model.valid_ids import ValidWriteIdList

Answers = tuple[tuple[TaskResult, ...] | CompactionError, ...]
PATIENCE_SECONDS = 20.0


def _task(bucket_id: int) -> BucketTask:
    write_ids = ValidWriteIdList(table="d.t", high_watermark=WriteId(1))
    return BucketTask(bucket_id=bucket_id, write_ids=write_ids, columns=())


class Job:
    """Answers with as many rows as the root says; ends when it is let."""

    job_id = "job-1"

    def __init__(self, *, is_held: bool = False) -> None:
        self.jobs: list[tuple[str, ...]] = []
        self.at_once = self.at_once_max = 0
        self.gate = threading.Event()
        if not is_held:
            self.gate.set()
        self._lock = threading.Lock()
        self.before: Callable[[], None] = lambda: None

    def run_all(self, entries: Sequence[EntryTasks]) -> Answers:
        with self._lock:
            self.jobs.append(tuple(entry.root for entry in entries))
            self.at_once += 1
            self.at_once_max = max(self.at_once, self.at_once_max)
        assert self.gate.wait(PATIENCE_SECONDS)
        try:
            self.before()
            return tuple(self._answer(entry) for entry in entries)
        finally:
            with self._lock:
                self.at_once -= 1

    def run(
        self, tasks: Sequence[BucketTask], *, root: str, temporary: str
    ) -> tuple[TaskResult, ...]:
        raise AssertionError("only the job's id is asked for")

    def _answer(self, entry: EntryTasks) -> tuple[TaskResult, ...] | CompactionError:
        if entry.root.startswith("bad"):
            return CompactionError(f"{entry.root} is damaged")
        rows = int(entry.root)
        return tuple(
            TaskResult(bucket_id=task.bucket_id, files=(), rows_read=rows) for task in entry.tasks
        )


def _shared(job: Job) -> SharedJobs:
    return SharedJobs(job=job)


def _run(shared: SharedJobs, root: str, tasks: int = 1) -> tuple[TaskResult, ...]:
    return shared.run([_task(number) for number in range(tasks)], root=root, temporary="tmp")


def _until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.001)


def _started(
    threads: ThreadPoolExecutor, shared: SharedJobs, job: Job, roots: Sequence[str]
) -> list[Future[tuple[TaskResult, ...]]]:
    """Entries that wait: as many jobs as may run at once run already, one entry each."""
    running = []
    for number in range(JOBS_AT_ONCE):
        running.append(threads.submit(_run, shared, str(number)))
        _until(lambda wanted=number + 1: len(job.jobs) == wanted)  # type: ignore[misc]
    waiting = [threads.submit(_run, shared, root) for root in roots]
    _until(lambda: len(shared._waiting) == len(roots))
    return [*running, *waiting]


def test_one_alone_waits_for_nobody() -> None:
    job = Job()
    results = _run(_shared(job), "7", tasks=3)
    assert [(result.bucket_id, result.rows_read) for result in results] == [(0, 7), (1, 7), (2, 7)]
    assert job.jobs == [("7",)]
    assert _shared(job).job_id == "job-1"


def test_what_waits_goes_together() -> None:
    job = Job(is_held=True)
    shared = _shared(job)
    with ThreadPoolExecutor(16) as threads:
        futures = _started(threads, shared, job, ["10", "11", "12"])
        job.gate.set()
        rows = [future.result(PATIENCE_SECONDS)[0].rows_read for future in futures]
    assert rows == [0, 1, 10, 11, 12]
    assert sorted(job.jobs[-1]) == ["10", "11", "12"]
    assert len(job.jobs) == JOBS_AT_ONCE + 1


def test_an_entry_fails_for_itself() -> None:
    job = Job(is_held=True)
    shared = _shared(job)
    with ThreadPoolExecutor(16) as threads:
        *_, first, bad, last = _started(threads, shared, job, ["10", "bad one", "12"])
        job.gate.set()
        with pytest.raises(CompactionError, match="bad one is damaged"):
            bad.result(PATIENCE_SECONDS)
        assert [future.result(PATIENCE_SECONDS)[0].rows_read for future in (first, last)] == [
            10,
            12,
        ]


def test_a_job_has_at_most_so_many_entries() -> None:
    job = Job(is_held=True)
    shared = _shared(job)
    roots = [str(number) for number in range(ENTRIES_MAX + 3)]
    with ThreadPoolExecutor(ENTRIES_MAX + 8) as threads:
        futures = _started(threads, shared, job, roots)
        job.gate.set()
        answered = [future.result(PATIENCE_SECONDS)[0].rows_read for future in futures]
    assert answered[JOBS_AT_ONCE:] == [int(root) for root in roots]
    assert max(len(entries) for entries in job.jobs) == ENTRIES_MAX


def test_who_finds_no_room_in_a_job_begins_the_next_at_once() -> None:
    job = Job(is_held=True)
    shared = SharedJobs(job=job, company_seconds=5.0, next_seconds=0.2)
    shared._expected = ENTRIES_MAX + 3
    with ThreadPoolExecutor(ENTRIES_MAX + 3) as threads:
        futures = [threads.submit(_run, shared, str(number)) for number in range(ENTRIES_MAX + 3)]
        try:
            _until(lambda: sum(map(len, job.jobs)) == ENTRIES_MAX + 3)
        finally:
            job.gate.set()
        for future in futures:
            future.result(PATIENCE_SECONDS)
    assert len(job.jobs) == 2


def test_an_interrupt_of_whoever_runs_the_job_ends_the_wait_of_all() -> None:
    """They are told to try again; what comes after it is not held up."""
    job = Job(is_held=True)
    shared = _shared(job)
    with ThreadPoolExecutor(16) as threads:
        futures = _started(threads, shared, job, ["10", "11"])

        def interrupt() -> None:
            if len(job.jobs) > JOBS_AT_ONCE:
                raise KeyboardInterrupt

        job.before = interrupt
        job.gate.set()
        ends = [future.exception(PATIENCE_SECONDS) for future in futures[JOBS_AT_ONCE:]]
        assert sorted(type(end).__name__ for end in ends) == [
            "CompactionError",
            "KeyboardInterrupt",
        ]
        job.before = lambda: None
        assert _run(shared, "5")[0].rows_read == 5


def test_an_interrupt_of_one_that_waits_takes_its_entry_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody would publish what its tasks write, into a directory that is removed meanwhile."""
    job = Job(is_held=True)
    shared = _shared(job)

    def interrupt() -> None:
        raise KeyboardInterrupt

    with ThreadPoolExecutor(16) as threads:
        futures = _started(threads, shared, job, [])
        monkeypatch.setattr(shared._changed, "wait", interrupt)
        with pytest.raises(KeyboardInterrupt):
            _run(shared, "10")
        monkeypatch.undo()
        job.gate.set()
        assert [future.result(PATIENCE_SECONDS)[0].rows_read for future in futures] == [0, 1]
    assert _run(shared, "5")[0].rows_read == 5
    assert job.jobs == [("0",), ("1",), ("5",)]


def _had_company(shared: SharedJobs, job: Job, threads: ThreadPoolExecutor) -> None:
    """The last job was one of three."""
    futures = _started(threads, shared, job, ["10", "11", "12"])
    job.gate.set()
    for future in futures:
        future.result(PATIENCE_SECONDS)


def test_a_job_waits_for_as_many_as_came_of_late() -> None:
    """They come back one after the other, and the first would be a job alone."""
    job = Job(is_held=True)
    shared = SharedJobs(job=job, company_seconds=600.0, next_seconds=600.0)
    with ThreadPoolExecutor(16) as threads:
        _had_company(shared, job, threads)
        futures = []
        for count in range(1, 4):
            futures.append(threads.submit(_run, shared, str(count)))
            if count < 3:
                _until(lambda wanted=count: len(shared._waiting) == wanted)  # type: ignore[misc]
        assert [future.result(PATIENCE_SECONDS)[0].rows_read for future in futures] == [1, 2, 3]
    assert job.jobs[JOBS_AT_ONCE + 1 :] == [("1", "2", "3")]


@pytest.mark.parametrize(("company", "following"), [(0.05, 600.0), (600.0, 0.05)])
def test_whom_nobody_joins_goes_alone(company: float, following: float) -> None:
    job = Job(is_held=True)
    shared = SharedJobs(job=job, company_seconds=company, next_seconds=following)
    with ThreadPoolExecutor(16) as threads:
        _had_company(shared, job, threads)
        for number in range(4):
            waited = threads.submit(_run, shared, str(number))
            assert waited.result(PATIENCE_SECONDS)[0].rows_read == number
    assert job.jobs[JOBS_AT_ONCE + 1 :] == [("0",), ("1",), ("2",), ("3",)]
    assert shared._expected == 1


def test_who_is_interrupted_while_it_waits_for_company_leaves_the_job_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = Job(is_held=True)
    shared = SharedJobs(job=job, company_seconds=PATIENCE_SECONDS, next_seconds=PATIENCE_SECONDS)
    is_joined = threading.Event()

    def interrupt(_seconds: float) -> bool:
        monkeypatch.undo()
        shared._changed.release()
        assert is_joined.wait(PATIENCE_SECONDS)
        shared._changed.acquire()
        raise KeyboardInterrupt

    with ThreadPoolExecutor(16) as threads:
        _had_company(shared, job, threads)
        monkeypatch.setattr(shared._arrived, "wait", interrupt)
        first = threads.submit(_run, shared, "1")
        _until(lambda: len(shared._waiting) == 1)
        others = [threads.submit(_run, shared, root) for root in ("2", "3", "4")]
        _until(lambda: len(shared._waiting) == 4)
        is_joined.set()
        assert isinstance(first.exception(PATIENCE_SECONDS), KeyboardInterrupt)
        rows = [other.result(PATIENCE_SECONDS)[0].rows_read for other in others]
    assert rows == [2, 3, 4]
    assert sorted(job.jobs[-1]) == ["2", "3", "4"]


def test_an_entry_without_tasks_is_done() -> None:
    job = Job()
    assert _shared(job).run([], root="1", temporary="tmp") == ()
    assert job.jobs == []


def test_many_threads_get_their_own_answers() -> None:
    job = Job()
    random_pause = random.Random(7)
    job.before = lambda: time.sleep(random_pause.random() / 500)
    shared = _shared(job)

    def work(number: int) -> None:
        for turn in range(50):
            wanted = number * 1000 + turn
            assert _run(shared, str(wanted), tasks=2)[1].rows_read == wanted

    with ThreadPoolExecutor(8) as threads:
        for future in [threads.submit(work, number) for number in range(8)]:
            future.result(60)
    assert job.at_once_max == JOBS_AT_ONCE
    assert sum(len(entries) for entries in job.jobs) == 400
    assert len(job.jobs) < 400  # else nothing went together


def test_entries_of_one_process_take_turns() -> None:
    busy: list[int] = []
    seen: list[int] = []

    class Busy(Job):
        def run(
            self, tasks: Sequence[BucketTask], *, root: str, temporary: str
        ) -> tuple[TaskResult, ...]:
            busy.append(1)
            seen.append(len(busy))
            time.sleep(0.002)
            busy.pop()
            if root == "bad":
                raise CompactionError("its turn is given back")
            return ()

    turns = TakenInTurns(Busy(), 2)
    with ThreadPoolExecutor(8) as threads:
        futures = [
            threads.submit(turns.run, [_task(0)], root=root, temporary="tmp")
            for root in ["bad"] * 8 + ["good"] * 16
        ]
        ends = [future.exception(PATIENCE_SECONDS) for future in futures]
    assert [end is None for end in ends] == [False] * 8 + [True] * 16
    assert max(seen) == 2
    assert turns.job_id == "job-1"
