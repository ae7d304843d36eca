"""Writes that nobody told the metastore about: a client that adds no write notification.

The log then has write id and commit, but no files, and Hive's dump carries an empty commit: the
rows are never on the replica. As long as the write's own directories stand, they tell what was
written. A commit that wrote no files (TRUNCATE, ALTER, ADD PARTITION) has no such directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from changemanager.filesystem.volume import FileKind
from changemanager.location import Location, Resolver, list_tree
from changemanager.uri import EncodedUri, encode_uri
from hms_bridge.acid.names import DirectoryName, is_hidden
from hms_bridge.errors import NoSuchObjectError
from hms_bridge.metastore import Metastore, NotificationStore
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.event import EventType, NotificationEvent, NotificationRequest
from hms_bridge.model.ids import EventId, TxnId, WriteId
from hms_bridge.model.partition_name import partition_name
from hms_bridge.model.txn import TxnToWriteId, WriteEvent
from hms_bridge.repl.event_payload import AllocWriteIdPayload, OpenTxnPayload, message_json
from hms_bridge.repl.target_objects import is_external, is_view
from hms_bridge.wire.object_json import partition_to_json, table_to_json

_LOOK_BACK_EVENTS = 1000


def earlier_allocations(
    store: NotificationStore, database: str, txn_ids: Iterable[TxnId], until: EventId
) -> Iterator[AllocWriteIdPayload]:
    """The ALLOC_WRITE_ID events of the database from ``until`` back to where all transactions were
    opened, or to what the log still has. A transaction that was open at the last dump got its write
    ids in events that no later range holds.
    """
    sought, upper = set(txn_ids), until
    while sought and upper > 0:
        lower = EventId(max(0, upper - _LOOK_BACK_EVENTS))
        page = store.get_next_notification(
            NotificationRequest(last_event_id=lower, max_events=upper - lower)
        )
        for event in page:
            if event.id > upper:
                break
            if event.type == EventType.OPEN_TXN.value:
                sought -= set(OpenTxnPayload.parse(message_json(event), _where(event)).txn_ids)
            elif event.type == EventType.ALLOC_WRITE_ID.value:
                given = AllocWriteIdPayload.parse(message_json(event), _where(event))
                if given.database_name == database:
                    yield given
        if not page or page[0].id != lower + 1:
            return
        upper = lower


def _where(event: NotificationEvent) -> str:
    return f"event {event.id} ({event.type})"


class UnreportedWrites:
    """Remembers which write ids a range of events gives away, and looks for their directories."""

    def __init__(
        self, source: Metastore, resolve: Resolver, database_name: str, cm_root: str | None
    ) -> None:
        self._source = source
        self._resolve = resolve
        self._database_name = database_name
        self._cm_root = cm_root
        self._given: dict[TxnId, list[tuple[str, WriteId]]] = {}
        self._written: dict[str, dict[WriteId, list[WriteEvent]]] = {}

    def note(self, table_name: str, allocated: Iterable[TxnToWriteId]) -> None:
        """Transactions got write ids of a table."""
        for one in allocated:
            self._given.setdefault(one.txn_id, []).append((table_name, one.write_id))

    def find(self, txn_id: TxnId, reported: Sequence[WriteEvent]) -> tuple[WriteEvent, ...]:
        """What a committed transaction wrote to tables of which it reported nothing."""
        known = {one.table_name for one in reported}
        return tuple(
            event
            for table_name, write_id in self._given.get(txn_id, ())
            if table_name not in known
            for event in self._writes_of(table_name).get(write_id, ())
        )

    def _writes_of(self, table_name: str) -> dict[WriteId, list[WriteEvent]]:
        """Every single write whose directories stand now; looked up once for each table."""
        if table_name not in self._written:
            found: dict[WriteId, list[WriteEvent]] = {}
            for event in self._look(table_name):
                found.setdefault(event.write_id, []).append(event)
            self._written[table_name] = found
        return self._written[table_name]

    def _look(self, table_name: str) -> Iterator[WriteEvent]:
        try:
            table = self._source.get_table(self._database_name, table_name)
        except NoSuchObjectError:
            return
        if is_view(table) or is_external(table) or table.storage.location is None:
            return
        if not table.is_partitioned:
            yield from self._writes(table, None, self._resolve(table.storage.location))
            return
        for one in self._source.get_partitions(self._database_name, table_name):
            if one.storage.location is not None:
                yield from self._writes(table, one, self._resolve(one.storage.location))

    def _writes(
        self, table: Table, partition: Partition | None, root: Location
    ) -> Iterator[WriteEvent]:
        by_write: dict[WriteId, list[str]] = {}
        for name, directory in _single_writes(root):
            by_write.setdefault(name.max_write_id, []).append(directory)
        for write_id, directories in by_write.items():
            files = [one for directory in directories for one in self._files(root, directory)]
            if files:
                yield WriteEvent(
                    write_id=write_id,
                    database_name=self._database_name,
                    table_name=table.name,
                    partition=(
                        ""
                        if partition is None
                        else partition_name(table.partition_columns, partition.values)
                    ),
                    table_object=table_to_json(table),
                    partition_object=None if partition is None else partition_to_json(partition),
                    files=tuple(files),
                )

    def _files(self, root: Location, directory: str) -> Iterator[str]:
        for one in list_tree(root.child(directory)):
            if one.kind is FileKind.FILE and not any(is_hidden(x) for x in one.path.split("/")):
                place = root.child(f"{directory}/{one.path}")
                above = f"{directory}/{one.path}".rpartition("/")[0]
                yield encode_uri(
                    EncodedUri(
                        uri=place.uri,
                        checksum=None if self._cm_root is None else place.checksum(),
                        cmroot=self._cm_root,
                        sub_directory=above,
                    )
                )


def _single_writes(root: Location) -> Iterator[tuple[DirectoryName, str]]:
    """Directories that one transaction wrote, not a compactor."""
    if root.status() is None:
        return
    for one in root.volume.children(root.path):
        name = DirectoryName.parse(one.name) if one.kind is FileKind.DIRECTORY else None
        if (
            name is not None
            and not name.visibility_txn_id
            and name.min_write_id == name.max_write_id
        ):
            yield name, one.name
