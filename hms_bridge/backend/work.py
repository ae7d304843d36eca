"""What a verb has at hand inside its database transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from hms_bridge.backend.dialect import now_ms
from hms_bridge.clock import Clock
from hms_bridge.config.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True)
class Work:
    """The transaction, the time, and the settings."""

    connection: Connection
    clock: Clock
    settings: Settings

    @property
    def now_ms(self) -> int:
        """The time of the database, in milliseconds."""
        return now_ms(self.connection, self.clock)


def sql(statement: Callable[Concatenate[Connection, P], T]) -> Callable[Concatenate[Work, P], T]:
    """A function that needs nothing but the connection, as one over :class:`Work`."""

    @wraps(statement)
    def over_work(work: Work, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return statement(work.connection, *args, **kwargs)

    return over_work
