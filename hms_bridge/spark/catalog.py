"""Hive's ACID tables as tables of a Spark session: ``acid.sales.orders``, or ``sales.orders``.

    spark = configure(SparkSession.builder, metastore="thrift://host:9083").getOrCreate()
    spark.table("acid.sales.orders").show()

What is read of a table is planned in a thread of this process (docs/format/plan-service.md), which
must live as long as Spark reads.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hms_bridge.config.reading import settings_of_environment
from hms_bridge.connect import shareable_url
from hms_bridge.errors import ConfigError
from hms_bridge.plans.token_file import kept_token
from hms_bridge.spark.failures import first_line
from hms_bridge.spark.jar import JAR
from hms_bridge.spark.plan_server import (
    SESSION_CATALOG,
    SESSION_CLASS,
    serving_plans,
    spark_settings,
)

_JARS = "spark.jars"
_SESSION_KEY = f"spark.sql.catalog.{SESSION_CATALOG}"
_GATEWAY_PORT = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit for the program that it starts."""
_services: dict[tuple[int, str], dict[str, str]] = {}
"""Where plans are made, for a process (which may be a fork of another) and metastore."""
_starting = threading.Lock()


def configure(
    builder: SparkSession.Builder,
    name: str = "acid",
    *,
    metastore: str,
    session_catalog: bool = False,
) -> SparkSession.Builder:
    """Give a session that is to be built the catalog ``name``; with ``session_catalog`` ACID tables
    are also found by two-part names, among Spark's own.

    ``metastore`` is ``thrift://host:port`` or a database's URL. Raises ConfigError, also where
    Spark's Java runs already without the jar, and what the metastore raises.
    """
    if SparkSession.getActiveSession() is not None:
        raise ConfigError(
            "a Spark session runs already, and jars are given at a start: use attach(spark, …)"
        )
    if session_catalog:
        _require_free(builder._options.get(_SESSION_KEY))
    _give_jar(builder)
    options = catalog_settings(name, metastore=metastore, session_catalog=session_catalog)
    for key, value in options.items():
        builder.config(key, value)
    return builder


def _require_free(session_catalog: str | None) -> None:
    """Spark has one session catalog, and keeps the first."""
    if session_catalog not in (None, SESSION_CLASS):
        raise ConfigError(
            f"{SESSION_CATALOG} is {session_catalog} already: leave out session_catalog"
        )


def _give_jar(builder: SparkSession.Builder) -> None:
    """Unless one of its name is there: of two Spark takes the first, and logs an error."""
    if SparkContext._gateway is None and _GATEWAY_PORT not in os.environ:
        jars = [jar for jar in str(builder._options.get(_JARS, "")).split(",") if jar]
        if JAR.name not in [jar.rpartition("/")[2] for jar in jars]:
            builder.config(_JARS, ",".join([*jars, str(JAR)]))
        return
    SparkContext._ensure_initialized()
    if JAR.name not in SparkContext._jvm.SparkConf().get(_JARS, ""):
        raise ConfigError(
            "Spark's Java runs already, by spark-submit or for an earlier session, without the "
            f"jar: start spark-submit with --jars {JAR}, or use attach(spark, …) once the session "
            "is there"
        )


def attach(
    spark: SparkSession, name: str = "acid", *, metastore: str, session_catalog: bool = False
) -> None:
    """The same for a session that runs. Each session that ``spark.newSession()`` gives is attached
    for itself.

    Raises ConfigError where Spark takes no jar any more, or has another session catalog.
    """
    if session_catalog:
        _require_free(spark.conf.get(_SESSION_KEY, None))
    add_catalog(
        spark, name, catalog_settings(name, metastore=metastore, session_catalog=session_catalog)
    )


def add_catalog(spark: SparkSession, name: str, options: Mapping[str, str]) -> None:
    """Give a session that runs the jar and a catalog's settings. Raises ConfigError as
    :func:`attach`."""
    try:
        spark.sql(f"ADD JAR '{JAR}'")
        for key, value in options.items():
            spark.conf.set(key, value)
        spark.sql(f"SHOW NAMESPACES IN `{name}`").collect()
    except PySparkException as error:
        raise ConfigError(
            f"this Spark session cannot be given the catalog {name}: {first_line(error)}; give it "
            "at the start: hms_bridge.spark.catalog.configure(SparkSession.builder, …)"
        ) from error


def catalog_settings(
    name: str, *, metastore: str, session_catalog: bool = False
) -> Mapping[str, str]:
    """Spark's settings for the catalogs, whose plans a thread of this process makes."""
    if not re.fullmatch(r"[\w-]+", name) or name == SESSION_CATALOG:
        raise ConfigError(
            f"'{name}' cannot be the catalog's name: take letters, digits and _; for two-part names"
            " give session_catalog=True as well"
        )
    return spark_settings(name, _service(metastore), has_session_catalog=session_catalog)


def _service(metastore_url: str) -> dict[str, str]:
    """One for each metastore, until the process ends."""
    with _starting:
        key = os.getpid(), shareable_url(metastore_url)
        if key not in _services:
            _services[key] = _start(key[1])
        return _services[key]


def _start(url: str) -> dict[str, str]:
    # PySpark writes settings on a command line, which everybody reads: the token is in a file.
    folder = Path(tempfile.mkdtemp(prefix="hms-bridge-"))
    token_file = folder / "plans.token"
    running = ExitStack()
    running.callback(shutil.rmtree, folder, ignore_errors=True)
    settings, token = settings_of_environment(os.environ), kept_token(token_file)
    endpoint = running.enter_context(serving_plans(url, settings, token=token))
    owner = os.getpid()

    def stop() -> None:
        if os.getpid() == owner:  # not a fork, whose end is none of its parent's readers'
            with suppress(Exception):
                running.close()

    atexit.register(stop)
    return {"url": endpoint.url, "token-file": str(token_file)}
