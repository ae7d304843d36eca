"""Hive's ACID tables as tables of a Spark session: ``acid.sales.orders``, or ``sales.orders``.

    spark = configure(SparkSession.builder, metastore="thrift://host:9083").getOrCreate()
    spark.table("acid.sales.orders").show()

What is read of a table is planned in a thread of this process (docs/format/plan-service.md), which
must live as long as Spark reads.
"""

from __future__ import annotations

import atexit
import getpass
import os
import re
import socket
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hms_bridge.clock import SystemClock
from hms_bridge.config.file_systems import file_systems
from hms_bridge.config.reading import settings_of_environment
from hms_bridge.connect import open_metastore, shareable_url
from hms_bridge.errors import ConfigError
from hms_bridge.plans.endpoint import PlanEndpoint
from hms_bridge.plans.service import PlanService
from hms_bridge.session.transaction import Client
from hms_bridge.spark.failures import first_line
from hms_bridge.spark.jar import JAR, jar_version
from hms_bridge.spark.request import default_jars
from hms_bridge.spark.versions import spark_home

SESSION_CATALOG = "spark_catalog"
_CATALOGS = "spark.sql.catalog"
_JARS = "spark.jars"
_CLASS = "hmsbridge.spark.AcidCatalog"
_SESSION_CLASS = "hmsbridge.spark.AcidSessionCatalog"
_NAME = re.compile(r"[\w-]+")
_CONNECT = "Spark Connect is refused: its server cannot ask a plan service of this process; use "
_services: dict[tuple[int, str], Mapping[str, str]] = {}
"""What each catalog of a process (which may be a fork of another) and metastore is given."""
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

    ``metastore`` is ``thrift://host:port`` or a database's URL. Raises ConfigError, and what the
    metastore raises.
    """
    given = builder._options
    if "spark.remote" in given or given.get("spark.api.mode") == "connect" or _is_connect():
        raise ConfigError(f"{_CONNECT}a session with a master")
    if SparkContext._active_spark_context is not None:
        raise ConfigError(
            "a Spark session runs already, and jars are given at a start: use attach(spark, …)"
        )
    other = given.get(f"{_CATALOGS}.{SESSION_CATALOG}", _SESSION_CLASS)
    if session_catalog and other != _SESSION_CLASS:
        raise ConfigError(f"{SESSION_CATALOG} is {other} already: leave out session_catalog")
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        _require_classes()
    else:
        jars = default_jars(os.environ, spark_home(os.environ))
        jars = f"{given.get(_JARS) or jars},{JAR}"
        builder.config(_JARS, ",".join(dict.fromkeys(filter(None, jars.split(",")))))
    options = catalog_settings(name, metastore=metastore, session_catalog=session_catalog)
    for key, value in options.items():
        builder.config(key, value)
    return builder


def _is_connect() -> bool:
    """What PySpark makes of the environment."""
    return "SPARK_REMOTE" in os.environ or os.environ.get("SPARK_CONNECT_MODE") == "1"


def _require_classes() -> None:
    """Java that runs takes no jars any more; Spark would only say that a class is missing."""
    SparkContext._ensure_initialized()
    try:
        SparkContext._jvm.Thread.currentThread().getContextClassLoader().loadClass(_CLASS)
    except Py4JJavaError as error:
        raise ConfigError(
            f"Spark's Java runs already, without this jar: give it at the start (spark-submit "
            f"--jars {JAR}), or use attach(spark, …)"
        ) from error


def attach(
    spark: SparkSession, name: str = "acid", *, metastore: str, session_catalog: bool = False
) -> None:
    """The same for a session that runs. Each session that ``spark.newSession()`` gives is attached
    for itself.

    Raises ConfigError where Spark takes no jar any more, or has its own catalog already in use.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise ConfigError(f"{_CONNECT}it where its server runs")
    options = catalog_settings(name, metastore=metastore, session_catalog=session_catalog)
    try:
        spark.sql(f"ADD JAR '{_escaped(JAR)}'")
        for key, value in options.items():
            spark.conf.set(key, value)
        spark.sql(f"SHOW NAMESPACES IN `{name}`").collect()
    except PySparkException as error:
        raise ConfigError(
            f"this Spark session cannot be given the catalog {name}: {first_line(error)}; give it "
            "at the start: hms_bridge.spark.catalog.configure(SparkSession.builder, …)"
        ) from error
    if session_catalog:
        _require_session_catalog(spark)


def _escaped(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace("'", "\\'")


def _require_session_catalog(spark: SparkSession) -> None:
    """Spark keeps the first one, and says nothing of one that it cannot make."""
    catalogs = spark._jsparkSession.sessionState().catalogManager()
    catalog = catalogs.catalog(SESSION_CATALOG).getClass().getName()
    if catalog != _SESSION_CLASS:
        raise ConfigError(
            f"this Spark session goes on with {catalog} as {SESSION_CATALOG}: give ours at the start "
            "(configure), or leave out session_catalog"
        )


def catalog_settings(
    name: str, *, metastore: str, session_catalog: bool = False
) -> Mapping[str, str]:
    """Spark's settings for the catalogs, whose plans a thread of this process makes."""
    if not _NAME.fullmatch(name) or name == SESSION_CATALOG:
        raise ConfigError(
            f"'{name}' cannot be the catalog's name: take letters, digits and _; for two-part names"
            " give session_catalog=True as well"
        )
    service = _service(metastore)
    classes = {name: _CLASS} | ({SESSION_CATALOG: _SESSION_CLASS} if session_catalog else {})
    settings: dict[str, str] = {}
    for catalog, java in classes.items():
        settings[f"{_CATALOGS}.{catalog}"] = java
        settings |= {f"{_CATALOGS}.{catalog}.{key}": value for key, value in service.items()}
    return settings


def _service(metastore_url: str) -> Mapping[str, str]:
    """One for each metastore, until the process ends."""
    with _starting:
        key = os.getpid(), shareable_url(metastore_url)
        if key not in _services:
            _services[key] = _start(key[1])
        return _services[key]


def _start(url: str) -> Mapping[str, str]:
    version = jar_version()
    settings = settings_of_environment(os.environ)
    opened = open_metastore(url, settings, is_created=False)
    service = PlanService(
        opened,
        file_systems(settings),
        Client(user=getpass.getuser(), host=socket.gethostname()),
        SystemClock(),
        jar_version=version,
    )
    endpoint = PlanEndpoint(service)
    endpoint.start()
    token_file = _private_file(endpoint.token)
    owner = os.getpid()

    def stop() -> None:
        if os.getpid() != owner:  # a fork, whose end is none of its parent's readers'
            return
        with suppress(Exception):
            token_file.unlink(missing_ok=True)
            endpoint.stop()
            opened.close()

    atexit.register(stop)
    return {"url": endpoint.url, "token-file": str(token_file)}


def _private_file(text: str) -> Path:
    """For this user alone. PySpark writes settings on a command line, which everybody reads."""
    handle, name = tempfile.mkstemp(prefix="hms-bridge-", suffix=".token")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    return Path(name)
