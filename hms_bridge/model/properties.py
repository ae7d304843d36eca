"""Hive's properties of databases, tables and partitions: their names, and how one is looked up."""

from __future__ import annotations

from collections.abc import Mapping

TRANSACTIONAL = "transactional"
TRANSACTIONAL_PROPERTIES = "transactional_properties"
INSERT_ONLY = "insert_only"
"""Value of ``transactional_properties`` of a table whose rows have no identifiers."""
EXTERNAL = "EXTERNAL"
EXTERNAL_PURGE = "external.table.purge"
BUCKETING_VERSION = "bucketing_version"
IF_PURGE = "ifPurge"
"""Of a drop's environment, and of the queue entry it leaves: no file goes to the trash."""
DO_NOT_UPDATE = "DO_NOT_UPDATE_STATS"
"""Of a change's environment, and of a table: the metastore counts no files."""
EXPECTED_KEY, EXPECTED_VALUE = "expected_parameter_key", "expected_parameter_value"
"""Of an ALTER TABLE's environment: the parameter that must have this value till then."""
AUTO_PURGE = "auto.purge"
NO_AUTO_COMPACTION = "no_auto_compaction"
"""Of a table or database, with the value true: only people ask for compactions."""
NO_CLEANUP = "no_cleanup"
"""Of a table, with the value true: the cleaner leaves its files."""
WORKER_POOL = "hive.compactor.worker.pool"
"""Of a table or database: the pool whose workers take its compactions."""

LAST_DDL_TIME = "transient_lastDdlTime"
FILE_COUNT, FILE_BYTES = "numFiles", "totalSize"
ERASURE_CODED_COUNT = "numFilesErasureCoded"
ROW_COUNT, ROW_BYTES = "numRows", "rawDataSize"
STATISTICS_BY = "STATS_GENERATED"
"""Who counted the statistics; of a change's environment, too."""

SOURCE_FOR = "repl.source.for"
TARGET_FOR = "repl.target.for"
INCOMPATIBLE = "repl.incompatible"

LAST_EVENT = "repl.last.id"
"""The source event that an object stands at."""

TARGET_LAST_EVENT = "repl.target.last.id"
"""The target's own event that belongs to ``repl.last.id``."""

CHECKPOINT = "hive.repl.ckpt.key"
"""On a database, table or partition: the dump it was bootstrapped from."""

FIRST_INCREMENTAL_PENDING = "hive.repl.first.inc.pending"
"""On a database: no incremental dump was loaded since the bootstrap; nobody compacts it yet."""


def parameter(parameters: Mapping[str, str], name: str) -> str | None:
    """A parameter whose name is compared without case; None if it is not there."""
    lowered = name.lower()
    return next((v for k, v in parameters.items() if k.lower() == lowered), None)


def is_true(parameters: Mapping[str, str], name: str) -> bool:
    """Whether a parameter is ``true``; the case of neither counts."""
    lowered = name.lower()
    return any(k.lower() == lowered and v.lower() == "true" for k, v in parameters.items())
