"""Writes of one driver: each a transaction of its own, from ``write/begin`` to its commit or abort.

Tasks write event files below a staging directory; what they report is published at the commit, and
seen by nobody before. A write of which nothing is heard for two minutes is aborted.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from changemanager.durable import settle_file
from changemanager.location import Resolver
from hms_bridge.acid.names import DirectoryName
from hms_bridge.clock import Clock, steady_ms
from hms_bridge.directories.publication import Publication
from hms_bridge.directories.written import EventFile, WrittenDirectory
from hms_bridge.errors import DmlError, HmsBridgeError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table
from hms_bridge.model.ids import WriteId
from hms_bridge.model.lock import DataOperation, LockType
from hms_bridge.plans.leases import SILENT_MS
from hms_bridge.plans.requests import PlanError, Refusal, WriteRequest, WrittenFile
from hms_bridge.plans.table_reader import TableReader
from hms_bridge.plans.write_rules import partition_of, required_columns
from hms_bridge.rows.event_files import EventFileSpec
from hms_bridge.session.locked_transaction import (
    LockedTransaction,
    locked_transaction,
    write_lock,
)
from hms_bridge.session.transaction import Client

_OPEN_MAX = 200


@dataclass(slots=True)
class Writing:
    """One write. ``turn`` is held by who ends it."""

    id: str
    table: Table
    required: tuple[str, ...]
    compression: str
    write_id: WriteId
    publication: Publication
    context: AbstractContextManager[LockedTransaction]
    turn: threading.Lock
    heard_ms: int


class Writes:
    """All writes of one driver; any number of threads may call."""

    def __init__(
        self,
        metastore: Metastore,
        resolver: Resolver,
        reader: TableReader,
        client: Client,
        clock: Clock,
    ) -> None:
        self._metastore = metastore
        self._resolver = resolver
        self._reader = reader
        self._client = client
        self._clock = clock
        self._guard = threading.Lock()
        self._is_stopped = False
        self._open: dict[str, Writing] = {}

    def begin(self, request: WriteRequest) -> Writing:
        """Open a transaction with the table's lock and a write id, and make its staging directory.

        Raises PlanError, DmlError (what cannot be written here; a lock that is not granted),
        OSError, and what the metastore raises; then nothing is left behind.
        """
        table = self._reader.table_of(request.table)
        self._required(table)
        self._require_room()
        client = replace(self._client, agent=request.agent)
        # Others may read and insert, nobody may drop (hive.txn.xlock.write=true).
        lock = write_lock(table, DataOperation.INSERT, LockType.SHARED_READ)
        context = locked_transaction(self._metastore, client, self._clock, [lock])
        transaction = context.__enter__()
        try:
            table = self._reader.table_of(request.table)  # it may have changed while it waited
            writing = self._writing(table, transaction, context)
            with self._guard:
                self._open[writing.id] = writing
        except BaseException as error:
            context.__exit__(type(error), error, error.__traceback__)
            raise
        return writing

    def _writing(
        self,
        table: Table,
        transaction: LockedTransaction,
        context: AbstractContextManager[LockedTransaction],
    ) -> Writing:
        required = self._required(table)
        write_id = transaction.allocate_write_id(table)
        publication = Publication(self._metastore, self._resolver, table, transaction.id, write_id)
        publication.forget_dead(transaction.txns)
        spec = EventFileSpec.of_table(table, publication.staging, write_id, 0)
        staging = self._resolver(publication.staging)
        staging.volume.make_directory(staging.parent.path)  # the table's, if it is gone
        staging.volume.make_working_directory(staging.path)
        return Writing(
            id=secrets.token_hex(8),
            table=table,
            required=required,
            compression=spec.settings.compression.name,
            write_id=write_id,
            publication=publication,
            context=context,
            turn=threading.Lock(),
            heard_ms=steady_ms(self._clock),
        )

    def _required(self, table: Table) -> tuple[str, ...]:
        return required_columns(
            table, self._metastore.get_constraints(table.database_name, table.name)
        )

    def commit(self, write: str, files: Sequence[WrittenFile]) -> None:
        """Publish the files and commit. Raises PlanError for a file that is not as reported, or a
        write that has ended; what the metastore and the file system raise. Then it is aborted."""
        writing = self._taken(write)
        with writing.turn:
            try:
                published = [(file.statement, self._event_file(writing, file)) for file in files]
                writing.publication.publish(
                    [
                        WrittenDirectory(
                            name=DirectoryName.delta(writing.write_id, writing.write_id, number),
                            files=tuple(event for other, event in published if other == number),
                        )
                        for number in sorted({number for number, _ in published})
                    ],
                    DataOperation.INSERT,
                )
            except BaseException as error:
                self._fail(writing, error)
                raise
            writing.publication.discard_staging()
            writing.context.__exit__(None, None, None)

    def abort(self, write: str) -> None:
        """No row is seen. One that has ended is left as it is."""
        with self._guard:
            writing = self._open.pop(write, None)
        if writing is not None:
            with writing.turn:
                self._give_up(writing, "Spark gave the write up")

    def keep(self, write: str) -> None:
        """It is heard of. Raises PlanError if it has ended."""
        with self._guard:
            writing = self._open.get(write)
        if writing is None:
            raise _ended()
        writing.heard_ms = steady_ms(self._clock)

    def end_silent(self) -> None:
        """Abort what nothing was heard of for two minutes."""
        now_ms = steady_ms(self._clock)
        with self._guard:
            silent = [w for w in self._open.values() if now_ms - w.heard_ms > SILENT_MS]
        for writing in silent:
            self.abort(writing.id)

    def stop(self) -> None:
        """Abort all, and begin none."""
        with self._guard:
            self._is_stopped = True
            left = list(self._open)
        for write in left:
            self.abort(write)

    def _taken(self, write: str) -> Writing:
        with self._guard:
            writing = self._open.pop(write, None)
        if writing is None:
            raise _ended()
        return writing

    def _event_file(self, writing: Writing, file: WrittenFile) -> EventFile:
        """Raises PlanError unless it is one of the write's own, of this size."""
        location = self._resolver(file.path)
        status = location.volume.status(location.path)
        is_own = location.is_below(self._resolver(writing.publication.staging))
        if not is_own or status is None or status.size_bytes != file.size_bytes:
            raise PlanError(
                Refusal.REFUSED,
                f"{file.path} is not the file of {file.size_bytes} bytes that a task wrote for "
                f"{writing.table.full_name}; nothing was written",
            )
        settle_file(location.volume, location.path)
        return EventFile(
            partition=partition_of(writing.table, file.partition),
            path=location.uri,
            bucket_id=file.bucket,
            row_count=file.row_count,
            size_bytes=file.size_bytes,
        )

    def _give_up(self, writing: Writing, reason: str) -> None:
        error = DmlError(reason)
        try:
            self._fail(writing, error)
        except DmlError as raised:
            if raised is not error:
                raise

    @staticmethod
    def _fail(writing: Writing, error: BaseException) -> None:
        try:
            writing.publication.discard_staging()
        except (HmsBridgeError, OSError) as second:
            error.add_note(f"the staging directory stays: {second}")
        writing.context.__exit__(type(error), error, error.__traceback__)

    def _require_room(self) -> None:
        with self._guard:
            if self._is_stopped:
                raise PlanError(Refusal.REFUSED, "the plan service has stopped; attach Spark again")
            if len(self._open) >= _OPEN_MAX:
                raise PlanError(
                    Refusal.REFUSED, f"{_OPEN_MAX} writes are open; wait until some of them end"
                )


def _ended() -> PlanError:
    return PlanError(
        Refusal.WRITE_GONE,
        "this write has ended, and nothing of it is seen: nothing was heard of it for two minutes, "
        "or the plan service began anew; run the statement again",
    )
