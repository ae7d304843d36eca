"""Try a whole database transaction again when the database gave up on it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Connection
from tenacity import RetryCallState, Retrying, retry_if_exception_type

from hms_bridge.backend.engine import Database
from hms_bridge.clock import Clock
from hms_bridge.errors import BackendError, RetryableBackendError, RowTakenError
from hms_bridge.interrupts import HeldInterrupts

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrySettings:
    """How often and how patiently. Waits double, with up to as much again at random.

    ``taken_attempts_max``: for a row whose key is taken, which a race explains only once or twice.
    """

    attempts_max: int = 10
    taken_attempts_max: int = 3
    first_wait_seconds: float = 0.02
    wait_seconds_max: float = 2.0


def run_in_transaction(
    database: Database,
    work: Callable[[Connection], T],
    *,
    write: bool,
    clock: Clock,
    settings: RetrySettings | None = None,
    chance: random.Random | None = None,
) -> T:
    """Run ``work`` in one transaction; again from the start after a deadlock or the like.

    So ``work`` must have no effect outside its connection. An interrupt waits until the attempt
    has been committed or rolled back. Raises BackendError when the last
    attempt failed too; errors other than RetryableBackendError pass at once.
    """
    rule = settings or RetrySettings()
    dice = chance or random.Random()

    def wait(state: RetryCallState) -> float:
        doubled = rule.first_wait_seconds * 2.0 ** (state.attempt_number - 1)
        return min(doubled, rule.wait_seconds_max) * (1.0 + dice.random())

    def once() -> T:
        with HeldInterrupts(), database.transaction(write=write) as connection:
            return work(connection)

    def is_enough(state: RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome else None
        is_taken = isinstance(error, RowTakenError)
        return state.attempt_number >= (rule.taken_attempts_max if is_taken else rule.attempts_max)

    retrying = Retrying(
        stop=is_enough,
        wait=wait,
        retry=retry_if_exception_type(RetryableBackendError),
        sleep=clock.sleep_seconds,
        reraise=True,
    )
    try:
        return retrying(once)
    except RowTakenError as error:
        raise BackendError(f"{error}; such a row is there already") from error
    except RetryableBackendError as error:
        raise BackendError(
            f"{error} (gave up after {rule.attempts_max} attempts; the database is overloaded or "
            "blocked: look for long transactions, then try again)"
        ) from error
