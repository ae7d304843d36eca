"""hms-bridge as a library, on the Spark session of a driver that stays up."""

from __future__ import annotations

import functools
import json
import re

from pyspark.sql import SparkSession

from changemanager.location import Resolver
from cleaner.daemon import Cleaner, make_cleaner
from hms_bridge.cli.worker import make_worker
from hms_bridge.clock import SystemClock
from hms_bridge.compaction.executor import always
from hms_bridge.compaction.kernel import BucketKernel
from hms_bridge.config.file_systems import file_systems
from hms_bridge.config.settings import Settings
from hms_bridge.connect import open_local, open_metastore
from hms_bridge.metastore import Metastore
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.target import Target
from hms_bridge.session.transaction import Client
from hms_bridge.spark.compaction_job import SparkExecutor
from hms_bridge.spark.sql_session import SqlSession
from integration.drivers import gates
from integration.drivers.hadoop_text import hadoop_from_text

# Hive's own statement for it; the verb of hms-bridge is `compact`.
COMPACT = re.compile(
    r"alter table (?P<database>\w+)\.(?P<table>\w+)(?: partition \((?P<partition>[^)]*)\))?"
    r" compact '(?P<kind>\w+)'",
    re.IGNORECASE,
)


@functools.cache
def _metastore(url: str) -> Metastore:
    return open_metastore(url)


@functools.cache
def _settings(hadoop: str) -> Settings:
    """With Hadoop's configuration as a text (drivers/hadoop_text.py); empty for none."""
    return Settings(hadoop=hadoop_from_text(hadoop)) if hadoop else Settings()


def _resolver(hadoop: str, gate: str | None) -> Resolver:
    resolver = file_systems(_settings(hadoop))
    return gates.GatedResolver(resolver, gate) if gate else resolver


@functools.cache
def _session(spark: SparkSession, url: str, hadoop: str, gate: str | None) -> SqlSession:
    return SqlSession(
        _metastore(url),
        open_spark=lambda: spark,
        resolver=_resolver(hadoop, gate),
        client=Client(user="referee", host="127.0.0.1"),
        clock=SystemClock(),
        hadoop=_settings(hadoop).hadoop,
    )


def sql(
    spark: SparkSession,
    *,
    metastore: str,
    statement: str,
    hadoop: str = "",
    gate: str | None = None,
) -> list[list[str]]:
    """Rows of one statement in Hive's text form; ``gate`` is the folder of a gate that tasks pass
    (drivers/gates.py)."""
    compaction = COMPACT.fullmatch(statement.strip())
    if compaction:
        _compact(metastore, compaction)
        return []
    with gates.by_value():
        return [
            [_text(value) for value in row]
            for result in _session(spark, metastore, hadoop, gate).run(statement)
            for row in result.rows
        ]


def work(
    spark: SparkSession, *, metastore: str, hadoop: str = "", gate: str | None = None
) -> str | None:
    """One turn of the compaction worker: what it did, None when nothing was queued."""
    resolver = _resolver(hadoop, gate)
    executor = SparkExecutor(spark=spark, kernel=BucketKernel(resolver=resolver))
    worker = make_worker(
        _metastore(metastore), always(executor), resolver=resolver, is_default_pool=True
    )
    with gates.by_value():
        outcome = worker.run_once()
    return outcome.message if outcome else None


@functools.cache
def _cleaner(database: str) -> Cleaner:
    return make_cleaner(open_local(database))


def clean(_: SparkSession, *, database: str) -> list[str]:
    """One turn of the cleaner on a metastore's own database: what it did."""
    return [str(outcome) for outcome in _cleaner(database).run_once()]


def _compact(metastore: str, words: re.Match[str]) -> None:
    values = re.findall(r"(\w+)\s*=\s*'?([^',]*)'?", words["partition"] or "")
    request = CompactionRequest(
        target=Target(
            words["database"],
            words["table"],
            "/".join(f"{key}={value}" for key, value in values) or None,
        ),
        type=CompactionType[words["kind"].upper()],
        initiator_id="referee",
        initiator_version="1",
    )
    answer = _metastore(metastore).compact(request)
    if not answer.is_accepted:
        raise ValueError(answer.error_message or str(answer.state))


def _text(value: object) -> str:
    if isinstance(value, dict):  # ROW__ID
        return json.dumps(value, separators=(",", ":"))
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
