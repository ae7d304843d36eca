"""Leases: who reads which files, for as long as somebody says so.

A lease belongs to a scan, and the scans of a statement share a snapshot and a transaction. A lease
that ended, or never protected anything (of a statement that was only explained), is remembered with
the files of its plan. It protects them anew if all of them are files that a reader reads who starts
now: what such a reader sees, no cleaner takes.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from hms_bridge.clock import Clock, steady_ms
from hms_bridge.errors import NotEnoughHistoryError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.plans.holds import Hold, Statement
from hms_bridge.plans.requests import PlanError, PlanRequest, Refusal
from hms_bridge.plans.scan_plan import PlannedRoot, files_of, is_all_there
from hms_bridge.plans.table_reader import TableReader
from hms_bridge.session.transaction import Client

OPEN_MAX = 1_000
_ENDED_MAX, _ENDED_FILES_MAX = 1_000, 500_000
_STATEMENTS_MAX = 1_000
SILENT_MS, _STOOD_STILL_MS = 120_000, 60_000
_STOP_SECONDS = 10.0
_USE_LOCK_SECONDS_MAX = 20.0
"""Spark's scheduler waits for the answer to ``read/use``, and the jar for a minute only."""


@dataclass(slots=True)
class Lease:
    """One scan. ``hold`` is what protects its files now, if anything does."""

    id: str
    statement: Statement
    request: PlanRequest
    files: frozenset[str]
    hold: Hold | None = None
    heard_ms: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Planned:
    """A scan that was planned, and the name of its lease."""

    lease: str
    table: Table
    write_ids: ValidWriteIdList
    roots: Sequence[PlannedRoot]


class Leases:
    """All leases of one driver. Any number of threads may call: each statement has its turns, and
    what is said of all leases is guarded by a lock under which nothing waits."""

    def __init__(
        self, metastore: Metastore, reader: TableReader, client: Client, clock: Clock
    ) -> None:
        self._metastore = metastore
        self._reader = reader
        self._client = client
        self._clock = clock
        self._guard = threading.Lock()
        self._is_stopped = False
        self._statements: OrderedDict[str, Statement] = OrderedDict()
        self._open: dict[str, Lease] = {}
        self._ended: OrderedDict[str, Lease] = OrderedDict()
        self._ended_files = 0
        self._looked_ms = steady_ms(clock)

    def plan(self, request: PlanRequest) -> Planned:
        """Plan a scan under its statement's snapshot, and protect it if the statement runs.

        Raises PlanError, DmlError (a lock that is not granted), AcidFormatError, OSError, and what
        the metastore raises; then nothing is left behind.
        """
        statement = self._statement(request.statement)
        with statement.turn:
            table = self._reader.table_of(request.table)
            with self._held(statement, table, self._client_of(request)) as hold:
                # It may have changed while the lock was awaited.
                table = self._reader.table_of(request.table)
                view = statement.view(self._metastore, table)
                now = view if table.full_name in hold.early else hold.view(table)
                listed = self._reader.listed(request, table, view)
                roots = self._reader.planned(table, listed, view)
                if now != view:
                    of_now = self._reader.planned(table, listed, now)
                    if not is_all_there(roots, of_now, view.write_ids):
                        raise _gone(table)
                lease = Lease(secrets.token_hex(8), statement, request, files_of(roots))
                self._note(lease, hold if request.is_held else None)
        return Planned(lease=lease.id, table=table, write_ids=view.write_ids, roots=roots)

    def use(self, lease_id: str) -> None:
        """Protect the files of a plan, if they are not. Raises PlanError if one may be gone, and
        as :meth:`plan`."""
        with self._guard:
            lease = self._open.get(lease_id) or self._ended.get(lease_id)
        if lease is None:
            raise PlanError(
                Refusal.SNAPSHOT_GONE,
                "this snapshot ended long ago; make the frame again to read the table as it is now",
            )
        statement = lease.statement
        with statement.turn:
            if lease.hold is not None and not lease.hold.is_lost():
                lease.heard_ms = steady_ms(self._clock)
                return
            table = self._reader.table_of(lease.request.table)
            client = self._client_of(lease.request)
            lock_seconds = min(client.lock_wait_seconds, _USE_LOCK_SECONDS_MAX)
            client = replace(client, lock_wait_seconds=lock_seconds)
            with self._held(statement, table, client) as hold:
                table = self._reader.table_of(lease.request.table)
                now = hold.view(table)
                listed = self._reader.listed(lease.request, table, now)
                if not lease.files <= files_of(self._reader.planned(table, listed, now)):
                    raise _gone(table)
                self._note(lease, hold)

    def keep(self, lease_ids: Sequence[str]) -> list[str]:
        """Those of them that protect nothing; the others are heard of."""
        lost = []
        for lease_id in lease_ids:
            with self._guard:
                lease = self._open.get(lease_id)
                hold = lease.hold if lease is not None else None
            if lease is None or hold is None or hold.is_known_lost():
                lost.append(lease_id)
            else:
                lease.heard_ms = steady_ms(self._clock)
        return lost

    def end(self, lease_ids: Sequence[str]) -> None:
        """They protect nothing any more; what nobody needs ends. Unknown ones have ended."""
        for lease_id in lease_ids:
            with self._guard:
                lease = self._open.get(lease_id)
            if lease is not None:
                with lease.statement.turn:
                    self._let_go(lease)

    def end_all(self) -> None:
        """End every lease that is open."""
        with self._guard:
            left = list(self._open)
        self.end(left)

    def end_silent(self) -> None:
        """End the leases of which nothing was heard for two minutes. A service that stood still,
        as its looks are a minute apart, heard nobody: then all have their time anew."""
        now_ms = steady_ms(self._clock)
        stood_still = now_ms - self._looked_ms >= _STOOD_STILL_MS
        self._looked_ms = now_ms
        with self._guard:
            leases = list(self._open.values())
        for lease in leases:
            if stood_still:
                lease.heard_ms = now_ms
            is_silent = now_ms - lease.heard_ms > SILENT_MS
            if is_silent and lease.statement.turn.acquire(blocking=False):  # else it is in use
                try:
                    if now_ms - lease.heard_ms > SILENT_MS:
                        self._let_go(lease)
                finally:
                    lease.statement.turn.release()

    def stop(self) -> None:
        """End all of them, and take no new ones. If the metastore does not answer to one, the rest
        are not tried, each of which would wait as long for it: they time out."""
        with self._guard:
            self._is_stopped = True
            left = list(self._open.values())
        for lease in left:
            # Who waits for a lock meanwhile finds that all has stopped, and aborts.
            if lease.statement.turn.acquire(timeout=_STOP_SECONDS):
                try:
                    is_reached = self._let_go(lease)
                finally:
                    lease.statement.turn.release()
                if not is_reached:
                    return

    def _statement(self, text: str) -> Statement:
        with self._guard:
            self._require_room()
            statement = self._statements.setdefault(text, Statement())
            self._statements.move_to_end(text)
            for other in list(self._statements):
                if len(self._statements) <= _STATEMENTS_MAX:
                    break
                if other != text and self._statements[other].hold is None:
                    del self._statements[other]
            return statement

    @contextmanager
    def _held(self, statement: Statement, table: Table, client: Client) -> Iterator[Hold]:
        """The statement's transaction, with a lock on the table. If no lease needs it at the end of
        the block, it ends, too."""
        if statement.hold is not None and statement.hold.is_lost():
            self._give_up(statement, statement.hold)
        hold = statement.hold
        if hold is None:
            hold = statement.hold = Hold(self._metastore, client, self._clock)
        try:
            try:
                hold.add(table)
            except BaseException:
                self._forget_leases(hold)  # its lock may still wait: no other may be kept behind it
                raise
            statement.begin(hold, table)
            yield hold
        except BaseException as error:
            if not hold.leases:
                statement.hold = None
                hold.fail(error)
            if isinstance(error, NotEnoughHistoryError):
                raise _gone(table) from error
            raise
        if not hold.leases:
            statement.hold = None
            hold.end()

    def _note(self, lease: Lease, hold: Hold | None) -> None:
        """A lease that this hold protects from now on; None: that nothing protects."""
        with self._guard:
            if hold is None:
                self._remember(lease)
                return
            self._require_room()
            if self._ended.pop(lease.id, None) is not None:
                self._ended_files -= len(lease.files)
            lease.hold, lease.heard_ms = hold, steady_ms(self._clock)
            hold.leases.add(lease.id)
            self._open[lease.id] = lease

    def _client_of(self, request: PlanRequest) -> Client:
        return replace(self._client, agent=request.agent)

    def _let_go(self, lease: Lease) -> bool:
        """In the statement's turn. False if the metastore did not answer."""
        hold = lease.hold
        with self._guard:
            if hold is None or self._open.pop(lease.id, None) is None:
                return True
            hold.leases.discard(lease.id)
            lease.hold = None
            self._remember(lease)
        if not hold.leases:
            lease.statement.hold = None
            return hold.end()
        return True

    def _give_up(self, statement: Statement, hold: Hold) -> None:
        """A transaction that is lost."""
        self._forget_leases(hold)
        statement.hold = None
        hold.end()

    def _forget_leases(self, hold: Hold) -> None:
        with self._guard:
            for lease_id in hold.leases:
                lease = self._open.pop(lease_id)
                lease.hold = None
                self._remember(lease)
            hold.leases.clear()

    def _remember(self, lease: Lease) -> None:
        """Under the guard: for who uses the frame again."""
        self._ended[lease.id] = lease
        self._ended_files += len(lease.files)
        while len(self._ended) > _ENDED_MAX or self._ended_files > _ENDED_FILES_MAX:
            _, oldest = self._ended.popitem(last=False)
            self._ended_files -= len(oldest.files)

    def _require_room(self) -> None:
        """Under the guard. Raises PlanError."""
        if self._is_stopped:
            raise PlanError(Refusal.REFUSED, "the plan service has stopped; attach Spark again")
        if len(self._open) >= OPEN_MAX:
            raise PlanError(
                Refusal.REFUSED,
                f"{OPEN_MAX} scans are open; wait until some of them end",
            )


def _gone(table: Table) -> PlanError:
    return PlanError(
        Refusal.SNAPSHOT_GONE,
        f"{table.full_name} was compacted or replaced since this snapshot was taken, and nothing "
        "protects its files any more; make the frame again to read the table as it is now",
    )
