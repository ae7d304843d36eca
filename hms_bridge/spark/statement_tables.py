"""What Spark's own Java reads for the queries of `hms-bridge sql`."""

from __future__ import annotations

import itertools

from pyspark.sql import DataFrame, SparkSession

from changemanager.hadoop import HadoopConfig
from changemanager.location import Resolver, parse_uri
from changemanager.masking import is_secret_name
from hms_bridge.clock import Clock
from hms_bridge.dml.names import ROW_ID
from hms_bridge.dml.rewrite import SourceView, quote
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table
from hms_bridge.plans.endpoint import PlanEndpoint
from hms_bridge.plans.formats import format_of
from hms_bridge.plans.requests import PlanError
from hms_bridge.plans.service import PlanService
from hms_bridge.plans.tables import OTHER, kind_of, spark_schema
from hms_bridge.session.transaction import Client
from hms_bridge.spark.catalog import add_catalog
from hms_bridge.spark.jar import jar_version
from hms_bridge.spark.plan_server import spark_settings

_IDLE_SECONDS = "1000000"
"""A statement lets go of its snapshot itself, however slowly its rows are read."""
_TIMESTAMP_TYPE = "spark.sql.timestampType"
_NUMBERS = itertools.count(1)


class StatementTables:
    """A catalog of its own in a session of Spark, and the plan service behind it, until closed."""

    def __init__(
        self,
        spark: SparkSession,
        metastore: Metastore,
        resolver: Resolver,
        client: Client,
        clock: Clock,
        hadoop: HadoopConfig,
    ) -> None:
        """Raises ConfigError where there is no jar, or Spark takes none."""
        self._spark = spark
        self._name = f"hms_bridge_{next(_NUMBERS)}"
        self._service = PlanService(metastore, resolver, client, clock, jar_version=jar_version())
        self._endpoint = PlanEndpoint(self._service)
        self._endpoint.start()
        settings = {k: v for k, v in hadoop.values.items() if not is_secret_name(k)}
        own = {"url": self._endpoint.url, "token": self._endpoint.token, "idle": _IDLE_SECONDS}
        settings |= spark_settings(self._name, own, has_session_catalog=False)
        try:
            add_catalog(spark, self._name, settings)
        except BaseException:
            self.close()
            raise

    def frame(self, source: SourceView) -> DataFrame:
        """A source as a frame, of the snapshot of the statement that reads it."""
        name = (self._name, source.table.database_name, source.table.name)
        columns = [column.name for column in source.columns]
        columns += [ROW_ID] if source.has_row_ids else []
        return self._spark.table(".".join(map(quote, name))).select(*map(quote, columns))

    def release(self) -> None:
        """Let go of what was read: the snapshot is protected no more."""
        self._service.end_all()

    def close(self) -> None:
        """Stop the plan service."""
        self._endpoint.stop()


def is_read_by_java(spark: SparkSession, hadoop: HadoopConfig, table: Table) -> bool:
    """Whether Spark's Java reads the table, with the answers of Python and as its user."""
    if kind_of(table) == OTHER or spark.conf.get(_TIMESTAMP_TYPE) != "TIMESTAMP_NTZ":
        return False
    try:
        format_of(table)
        spark_schema(table, "timestamp_ntz")
    except PlanError:
        return False
    match parse_uri(table.storage.location or "/").scheme or parse_uri(hadoop.default_fs).scheme:
        case "file":
            return True
        case "hdfs" if hadoop.is_native_allowed:
            return hadoop.user in (None, _user(spark))
        case _:
            return False  # an object store: Spark brings no client for it


def _user(spark: SparkSession) -> str:
    security = spark.sparkContext._jvm.org.apache.hadoop.security
    return str(security.UserGroupInformation.getCurrentUser().getShortUserName())
