"""How many bytes the messages of the event log have: sums of the database, each block once.

Events never change, so what a whole block has is remembered; only what has come since, and a block
that a purge has parted, is summed again. No message leaves the database for it.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, LargeBinary, cast, func, or_, select

from hms_bridge.backend.dialect import is_sqlite
from hms_bridge.backend.schema.notification_tables import NOTIFICATION_LOG
from hms_bridge.model.event_block import EventBlock
from hms_bridge.model.ids import EventId

BLOCK = 1000
_L = NOTIFICATION_LOG.c


class EventSizes:
    """Remembers blocks of one log; for one thread at a time."""

    def __init__(self) -> None:
        self._whole: dict[int, EventBlock] = {}

    def blocks(
        self, connection: Connection, before_seconds: int | None = None
    ) -> tuple[EventBlock, ...]:
        """All blocks of the log, ascending; those of events from before a time, given one."""
        oldest = connection.scalar(select(func.min(_L.EVENT_ID)))
        if oldest is None:
            self._whole = {}
            return ()
        # The first one may have lost events since.
        self._whole = {
            number: block for number, block in self._whole.items() if number * BLOCK >= oldest
        }
        summed = self._sum(connection, before_seconds)
        return tuple((self._whole | summed)[number] for number in sorted(self._whole | summed))

    def _sum(self, connection: Connection, before_seconds: int | None) -> dict[int, EventBlock]:
        number = (_L.EVENT_ID // BLOCK).label("number")
        query = (
            select(
                number,
                func.count().label("events"),
                func.max(_L.EVENT_ID).label("last"),
                func.sum(_octets(connection)).label("octets"),
                func.min(_L.EVENT_TIME).label("oldest"),
            )
            .group_by(number)
            .order_by(number)
        )
        if self._whole:
            known_until = (max(self._whole) + 1) * BLOCK
            query = query.where(
                or_(_L.EVENT_ID < min(self._whole) * BLOCK, _L.EVENT_ID >= known_until)
            )
        if before_seconds is not None:
            query = query.where(_L.EVENT_TIME < before_seconds)
        summed = {}
        for row in connection.execute(query):
            block = EventBlock(
                last_event_id=EventId(row.last),
                size_bytes=int(row.octets or 0),
                oldest_seconds=row.oldest,
            )
            summed[int(row.number)] = block
            follows = not self._whole or int(row.number) == max(self._whole) + 1
            if row.events == BLOCK and follows:
                self._whole[int(row.number)] = block
        return summed


def _octets(connection: Connection) -> ColumnElement[int]:
    """Of a message; databases know how long what they store is without unpacking it."""
    if is_sqlite(connection):
        return func.length(cast(_L.MESSAGE, LargeBinary))
    return func.octet_length(_L.MESSAGE)
