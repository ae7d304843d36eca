"""A server that starts together with its database waits until that is there."""

from __future__ import annotations

import logging

from sqlalchemy import select

from hms_bridge.backend.engine import Database
from hms_bridge.clock import Clock, steady_ms
from hms_bridge.errors import DatabaseAbsentError

_LOG = logging.getLogger(__name__)
START_SECONDS_MAX = 300.0
"""As long as a database takes that starts after a crash, and is not to be missed for longer."""
_LOOK_SECONDS = 2.0
_SAY_SECONDS = 30.0


def await_start(database: Database, clock: Clock) -> None:
    """Returns once it answers. Raises BackendError for what it refuses, as a password, at once, and
    DatabaseAbsentError after :data:`START_SECONDS_MAX`."""
    began_ms = said_ms = steady_ms(clock)
    while True:
        try:
            with database.transaction(write=False) as connection:
                connection.execute(select(1))
        except DatabaseAbsentError as error:
            now_ms = steady_ms(clock)
            if now_ms - began_ms >= 1000 * START_SECONDS_MAX:
                raise DatabaseAbsentError(
                    f"{error} (waited for {START_SECONDS_MAX:g} s)"
                ) from error
            if said_ms == began_ms or now_ms - said_ms >= 1000 * _SAY_SECONDS:
                _LOG.warning(
                    "not there yet, is waited for (%g s at most): %s", START_SECONDS_MAX, error
                )
                said_ms = max(now_ms, began_ms + 1)
            clock.sleep_seconds(_LOOK_SECONDS)
        else:
            return
