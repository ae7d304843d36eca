"""The write-ahead rows of archive-then-delete, in SQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Select, and_, delete, select, update

from changemanager.location import is_below
from changemanager.manifest import ArchiveIntent, IntentFile, IntentState
from hms_bridge.archive.context_columns import CONTEXT
from hms_bridge.archive.digest import digest
from hms_bridge.archive.lock import hold_archive
from hms_bridge.backend.batches import batches, insert_rows
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


def add_intents(
    connection: Connection, intents: Sequence[ArchiveIntent]
) -> tuple[ArchiveIntent, ...]:
    """See ArchiveIntents.add_intents."""
    hold_archive(connection)
    open_ones = {
        row.victim: row
        for piece in batches([digest(row.victim) for row in intents])
        for row in _load(
            connection, select(HMSB_ARCHIVE_INTENT).where(_INTENT.OPEN_VICTIM_DIGEST.in_(piece))
        )
    }
    new = [row for row in intents if row.victim not in open_ones]
    insert_rows(
        connection,
        HMSB_ARCHIVE_INTENT,
        [
            {
                "VICTIM_DIGEST": digest(row.victim),
                "OPEN_VICTIM_DIGEST": digest(row.victim) if row.state.is_open else None,
                **_INTENT_COLUMNS.values(row),
            }
            for row in new
        ],
    )
    insert_rows(
        connection,
        HMSB_ARCHIVE_INTENT_FILE,
        [
            {"INTENT_ID": row.intent_id, "PLACE": place, **_FILE_COLUMNS.values(file)}
            for row in new
            for place, file in enumerate(row.files)
        ],
    )
    return tuple(open_ones.get(row.victim, row) for row in intents)


def intent(connection: Connection, intent_id: str) -> ArchiveIntent | None:
    """See ArchiveIntents.intent."""
    loaded = _load(connection, select(HMSB_ARCHIVE_INTENT).where(_INTENT.INTENT_ID == intent_id))
    return loaded[0] if loaded else None


def intents(
    connection: Connection,
    states: Collection[IntentState],
    *,
    victims: Collection[str] | None = None,
) -> tuple[ArchiveIntent, ...]:
    """See ArchiveIntents.intents."""
    query = select(HMSB_ARCHIVE_INTENT).where(
        _INTENT.STATE.in_(sorted(state.value for state in states))
    )
    if victims is None:
        return _load(connection, query.order_by(_INTENT.CREATED_AT_MS, _INTENT.INTENT_ID))
    rows = [
        row
        for piece in batches(sorted(digest(victim) for victim in victims))
        for row in _load(connection, query.where(_INTENT.VICTIM_DIGEST.in_(piece)))
    ]
    return tuple(sorted(rows, key=lambda row: (row.created_at_ms, row.intent_id)))


def advance_intents(
    connection: Connection,
    intent_ids: Collection[str],
    from_state: IntentState,
    to_state: IntentState,
    now_ms: int,
    reason: str = "",
) -> frozenset[str]:
    """See ArchiveIntents.advance_intents."""
    moved: set[str] = set()
    for piece in batches(sorted(intent_ids)):
        is_meant = and_(_INTENT.INTENT_ID.in_(piece), _INTENT.STATE == from_state.value)
        # In the order of ids: two that move the same rows do not wait for each other.
        held = select(_INTENT.INTENT_ID).where(is_meant).order_by(_INTENT.INTENT_ID)
        moved.update(connection.scalars(held.with_for_update()))
        connection.execute(
            update(HMSB_ARCHIVE_INTENT)
            .where(is_meant)
            .values(
                STATE=to_state.value,
                UPDATED_AT_MS=now_ms,
                REASON=reason,
                OPEN_VICTIM_DIGEST=_INTENT.VICTIM_DIGEST if to_state.is_open else None,
            )
        )
    return frozenset(moved)


def finish_intents(connection: Connection, location: str, now_ms: int) -> int:
    """See ArchiveIntents.finish_intents."""
    is_deleted = _INTENT.STATE == IntentState.DELETED.value
    deleted = connection.execute(select(_INTENT.INTENT_ID, _INTENT.VICTIM).where(is_deleted))
    ids = sorted(row.INTENT_ID for row in deleted if is_below(row.VICTIM, location))
    done = {"STATE": IntentState.DONE.value, "UPDATED_AT_MS": now_ms}
    return sum(
        connection.execute(
            update(HMSB_ARCHIVE_INTENT)
            .where(_INTENT.INTENT_ID.in_(piece), is_deleted)
            .values(**done, REASON="", OPEN_VICTIM_DIGEST=None)
        ).rowcount
        for piece in batches(ids)
    )


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
