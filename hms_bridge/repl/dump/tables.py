"""Write tables at one snapshot: a whole database, or those that an incremental dump brings anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from changemanager.uri import EncodedUri
from hms_bridge.clock import Clock
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table
from hms_bridge.model.ids import EventId, TxnId
from hms_bridge.repl.dump.bootstrap import BootstrapDump, require_no_rename
from hms_bridge.repl.dump.constraints import write_constraints
from hms_bridge.repl.dump.event_source import EventRange
from hms_bridge.repl.dump.functions import FunctionFiles, write_functions
from hms_bridge.repl.dump.plan import DumpRequest
from hms_bridge.repl.dump.read_txn import ReadTxn, open_read_txn
from hms_bridge.repl.dump.snapshot_wait import wait_for_snapshot
from hms_bridge.repl.format.hashed_texts import NotedTexts
from hms_bridge.repl.format.layout import CONSTRAINTS, FUNCTIONS, DumpPaths


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenTables:
    """The files that were named, by table; the last event when it was done; transactions that were
    open without a trace in the database."""

    files: Mapping[str, Sequence[EncodedUri]]
    until: EventId
    idle_txn_ids: tuple[TxnId, ...]

    @property
    def all_files(self) -> list[EncodedUri]:
        """Those of all tables."""
        return [file for files in self.files.values() for file in files]

    @property
    def counts(self) -> dict[str, int]:
        """How many files each table has."""
        return {table: len(named) for table, named in self.files.items()}


class TablesDump:
    """Writes tables as they are at a snapshot after ``event_id``; later events may be in both.
    ``on_waiting`` is given whom it waits for."""

    def __init__(
        self,
        source: Metastore,
        clock: Clock,
        request: DumpRequest,
        paths: DumpPaths,
        texts: NotedTexts,
        *,
        event_id: EventId,
        on_waiting: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._source = source
        self._clock = clock
        self._request = request
        self._paths = paths
        self._texts = texts
        self._event_id = event_id
        self._on_waiting = on_waiting

    def write_functions(self) -> list[EncodedUri]:
        """All of the database, unless the replica does without; the files that they need."""
        request = self._request
        if FUNCTIONS in request.events.passed_kinds:
            return []
        cm_root = request.cm_root if request.has_checksums else None
        return write_functions(
            self._source,
            self._texts,
            request.database_name,
            FunctionFiles(resolve=self._texts.resolve, cm_root=cm_root),
            self._event_id,
        )

    def write(
        self, tables: Sequence[Table], external_base: str | None, others: Sequence[str] = ()
    ) -> WrittenTables:
        """Register as a reader, then take the snapshot, then write what it sees (I3). ``others``:
        tables that are not written, and may refer to those that are.

        Raises ReplError if writers do not end in time, or a name changed meanwhile.
        """
        request = self._request
        with open_read_txn(
            self._source, self._clock, user=request.user, host=request.host
        ) as reader:
            files, idle = self._write(tuple(tables), external_base, reader)
        self._write_constraints(tuple(files), others)
        until = self._source.get_current_event_id()
        wanted = EventRange(after=self._event_id, until=until)
        require_no_rename(self._source, request.database_name, wanted)
        return WrittenTables(files=files, until=until, idle_txn_ids=idle)

    def _write(
        self, tables: tuple[Table, ...], external_base: str | None, reader: ReadTxn
    ) -> tuple[Mapping[str, Sequence[EncodedUri]], tuple[TxnId, ...]]:
        request = self._request
        reader.register(transactional_names(tables))
        snapshot = wait_for_snapshot(
            self._source,
            self._clock,
            request.database_name,
            transactional_names(tables),
            request.wait,
            keep_alive=reader.keep_alive,
            on_waiting=self._on_waiting,
        )
        dump = BootstrapDump(
            self._source,
            self._paths,
            self._texts,
            event_id=self._event_id,
            snapshot=snapshot,
            cm_root=request.cm_root if request.has_checksums else None,
            external_base=external_base,
        )
        files: dict[str, Sequence[EncodedUri]] = {}
        for whole in dump.write_tables(tables):
            files[whole.table.name] = whole.files
            reader.keep_alive()
        dump.write_external_list()
        return files, snapshot.idle_txn_ids

    def _write_constraints(self, names: Sequence[str], others: Sequence[str]) -> None:
        request = self._request
        if CONSTRAINTS in request.events.passed_kinds:
            return
        write_constraints(
            self._source,
            self._texts,
            self._paths,
            request.database_name,
            names,
            others,
            self._clock.now_ms() // 1000,
        )


def transactional_names(tables: Sequence[Table]) -> tuple[str, ...]:
    """``db.table`` of those with transactions."""
    return tuple(table.full_name for table in tables if table.is_transactional)
