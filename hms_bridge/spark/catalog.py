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
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress

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

SESSION_CATALOG = "spark_catalog"
CATALOGS = "spark.sql.catalog"
_JARS = "spark.jars"
CATALOG_CLASS = "hmsbridge.spark.AcidCatalog"
_SESSION_CLASS = "hmsbridge.spark.AcidSessionCatalog"
_endpoints: dict[str, PlanEndpoint] = {}
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
    if SparkSession.getActiveSession() is not None:
        raise ConfigError(
            "a Spark session runs already, and jars are given at a start: use attach(spark, …)"
        )
    options = catalog_settings(name, metastore=metastore, session_catalog=session_catalog)
    jars = [jar for jar in str(builder._options.get(_JARS, "")).split(",") if jar]
    builder.config(_JARS, ",".join([*jars, str(JAR)]))
    for key, value in options.items():
        builder.config(key, value)
    return builder


def attach(
    spark: SparkSession, name: str = "acid", *, metastore: str, session_catalog: bool = False
) -> None:
    """The same for a session that runs. Each session that ``spark.newSession()`` gives is attached
    for itself.

    Raises ConfigError where Spark takes no jar any more, or has its own catalog already in use.
    """
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
    classes = {name: CATALOG_CLASS} | ({SESSION_CATALOG: _SESSION_CLASS} if session_catalog else {})
    return endpoint_settings(_endpoint(metastore), classes)


def endpoint_settings(endpoint: PlanEndpoint, classes: Mapping[str, str]) -> Mapping[str, str]:
    """The same for catalogs of these Java classes, whose plans an endpoint makes."""
    settings: dict[str, str] = {}
    for catalog, java in classes.items():
        settings |= {
            f"{CATALOGS}.{catalog}": java,
            f"{CATALOGS}.{catalog}.url": endpoint.url,
            f"{CATALOGS}.{catalog}.token": endpoint.token,
        }
    return settings


def _endpoint(metastore_url: str) -> PlanEndpoint:
    """One for each metastore, until the process ends."""
    with _starting:
        url = shareable_url(metastore_url)
        if url not in _endpoints:
            _endpoints[url] = _start(url)
        return _endpoints[url]


def _start(url: str) -> PlanEndpoint:
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

    def stop() -> None:
        with suppress(Exception):
            endpoint.stop()
            opened.close()

    atexit.register(stop)
    return endpoint
