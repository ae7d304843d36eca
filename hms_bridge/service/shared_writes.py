"""Changing verbs of several clients in one database transaction: one commit, one wait for the disk.

One that is refused undoes only itself; and nothing is answered before the common commit, neither a
success nor a refusal, which may rest on what another verb did. If the transaction fails, each verb
is done again by itself, as if it had never met the others. Only where the commit's own answer is
lost is nothing tried again, as with a single verb: it may have happened.

The order of verbs is that in which single ones take the rows that all of them need (see
:mod:`hms_bridge.backend.sequences`), so that servers on one database do not wait for each other in
a ring. Each batch is impatient besides: a row that somebody holds for long holds up its own verb.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby
from typing import Any, Generic, Protocol, TypeVar

from hms_bridge.backend.connection import Connection, DatabaseFailure
from hms_bridge.backend.engine import Database
from hms_bridge.backend.savepoints import Steps, impatient
from hms_bridge.errors import (
    BackendError,
    CommitUnknownError,
    MetastoreError,
    RetryableBackendError,
)
from hms_bridge.gathering import do_in_gathering, stay_in_gathering
from hms_bridge.service.shared_turns import SharedTurns

SIZE_MAX = 32
"""How many verbs share a commit: PostgreSQL looks at up to 64 inner transactions without effort."""

ROW_WAIT_MS = 1000
"""How long a batch waits for a row: longer than for other servers' commits on a busy machine, as
what is given up then is done again by each alone."""

PATIENCE_MS = 2000
"""How long a verb waits for the turn of others before it goes alone: longer than a batch may wait,
as the others are in its way there, too."""

COMPANY_MS = 1
"""How long a batch waits for as many verbs as came of late: about as long as their clients take to
come back. Only where each batch waits for the disk of a server."""

IN_TURN_COUNT = 16
"""How many batches are not tried together after one that could not be done so: those that come
close upon each other are alike."""


class Rank(IntEnum):
    """What a verb locks that all others need, in the order in which it is locked."""

    END = 1
    """The openers' lock, alone, if it updated something."""
    OPEN = 2
    """The openers' lock, with others."""
    SIGN_OF_LIFE = 3
    WRITE_ID = 4
    """The counter of a table."""
    LOCK = 5
    """The counter of locks."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a verb stands in a batch; those of one rank and key as they came."""

    rank: Rank
    key: str = ""


class Step(ABC):
    """A verb as part of a batch. ``is_done``: its part is committed. ``refusal``: what it is to be
    answered instead. ``kind``: those of one kind, side by side, may be done at once."""

    def __init__(self, place: Place | None, kind: Hashable = None) -> None:
        self.place = place
        self.kind = kind
        self.is_done = False
        self.refusal: MetastoreError | BackendError | None = None

    @abstractmethod
    def run(self, connection: Connection, now_seconds: int) -> None:
        """Do the verb, all but its events; from the start if it is called again."""

    @abstractmethod
    def expect_with(self, others: Sequence[Any], connection: Connection, now_seconds: int) -> bool:
        """Do the verb and others of its kind at once, as far as it is known what will come of it:
        their statements fail, when they are done, if it does not. False, and nothing is done,
        where it is not known."""

    @abstractmethod
    def look_back(self) -> None:
        """What :meth:`expect_with` did is committed, and what came of it is there. Raises
        nothing."""

    @abstractmethod
    def ask_with(
        self, others: Sequence[Any], connection: Connection, now_seconds: int
    ) -> Finish | None:
        """Begin the verb and others of its kind at once, with what locks; None, and nothing is
        done, where that cannot be."""


Finish = Callable[[bool], bool]
"""Ends what was begun at once, once all of a batch have begun; false if it cannot be done so. Given
whether more may be locked than the beginning did: not where others have begun since."""


class Way(IntEnum):
    """How a batch is done; each way can do what the one before it cannot."""

    AS_EXPECTED = 0
    """What comes of a kind is known before, as far as it can be, so that its events and the commit
    go with it; only where several statements go in one message."""
    TOGETHER = 1
    """All kinds begin before one is finished, so that what begins them goes in one message."""
    IN_TURN = 2
    """One kind after the other: what is locked late is locked in order, too."""
    CAREFULLY = 3
    """One verb after the other, and each can be undone by itself."""


S = TypeVar("S", bound=Step)


class Expectations(Protocol):
    """What steps expect (:class:`hms_bridge.txn.foresight.Foresight`), and whether it was so."""

    def begin(self) -> None:
        """Nothing is expected yet."""

    def hold(self) -> None:
        """All was as expected since it began."""

    def fail(self) -> None:
        """Something was not."""


class SharedWrites(Generic[S]):
    """Does steps that come at the same time together. ``end``: what is left to do at the end of
    their transaction. ``committed`` hears of those that were, before the next are done.
    ``now_seconds``: the time that all of a batch have."""

    def __init__(
        self,
        database: Database,
        now_seconds: Callable[[], int],
        end: Callable[[Connection, Sequence[S]], None],
        committed: Callable[[Sequence[S]], None],
        expectations: Expectations | None = None,
    ) -> None:
        self._database = database
        self._now_seconds = now_seconds
        self._end = end
        self._committed = committed
        self._expectations = expectations
        self._in_turn_left = 0
        self._turns: SharedTurns[S] = SharedTurns(
            self._do,
            size_max=SIZE_MAX,
            patience_seconds=PATIENCE_MS / 1000,
            company_seconds=0 if database.is_embedded else COMPANY_MS / 1000,
        )

    @staticmethod
    def takes_this_thread() -> bool:
        """Not the main one: an interrupt would leave the others to wait for a thread that is not
        there."""
        return threading.current_thread() is not threading.main_thread()

    def run(self, step: S) -> bool:
        """Whether the step is done, and durable; else the caller does it by itself. Of a thread
        that it takes.

        Raises what it was refused with.
        """
        try:
            if not do_in_gathering(self._turns, step):
                self._turns.take(step)
            if step.refusal is not None:
                raise step.refusal
        except CommitUnknownError:
            stay_in_gathering()
            raise
        if step.is_done:
            stay_in_gathering()
        return step.is_done

    def _do(self, steps: Sequence[S]) -> None:
        """Leaves undone, neither done nor refused, what is to be done alone."""
        batch = _Batch(sorted(steps, key=_order))
        if self._in_turn_left or not self._database.is_pipelined:
            self._in_turn_left = max(0, self._in_turn_left - 1)
            batch.way = Way.IN_TURN
        # It ends: what a way cannot do, it leaves to one that comes after it, and the last can all.
        while True:
            try:
                self._commit(batch)
            except _UnsafeError as error:
                is_unexpected = batch.way is Way.AS_EXPECTED and error.way is Way.TOGETHER
                if is_unexpected and self._expectations is not None:
                    self._expectations.fail()
                batch.way = error.way
                self._in_turn_left = IN_TURN_COUNT if error.way is Way.IN_TURN else 0
            else:
                return

    def _commit(self, batch: _Batch[S]) -> None:
        if self._expectations is not None:
            self._expectations.begin()
        try:
            with self._database.transaction(write=True, by_indexes=True) as connection:
                batch.run(connection, self._now_seconds())
                self._end(connection, batch.kept)
        except CommitUnknownError as error:
            if batch.is_single:
                raise
            for step in batch.kept:
                step.refusal = CommitUnknownError(str(error))
            return
        except BackendError as error:
            if isinstance(error, RetryableBackendError):
                return
            if batch.expects:
                raise _UnsafeError(Way.TOGETHER) from error
            if batch.is_single:
                raise
            return
        except MetastoreError:
            if batch.is_single:
                raise
            return
        self._tell(batch)

    def _tell(self, batch: _Batch[S]) -> None:
        """That it is committed."""
        # First of all: whatever fails from here on, what is committed must not be done again.
        for step in batch.kept:
            step.is_done = True
        if batch.expects:
            for step in batch.kept:
                step.look_back()
            if self._expectations is not None:
                self._expectations.hold()
        self._committed(batch.kept)
        for step, refusal in batch.refused:
            step.refusal = refusal


class _UnsafeError(Exception):
    """Nothing of a batch is done: it goes another ``way`` only. A step is refused or failed, and
    cannot be undone without the others; or it has to lock what they may not wait for."""

    def __init__(self, way: Way) -> None:
        super().__init__(way.name)
        self.way = way


class _Batch(Generic[S]):
    """What is done in one transaction. As hardly a step is ever refused, none can be undone by
    itself at first, which would take a statement for each."""

    def __init__(self, steps: Sequence[S]) -> None:
        self._steps = steps
        self.way = Way.AS_EXPECTED
        self.expects = False
        self.is_single = len(steps) == 1
        self.kept: list[S] = []
        self.refused: list[tuple[S, MetastoreError]] = []

    def run(self, connection: Connection, now_seconds: int) -> None:
        self.kept, self.refused = [], []
        self.expects = False
        if self.is_single:
            (step,) = self._steps
            if not self._is_expected(step, (), connection, now_seconds):
                step.run(connection, now_seconds)
            self.kept.append(step)
            return
        with impatient(connection, ROW_WAIT_MS):
            if self.way is Way.CAREFULLY:
                self._run_each(connection, now_seconds)
                return
            try:
                self._run_groups(connection, now_seconds)
            except (BackendError, DatabaseFailure, _UnsafeError):
                raise
            except Exception as error:
                raise _UnsafeError(Way.CAREFULLY) from error

    def _run_each(self, connection: Connection, now_seconds: int) -> None:
        parts = Steps(connection)
        for step in self._steps:
            parts.begin()
            try:
                step.run(connection, now_seconds)
            except (BackendError, DatabaseFailure):
                raise
            except Exception as error:
                parts.undo()
                # The answer to any other fault is made where the step is done alone.
                if isinstance(error, MetastoreError):
                    self.refused.append((step, error))
            else:
                self.kept.append(step)

    def _run_groups(self, connection: Connection, now_seconds: int) -> None:
        begun: list[Finish] = []
        is_in_turn = self.way is Way.IN_TURN
        rank = None
        for first, *others in self._groups():
            # A lock is there for others of the batch once the group that it is of is finished.
            if rank is Rank.LOCK:
                _finish_all(begun)
            rank = _place(first).rank
            finish = None
            if self._is_expected(first, others, connection, now_seconds):
                continue
            if first.kind is not None:
                finish = first.ask_with(others, connection, now_seconds)
            if finish is None or (is_in_turn and not finish(True)):
                for step in (first, *others):
                    step.run(connection, now_seconds)
            elif not is_in_turn:
                begun.append(finish)
        _finish_all(begun)
        self.kept += self._steps

    def _is_expected(
        self, first: S, others: Sequence[S], connection: Connection, now_seconds: int
    ) -> bool:
        if self.way is not Way.AS_EXPECTED or first.kind is None:
            return False
        is_expected = first.expect_with(others, connection, now_seconds)
        self.expects = self.expects or is_expected
        return is_expected

    def _groups(self) -> Iterator[list[S]]:
        """What is done at once."""
        for kind, steps in groupby(self._steps, key=lambda step: step.kind):
            if kind is None:
                yield from ([step] for step in steps)
            else:
                yield list(steps)


def _finish_all(begun: list[Finish]) -> None:
    """And forget them."""
    while begun:
        if not begun.pop(0)(False):
            raise _UnsafeError(Way.IN_TURN)


def _place(step: Step) -> Place:
    assert step.place is not None
    return step.place


def _order(step: Step) -> tuple[Rank, str]:
    """Of places, in a form that is compared at once."""
    place = _place(step)
    return place.rank, place.key
