"""Spark is stopped, also when its Java ended first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

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
