"""What of a database, table or partition a replica must have as its source has it. Pure.

A definition is a mapping from what is compared to its text, so that a difference can be shown as
it is. Places are each side's own and stand in none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from hms_bridge.model.catalog import Column, Database, Partition, SortColumn, Storage, Table
from hms_bridge.model.properties import (
    DO_NOT_UPDATE,
    ERASURE_CODED_COUNT,
    FILE_BYTES,
    FILE_COUNT,
    LAST_DDL_TIME,
    ROW_BYTES,
    ROW_COUNT,
    STATISTICS_BY,
)
from hms_bridge.model.statistics_state import ACCURATE
from hms_bridge.repl.target_objects import replicated_parameters

Definition = Mapping[str, str]
"""What is compared, and its text."""

IGNORED_PROPERTIES: Final[Mapping[str, str]] = {
    ACCURATE: "a replica trusts no statistics that it did not count",
    DO_NOT_UPDATE: "asks the metastore to count no files, which a load does for itself",
    STATISTICS_BY: "who counted the statistics",
    f"{STATISTICS_BY}_VIA_STATS_TASK": "who counted the statistics",
    FILE_COUNT: "counts files, which a compaction changes",
    ERASURE_CODED_COUNT: "counts files, which a compaction changes",
    ROW_COUNT: "is counted by each side's own writers",
    ROW_BYTES: "is counted by each side's own writers",
    FILE_BYTES: "counts bytes, which a compaction changes",
    LAST_DDL_TIME: "when each side changed it",
    "last_modified_by": "who changed it there",
    "last_modified_time": "when each side changed it",
    "path": "where Spark noted the place, which is each side's own",
}
"""Properties that a replica has of its own, and why; beside those of replication itself."""

IGNORED_PREFIXES: Final[Mapping[str, str]] = {
    "repl.": "says how far a replica is, and of whom",
    "hive.repl.": "says how far a load is",
    "hms.bridge.repl": "says how far a load is, and who may write to a replica",
}


def database_definition(database: Database) -> Definition:
    """Of a database: comment, owner, properties. A load gives one without owner an owner, so none
    is compared then."""
    return {
        "comment": database.description or "",
        **({"owner": database.owner_name} if database.owner_name else {}),
        **_properties("property", database.parameters),
    }


def table_definition(table: Table) -> Definition:
    """Of a table or view."""
    return {
        "kind": table.type,
        "owner": table.owner or "",
        "owner's kind": table.owner_type.name,
        "retention": str(table.retention),
        "partition columns": _columns(table.partition_columns),
        "view": table.view_original_text or "",
        "expanded view": table.view_expanded_text or "",
        **_storage(table.storage, table),
        **_properties("property", table.parameters),
    }


def partition_definition(partition: Partition, table: Table) -> Definition:
    """Of a partition of a table; it keeps the columns that its table had."""
    return {
        **_storage(partition.storage, table),
        **_properties("property", partition.parameters),
    }


def differing(
    source: Definition, replica: Definition
) -> Iterator[tuple[str, str | None, str | None]]:
    """What is not the same, and both texts; None where a side does not have it."""
    for what in sorted({*source, *replica}):
        if source.get(what) != replica.get(what):
            yield what, source.get(what), replica.get(what)


def _storage(storage: Storage, table: Table) -> dict[str, str]:
    """Of full ACID tables some metastores answer less: nothing uses the rest (Hive 4:
    ObjectStore.convertToStorageDescriptor)."""
    compared = {
        "columns": _columns(storage.columns),
        "input format": storage.input_format or "",
        "output format": storage.output_format or "",
        "serde": storage.serde.library or "",
        "buckets": str(storage.bucket_count),
        "bucket columns": ", ".join(storage.bucket_columns),
        "compressed": str(storage.is_compressed),
        "stored as subdirectories": str(storage.is_stored_as_subdirectories),
    }
    if table.is_full_acid:
        return compared
    return {
        **compared,
        "sort columns": _sorted_by(storage.sort_columns),
        "skewed columns": ", ".join(storage.skew.columns),
        "skewed values": "; ".join(", ".join(values) for values in storage.skew.values),
        **_properties("serde property", storage.serde.parameters),
        **_properties("storage property", storage.parameters),
    }


def _columns(columns: Iterable[Column]) -> str:
    return ", ".join(
        f"{column.name} {column.type}" + (f" '{column.comment}'" if column.comment else "")
        for column in columns
    )


def _sorted_by(columns: Sequence[SortColumn]) -> str:
    return ", ".join(f"{column.name} {column.order}" for column in columns)


def _properties(kind: str, parameters: Mapping[str, str]) -> dict[str, str]:
    return {
        f"{kind} {key}": value
        for key, value in replicated_parameters(parameters).items()
        if key not in IGNORED_PROPERTIES and not key.startswith(tuple(IGNORED_PREFIXES))
    }
