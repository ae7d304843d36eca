"""Replay of transactions: open, write ids, commit with its files, abort.

Ids of transactions differ between source and target, write ids are the same. Every step can be
repeated: an opened source transaction keeps its target transaction, write ids that the target has
are not allocated again, copied files are compared, a commit moves ``repl.last.id`` with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from changemanager.uri import EncodedUri, encode_uri
from hms_bridge.errors import DumpIncompleteError, ReplError
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.partition_name import parse_partition_name
from hms_bridge.model.txn import (
    CommitTxnRequest,
    ReplLastId,
    TxnToWriteId,
    TxnType,
    WriteEvent,
)
from hms_bridge.repl.format.emptied import was_emptied
from hms_bridge.repl.format.event_payload import (
    AbortTxnPayload,
    AllocWriteIdPayload,
    CommitTxnPayload,
    OpenTxnPayload,
)
from hms_bridge.repl.format.passed_kinds import EMPTY_WRITES, refusal
from hms_bridge.repl.format.reader import DumpedEvent, DumpedPartition, DumpedTable
from hms_bridge.repl.format.untrusted import DumpedFile
from hms_bridge.repl.load.copy import CopyPlace
from hms_bridge.repl.load.events.context import ObjectChange, ReplayContext, partition_key
from hms_bridge.repl.load.events.partition import ensure_partition
from hms_bridge.repl.load.events.truncate import truncate_directory
from hms_bridge.repl.load.replica import Replica
from hms_bridge.repl.load.write_id_owner import require_own
from hms_bridge.wire.object_json import partition_to_json, table_to_json


def open_txn(context: ReplayContext, event: DumpedEvent) -> None:
    """Open a transaction for each one of the source."""
    context.replica.open_together(event.read(OpenTxnPayload).txn_ids)


def allocate_write_ids(context: ReplayContext, event: DumpedEvent) -> None:
    """Give the source's write ids to its transactions here.

    Ids up to the target's own maximum must have come with the bootstrap, or with an earlier try.
    CREATE TABLE AS SELECT takes its write id before the table exists. A
    transaction that the dump does not open (it was open at the bootstrap, or the source filters
    transactions) is opened now: its rows must not get lost.
    """
    payload = event.read(AllocWriteIdPayload)
    replica = context.replica
    if payload.database_name != replica.names.source_database:
        return
    target, name = replica.names.target_database, payload.table_name
    is_gone = context.changes.next_change(name, event.id) is ObjectChange.GONE
    # A Hive's dump names ids of a table that a rename brought into its scope, and that is made,
    # whole and with all of them, after the last event (AllocWriteIdHandler).
    comes_whole = name in context.reader.names_anew
    if (is_gone or comes_whole) and replica.find_table(name) is None:
        return
    known = replica.metastore.get_max_allocated_write_id(target, name)
    old = tuple(pair for pair in payload.allocated if pair.write_id <= known)
    require_own(replica, name, old, event.where, is_committed=False)
    new = tuple(pair for pair in payload.allocated if pair.write_id > known)
    if not new:
        return
    # Hive would take the source's number, and forget whose the ids before it were
    # (docs/hive/replication.md §22).
    if new[0].write_id != known + 1:
        # Where the table itself is gone, that is what to say.
        context.table_or_gone(name, event)
        raise ReplError(
            f"{event.where}: begins with write id {new[0].write_id} of {target}.{name}, "
            f"which stands at {known}; what was written between is not in any dump. "
            + replica.bring_anew(name)
        )
    # For a transaction that it does not know Hive allocates nothing, without an error.
    replica.ensure_open(pair.txn_id for pair in new)
    given = replica.allocate_write_ids(name, new)
    if {pair.write_id for pair in given} != {pair.write_id for pair in new}:
        raise ReplError(
            f"{event.where}: the target did not give write ids {new[0].write_id} to "
            f"{new[-1].write_id} of {target}.{name} to the source's transactions; is another load "
            "running? If not: " + replica.bring_anew(name)
        )


def commit_txn(context: ReplayContext, event: DumpedEvent) -> None:
    """Copy what the transaction wrote, then commit it together with the database's progress."""
    payload = event.read(CommitTxnPayload)
    replica = context.replica
    names = replica.names
    writes = tuple(
        write for write in payload.writes or () if write.target.database == names.source_database
    )
    tables = {dumped.table.name: dumped for dumped in context.reader.commit_tables(event)}
    _require_all_dumped(event, writes, tables)
    targets_written = (
        _writes_to(context, event, payload.txn_id, dumped, _of_table(writes, name))
        for name, dumped in tables.items()
        if not dumped.table.is_materialized_view  # replicas have none
    )
    changed = [written_to for written_to in targets_written if written_to is not None]
    replica.copy_places([place for written_to in changed for place in written_to.copied(replica)])
    written = [write for written_to in changed for write in _applied(context, event, written_to)]
    if written:
        replica.ensure_open([payload.txn_id])
    replica.metastore.commit_txn(
        CommitTxnRequest(
            txn_id=payload.txn_id,
            type=TxnType.REPL_CREATED,
            repl_policy=names.policy,
            write_events=tuple(written),
            repl_last_id=ReplLastId(
                database_name=names.target_database, last_repl_id=int(event.id)
            ),
        )
    )
    # Without a replay to commit, Hive takes repl.last.id back (CommitTxnFunction).
    if written:
        replica.stands_at(event.id)


def abort_txn(context: ReplayContext, event: DumpedEvent) -> None:
    """Abort the transaction here; nothing if it was never opened or is aborted already."""
    context.replica.abort(event.read(AbortTxnPayload).txn_id)


def _of_table(writes: tuple[WriteEvent, ...], table: str) -> tuple[WriteEvent, ...]:
    return tuple(write for write in writes if write.target.table == table)


def _require_all_dumped(
    event: DumpedEvent, writes: tuple[WriteEvent, ...], tables: dict[str, DumpedTable]
) -> None:
    """The payload and the directories say the same, or a copy of the dump lost something."""
    named: dict[str, int] = {}
    for write in writes:
        key = f"{write.target.table}/{write.partition}".rstrip("/")
        named[key] = named.get(key, 0) + len(write.files)
    dumped_counts: dict[str, int] = {}
    for name, dumped in tables.items():
        if not dumped.table.is_partitioned:
            dumped_counts[name] = len(dumped.files)
        for part in dumped.partitions:
            key = f"{name}/{part.name}"
            dumped_counts[key] = dumped_counts.get(key, 0) + len(part.files)
    if named != dumped_counts:
        raise DumpIncompleteError(
            f"{event.where}: its payload names files of {_counts(named)}, its directories of "
            f"{_counts(dumped_counts)}; copy the dump again, or make a new one"
        )


def _counts(files: dict[str, int]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in sorted(files.items())) or "no table"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """Where files of a table or partition go. ``partition`` is None for the table itself."""

    root: str | None
    files: tuple[DumpedFile, ...]
    partition: Partition | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _TableWrites:
    """What a transaction wrote to a table. ``places`` by the partition's name, "" for a table
    without."""

    table: Table
    dumped: DumpedTable
    writes: tuple[WriteEvent, ...]
    places: Mapping[str, _Place]

    @property
    def write_id(self) -> WriteId:
        """The highest one."""
        return max(write.write_id for write in self.writes)

    def copied(self, replica: Replica) -> Iterator[CopyPlace]:
        """What is copied where. Raises ReplError for files without a place."""
        for name, place in self.places.items():
            what = f"{self.table.full_name}/{name}".rstrip("/")
            yield from replica.places(place.files, place.root, what)


def _writes_to(
    context: ReplayContext,
    event: DumpedEvent,
    txn_id: TxnId,
    dumped: DumpedTable,
    writes: tuple[WriteEvent, ...],
) -> _TableWrites | None:
    """What is to be copied of a table, whose partitions are made; None for one that is gone."""
    replica = context.replica
    table = context.table_or_gone(dumped.table.name, event)
    if table is None:
        return None
    own = sorted({write.write_id for write in writes})
    pairs = [TxnToWriteId(txn_id=txn_id, write_id=write_id) for write_id in own]
    # What this load has allocated itself needs no question to the metastore.
    if not all(replica.has_allocated(table.name, pair) for pair in pairs):
        _require_allocated(replica, event, table, own[-1])
        require_own(replica, table.name, pairs, event.where, is_committed=True)
    places = _places(context, event, table, dumped)
    return _TableWrites(table=table, dumped=dumped, writes=writes, places=places)


def _require_allocated(
    replica: Replica, event: DumpedEvent, table: Table, highest: WriteId
) -> None:
    known = replica.metastore.get_max_allocated_write_id(table.database_name, table.name)
    if highest > known:
        raise ReplError(
            f"{event.where}: commits write id {highest} of {table.full_name}, which was never "
            f"allocated there (it stands at {known}). " + replica.bring_anew(table.name)
        )


def _applied(
    context: ReplayContext, event: DumpedEvent, written: _TableWrites
) -> tuple[WriteEvent, ...]:
    """What the metastore is sent of a table whose files are there; what was overwritten with
    nothing is emptied."""
    table, dumped, writes, places = written.table, written.dumped, written.writes, written.places
    emptied = dumped.emptied | _emptied_at_source(context, event, dumped, writes)
    # What a TRUNCATE leaves hides older rows as well: an empty base of the write id.
    for name in emptied & places.keys():
        root = context.replica.resolve(places[name].root or "")
        truncate_directory(root, table, written.write_id, event.where)
    return tuple(_on_target(table, write, places) for write in writes if write.partition in places)


def _emptied_at_source(
    context: ReplayContext,
    event: DumpedEvent,
    dumped: DumpedTable,
    writes: tuple[WriteEvent, ...],
) -> frozenset[str]:
    """What a commit in a Hive's dump overwrote with nothing, which its format cannot name: the
    source's directories say. Raises ReplError where they do not any more."""
    if context.reader.has_manifest:
        return frozenset()
    places = {"": dumped.table.storage.location}
    places |= {part.name: part.partition.storage.location for part in dumped.partitions}
    emptied = set()
    for write in writes:
        place = None if write.files else places.get(write.partition)
        if place is None or EMPTY_WRITES in context.reader.rules.passed_kinds:
            continue
        verdict = was_emptied(context.replica.resolve(place), write.write_id)
        if verdict is None:
            raise refusal(
                event.where,
                EMPTY_WRITES,
                f"write id {write.write_id} of {dumped.table.full_name} has no files; it may have "
                f"overwritten {place} with nothing, and what a compaction left does not tell. This",
            )
        if verdict:
            emptied.add(write.partition)
    return frozenset(emptied)


def _places(
    context: ReplayContext, event: DumpedEvent, table: Table, dumped: DumpedTable
) -> Mapping[str, _Place]:
    places = {}
    if not table.is_partitioned:
        places[""] = _Place(root=table.storage.location, files=dumped.files)
    for part in dumped.partitions:
        if _is_gone(context, event, table, part):
            continue
        partition = ensure_partition(context, event, table, part)
        files, location = part.files, partition.storage.location
        if part.name in places:
            files = (*places[part.name].files, *files)
        places[part.name] = _Place(root=location, files=files, partition=partition)
    return places


def _is_gone(
    context: ReplayContext, event: DumpedEvent, table: Table, part: DumpedPartition
) -> bool:
    """Whether the source dropped a partition while the transaction was open, or will before a
    bootstrap could dump it. Dumps of ours leave out what the source does not show; a real Hive
    makes the partition anew, with rows. Raises ReplError where nothing is known: made anew, one
    that somebody dropped here would lack the rows from before.
    """
    if context.replica.find_partition(table, part.name) is not None:
        return False
    key = partition_key(table.name, parse_partition_name(part.name))
    before = context.changes.last_change(key, event.id)
    after = context.changes.next_change(key, event.id)
    if before is ObjectChange.CREATED:
        return False
    if context.reader.has_manifest and (before or after):
        return False
    if before is ObjectChange.GONE and after is None:
        return True
    if before is not ObjectChange.RENAMED and after is ObjectChange.GONE:
        return True
    raise ReplError(
        f"{event.where}: partition {part.name} of {table.full_name} is not on the target, and no "
        "event makes it: the source dropped or renamed it while the transaction was open, or "
        "somebody dropped it here. " + context.replica.bring_anew(table.name)
    )


def _on_target(table: Table, write: WriteEvent, places: Mapping[str, _Place]) -> WriteEvent:
    """What was written here: a real Hive metastore wants every file named."""
    place = places[write.partition]
    root = (place.root or "").rstrip("/")
    return replace(
        write,
        target=replace(write.target, database=table.database_name),
        table_object=table_to_json(table),
        partition_object=None if place.partition is None else partition_to_json(place.partition),
        files=tuple(
            encode_uri(
                EncodedUri(uri=f"{root}/{file.relative_path}", sub_directory=file.sub_directory)
            )
            for file in place.files
        ),
    )
