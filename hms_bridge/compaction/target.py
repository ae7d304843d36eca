"""What is to be compacted, as the metastore has it: the table, the directory."""

from __future__ import annotations

from dataclasses import dataclass

from hms_bridge.errors import CompactionError, NoSuchObjectError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.target import Target


@dataclass(frozen=True, kw_only=True, slots=True)
class CompactionTarget:
    """A table or partition that can be compacted, and where it lies."""

    table: Table
    location: str

    def is_same_place(self, other: CompactionTarget) -> bool:
        """Whether it is still the same table, and lies where it lay."""
        mine, theirs = self.table, other.table
        return (mine.id, mine.create_time, self.location) == (
            theirs.id,
            theirs.create_time,
            other.location,
        )

    def is_same(self, other: CompactionTarget) -> bool:
        """Whether files that were written for one are right for the other."""
        mine, theirs = self.table.storage, other.table.storage
        return self.is_same_place(other) and (
            mine.columns,
            mine.bucket_columns,
            mine.bucket_count,
        ) == (theirs.columns, theirs.bucket_columns, theirs.bucket_count)


def look_up(
    metastore: Metastore, wanted: Target, table: Table | None = None
) -> tuple[Table, Partition | None]:
    """The table, unless it is known, and the partition if one is named. Raises
    NoSuchObjectError."""
    table = table or metastore.get_table(wanted.database, wanted.table)
    if wanted.partition is None:
        return table, None
    partitions = metastore.get_partitions_by_names(
        wanted.database, wanted.table, [wanted.partition]
    )
    if not partitions:
        raise NoSuchObjectError(f"{wanted} is not there any more")
    return table, partitions[0]


def find_target(metastore: Metastore, wanted: Target) -> CompactionTarget:
    """Raises CompactionError, with what to do, for what must be refused: also what Hive
    compacts, but nobody here (docs/hive/compaction.md §12)."""
    try:
        table, partition = look_up(metastore, wanted)
    except NoSuchObjectError as error:
        raise CompactionError(f"{wanted} is gone: {error}") from error
    if not table.is_full_acid:
        kind = "insert-only" if table.is_insert_only else "not transactional"
        raise CompactionError(f"{wanted} is {kind}; only full ACID tables are compacted")
    if table.storage.sort_columns:
        raise CompactionError(f"{wanted} is SORTED BY, which compaction cannot keep")
    if table.is_partitioned and wanted.partition is None:
        raise CompactionError(f"{wanted} is partitioned; name the partition to compact")
    location = (partition or table).storage.location
    if not location:
        raise CompactionError(f"{wanted} has no location; mend the table")
    return CompactionTarget(table=table, location=location)
