"""How the archive stands, in sums that the database makes."""

from __future__ import annotations

from sqlalchemy import Connection, func, or_, select

from changemanager.figures import ArchiveFigures
from changemanager.manifest import EntryState, IntentState
from hms_bridge.archive.digest import digest
from hms_bridge.archive.records import known_root
from hms_bridge.backend.schema.archive_tables import (
    HMSB_ARCHIVE_GIVEN_UP,
    HMSB_ARCHIVE_INTENT,
    HMSB_ARCHIVE_PIN,
    HMSB_ARCHIVED_FILE,
)

_FILE = HMSB_ARCHIVED_FILE.c
_INTENT = HMSB_ARCHIVE_INTENT.c
_PIN = HMSB_ARCHIVE_PIN.c
_OPEN = sorted(state.value for state in IntentState if state.is_open)


def figures(connection: Connection, cmroot: str, now_ms: int) -> ArchiveFigures:
    """See ArchiveFigureStore.figures."""
    files, size_bytes, oldest_file_ms = connection.execute(
        select(func.count(), func.sum(_FILE.SIZE_BYTES), func.min(_FILE.ARCHIVED_AT_MS)).where(
            _FILE.CMROOT_DIGEST == digest(known_root(connection, cmroot)),
            _FILE.STATE == EntryState.ARCHIVED.value,
        )
    ).one()
    open_intents, oldest_intent_ms = connection.execute(
        select(func.count(), func.min(_INTENT.CREATED_AT_MS)).where(_INTENT.STATE.in_(_OPEN))
    ).one()
    abandoned = connection.scalar(
        select(func.count()).where(_INTENT.STATE == IntentState.ABANDONED.value)
    )
    pins = connection.scalar(
        select(func.count()).where(or_(_PIN.EXPIRES_AT_MS.is_(None), _PIN.EXPIRES_AT_MS > now_ms))
    )
    given_up = connection.scalar(select(func.count()).select_from(HMSB_ARCHIVE_GIVEN_UP))
    return ArchiveFigures(
        file_count=files,
        size_bytes=int(size_bytes or 0),
        oldest_archived_at_ms=oldest_file_ms,
        pin_count=pins or 0,
        given_up_count=given_up or 0,
        open_intent_count=open_intents,
        oldest_open_intent_ms=oldest_intent_ms,
        abandoned_intent_count=abandoned or 0,
    )
