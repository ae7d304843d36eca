"""Write one event of the notification log as an event directory of a dump.

Kind, payload and objects are those that Hive 4.2 writes for the same event (docs/format/dump.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from changemanager.errors import ChangeManagerError
from changemanager.uri import EncodedUri, decode_uri, encode_uri
from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Table, TableType, asks_to_keep
from hms_bridge.model.compaction import CompactionType
from hms_bridge.model.event import EventType, NotificationEvent
from hms_bridge.model.target import Target
from hms_bridge.model.txn import WriteEvent
from hms_bridge.repl.dump.event_metadata import (
    commit_metadata,
    ddl_metadata,
    name_of_partition,
    partition_files,
)
from hms_bridge.repl.dump.functions import NamedFunction
from hms_bridge.repl.format.dump_metadata import DumpMetadata, DumpType
from hms_bridge.repl.format.event_payload import (
    AbortTxnPayload,
    AllocWriteIdPayload,
    CommitTxnPayload,
    OpenTxnPayload,
    Payload,
    TxnMessage,
)
from hms_bridge.repl.format.layout import EventPaths
from hms_bridge.repl.format.object_metadata import (
    DatabaseMetadata,
)
from hms_bridge.repl.format.partition_places import require_usual_places
from hms_bridge.repl.format.passed_kinds import PASSED_BY_DEFAULT, PLACES, refusal
from hms_bridge.repl.format.side_texts import format_names
from hms_bridge.repl.format.stored_message import event_text
from hms_bridge.repl.format.texts import compact_json
from hms_bridge.repl.remedies import begin_anew, bring_anew
from hms_bridge.repl.target_objects import (
    has_moved,
    owned_database,
    require_files_of_hive,
)
from hms_bridge.wire.object_json import (
    database_from_json,
    database_to_json,
    table_from_json,
)

_PASSED_ON: Mapping[str, str] = {
    **{
        f"ADD_{kind}": f"EVENT_ADD_{kind}"
        for kind in (
            "PRIMARYKEY",
            "FOREIGNKEY",
            "UNIQUECONSTRAINT",
            "NOTNULLCONSTRAINT",
            "DEFAULTCONSTRAINT",
            "CHECKCONSTRAINT",
        )
    },
    "DROP_CONSTRAINT": "EVENT_DROP_CONSTRAINT",
    "DROP_PARTITION": "EVENT_DROP_PARTITION",
    "DROP_FUNCTION": "EVENT_DROP_FUNCTION",
    "UPDATE_TBL_COL_STAT_EVENT": "EVENT_UPDATE_TABLE_COL_STAT",
    "DELETE_TBL_COL_STAT_EVENT": "EVENT_DELETE_TABLE_COL_STAT",
    "UPDATE_PART_COL_STAT_EVENT": "EVENT_UPDATE_PART_COL_STAT",
    "DELETE_PART_COL_STAT_EVENT": "EVENT_DELETE_PART_COL_STAT",
}

_TXN_MESSAGES: Mapping[str, tuple[type[TxnMessage], str]] = {
    EventType.OPEN_TXN.value: (OpenTxnPayload, DumpType.OPEN_TXN.value),
    EventType.ALLOC_WRITE_ID.value: (AllocWriteIdPayload, DumpType.ALLOC_WRITE_ID.value),
    EventType.ABORT_TXN.value: (AbortTxnPayload, DumpType.ABORT_TXN.value),
}

_OF_QUEUE = frozenset({EventType.REQUEST_COMPACTION.value, EventType.FAIL_COMPACTION.value})
"""Of our own metastore; they are of a queue that a replica has not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpedList:
    """A file list to write."""

    path: str
    files: tuple[EncodedUri, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class EventTexts:
    """What the directory of one event holds: texts by path, and file lists. ``jars``: files that
    its texts name."""

    type: str
    texts: Mapping[str, str]
    lists: tuple[DumpedList, ...] = ()
    jars: tuple[EncodedUri, ...] = ()

    @property
    def files(self) -> tuple[EncodedUri, ...]:
        """All files that the event names."""
        listed = tuple(file for file_list in self.lists for file in file_list.files)
        return listed + self.jars


@dataclass(frozen=True, kw_only=True, slots=True)
class EventWriter:
    """Turns events of one database into texts. Pure: what a commit wrote is handed in.

    ``has_checksums`` False: references name neither checksum nor archive. ``passed_kinds``: events
    that are left out although nothing carries them over.
    """

    database_name: str
    cm_root: str | None
    has_checksums: bool = True
    passed_kinds: frozenset[str] = PASSED_BY_DEFAULT

    def write(
        self,
        event: NotificationEvent,
        paths: EventPaths,
        writes: Sequence[WriteEvent] = (),
        emptied: Collection[Target] = (),
        created: NamedFunction | None = None,
    ) -> EventTexts | None:
        """The texts of an event; None for one that Hive does not dump either. ``emptied``: tables
        and partitions of which the commit's write left an empty base. ``created``: the function of
        a CREATE FUNCTION, None if it need not come along.

        Raises ReplError for one that no incremental dump can carry: leaving it out would lose rows.
        """
        if event.type == EventType.COMMIT_TXN.value:
            return self._commit(event, paths, writes, emptied)
        if event.type in _TXN_MESSAGES:
            message, type_text = _TXN_MESSAGES[event.type]
            return self._texts(event, paths, type_text, message.of(event).format())
        writer = _WRITERS.get(event.type)
        if writer is not None:
            return writer(self, event, paths)
        if event.type == EventType.CREATE_FUNCTION.value:
            return None if created is None else self._create_function(event, paths, created)
        if event.type in _PASSED_ON:
            return self._payload_only(event, paths, _PASSED_ON[event.type])
        if event.type == EventType.DROP_DATABASE.value:
            raise _not_dumped(event, f"database {self.database_name} was dropped", ())
        if event.type in _OF_QUEUE or event.type in self.passed_kinds:
            return None
        raise refusal(event_text(event), event.type, "an event of this kind")

    def rename_away(self, event: NotificationEvent, paths: EventPaths) -> EventTexts:
        """The texts of a RENAME of a table that comes whole, or goes: a load drops the old name."""
        return self._payload_only(event, paths, DumpType.RENAME_DROP_TABLE.value)

    def _texts(
        self,
        event: NotificationEvent,
        paths: EventPaths,
        type_text: str,
        payload: str | None,
        *,
        metadata: str | None = None,
        lists: tuple[DumpedList, ...] = (),
        more: Mapping[str, str] | None = None,
    ) -> EventTexts:
        dump_metadata = DumpMetadata(
            type=type_text,
            from_event_id=event.id,
            to_event_id=event.id,
            cm_root=self.cm_root,
            payload=payload,
        )
        texts = {paths.dump_metadata: dump_metadata.format(), **(more or {})}
        if metadata is not None:
            texts[paths.object_metadata] = metadata
        return EventTexts(type=type_text, texts=texts, lists=lists)

    def _payload_only(
        self, event: NotificationEvent, paths: EventPaths, type_text: str
    ) -> EventTexts:
        return self._texts(event, paths, type_text, _compact(event))

    def _commit(
        self,
        event: NotificationEvent,
        paths: EventPaths,
        writes: Sequence[WriteEvent],
        emptied: Collection[Target],
    ) -> EventTexts:
        """The message gets what the transaction wrote, and each table a directory of its own."""
        commit = CommitTxnPayload.of(event)
        ours = tuple(
            write if self.has_checksums else _without_checksums(event, write)
            for write in writes
            if write.target.database == self.database_name
        )
        # Readers match arrays from their ends (docs/hive/replication.md §16), so what was written
        # comes last. Nothing written stays as it was logged: null or [], by Hive's version.
        payload = CommitTxnPayload(
            txn_id=commit.txn_id,
            timestamp_seconds=commit.timestamp_seconds,
            server=commit.server,
            service_principal=commit.service_principal,
            write_ids=(*commit.write_ids, *(write.write_id for write in ours)),
            databases=(*commit.databases, *(write.target.database for write in ours)),
            writes=ours or commit.writes,
        )
        texts: dict[str, str] = {}
        lists: list[DumpedList] = []
        for name in dict.fromkeys(write.target.table for write in ours):
            below = paths.table(self.database_name, name)
            group = tuple(write for write in ours if write.target.table == name)
            texts[below.object_metadata] = commit_metadata(event, group)
            empty = [target.partition or "" for target in emptied if target.table == name]
            if empty:
                texts[below.emptied] = format_names(empty)
            lists += [
                DumpedList(
                    path=below.files(write.target.partition), files=_decoded(event, write.files)
                )
                for write in group
            ]
        return self._texts(
            event,
            paths,
            DumpType.COMMIT_TXN.value,
            payload.format(),
            lists=tuple(lists),
            more=texts,
        )

    def _create_function(
        self, event: NotificationEvent, paths: EventPaths, created: NamedFunction
    ) -> EventTexts:
        texts = self._texts(
            event,
            paths,
            DumpType.CREATE_FUNCTION.value,
            None,
            metadata=created.metadata(event.id),
        )
        return replace(texts, jars=created.files)

    def _create_database(self, event: NotificationEvent, paths: EventPaths) -> EventTexts:
        payload = Payload.of(event)
        metadata = DatabaseMetadata(database=payload.text("dbJson")).format()
        return self._texts(
            event, paths, DumpType.CREATE_DATABASE.value, _compact(event), metadata=metadata
        )

    def _alter_database(self, event: NotificationEvent, paths: EventPaths) -> EventTexts:
        fields = dict(Payload.of(event).fields)
        for key in ("dbObjBeforeJson", "dbObjAfterJson"):
            database = database_from_json(str(fields.get(key)))
            if database.owner_name is None:
                fields[key] = database_to_json(owned_database(database))
        payload = compact_json(fields)
        return self._texts(event, paths, DumpType.ALTER_DATABASE.value, payload)

    def _create_table(self, event: NotificationEvent, paths: EventPaths) -> EventTexts | None:
        payload = Payload.of(event)
        text = payload.text("tableObjJson")
        table = table_from_json(text)
        if table.is_materialized_view:
            return None
        require_files_of_hive(table)
        _require_no_rows(event, table, table.parameters)
        files: tuple[EncodedUri, ...] = ()
        # Rows of the others come with commits, as whole directories, or with their partitions.
        if not (table.is_transactional or table.is_external or table.is_partitioned):
            files = _decoded(event, [uri for uri in payload.texts("files") if uri])
        return self._texts(
            event,
            paths,
            DumpType.CREATE_TABLE.value,
            None,
            metadata=ddl_metadata(event, table, text, is_data_included=not table.is_view),
            lists=(DumpedList(path=paths.files(), files=files),),
        )

    def _alter_table(self, event: NotificationEvent, paths: EventPaths) -> EventTexts | None:
        payload = Payload.of(event)
        before, after = payload.altered_tables()
        if after.is_materialized_view:
            return None
        require_files_of_hive(after)
        if before.database_name != after.database_name:
            own = [table for table in (before, after) if table.database_name == self.database_name]
            names = [table.name for table in own]
            raise _not_dumped(event, f"{before.full_name} was renamed to {after.full_name}", names)
        # One kind in the log; a dump, as Hive's, tells TRUNCATE, RENAME and other changes apart.
        if payload.is_true("isTruncateOp"):
            return self._payload_only(event, paths, DumpType.TRUNCATE_TABLE.value)
        if before.name != after.name:
            return self._payload_only(event, paths, DumpType.RENAME_TABLE.value)
        if _kind(before) != _kind(after):
            raise _not_dumped(
                event,
                f"{after.full_name} was converted ({_kind(before)} to {_kind(after)})",
                [after.name],
            )
        if not after.is_external and has_moved(before, after):
            raise _not_dumped(event, f"{after.full_name} was given another place", [after.name])
        return self._texts(
            event,
            paths,
            DumpType.ALTER_TABLE.value,
            _compact(event),
            metadata=ddl_metadata(
                event, after, payload.text("tableObjAfterJson"), is_data_included=False
            ),
        )

    def _drop_table(self, event: NotificationEvent, paths: EventPaths) -> EventTexts | None:
        payload = Payload.of(event)
        if payload.fields.get("tableType") == TableType.MATERIALIZED_VIEW.value:
            return None
        return self._payload_only(event, paths, DumpType.DROP_TABLE.value)

    def _add_partition(self, event: NotificationEvent, paths: EventPaths) -> EventTexts:
        payload = Payload.of(event)
        text = payload.text("tableObjJson")
        table = table_from_json(text)
        partitions = payload.partitions()
        for partition in partitions:
            _require_no_rows(event, table, partition.parameters)
        lists: tuple[DumpedList, ...] = ()
        if not table.is_external:
            # Lists of transactional tables are there, but empty, as Hive's: rows come with commits.
            files = partition_files(payload)
            names = [name_of_partition(event, table, partition) for partition in partitions]
            lists = tuple(
                DumpedList(
                    path=paths.files(name),
                    files=() if table.is_transactional else _decoded(event, files.get(name, ())),
                )
                for name in names
            )
        return self._texts(
            event,
            paths,
            DumpType.ADD_PARTITION.value,
            None,
            metadata=ddl_metadata(
                event, table, text, tuple(payload.partition_texts()), is_data_included=True
            ),
            lists=lists,
        )

    def _alter_partition(self, event: NotificationEvent, paths: EventPaths) -> EventTexts:
        payload = Payload.of(event)
        if payload.is_true("isTruncateOp"):
            return self._payload_only(event, paths, DumpType.TRUNCATE_PARTITION.value)
        text = payload.text("tableObjJson")
        table = table_from_json(text)
        if event.type == EventType.ALTER_PARTITIONS.value:
            partitions = tuple(payload.partition_texts())
            if PLACES not in self.passed_kinds:
                require_usual_places(table, payload.partitions(), event_text(event))
        else:
            partitions = (payload.text("partitionObjAfterJson"),)
            before = payload.partition("partitionObjBeforeJson")
            after = payload.partition("partitionObjAfterJson")
            if before.values != after.values:
                return self._payload_only(event, paths, DumpType.RENAME_PARTITION.value)
            if has_moved(before, after) and not table.is_external:
                name = f"{'/'.join(after.values)} of {event.table_name}"
                what = f"partition {name} was given another place"
                raise _not_dumped(event, what, [event.table_name or ""])
        return self._texts(
            event,
            paths,
            DumpType.ALTER_PARTITION.value,
            _compact(event),
            metadata=ddl_metadata(event, table, text, partitions, is_data_included=False),
        )

    def _compaction(self, event: NotificationEvent, paths: EventPaths) -> EventTexts:
        """Carried as Hive does, who knows no such kind; the rows are the same, unless rebalanced.

        Raises ReplError then: later deletes name rows by ids that they do not have on the replica.
        """
        payload = Payload.of(event)
        if payload.fields.get("type") == CompactionType.REBALANCE.name:
            raise _not_dumped(
                event,
                f"{event.database_name}.{event.table_name} was rebalanced: its rows have other "
                "ids now",
                [event.table_name or ""],
            )
        # The raw message, which need not be JSON; a column holds neither tab nor line end.
        return self._texts(event, paths, DumpType.UNKNOWN.value, _one_line(event.message))

    def _insert(self, event: NotificationEvent, _: EventPaths) -> EventTexts | None:
        """Files of external tables are copied whole, those of ACID tables come with the commit."""
        payload = Payload.of(event)
        table = payload.table()
        if table.is_external or table.is_transactional:
            return None
        raise ReplError(
            f"{event_text(event)}: rows were written to {table.full_name}, which is managed but "
            "not transactional: no event carries them. Make it transactional or external, or bring "
            "it whole after each such write. " + bring_anew(table.database_name, [table.name])
        )


_WRITERS = {
    EventType.CREATE_DATABASE.value: EventWriter._create_database,
    EventType.ALTER_DATABASE.value: EventWriter._alter_database,
    EventType.CREATE_TABLE.value: EventWriter._create_table,
    EventType.ALTER_TABLE.value: EventWriter._alter_table,
    EventType.DROP_TABLE.value: EventWriter._drop_table,
    EventType.ADD_PARTITION.value: EventWriter._add_partition,
    EventType.ALTER_PARTITION.value: EventWriter._alter_partition,
    EventType.ALTER_PARTITIONS.value: EventWriter._alter_partition,
    EventType.INSERT.value: EventWriter._insert,
    EventType.COMMIT_COMPACTION.value: EventWriter._compaction,
}


def _not_dumped(event: NotificationEvent, what: str, tables: Sequence[str]) -> ReplError:
    database = event.database_name or "DATABASE"
    return ReplError(
        f"{event_text(event)}: {what}, which no event carries, and leaving it out would lose rows. "
        + (bring_anew(database, tables) if tables else begin_anew(database))
    )


def _require_no_rows(event: NotificationEvent, table: Table, parameters: Mapping[str, str]) -> None:
    """Raises ReplError for what was adopted: the writes of its rows are in no event."""
    if table.is_transactional and asks_to_keep(parameters):
        what = f"{table.full_name} was adopted with the rows of its files"
        raise _not_dumped(event, what, [table.name])


def _compact(event: NotificationEvent) -> str:
    fields = Payload.of(event).fields
    return compact_json(fields)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _kind(table: Table) -> str:
    kind = TableType.EXTERNAL_TABLE.value if table.is_external else table.type
    return f"{'transactional ' if table.is_transactional else ''}{kind}"


def _decoded(event: NotificationEvent, files: Sequence[str]) -> tuple[EncodedUri, ...]:
    try:
        return tuple(decode_uri(uri) for uri in files)
    except ChangeManagerError as error:
        raise ReplError(f"{event_text(event)}: {error}") from error


def _without_checksums(event: NotificationEvent, write: WriteEvent) -> WriteEvent:
    files = _decoded(event, write.files)
    plain = (replace(file, checksum=None, cmroot=None) for file in files)
    return replace(write, files=tuple(encode_uri(file) for file in plain))
