"""Dumps that are about to be finished, in SQL. The contracts: ``AnnouncementStore``."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlalchemy import Connection, delete, insert, select

from hms_bridge.archive.digest import digest
from hms_bridge.backend.schema.archive_tables import HMSB_ARCHIVE_ANNOUNCED

_ROW = HMSB_ARCHIVE_ANNOUNCED.c


def announce(connection: Connection, holder: str, facts: Mapping[str, str | int | None]) -> None:
    """See AnnouncementStore.announce."""
    key = digest(holder)
    connection.execute(delete(HMSB_ARCHIVE_ANNOUNCED).where(_ROW.HOLDER_DIGEST == key))
    connection.execute(
        insert(HMSB_ARCHIVE_ANNOUNCED).values(
            HOLDER_DIGEST=key, HOLDER=holder, FACTS=json.dumps(dict(facts))
        )
    )


def announced(connection: Connection, prefix: str) -> tuple[str, ...]:
    """See AnnouncementStore.announced."""
    holders = connection.scalars(select(_ROW.HOLDER))
    return tuple(sorted(holder for holder in holders if holder.startswith(prefix)))


def take(connection: Connection, holder: str) -> Mapping[str, str | int | None] | None:
    """What was announced, for the one who takes it away; None for all others."""
    key = digest(holder)
    text = connection.scalar(select(_ROW.FACTS).where(_ROW.HOLDER_DIGEST == key).with_for_update())
    if text is None:
        return None
    connection.execute(delete(HMSB_ARCHIVE_ANNOUNCED).where(_ROW.HOLDER_DIGEST == key))
    facts: Mapping[str, str | int | None] = json.loads(text)
    return facts
