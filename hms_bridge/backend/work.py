"""What a verb has at hand inside its database transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, select

from hms_bridge.backend.dialect import keeps_time
from hms_bridge.backend.fixed_sql import TimedSql
from hms_bridge.clock import Clock
from hms_bridge.config.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")

_NOW = TimedSql(lambda now, _row_time: select(now))


@dataclass(slots=True)
class Work:
    """The transaction, the time, and the settings."""

    connection: Connection
    clock: Clock
    settings: Settings

    @property
    def now_ms(self) -> int:
        """The time of the database, in milliseconds."""
        if not keeps_time(self.connection, self.clock):
            return self.clock.now_ms()
        ((now_ms,),) = _NOW.all(self)
        return int(now_ms)


def sql(statement: Callable[Concatenate[Connection, P], T]) -> Callable[Concatenate[Work, P], T]:
    """A function that needs nothing but the connection, as one over :class:`Work`."""

    @wraps(statement)
    def over_work(work: Work, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return statement(work.connection, *args, **kwargs)

    return over_work
