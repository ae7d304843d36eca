"""A Spark session as this project needs it, where the user's own settings say nothing else."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, SQLContext

from hms_bridge.errors import ConfigError
from hms_bridge.spark.executor_check import require_executors
from hms_bridge.spark.failures import first_line
from hms_bridge.spark.java import find_java_home
from hms_bridge.spark.request import (
    ANSI,
    SUBMIT_ARGUMENTS,
    SparkRequest,
    conf_folder,
    expected_master,
    is_local,
    submit_arguments,
)
from hms_bridge.spark.versions import require_matching_home, spark_home

_SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    # A Hive timestamp has no zone; what Spark shows must not depend on the machine's.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Rows with years before 1582 keep their days.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
_LOCAL_SETTINGS: Mapping[str, str] = {
    # Few rows a partition: 200 tasks for a small statement would be all overhead.
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_PYTHON = "PYSPARK_PYTHON"
_LOG_SETTING = "-Dlog4j2.configurationFile="


def open_session(
    application: str = "hms-bridge",
    *,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    is_checked: bool = True,
) -> SparkSession:
    """The active session, or a new one, with what :mod:`hms_bridge.spark.request` says of order.

    Executors of a master that is not local are asked first whether they have what tasks need, once
    a session, unless ``is_checked`` is false. Raises ConfigError when there is no Java that Spark
    runs on, when Spark does not start, and for what executors lack.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        require_exact_casts(active)
        return active
    request = SparkRequest(master=master, settings=dict(settings or {}))
    # PySpark logs every refused statement in JSON; the error itself comes to the caller anyway.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    try:
        spark = _start(application, request)
    except (PySparkException, Py4JError, RuntimeError) as error:
        raise ConfigError(
            f"Spark did not start: {first_line(error)}; check --master and the settings, or run "
            "again with --verbose"
        ) from error
    require_exact_casts(spark)
    if is_checked and not is_local(spark.sparkContext.master):
        try:
            require_executors(spark)
        except BaseException:
            stop_spark(spark)
            raise
    return spark


def tries_of_a_task(context: SparkContext) -> int:
    """How often one may fail before its job does (Spark: ``spark.task.maxFailures``, which a local
    master has as the second number of ``local[cores,failures]``)."""
    master = str(context.master)
    if is_local(master):
        failures = re.fullmatch(r"local\[[^,]*,\s*(\d+)\s*\]", master)
        return int(failures[1]) if failures else 1
    return int(context.getConf().get("spark.task.maxFailures") or 4)


def is_running(spark: SparkSession) -> bool:
    """Whether its Java answers, and its application has not been stopped."""
    java = spark.sparkContext._jsc
    try:
        return java is not None and not java.sc().isStopped()
    except (Py4JError, OSError):
        return False


def stop_spark(spark: SparkSession) -> None:
    """Stop Spark, whose Java may be gone: Ctrl-C and a service manager end the whole group."""
    try:
        spark.stop()
    except (ConnectionError, Py4JError):
        _forget_java(spark)


def _forget_java(spark: SparkSession) -> None:
    """Else PySpark would ask the one that is gone, whenever a session is opened."""
    context = spark.sparkContext
    context.stop()  # the rest of it, which needs no Java
    gateway = context._gateway
    if SparkContext._gateway is not gateway:
        return  # there is a newer one
    SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None
    with suppress(OSError, Py4JError):
        gateway.shutdown()


def require_exact_casts(spark: SparkSession) -> None:
    """Raises ConfigError for a session that turns values that do not fit into NULL."""
    if spark.conf.get(ANSI) != "true":  # with a default given, Spark would not show its own
        raise ConfigError(
            f"this Spark session has {ANSI}=false, so a value that does not fit its column would "
            f"be written as NULL; set {ANSI}=true"
        )


def _start(application: str, request: SparkRequest) -> SparkSession:
    with _surroundings(request):
        # The first call that needs Java starts it; then Spark's own reading of files and
        # arguments is there to be asked.
        SparkContext.setSystemProperty("spark.app.name", application)
    conf = SparkConf()
    if request.master:  # a Java that ran before was not started for this request
        conf.setMaster(request.master)
    conf.setAll(list(request.settings.items()))
    defaults = dict(_SETTINGS)
    if is_local(conf.get("spark.master") or ""):
        defaults |= _LOCAL_SETTINGS
        os.environ.setdefault(_PYTHON, sys.executable)
    for name, value in defaults.items():
        conf.setIfMissing(name, value)
    conf.set(ANSI, "true")
    python = conf.get("spark.pyspark.python")
    if python:  # PySpark itself reads it only in programs that spark-submit starts
        os.environ[_PYTHON] = python
    return SparkSession.builder.config(conf=conf).getOrCreate()


@contextmanager
def _surroundings(request: SparkRequest) -> Iterator[None]:
    """The environment for Spark's launcher; afterwards it is as it was, but for JAVA_HOME."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit has started us: all is said already
        yield
        return
    home = spark_home(os.environ)
    require_matching_home(home)
    os.environ["JAVA_HOME"] = str(find_java_home())
    own = {SUBMIT_ARGUMENTS: submit_arguments(request, os.environ, home)}
    if not _has_own_log(home):
        log = f"{_LOG_SETTING}{Path(__file__).with_name('log4j2.properties')}"
        own["SPARK_SUBMIT_OPTS"] = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} {log}".strip()
    if is_local(expected_master(request, os.environ, home)):
        own["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _has_own_log(home: Path) -> bool:
    """Whether the user has set how Spark's Java logs."""
    texts = (os.environ.get(name, "") for name in ("SPARK_SUBMIT_OPTS", SUBMIT_ARGUMENTS))
    return (conf_folder(os.environ, home) / "log4j2.properties").is_file() or any(
        "log4j" in text for text in texts
    )
