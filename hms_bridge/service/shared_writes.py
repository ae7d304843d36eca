"""Changing verbs of several clients in one database transaction: one commit, one wait for the disk.

Each is a step that can be undone by itself, so one that is refused leaves the others alone; and
nothing is answered before the common commit, neither a success nor a refusal, which may rest on
what another step did. If the transaction fails, each verb is done again by itself, as if it had
never met the others. Only where the commit's own answer is lost is nothing tried again, as with a
single verb: it may have happened.

The order of steps is that in which single verbs take the rows that all of them need (see
:mod:`hms_bridge.backend.sequences`), so that servers on one database do not wait for each other in
a ring. Each batch is impatient besides: a row that somebody holds for long holds up its own verb.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, TypeVar

from hms_bridge.backend.connection import Connection, DatabaseFailure
from hms_bridge.backend.engine import Database
from hms_bridge.backend.savepoints import Steps, impatient
from hms_bridge.errors import BackendError, MetastoreError, RetryableBackendError
from hms_bridge.service.shared_turns import SharedTurns

SIZE_MAX = 32
"""How many verbs share a commit: PostgreSQL looks at up to 64 inner transactions without effort."""

PATIENCE_MS = 300


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


@dataclass(frozen=True, order=True, slots=True)
class Place:
    """Where a verb stands in a batch; those of one rank and key as they came."""

    rank: Rank
    key: str = ""


class Step(ABC):
    """A verb as part of a batch. ``is_done``: its part is committed. ``refusal``: what it is to be
    answered instead."""

    def __init__(self, place: Place | None) -> None:
        self.place = place
        self.is_done = False
        self.refusal: MetastoreError | BackendError | None = None

    @abstractmethod
    def run(self, connection: Connection, now_seconds: int) -> None:
        """Do the verb, all but its events; from the start if it is called again."""


S = TypeVar("S", bound=Step)


class SharedWrites(Generic[S]):
    """Does steps that come at the same time together. ``end``: what is left to do at the end of
    their transaction. ``now_seconds``: the time that all of a batch have."""

    def __init__(
        self,
        database: Database,
        now_seconds: Callable[[], int],
        end: Callable[[Connection, Sequence[S]], None],
    ) -> None:
        self._database = database
        self._now_seconds = now_seconds
        self._end = end
        self._turns: SharedTurns[S] = SharedTurns(
            self._do, size_max=SIZE_MAX, patience_seconds=PATIENCE_MS / 1000
        )

    def run(self, step: S) -> bool:
        """Whether the step is done, and durable; else the caller does it by itself.

        Raises what it was refused with.
        """
        # An interrupt would leave the others to wait for a thread that is not there.
        if threading.current_thread() is threading.main_thread():
            return False
        self._turns.take(step)
        if step.refusal is not None:
            raise step.refusal
        return step.is_done

    def _do(self, steps: Sequence[S]) -> None:
        """Leaves undone, neither done nor refused, what is to be done alone."""
        kept: list[S] = []
        refused: list[tuple[S, MetastoreError]] = []
        is_committing = False
        try:
            with self._database.transaction(write=True) as connection:
                self._run(connection, steps, kept, refused)
                self._end(connection, kept)
                is_committing = True
        except RetryableBackendError:
            return
        except (BackendError, MetastoreError) as error:
            if len(steps) == 1:
                raise
            # The answer to a commit is lost: it may have happened.
            for step in kept if is_committing else ():
                step.refusal = BackendError(str(error))
            return
        for step in kept:
            step.is_done = True
        for step, refusal in refused:
            step.refusal = refusal

    def _run(
        self,
        connection: Connection,
        steps: Sequence[S],
        kept: list[S],
        refused: list[tuple[S, MetastoreError]],
    ) -> None:
        now_seconds = self._now_seconds()
        if len(steps) == 1:
            steps[0].run(connection, now_seconds)
            kept.append(steps[0])
            return
        with impatient(connection, PATIENCE_MS):
            parts = Steps(connection)
            for step in sorted(steps, key=_place):
                parts.begin()
                try:
                    step.run(connection, now_seconds)
                except MetastoreError as error:
                    parts.undo()
                    refused.append((step, error))
                except (BackendError, DatabaseFailure):
                    raise
                except Exception:  # whose answer is made where it is done alone
                    parts.undo()
                else:
                    kept.append(step)


def _place(step: Step) -> Place:
    assert step.place is not None
    return step.place
