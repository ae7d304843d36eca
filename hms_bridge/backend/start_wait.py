"""A server that starts together with its database waits until that is there."""

from __future__ import annotations

import logging

from sqlalchemy import Connection, select

from hms_bridge.backend.engine import Database
from hms_bridge.backend.retry import run_in_transaction
from hms_bridge.clock import Clock, steady_ms
from hms_bridge.errors import DatabaseAbsentError

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 2.0
_SAY_SECONDS = 30.0


def await_start(database: Database, clock: Clock, wait_ms: int) -> None:
    """Returns once it answers. Raises BackendError for what it refuses, as a password, at once, and
    DatabaseAbsentError after ``wait_ms``."""
    began_ms = said_ms = steady_ms(clock)
    while True:
        try:
            run_in_transaction(database, _ask, write=False, clock=clock)
        except DatabaseAbsentError as error:
            now_ms = steady_ms(clock)
            if now_ms - began_ms >= wait_ms:
                waited = f"{error} (waited for {wait_ms / 1000:g} s)"
                raise DatabaseAbsentError(waited) from error
            if said_ms == began_ms or now_ms - said_ms >= 1000 * _SAY_SECONDS:
                _LOG.warning(
                    "not there yet, is waited for (%g s at most): %s", wait_ms / 1000, error
                )
                said_ms = max(now_ms, began_ms + 1)
            clock.sleep_seconds(_LOOK_SECONDS)
        else:
            return


def _ask(connection: Connection) -> None:
    connection.execute(select(1))
