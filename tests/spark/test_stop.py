"""Spark is stopped, also when its Java ended first."""

from __future__ import annotations

from typing import Any, cast

from hms_bridge.spark.session import stop_spark


class _Gone:
    def stop(self) -> None:
        raise ConnectionRefusedError(111, "Connection refused")


def test_a_spark_whose_java_is_gone_is_stopped_already() -> None:
    stop_spark(cast(Any, _Gone()))
