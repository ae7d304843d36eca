"""The write-ahead rows of archive-then-delete, in SQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    bindparam,
    delete,
    false,
    or_,
    select,
    update,
)

from changemanager.location import spellings
from changemanager.manifest import ArchiveIntent, IntentFile, IntentState
from hms_bridge.archive.context_columns import CONTEXT
from hms_bridge.archive.digest import digest
from hms_bridge.archive.lock import hold_archive
from hms_bridge.backend.batches import batches
from hms_bridge.backend.columns import Columns, flag, member, text
from hms_bridge.backend.fixed_sql import FixedInsert, FixedSql
from hms_bridge.backend.listing_sql import row_of
from hms_bridge.backend.schema.archive_tables import (
    HMSB_ARCHIVE_INTENT,
    HMSB_ARCHIVE_INTENT_FILE,
)
from hms_bridge.backend.text_keyed_sql import TextKeyedSql

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

_COLUMNS = tuple(HMSB_ARCHIVE_INTENT.c)
_Row = row_of(select(*_COLUMNS))
_FROM_STATE = bindparam("from_state", type_=_INTENT.STATE.type)
_OPEN_ONES = TextKeyedSql(_INTENT.OPEN_VICTIM_DIGEST, select(*_COLUMNS).where)
_OF_ID = FixedSql(select(*_COLUMNS).where(_INTENT.INTENT_ID == bindparam("intent_id")))
_DELETED = FixedSql(select(_INTENT.INTENT_ID, _INTENT.VICTIM).where(_INTENT.STATE == _FROM_STATE))
_ADD, _ADD_FILES = FixedInsert(HMSB_ARCHIVE_INTENT), FixedInsert(HMSB_ARCHIVE_INTENT_FILE)
_HOLD = TextKeyedSql(
    _INTENT.INTENT_ID,
    lambda is_meant: (
        select(_INTENT.INTENT_ID)
        .where(is_meant, _INTENT.STATE == _FROM_STATE)
        .order_by(_INTENT.INTENT_ID)
        .with_for_update()
    ),
)


def _advance(*, is_open: bool) -> TextKeyedSql:
    return TextKeyedSql(
        _INTENT.INTENT_ID,
        lambda is_meant: (
            update(HMSB_ARCHIVE_INTENT)
            .where(is_meant, _INTENT.STATE == _FROM_STATE)
            .values(
                STATE=bindparam("to_state", type_=_INTENT.STATE.type),
                UPDATED_AT_MS=bindparam("now_ms", type_=BigInteger),
                REASON=bindparam("reason", type_=_INTENT.REASON.type),
                OPEN_VICTIM_DIGEST=_INTENT.VICTIM_DIGEST if is_open else None,
            )
        ),
    )


_ADVANCE_OPEN, _ADVANCE_ENDED = _advance(is_open=True), _advance(is_open=False)


def add_intents(
    connection: Connection, intents: Sequence[ArchiveIntent]
) -> tuple[ArchiveIntent, ...]:
    """See ArchiveIntents.add_intents."""
    hold_archive(connection)
    victims = [digest(row.victim) for row in intents]
    open_ones = {
        row.victim: row for row in _loaded(connection, _OPEN_ONES.all(connection, victims))
    }
    new = [row for row in intents if row.victim not in open_ones]
    _ADD.put(
        connection,
        [
            {
                "VICTIM_DIGEST": digest(row.victim),
                "OPEN_VICTIM_DIGEST": digest(row.victim) if row.state.is_open else None,
                **_INTENT_COLUMNS.values(row),
            }
            for row in new
        ],
    )
    _ADD_FILES.put(
        connection,
        [
            {"INTENT_ID": row.intent_id, "PLACE": place, **_FILE_COLUMNS.values(file)}
            for row in new
            for place, file in enumerate(row.files)
        ],
    )
    return tuple(open_ones.get(row.victim, row) for row in intents)


def intent(connection: Connection, intent_id: str) -> ArchiveIntent | None:
    """See ArchiveIntents.intent."""
    loaded = _loaded(connection, _OF_ID.all(connection, intent_id=intent_id))
    return loaded[0] if loaded else None


def intents(
    connection: Connection,
    states: Collection[IntentState],
    *,
    victims: Collection[str] | None = None,
) -> tuple[ArchiveIntent, ...]:
    """See ArchiveIntents.intents."""
    wanted = frozenset(states)
    if victims is None:
        return _loaded(connection, _in_states(wanted).all(connection))
    digests = sorted(digest(victim) for victim in victims)
    rows = _loaded(connection, _of_victims(wanted).all(connection, digests))
    return tuple(sorted(rows, key=lambda row: (row.created_at_ms, row.intent_id)))


@cache
def _in_states(states: frozenset[IntentState]) -> FixedSql:
    there = select(*_COLUMNS).where(_is_in(states))
    return FixedSql(there.order_by(_INTENT.CREATED_AT_MS, _INTENT.INTENT_ID))


@cache
def _of_victims(states: frozenset[IntentState]) -> TextKeyedSql:
    there = select(*_COLUMNS).where(_is_in(states))
    return TextKeyedSql(_INTENT.VICTIM_DIGEST, there.where)


def _is_in(states: frozenset[IntentState]) -> ColumnElement[bool]:
    return or_(false(), *(_INTENT.STATE == value for value in sorted(s.value for s in states)))


def advance_intents(
    connection: Connection,
    intent_ids: Collection[str],
    from_state: IntentState,
    to_state: IntentState,
    now_ms: int,
    reason: str = "",
) -> frozenset[str]:
    """See ArchiveIntents.advance_intents."""
    states = {"from_state": from_state.value, "to_state": to_state.value}
    advance = _ADVANCE_OPEN if to_state.is_open else _ADVANCE_ENDED
    ids = sorted(intent_ids)
    # In the order of ids: two that move the same rows do not wait for each other.
    held = _HOLD.later(connection, ids, from_state=from_state.value)
    advance.later(connection, ids, **states, now_ms=now_ms, reason=reason)
    return frozenset(intent_id for answer in held for (intent_id,) in answer.rows)


def finish_intents(connection: Connection, locations: Collection[str], now_ms: int) -> int:
    """See ArchiveIntents.finish_intents."""
    outer = {text.rstrip("/") for place in locations for text in spellings(place)}
    deleted = _DELETED.all(connection, from_state=IntentState.DELETED.value)
    ids = sorted(intent_id for intent_id, victim in deleted if _is_in_one_of(victim, outer))
    done = _ADVANCE_ENDED.later(
        connection,
        ids,
        from_state=IntentState.DELETED.value,
        to_state=IntentState.DONE.value,
        now_ms=now_ms,
        reason="",
    )
    return sum(answer.count for answer in done)


def _is_in_one_of(victim: str, texts: Collection[str]) -> bool:
    """As :func:`is_below` one of the places that have these spellings, of which there are many."""
    return any(
        above in texts for spelling in spellings(victim) for above in _at_and_above(spelling)
    )


def _at_and_above(text: str) -> Iterator[str]:
    place = text.rstrip("/")
    while place:
        yield place
        place = place.rpartition("/")[0]
    yield place


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


def _loaded(connection: Connection, rows: Sequence[tuple[Any, ...]]) -> tuple[ArchiveIntent, ...]:
    named = [_Row._make(row) for row in rows]
    files: dict[str, list[IntentFile]] = defaultdict(list)
    for piece in batches([row.INTENT_ID for row in named]):
        for row in connection.execute(
            select(HMSB_ARCHIVE_INTENT_FILE)
            .where(_FILE.INTENT_ID.in_(piece))
            .order_by(_FILE.INTENT_ID, _FILE.PLACE)
        ):
            files[row.INTENT_ID].append(_FILE_COLUMNS.read(row))
    return tuple(
        _INTENT_COLUMNS.read(row, files=tuple(files.get(row.INTENT_ID, ()))) for row in named
    )
