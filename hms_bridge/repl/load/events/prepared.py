"""What a commit is about to write, once it is looked up and before it is copied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.txn import WriteEvent
from hms_bridge.repl.format.reader import DumpedTable
from hms_bridge.repl.format.untrusted import DumpedFile
from hms_bridge.repl.load.copy import CopyPlace
from hms_bridge.repl.load.replica import Replica


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacedFiles:
    """Where files of a table or partition go. ``partition`` is None for the table itself."""

    root: str | None
    files: tuple[DumpedFile, ...]
    partition: Partition | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TableWrites:
    """What a transaction wrote to a table. ``places`` by the partition's name, "" for a table
    without."""

    table: Table
    dumped: DumpedTable
    writes: tuple[WriteEvent, ...]
    places: Mapping[str, PlacedFiles]

    @property
    def write_id(self) -> WriteId:
        """The highest one."""
        return max(write.write_id for write in self.writes)

    def copied(self, replica: Replica) -> Iterator[CopyPlace]:
        """What is copied where. Raises ReplError for files without a place."""
        for name, place in self.places.items():
            what = f"{self.table.full_name}/{name}".rstrip("/")
            yield from replica.places(place.files, place.root, what)


@dataclass(frozen=True, kw_only=True, slots=True)
class PreparedCommit:
    """A transaction of the source that commits, and what it wrote to tables that are here."""

    txn_id: TxnId
    tables: tuple[TableWrites, ...]

    def places(self, replica: Replica) -> tuple[CopyPlace, ...]:
        """What is copied where. Raises ReplError for files without a place."""
        return tuple(place for written in self.tables for place in written.copied(replica))
