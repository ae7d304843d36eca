"""Try a whole database transaction again when the database gave up on it."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Connection
from tenacity import RetryCallState, Retrying, retry_if_exception_type

from hms_bridge.backend import engine
from hms_bridge.backend.engine import Database
from hms_bridge.backend.lock_holders import WHERE_TO_LOOK, lock_holders
from hms_bridge.clock import Clock, steady_ms
from hms_bridge.errors import (
    BackendError,
    DatabaseGoneError,
    LockWaitError,
    NoConnectionLeftError,
    RetryableBackendError,
    RowTakenError,
)
from hms_bridge.gathering import leave_gathering
from hms_bridge.interrupts import HeldInterrupts

T = TypeVar("T")
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrySettings:
    """How often and how patiently. Waits double, with up to as much again at random.

    ``taken_attempts_max``: for a row whose key is taken, which a race explains only once or twice.
    ``lock_seconds_max``: for a lock that another one holds, after the first wait for it: for longer
    than the database lets a transaction do nothing.
    ``outage_seconds_max``: for a database that is gone, as long as a server takes to start again;
    however many attempts that is.
    """

    attempts_max: int = 10
    taken_attempts_max: int = 3
    first_wait_seconds: float = 0.02
    wait_seconds_max: float = 2.0
    lock_seconds_max: float = 330.0
    outage_seconds_max: float = 30.0


def run_in_transaction(
    database: Database,
    work: Callable[[Connection], T],
    *,
    write: bool,
    is_of_one_moment: bool = False,
    clock: Clock,
    settings: RetrySettings | None = None,
) -> T:
    """Run ``work`` in one transaction; again from the start after a deadlock or the like.

    So ``work`` must have no effect outside its connection. An interrupt waits until the attempt
    has been committed or rolled back. Raises BackendError when the last attempt failed too; errors
    other than RetryableBackendError pass at once.
    """
    leave_gathering()

    def once() -> T:
        with (
            HeldInterrupts(),
            database.transaction(write=write, is_of_one_moment=is_of_one_moment) as connection,
        ):
            return work(connection)

    try:
        return once()
    except RetryableBackendError as error:
        first = error
    rule = settings or RetrySettings()
    return _again(once, first, clock, rule, _LockWaits(database, clock, rule.lock_seconds_max))


def _again(
    once: Callable[[], T],
    first: RetryableBackendError,
    clock: Clock,
    rule: RetrySettings,
    lock_waits: _LockWaits,
) -> T:
    """Go on after the first attempt, which has failed: most need no second."""
    outage = _Outage(clock, rule.outage_seconds_max)
    failed: list[RetryableBackendError] = [first]
    answered = 0
    dice = random.Random()

    def attempt() -> T:
        if failed:
            raise failed.pop()
        return once()

    def wait(state: RetryCallState) -> float:
        doubled = rule.first_wait_seconds * 2.0 ** min(state.attempt_number - 1, 30)
        usual = min(doubled, rule.wait_seconds_max) * (1.0 + dice.random())
        return min(usual, outage.seconds_left) if _is_gone(state) else usual

    def is_enough(state: RetryCallState) -> bool:
        nonlocal answered
        if _is_gone(state):
            return outage.seconds_left <= 0
        outage.end()
        # Those that found nobody do not count: an outage takes more of them than there may be.
        answered += 1
        error = state.outcome.exception() if state.outcome else None
        is_taken = isinstance(error, RowTakenError)
        if isinstance(error, LockWaitError) and lock_waits.are_over(error):
            return True
        return answered >= (rule.taken_attempts_max if is_taken else rule.attempts_max)

    retrying = Retrying(
        stop=is_enough,
        wait=wait,
        retry=retry_if_exception_type(RetryableBackendError),
        sleep=clock.sleep_seconds,
        reraise=True,
    )
    try:
        return retrying(attempt)
    except RowTakenError as error:
        raise BackendError(f"{error}; such a row is there already") from error
    except LockWaitError as error:
        raise lock_waits.failure(error) from error
    except NoConnectionLeftError as error:
        raise BackendError(f"{error} (none was left for {rule.outage_seconds_max:g} s)") from error
    except DatabaseGoneError as error:
        raise BackendError(f"{error} (it was gone for {rule.outage_seconds_max:g} s)") from error
    except RetryableBackendError as error:
        raise BackendError(
            f"{error} (gave up after {rule.attempts_max} attempts; the database is overloaded or "
            "blocked: look for long transactions, then try again)"
        ) from error


class _LockWaits:
    """For whom a verb waits, from the first attempt that waited in vain; the log says so each
    time."""

    def __init__(self, database: Database, clock: Clock, seconds_max: float) -> None:
        self._database = database
        self._clock = clock
        self._seconds_max = seconds_max
        self._began_ms = steady_ms(clock)
        self._holders = WHERE_TO_LOOK

    def are_over(self, error: LockWaitError) -> bool:
        """After one more: whether they have lasted too long."""
        with suppress(BackendError), self._database.transaction(write=False) as connection:
            self._holders = lock_holders(connection, engine.LOCK_SECONDS_MAX) or WHERE_TO_LOOK
        _LOG.warning("%s: still waits for a lock; %s", error, self._holders)
        return steady_ms(self._clock) - self._began_ms >= 1000 * self._seconds_max

    def failure(self, error: LockWaitError) -> BackendError:
        """What a verb that gives up says."""
        return BackendError(
            f"{error} (gave up waiting for a lock; {self._holders}); wait for its end, or end it "
            "there, then try again"
        )


class _Outage:
    """How long the database has been gone, from the first attempt that found it so."""

    def __init__(self, clock: Clock, seconds_max: float) -> None:
        self._clock = clock
        self._seconds_max = seconds_max
        self._began_ms: int | None = None

    @property
    def seconds_left(self) -> float:
        """Until the outage has lasted too long; it begins with the first question."""
        now_ms = steady_ms(self._clock)
        if self._began_ms is None:
            self._began_ms = now_ms
        return self._seconds_max - (now_ms - self._began_ms) / 1000

    def end(self) -> None:
        """The database was there."""
        self._began_ms = None


def _is_gone(state: RetryCallState) -> bool:
    error = state.outcome.exception() if state.outcome else None
    return isinstance(error, DatabaseGoneError)
