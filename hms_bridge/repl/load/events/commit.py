"""Replay of a commit: its files first, then the commit itself.

Repeated it does the same: copied files are compared, and ``repl.last.id`` moves with the commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from changemanager.uri import EncodedUri, encode_uri
from hms_bridge.errors import DumpIncompleteError, ReplError
from hms_bridge.model.catalog import Table
from hms_bridge.model.ids import EventId, TxnId, WriteId
from hms_bridge.model.partition_name import parse_partition_name
from hms_bridge.model.txn import (
    CommitTxnRequest,
    ReplLastId,
    TxnToWriteId,
    TxnType,
    WriteEvent,
)
from hms_bridge.repl.format.emptied import was_emptied
from hms_bridge.repl.format.event_payload import CommitTxnPayload
from hms_bridge.repl.format.passed_kinds import EMPTY_WRITES, refusal
from hms_bridge.repl.format.reader import DumpedEvent, DumpedPartition, DumpedTable
from hms_bridge.repl.load.events.context import ObjectChange, ReplayContext, partition_key
from hms_bridge.repl.load.events.partition import ensure_partition
from hms_bridge.repl.load.events.prepared import PlacedFiles, PreparedCommit, TableWrites
from hms_bridge.repl.load.events.truncate import truncate_directory
from hms_bridge.repl.load.replica import Replica
from hms_bridge.repl.load.write_id_owner import require_own
from hms_bridge.wire.object_json import partition_to_json, table_to_json


def prepare_commit(context: ReplayContext, event: DumpedEvent) -> PreparedCommit:
    """What a commit writes here; partitions that it writes to are made, nothing else is changed.

    Raises ReplError for what cannot be written here, DumpIncompleteError.
    """
    payload = event.read(CommitTxnPayload)
    source = context.replica.names.source_database
    writes = tuple(write for write in payload.writes or () if write.target.database == source)
    tables = {dumped.table.name: dumped for dumped in context.reader.commit_tables(event)}
    _require_all_dumped(event, writes, tables)
    targets_written = (
        _writes_to(context, event, payload.txn_id, dumped, _of_table(writes, name))
        for name, dumped in tables.items()
        if not dumped.table.is_materialized_view  # replicas have none
    )
    changed = tuple(written_to for written_to in targets_written if written_to is not None)
    return PreparedCommit(txn_id=payload.txn_id, tables=changed)


_TOGETHER_MAX = 100
"""Commits of one step, which others who write to the metastore wait for."""


class PendingCommits:
    """Commits whose files are there. They go to the metastore together, in their order, each with
    the progress that it makes."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._requests: list[CommitTxnRequest] = []
        self._stands_at: EventId | None = None
        self._last: EventId | None = None

    def add(self, event: DumpedEvent, request: CommitTxnRequest) -> None:
        """The next one."""
        self._requests.append(request)
        self._last = event.id
        # Without a replay to commit, Hive takes repl.last.id back (CommitTxnFunction).
        if request.write_events:
            self._stands_at = event.id
        if len(self._requests) >= _TOGETHER_MAX:
            self.send()

    def send(self) -> None:
        """All that were added."""
        requests, self._requests = self._requests, []
        if len(requests) == 1:
            self._replica.metastore.commit_txn(requests[0])
        elif requests:
            self._replica.metastore.commit_replays(requests)
        if requests and self._stands_at is not None:
            self._replica.stands_at(self._stands_at)
        if requests and self._last is not None:
            self._replica.reached(self._last)


def commit_txn(context: ReplayContext, event: DumpedEvent) -> None:
    """Copy what the transaction wrote, then commit it together with the database's progress."""
    commits = PendingCommits(context.replica)
    commits.add(event, commit_request(context, event))
    commits.send()


def commit_request(context: ReplayContext, event: DumpedEvent) -> CommitTxnRequest:
    """Copy what the transaction wrote; how it is committed then."""
    replica, ahead = context.replica, context.ahead
    prepared = ahead.commits.pop(event.id, None) or prepare_commit(context, event)
    if event.id not in ahead.copied:
        replica.copy_places(prepared.places(replica))
    written = [
        write for written_to in prepared.tables for write in _applied(context, event, written_to)
    ]
    if written:
        replica.ensure_open([prepared.txn_id])
    return CommitTxnRequest(
        txn_id=prepared.txn_id,
        type=TxnType.REPL_CREATED,
        repl_policy=replica.names.policy,
        write_events=tuple(written),
        repl_last_id=ReplLastId(
            database_name=replica.names.target_database, last_repl_id=int(event.id)
        ),
    )


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


def _writes_to(
    context: ReplayContext,
    event: DumpedEvent,
    txn_id: TxnId,
    dumped: DumpedTable,
    writes: tuple[WriteEvent, ...],
) -> TableWrites | None:
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
    return TableWrites(table=table, dumped=dumped, writes=writes, places=places)


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
    context: ReplayContext, event: DumpedEvent, written: TableWrites
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
    """What a commit in a dump of Hive overwrote with nothing, which its format cannot name: the
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
        verdict = was_emptied(context.replica.sources(place), write.write_id)
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
) -> Mapping[str, PlacedFiles]:
    places = {}
    if not table.is_partitioned:
        places[""] = PlacedFiles(root=table.storage.location, files=dumped.files)
    for part in dumped.partitions:
        if _is_gone(context, event, table, part):
            continue
        partition = ensure_partition(context, event, table, part)
        files, location = part.files, partition.storage.location
        if part.name in places:
            files = (*places[part.name].files, *files)
        places[part.name] = PlacedFiles(root=location, files=files, partition=partition)
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


def _on_target(table: Table, write: WriteEvent, places: Mapping[str, PlacedFiles]) -> WriteEvent:
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
