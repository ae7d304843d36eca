"""The write-ahead rows of archive-then-delete, in SQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, Select, delete, insert, select, update

from changemanager.manifest import ArchiveIntent, IntentFile, IntentState
from hms_bridge.archive.context_columns import CONTEXT
from hms_bridge.archive.digest import digest
from hms_bridge.archive.lock import hold_archive
from hms_bridge.backend.batches import batches
from hms_bridge.backend.columns import Columns, flag, member, text
from hms_bridge.backend.schema.archive_tables import (
    HMSB_ARCHIVE_INTENT,
    HMSB_ARCHIVE_INTENT_FILE,
)

_INTENT = HMSB_ARCHIVE_INTENT.c
_FILE = HMSB_ARCHIVE_INTENT_FILE.c
_INTENT_COLUMNS = Columns(
    ArchiveIntent,
    intent_id="INTENT_ID",
    victim="VICTIM",
    cmroot="CMROOT",
    context=CONTEXT,
    is_remaining_in_trash=flag("IS_REMAINING_IN_TRASH"),
    state=member("STATE", IntentState),
    created_at_ms="CREATED_AT_MS",
    updated_at_ms="UPDATED_AT_MS",
    reason=text("REASON"),
)
_FILE_COLUMNS = Columns(
    IntentFile,
    path="PATH",
    size_bytes="SIZE_BYTES",
    mtime_ms="MTIME_MS",
    checksum="CHECKSUM",
    archive_name="ARCHIVE_NAME",
)


def add_intent(connection: Connection, intent: ArchiveIntent) -> ArchiveIntent:
    """See ArchiveIntents.add_intent."""
    hold_archive(connection)
    open_one = _load(
        connection,
        select(HMSB_ARCHIVE_INTENT).where(_INTENT.OPEN_VICTIM_DIGEST == digest(intent.victim)),
    )
    if open_one:
        return open_one[0]
    connection.execute(
        insert(HMSB_ARCHIVE_INTENT).values(
            VICTIM_DIGEST=digest(intent.victim),
            OPEN_VICTIM_DIGEST=digest(intent.victim) if intent.state.is_open else None,
            **_INTENT_COLUMNS.values(intent),
        )
    )
    if intent.files:
        connection.execute(
            insert(HMSB_ARCHIVE_INTENT_FILE),
            [
                {"INTENT_ID": intent.intent_id, "PLACE": place, **_FILE_COLUMNS.values(file)}
                for place, file in enumerate(intent.files)
            ],
        )
    return intent


def intent(connection: Connection, intent_id: str) -> ArchiveIntent | None:
    """See ArchiveIntents.intent."""
    loaded = _load(connection, select(HMSB_ARCHIVE_INTENT).where(_INTENT.INTENT_ID == intent_id))
    return loaded[0] if loaded else None


def intents(
    connection: Connection, states: Collection[IntentState], *, victim: str | None = None
) -> tuple[ArchiveIntent, ...]:
    """See ArchiveIntents.intents."""
    query = select(HMSB_ARCHIVE_INTENT).where(
        _INTENT.STATE.in_(sorted(state.value for state in states))
    )
    if victim is not None:
        query = query.where(_INTENT.VICTIM_DIGEST == digest(victim))
    return _load(connection, query.order_by(_INTENT.CREATED_AT_MS, _INTENT.INTENT_ID))


def advance_intent(
    connection: Connection,
    intent_id: str,
    from_state: IntentState,
    to_state: IntentState,
    now_ms: int,
    reason: str = "",
) -> bool:
    """See ArchiveIntents.advance_intent."""
    victim = None if not to_state.is_open else _INTENT.VICTIM_DIGEST
    changed = connection.execute(
        update(HMSB_ARCHIVE_INTENT)
        .where(_INTENT.INTENT_ID == intent_id, _INTENT.STATE == from_state.value)
        .values(
            STATE=to_state.value,
            UPDATED_AT_MS=now_ms,
            REASON=reason,
            OPEN_VICTIM_DIGEST=victim,
        )
    )
    return changed.rowcount == 1


def forget_intents(connection: Connection, before_ms: int) -> int:
    """See ArchiveIntents.forget_intents."""
    over = (IntentState.DONE.value, IntentState.ABANDONED.value)
    gone = list(
        connection.scalars(
            select(_INTENT.INTENT_ID).where(
                _INTENT.STATE.in_(over), _INTENT.UPDATED_AT_MS < before_ms
            )
        )
    )
    for piece in batches(gone):
        connection.execute(delete(HMSB_ARCHIVE_INTENT_FILE).where(_FILE.INTENT_ID.in_(piece)))
        connection.execute(delete(HMSB_ARCHIVE_INTENT).where(_INTENT.INTENT_ID.in_(piece)))
    return len(gone)


def _load(connection: Connection, query: Select[Any]) -> tuple[ArchiveIntent, ...]:
    rows = connection.execute(query).all()
    files: dict[str, list[IntentFile]] = defaultdict(list)
    for piece in batches([row.INTENT_ID for row in rows]):
        for row in connection.execute(
            select(HMSB_ARCHIVE_INTENT_FILE)
            .where(_FILE.INTENT_ID.in_(piece))
            .order_by(_FILE.INTENT_ID, _FILE.PLACE)
        ):
            files[row.INTENT_ID].append(_FILE_COLUMNS.read(row))
    return tuple(
        _INTENT_COLUMNS.read(row, files=tuple(files.get(row.INTENT_ID, ()))) for row in rows
    )
