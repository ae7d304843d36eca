"""A Spark session as this project needs it."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from hms_bridge.spark.java import find_java_home

_SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A Hive timestamp has no zone; what Spark shows must not depend on the machine's.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    # Few rows a partition: 200 tasks for a small statement would be all overhead.
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Rows with years before 1582 keep their days.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def open_session(
    application: str = "hms-bridge",
    *,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """The active session, or a new one: ``master`` from ``--master``, SPARK_MASTER or local[*].

    Raises ConfigError when there is no Java that Spark runs on.
    """
    os.environ["JAVA_HOME"] = str(find_java_home())
    # Workers must run this very Python, or they miss what is installed beside us.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # PySpark logs every refused statement in JSON; the error itself comes to the caller anyway.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName(application).master(
        master or os.environ.get("SPARK_MASTER", "local[*]")
    )
    log = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"
    chosen = {"spark.driver.extraJavaOptions": log, **_SETTINGS, **(settings or {})}
    for name, value in chosen.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
