"""What a queue entry points at: the table, the partition, the directory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hms_bridge.errors import CompactionError, NoSuchObjectError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table
from hms_bridge.model.compaction import Compaction, CompactionState, CompactionType
from hms_bridge.model.ids import CompactionId


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


class _Named(Protocol):
    """What names a table or partition: a request, a candidate, a decision."""

    @property
    def database_name(self) -> str: ...
    @property
    def table_name(self) -> str: ...
    @property
    def partition_name(self) -> str | None: ...


def entry_of(
    target: _Named,
    kind: CompactionType,
    state: CompactionState = CompactionState.INITIATED,
) -> Compaction:
    """The queue entry that a table or partition would have; its id is 0."""
    return Compaction(
        id=CompactionId(0),
        database_name=target.database_name,
        table_name=target.table_name,
        partition_name=target.partition_name,
        type=kind,
        state=state,
    )


def find_target(metastore: Metastore, entry: Compaction) -> CompactionTarget:
    """Raises CompactionError, with what to do, for an entry that must be refused: also what Hive
    compacts, but nobody here (docs/hive/compaction.md §12)."""
    try:
        table = metastore.get_table(entry.database_name, entry.table_name)
        location = table.storage.location
        if entry.partition_name is not None:
            found = metastore.get_partitions_by_names(
                table.database_name, table.name, [entry.partition_name]
            )
            if not found:
                raise NoSuchObjectError(f"{entry.target} is not there any more")
            location = found[0].storage.location
    except NoSuchObjectError as error:
        raise CompactionError(f"{entry.target} is gone: {error}") from error
    if not table.is_full_acid:
        kind = "insert-only" if table.is_insert_only else "not transactional"
        raise CompactionError(f"{entry.target} is {kind}; only full ACID tables are compacted")
    if table.storage.sort_columns:
        raise CompactionError(f"{entry.target} is SORTED BY, which compaction cannot keep")
    if table.is_partitioned and entry.partition_name is None:
        raise CompactionError(f"{entry.target} is partitioned; name the partition to compact")
    if not location:
        raise CompactionError(f"{entry.target} has no location; mend the table")
    return CompactionTarget(table=table, location=location)
