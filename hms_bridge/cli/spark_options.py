"""``--master``, ``--spark`` and ``--spark-properties``: for every verb that starts Spark."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from hms_bridge.spark.request import SparkRequest, spark_request


def spark_options(command: Callable[..., object]) -> Callable[..., object]:
    """The verb gets ``spark``, a SparkRequest."""

    @click.option(
        "--master",
        "spark_master",
        metavar="URL",
        help="Spark's master: local[2], spark://HOST:7077, yarn, k8s://….  [default: Spark's own "
        "settings, else local[*]]",
    )
    @click.option(
        "--spark",
        "spark_assignments",
        multiple=True,
        metavar="KEY=VALUE",
        help="One setting of Spark, as spark.executor.memory=4g. May be repeated.",
    )
    @click.option(
        "--spark-properties",
        "spark_properties",
        type=click.Path(path_type=Path, dir_okay=False),
        help="A file of settings of Spark, as 'hms-bridge spark package' writes it.",
    )
    @functools.wraps(command)
    def with_spark(
        *args: object,
        spark_master: str | None,
        spark_assignments: tuple[str, ...],
        spark_properties: Path | None,
        **kwargs: object,
    ) -> object:
        request = spark_request(spark_master, spark_properties, spark_assignments)
        return command(*args, spark=request, **kwargs)

    return with_spark


def start_spark(request: SparkRequest, application: str) -> Any:
    """A SparkSession as it was asked for; PySpark is loaded now. Raises ConfigError."""
    from hms_bridge.spark.session import open_session

    return open_session(application, master=request.master, settings=request.settings)


def started(request: SparkRequest, application: str) -> Callable[[], Any]:
    """Starts it when it is needed, and says so on a terminal."""

    def start() -> Any:
        from hms_bridge.cli.progress import working

        with working("starting Spark"):
            return start_spark(request, application)

    return start
