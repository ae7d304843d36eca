"""A PostgreSQL connection that sends what nobody waits for together with what somebody waits for.

A short verb is a handful of statements, and most of what it costs is going to and fro between two
processes. Of many statements (BEGIN, a lock, rows to insert, COMMIT) the answer is of no interest
until the next one is asked, or the transaction ends. They are held back until then, and go in one
message, in their order (libpq's pipeline mode): the server does none of them after one that failed,
so a COMMIT at their end commits all or nothing. Who has more to make before the end lets it begin
with what there is (:meth:`PipelinedConnection.send_ahead`).

What asks by a cursor, as all of SQLAlchemy does, is sent after what is held back; so nobody else
has to know. Texts are prepared once a connection (unless it has ``prepare_threshold=None``, as
behind some poolers), and go past the driver's cursors, which take longer than the server does.
"""

from __future__ import annotations

import select
import time
from collections.abc import Generator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import psycopg
from psycopg import IsolationLevel
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import (
    ConnStatus,
    DiagnosticField,
    ExecStatus,
    PipelineStatus,
    TransactionStatus,
)
from psycopg.pq.abc import PGresult
from psycopg.waiting import Ready

from hms_bridge.backend import frozen_server
from hms_bridge.backend.frozen_server import ServerCheck
from hms_bridge.backend.prepared_text import PreparedText

Row = tuple[Any, ...]

_BEHIND_BYTES_MAX = 32 * 1024
"""What is sent behind a statement that may wait for a lock or take long, of which the server reads
nothing meanwhile. What a host takes unread is 64 KiB at least; of one that takes no more of what
is sent the system thinks after a while that it has gone (``tcp_user_timeout``)."""
_VALUES = attrgetter("values")
_FAILED = (ExecStatus.FATAL_ERROR, ExecStatus.PIPELINE_ABORTED)
_NO_SUCH_TEXT = "26000"
_ENDED = frozenset({"57P01", "57P04", "57P05", "25P03", "25P04", "40001"})
"""With what PostgreSQL itself ends a connection at a statement that it gives up on."""


class PipelineAnswer:
    """What a statement gives; whoever looks makes the connection send what it holds back.

    Raises psycopg's errors: its own, or that of one that went before it.
    """

    __slots__ = ("_connection", "_result", "_rows", "text", "values")

    def __init__(
        self, connection: PipelinedConnection, text: PreparedText, values: Sequence[Any]
    ) -> None:
        self._connection = connection
        self._result: PGresult | None = None
        self._rows: Sequence[Row] | None = None
        self.text = text
        self.values = values

    @property
    def rows(self) -> Sequence[Row]:
        """Tuples in the order of the selected columns; empty for no row."""
        if self._rows is None:
            self._rows = self._connection.read(self._come())
        return self._rows

    @property
    def count(self) -> int:
        """How many rows were changed."""
        return self._come().command_tuples or 0

    def give(self, result: PGresult) -> None:
        """The connection has it."""
        self._result = result

    def keep(self) -> None:
        """Read it now: after the commit another thread may use the connection."""
        if self._rows is None and self._result is not None:
            self._rows = self._connection.read(self._result)

    def _come(self) -> PGresult:
        if self._result is None:
            self._connection.send_held()
        if self._result is None:
            raise psycopg.InternalError("the statement was undone before it was looked at")
        return self._result


_BEGIN = PreparedText("BEGIN ISOLATION LEVEL READ COMMITTED")
_BEGIN_OF_ONE_MOMENT = PreparedText("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
_COMMIT = PreparedText("COMMIT")
_PLANS = {
    True: (
        PreparedText("SET enable_seqscan TO off"),
        PreparedText("SET plan_cache_mode TO force_generic_plan"),
    ),
    False: (
        PreparedText("SET enable_seqscan TO DEFAULT"),
        PreparedText("SET plan_cache_mode TO DEFAULT"),
    ),
}


def _is_told(result: PGresult) -> bool:
    """Whether it is the server that says that it has not done a statement. What the driver makes of
    a lost connection has no state; and what a pooler says of one says nothing about statements,
    which may all have been done."""
    state = result.error_field(DiagnosticField.SQLSTATE)
    if result.status not in _FAILED or not state:
        return False
    severity = result.error_field(DiagnosticField.SEVERITY_NONLOCALIZED)
    return severity == b"ERROR" or state.decode() in _ENDED


def _parts(held: Sequence[PipelineAnswer], *, is_begun: bool) -> list[Sequence[PipelineAnswer]]:
    """What goes in one message each; the first is empty where what is under way, if the connection
    ``is_begun``, is waited for alone."""
    # Nearly always there is little, and few verbs have time for more than this.
    if sum(map(len, filter(None, chain.from_iterable(map(_VALUES, held))))) <= _BEHIND_BYTES_MAX:
        return [held]
    places = [0]
    has_one, behind = is_begun, 0
    for place, answer in enumerate(held):
        size = sum(map(len, filter(None, answer.values)))
        if has_one and behind + size > _BEHIND_BYTES_MAX:
            places.append(place)
            behind = 0
        elif has_one:
            behind += size
        has_one = True
    return [held[start:end] for start, end in zip(places, [*places[1:], len(held)], strict=True)]


class PipelinedConnection(psycopg.Connection[Row]):
    """As psycopg's, and :meth:`ask`. Used by one thread at a time."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._held_back: list[PipelineAnswer] = []
        self._under_way: list[PipelineAnswer] = []
        self._known_texts: set[PreparedText] = set()
        self._text_codec: Any = None
        self._wants_indexes = False
        self._goes_by_indexes: bool | None = False
        self._is_in_doubt = False
        self._arrivals = select.poll()
        self._arrivals.register(self.pgconn.socket, select.POLLIN)
        self.server_check: ServerCheck | None = None

    @property
    def is_in_doubt(self) -> bool:
        """Of a commit that has failed: whether it may have been done. Not if it was never sent, nor
        if the server gave up on a statement before it, be it that it ended the connection."""
        return self._is_in_doubt

    @property
    def server_address(self) -> dict[str, str]:
        """Parameters of a connection that lead to the same server, whatever others a URL names."""
        pgconn = self.pgconn
        named = {"host": pgconn.host, "hostaddr": pgconn.hostaddr, "port": pgconn.port}
        return {name: value.decode() for name, value in named.items() if value}

    def go_by_indexes(self, *, is_wanted: bool) -> None:
        """From the next transaction on: whether plans are to read rows by indexes alone, and each
        is made once.

        A prepared text keeps its plan. One that was made while a table was empty goes through all
        of its rows, also when these are ten thousand; by an index it does well at any time. Left
        to itself PostgreSQL makes the plan each time where it knows a table as empty: that takes
        it longer than what it then does.
        """
        self._wants_indexes = is_wanted and self.prepare_threshold is not None

    def set_at_once(self, statement: str) -> None:
        """A statement by itself, outside of any transaction: what it answers is of no interest."""
        self._enter_pipeline()
        self.pgconn.send_query_params(statement.encode(), None)
        self._send_together(())

    def ask(
        self, text: PreparedText, values: Sequence[Any] = (), *, is_looked_at: bool = False
    ) -> PipelineAnswer:
        """A statement of the transaction, begun if there is none. It is sent when its answer, or
        a later one, is looked at, at the latest by the commit; without transactions, at once,
        unless it ``is_looked_at`` for sure."""
        codec = self._text_codec
        if codec is None:
            codec = self._text_codec = Transformer(self)
        answer = PipelineAnswer(
            self, text, codec.dump_sequence(values, [PyFormat.TEXT] * len(values))
        )
        self._begin()
        self._held_back.append(answer)
        if self.autocommit and not is_looked_at:
            self.send_held()
        return answer

    def send_ahead(self) -> None:
        """Let the server begin with what is held back, while the rest of a transaction is made.
        What becomes of it is heard with what comes next, at the latest at the commit.

        Raises psycopg's OperationalError if the connection is lost.
        """
        held = self._held_back
        # A text is prepared by itself, once a connection, which is not worth the care.
        if not held or not self._are_known(held) or len(_parts(held, is_begun=False)) > 1:
            return
        try:
            self._send(held)
            self.pgconn.flush()
        except BaseException:
            # Cut off between question and answer: what comes next would be taken for the answer.
            self.pgconn.finish()
            raise
        self._under_way += held
        self._held_back = []

    def send_held(self) -> None:
        """Send what is held back, and wait until all of it, and what is under way, has been done.

        Raises psycopg's error of the first that failed.
        """
        under_way, self._under_way = self._under_way, []
        held, self._held_back = self._held_back, []
        asked = [*under_way, *held]
        if not asked:
            return
        goes_by_indexes, self._goes_by_indexes = self._goes_by_indexes, None
        try:
            results = self._send_all(held, is_begun=bool(under_way))
        except BaseException:
            # Cut off, as with what is sent ahead.
            self.pgconn.finish()
            raise
        for place, result in enumerate(results, 1):
            if result.status in _FAILED:
                error = error_from_result(result, encoding=self.info.encoding)
                if _is_told(result) and place < len(asked):
                    self._is_in_doubt = False
                if error.sqlstate == _NO_SUCH_TEXT:
                    self._known_texts.clear()
                raise error
        self._goes_by_indexes = goes_by_indexes
        for answer, result in zip(asked, results, strict=True):
            answer.give(result)

    def read(self, result: PGresult) -> Sequence[Row]:
        """The rows of a result, as cursors read them."""
        codec = self._text_codec
        if codec is None or not result.ntuples:
            return ()
        codec.set_pgresult(result)
        rows: Sequence[Row] = codec.load_rows(0, result.ntuples, tuple)
        return rows

    def cursor(self, *args: Any, **kwargs: Any) -> Any:
        """What is held back goes first."""
        if self._goes_by_indexes is not self._wants_indexes:
            self._begin()
        self.send_held()
        return super().cursor(*args, **kwargs)

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        """As psycopg's, and not for a server that stands still."""
        return super().wait(self._watched(gen), *args, **kwargs)

    def commit(self) -> None:
        """With all that is held back, in one message. See :attr:`is_in_doubt` if it fails."""
        held, self._is_in_doubt = self._held_back, False
        if len(held) == 1 and held[0].text is _BEGIN:
            held.clear()
        elif held or self._under_way or self.pgconn.transaction_status == TransactionStatus.INTRANS:
            held.append(PipelineAnswer(self, _COMMIT, ()))
            asked = [*self._under_way, *held]
            self._commit_held()
            for answer in asked:
                answer.keep()
        else:
            self._is_in_doubt = True
            super().commit()

    def _begin(self) -> None:
        """What goes before the first statement of a transaction."""
        if not self.autocommit:
            if self._held_back or self.pgconn.transaction_status != TransactionStatus.IDLE:
                return
            is_of_one_moment = self.isolation_level is IsolationLevel.REPEATABLE_READ
            begin = _BEGIN_OF_ONE_MOMENT if is_of_one_moment else _BEGIN
            self._held_back.append(PipelineAnswer(self, begin, ()))
        if self._goes_by_indexes is not self._wants_indexes:
            plans = _PLANS[self._wants_indexes]
            self._held_back += (PipelineAnswer(self, text, ()) for text in plans)
            self._goes_by_indexes = self._wants_indexes

    def _commit_held(self) -> None:
        try:
            self.send_held()
        except psycopg.Error:
            # What failed was held back, and the commit not done. Nobody rolls back after a commit.
            if self.pgconn.status == ConnStatus.OK:
                self.rollback()
            raise

    def rollback(self) -> None:
        """What is held back was never done; what is under way is undone."""
        if self._held_back or self.pgconn.transaction_status != TransactionStatus.IDLE:
            self._goes_by_indexes = None
        self._held_back.clear()
        self._hear_what_is_under_way()
        if self.pgconn.transaction_status != TransactionStatus.IDLE:
            super().rollback()

    def _deallocate(self, name: bytes | None) -> Any:
        """The driver forgets all prepared statements after some rollbacks, also those of ours."""
        if name is None:
            self._known_texts.clear()
        return super()._deallocate(name)

    def _hear_what_is_under_way(self) -> None:
        """And forget it, whatever became of it."""
        under_way, self._under_way = self._under_way, []
        if under_way and self.pgconn.status == ConnStatus.OK:
            try:
                self._send_together(())
            except BaseException:
                self.pgconn.finish()
                raise

    def _send_all(self, held: Sequence[PipelineAnswer], *, is_begun: bool) -> list[PGresult]:
        """What is held back; the results of what is under way come first, if the connection
        ``is_begun``."""
        self._check_connection_ok()
        results: list[PGresult] = []
        if self.prepare_threshold is not None and not self._are_known(held):
            if is_begun:
                results, is_begun = self._send_together(()), False
            failure = self._prepare_texts(held)
            if failure is not None:
                return [*results, failure]
        *before, last = _parts(held, is_begun=is_begun)
        for part in before:
            results += self._send_together(part)
            is_begun = False
            if any(result.status in _FAILED for result in results):
                return results
        if last and last[-1].text is _COMMIT:
            self._hear_of_an_end()
            self._is_in_doubt = True
        return [*results, *self._send_together(last)]

    def _are_known(self, held: Sequence[PipelineAnswer]) -> bool:
        return all(answer.text in self._known_texts for answer in held)

    def _hear_of_an_end(self) -> None:
        """Raises OperationalError if the server has ended the connection before: nobody would know
        then whether a commit that is sent was done."""
        while self._arrivals.poll(0):
            self.pgconn.consume_input()

    def _prepare_texts(self, held: Sequence[PipelineAnswer]) -> PGresult | None:
        """The failure, if one is no statement of this database."""
        texts = {answer.text: None for answer in held if answer.text not in self._known_texts}
        self._enter_pipeline()
        for text in texts:
            self.pgconn.send_prepare(text.name, text.sql)
        for text, result in zip(texts, self._send_together(()), strict=False):
            if result.status in _FAILED:
                return result
            self._known_texts.add(text)
        return None

    def _enter_pipeline(self) -> None:
        if self.pgconn.pipeline_status == PipelineStatus.OFF:
            self.pgconn.enter_pipeline_mode()

    def _send(self, held: Sequence[PipelineAnswer]) -> None:
        pgconn = self.pgconn
        self._enter_pipeline()
        is_prepared = self.prepare_threshold is not None
        for answer in held:
            if is_prepared:
                pgconn.send_query_prepared(answer.text.name, answer.values)
            else:
                pgconn.send_query_params(answer.text.sql, answer.values)

    def _send_together(self, held: Sequence[PipelineAnswer]) -> list[PGresult]:
        """The results of what is under way, and of these."""
        pgconn = self.pgconn
        self._send(held)
        pgconn.pipeline_sync()
        self._flush_all()
        results: list[PGresult] = []
        while True:
            try:
                while pgconn.is_busy():
                    self._await()
                    pgconn.consume_input()
            except psycopg.OperationalError:
                # The server has said, before it ended the connection, which one it gave up on.
                if any(map(_is_told, results)):
                    return results
                raise
            result = pgconn.get_result()
            if result is None:
                if pgconn.status == ConnStatus.BAD:
                    raise psycopg.OperationalError("the connection is lost")
            elif result.status == ExecStatus.PIPELINE_SYNC:
                pgconn.exit_pipeline_mode()
                return results
            else:
                results.append(result)

    def _flush_all(self) -> None:
        """A server that is to read much may want its answers to be read meanwhile."""
        while self.pgconn.flush():
            self._arrivals.modify(self.pgconn.socket, select.POLLIN | select.POLLOUT)
            try:
                ready = self._await()
            finally:
                self._arrivals.modify(self.pgconn.socket, select.POLLIN)
            if ready & ~select.POLLOUT:
                self.pgconn.consume_input()

    def _await(self) -> int:
        """What has come, or may be sent. Raises OperationalError if the server stands still."""
        while not (events := self._arrivals.poll(1000 * frozen_server.QUIET_SECONDS)):
            self._require_working()
        return events[0][1]

    def _require_working(self) -> None:
        if self.server_check is not None:
            try:
                self.server_check.require_working()
            except TimeoutError as error:
                self.pgconn.finish()
                raise psycopg.OperationalError(str(error)) from error

    def _watched(self, steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """The driver's steps of one answer, each begun when something came or a moment passed."""
        asked_at = time.monotonic()
        try:
            wanted = next(steps)
            while True:
                ready = yield wanted
                if (
                    ready == Ready.NONE
                    and time.monotonic() - asked_at >= frozen_server.QUIET_SECONDS
                ):
                    self._require_working()
                    asked_at = time.monotonic()
                wanted = steps.send(ready)
        except StopIteration as end:
            return end.value
