"""A job that ends by itself is started again; what it took with it is run once more."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from hms_bridge.compaction.executor import EntryTasks, TaskResult
from hms_bridge.compaction.lasting_job import LastingJob
from hms_bridge.compaction.plan import BucketTask
from hms_bridge.errors import CompactionError, ConfigError
from hms_bridge.model.ids import WriteId
from hms_bridge.model.valid_ids import ValidWriteIdList

TASK = BucketTask(
    bucket_id=0, write_ids=ValidWriteIdList(table="d.t", high_watermark=WriteId(1)), columns=()
)


class Application:
    """Ends at an entry whose root says so; answers with the root's number."""

    def __init__(self, number: int) -> None:
        self.job_id = f"application-{number}"
        self.has_ended = False
        self.is_closed = False
        self.seen: list[tuple[str, ...]] = []

    def run_all(
        self, entries: Sequence[EntryTasks]
    ) -> tuple[tuple[TaskResult, ...] | CompactionError, ...]:
        self.seen.append(tuple(entry.root for entry in entries))
        self.has_ended = self.has_ended or any(entry.root == "end" for entry in entries)
        if self.has_ended:
            return (CompactionError(f"{self.job_id} has ended"),) * len(entries)
        return tuple(
            CompactionError("damaged")
            if entry.root == "damaged"
            else (TaskResult(bucket_id=0, files=(), rows_read=int(entry.root)),)
            for entry in entries
        )

    def close(self) -> None:
        self.is_closed = True


class Cluster:
    """Starts applications, as many as it may."""

    def __init__(self, count_max: int = 100) -> None:
        self.applications: list[Application] = []
        self.count_max = count_max
        self.before: Callable[[], object] = lambda: None

    def start(self) -> Application:
        self.before()
        if len(self.applications) == self.count_max:
            raise ConfigError("the cluster is full")
        self.applications.append(Application(len(self.applications)))
        return self.applications[-1]


def _entry(root: str) -> EntryTasks:
    return EntryTasks(tasks=(TASK,), root=root, temporary="tmp")


def _rows(answer: tuple[TaskResult, ...] | CompactionError) -> int | str:
    return str(answer) if isinstance(answer, CompactionError) else answer[0].rows_read


def test_one_that_was_ended_is_put_away_and_another_one_started() -> None:
    cluster = Cluster()
    job = LastingJob(cluster.start)
    assert job.run([TASK], root="1", temporary="tmp")[0].rows_read == 1
    cluster.applications[0].has_ended = True
    assert job.run([TASK], root="2", temporary="tmp")[0].rows_read == 2
    assert job.job_id == "application-1"
    assert [one.is_closed for one in cluster.applications] == [True, False]


def test_who_ends_it_fails_alone() -> None:
    """Twice, at most: the others get their answers from one that is started after it."""
    cluster = Cluster()
    job = LastingJob(cluster.start)
    answers = job.run_all([_entry(root) for root in ("1", "end", "3")])
    assert [_rows(answer) for answer in answers] == [1, "application-1 has ended", 3]
    seen = [one.seen for one in cluster.applications]
    assert seen == [[("1", "end", "3")], [("1",), ("end",)], [("3",)]]


def test_a_failure_of_an_entry_ends_nothing() -> None:
    cluster = Cluster()
    answers = LastingJob(cluster.start).run_all([_entry(root) for root in ("1", "damaged")])
    assert [_rows(answer) for answer in answers] == [1, "damaged"]
    assert [one.seen for one in cluster.applications] == [[("1", "damaged")]]
    with pytest.raises(CompactionError, match="damaged"):
        LastingJob(cluster.start).run([TASK], root="damaged", temporary="tmp")


def test_none_can_be_started_again() -> None:
    """Each entry says so; a later one tries again."""
    cluster = Cluster(count_max=1)
    job = LastingJob(cluster.start)
    answers = job.run_all([_entry("end"), _entry("2")])
    assert [_rows(answer) for answer in answers] == ["the cluster is full"] * 2
    with pytest.raises(ConfigError, match="full"):
        job.ready()
    cluster.count_max = 2
    assert job.run([TASK], root="5", temporary="tmp")[0].rows_read == 5


def test_threads_start_one() -> None:
    cluster = Cluster()
    job = LastingJob(cluster.start)
    together = threading.Barrier(4)
    cluster.before = lambda: threading.Event().wait(0.05)

    def ready(_: int) -> str:
        together.wait(20)
        return job.ready().job_id

    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(ready, range(4))) == {"application-0"}


def test_after_the_close_nothing_is_started() -> None:
    """A process that ends would start Spark for each entry that its end took down."""
    cluster = Cluster()
    job = LastingJob(cluster.start)
    job.close()
    with pytest.raises(CompactionError, match="try again"):
        job.ready()
    job = LastingJob(cluster.start)
    job.ready()
    job.close()
    assert cluster.applications[0].is_closed
    cluster.applications[0].has_ended = True
    with pytest.raises(CompactionError, match="try again"):
        job.run([TASK], root="1", temporary="tmp")
    assert len(cluster.applications) == 1


def test_the_close_does_not_wait_for_a_start_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that has no place may let it wait for hours."""
    monkeypatch.setattr("hms_bridge.compaction.lasting_job._CLOSE_SECONDS", 0.05)
    cluster = Cluster()
    is_starting, may_start = threading.Event(), threading.Event()

    def hang() -> None:
        is_starting.set()
        assert may_start.wait(20)

    cluster.before = hang
    job = LastingJob(cluster.start)
    with ThreadPoolExecutor(1) as threads:
        starting = threads.submit(job.ready)
        assert is_starting.wait(20)
        began = time.monotonic()
        job.close()
        assert time.monotonic() - began < 10
        assert not starting.done()
        may_start.set()
        starting.result(20)
    with pytest.raises(CompactionError, match="try again"):
        job.ready()


def test_an_entry_without_tasks_needs_no_job() -> None:
    cluster = Cluster()
    assert LastingJob(cluster.start).run([], root="1", temporary="tmp") == ()
    assert cluster.applications == []
