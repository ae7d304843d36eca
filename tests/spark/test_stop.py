"""Spark is stopped, also when its Java ended first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from changemanager.location import FsspecResolver
from hms_bridge.compaction.executor import EntryTasks
from hms_bridge.compaction.kernel import BucketKernel
from hms_bridge.compaction.plan import BucketTask
from hms_bridge.errors import CompactionError
from hms_bridge.model.ids import WriteId
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.spark.compaction_job import SparkExecutor
from hms_bridge.spark.session import is_running, stop_spark


class _Gone:
    """A session whose Java does not answer."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.context_stops = 0
        self.sparkContext = SimpleNamespace(
            _jsc=SimpleNamespace(sc=self.stop), _gateway=object(), stop=self._stop_context
        )

    def stop(self) -> Any:
        raise self.error

    def _stop_context(self) -> None:
        self.context_stops += 1


@pytest.mark.parametrize(
    "error",
    [ConnectionRefusedError(111, "Connection refused"), Py4JNetworkError("no answer"), Py4JError()],
)
def test_a_spark_whose_java_is_gone_is_stopped_already(error: Exception) -> None:
    gone = _Gone(error)
    assert not is_running(cast(Any, gone))
    stop_spark(cast(Any, gone))
    assert gone.context_stops == 1  # its thread and port of accumulators go with it


def test_one_that_somebody_stopped_does_not_run() -> None:
    for java in (None, SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: True))):
        assert not is_running(cast(Any, SimpleNamespace(sparkContext=SimpleNamespace(_jsc=java))))


class _Session:
    """One whose job fails, ended or not."""

    def __init__(self, java: Any, error: Exception) -> None:
        self.error = error
        self.sparkContext = SimpleNamespace(
            _jsc=java, master="local[2]", defaultParallelism=2, parallelize=self._fail
        )

    def _fail(self, *_: object) -> Any:
        raise self.error


def _run_two(session: _Session) -> Any:
    task = BucketTask(
        bucket_id=0, write_ids=ValidWriteIdList(table="d.t", high_watermark=WriteId(1)), columns=()
    )
    entry = EntryTasks(tasks=(task,), root="file:/t", temporary="file:/t/tmp")
    kernel = BucketKernel(resolver=FsspecResolver())
    return SparkExecutor(spark=cast(Any, session), kernel=kernel).run_all([entry, entry])


@pytest.mark.parametrize(
    "error",
    [AttributeError("'NoneType' has no 'sc'"), ConnectionRefusedError(111, "no"), Py4JError("no")],
)
def test_a_job_of_a_spark_that_has_ended_is_no_entrys_fault(error: Exception) -> None:
    """PySpark raises what it happens to meet. Nobody tries each entry by itself there."""
    answers = _run_two(_Session(None, error))
    assert [type(answer) for answer in answers] == [CompactionError] * 2
    assert "Spark has ended" in str(answers[0])


def test_an_unknown_failure_of_one_that_runs_is_raised() -> None:
    running = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False))
    with pytest.raises(TypeError, match="a fault"):
        _run_two(_Session(running, TypeError("a fault")))
