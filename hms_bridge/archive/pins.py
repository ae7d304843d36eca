"""Who still needs which archived files, in SQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection, Row, delete, insert, or_, select

from changemanager.location import spellings
from changemanager.manifest import EntryState, IntentState, Pin, PinKind
from hms_bridge.archive import budgets
from hms_bridge.archive.digest import digest
from hms_bridge.archive.lock import hold_archive
from hms_bridge.archive.records import entries, known_root
from hms_bridge.backend.batches import batches_of_names
from hms_bridge.backend.columns import Columns, member
from hms_bridge.backend.schema.archive_tables import (
    HMSB_ARCHIVE_INTENT,
    HMSB_ARCHIVE_INTENT_FILE,
    HMSB_ARCHIVE_PIN,
    HMSB_ARCHIVE_PIN_NAME,
    HMSB_ARCHIVED_FILE,
)

_PIN = HMSB_ARCHIVE_PIN.c
_NAME = HMSB_ARCHIVE_PIN_NAME.c
_PIN_COLUMNS = Columns(
    Pin,
    holder="HOLDER",
    kind=member("KIND", PinKind),
    reason="REASON",
    created_at_ms="CREATED_AT_MS",
    expires_at_ms="EXPIRES_AT_MS",
    database="DB_NAME",
    table="TBL_NAME",
    archived_since_ms="ARCHIVED_SINCE_MS",
)
_OPEN = tuple(state.value for state in IntentState if state.is_open)


def put_pin(connection: Connection, pin: Pin, *, is_wider: bool = False) -> tuple[str, ...]:
    """See ArchivePins.put_pin."""
    hold_archive(connection)
    before = budgets.of_holder(connection, pin.holder) if is_wider else None
    remove_pin(connection, pin.holder)
    connection.execute(
        insert(HMSB_ARCHIVE_PIN).values(
            HOLDER_DIGEST=digest(pin.holder), **_PIN_COLUMNS.values(pin)
        )
    )
    if before is not None:
        budgets.write_down(connection, pin.holder, before)
    late: list[str] = []
    for piece in batches_of_names(pin.names):
        connection.execute(
            insert(HMSB_ARCHIVE_PIN_NAME),
            [{"HOLDER_DIGEST": digest(pin.holder), "NAME": name} for name in piece],
        )
        late += connection.scalars(
            select(HMSB_ARCHIVED_FILE.c.NAME).where(
                HMSB_ARCHIVED_FILE.c.NAME.in_(piece),
                HMSB_ARCHIVED_FILE.c.STATE == EntryState.PURGING.value,
            )
        )
    return tuple(sorted(set(late)))


def remove_pin(connection: Connection, holder: str) -> bool:
    """See ArchivePins.remove_pin."""
    key = digest(holder)
    connection.execute(delete(HMSB_ARCHIVE_PIN_NAME).where(_NAME.HOLDER_DIGEST == key))
    budgets.forget(connection, holder)
    gone = connection.execute(delete(HMSB_ARCHIVE_PIN).where(_PIN.HOLDER_DIGEST == key))
    return gone.rowcount == 1


def pins(connection: Connection) -> tuple[Pin, ...]:
    """See ArchivePins.pins."""
    names: dict[str, list[str]] = defaultdict(list)
    for key, name in connection.execute(select(_NAME.HOLDER_DIGEST, _NAME.NAME)):
        names[key].append(name)
    given_up = budgets.all_given_up(connection)
    pinned = [
        _PIN_COLUMNS.read(
            row,
            names=frozenset(names.get(row.HOLDER_DIGEST, ())),
            given_up=given_up.get(row.HOLDER_DIGEST),
        )
        for row in connection.execute(select(HMSB_ARCHIVE_PIN))
    ]
    return tuple(sorted(pinned, key=lambda pin: pin.holder))


def needed_since_ms(connection: Connection) -> Mapping[str, int]:
    """By policy: since when its next dump needs what was archived, and what happened."""
    rows = connection.execute(
        select(_PIN.HOLDER, _PIN.ARCHIVED_SINCE_MS).where(
            _PIN.KIND == PinKind.POLICY.value, _PIN.ARCHIVED_SINCE_MS.is_not(None)
        )
    )
    return {row.HOLDER: row.ARCHIVED_SINCE_MS for row in rows}


def holders(
    connection: Connection, cmroot: str, names: Collection[str], now_ms: int
) -> Mapping[str, tuple[str, ...]]:
    """See ArchivePins.holders."""
    cmroot = known_root(connection, cmroot)
    is_live = or_(_PIN.EXPIRES_AT_MS.is_(None), _PIN.EXPIRES_AT_MS > now_ms)
    of_databases = [
        _PIN_COLUMNS.read(row)
        for row in connection.execute(
            select(HMSB_ARCHIVE_PIN).where(is_live, _PIN.DB_NAME.is_not(None))
        )
    ]
    holders_by_name: dict[str, set[str]] = defaultdict(set)
    for piece in batches_of_names(names):
        by_name = connection.execute(
            select(_NAME.NAME, _PIN.HOLDER)
            .join(HMSB_ARCHIVE_PIN, _PIN.HOLDER_DIGEST == _NAME.HOLDER_DIGEST)
            .where(_NAME.NAME.in_(piece), is_live)
        )
        for name, holder in by_name:
            holders_by_name[name].add(holder)
        for name, intent_id in _open_intents(connection, cmroot, piece):
            holders_by_name[name].add(f"intent:{intent_id}")
        if of_databases:
            for name, entry in entries(connection, cmroot, piece).items():
                holders_by_name[name] |= {
                    pin.holder for pin in of_databases if pin.holds(name, entry)
                }
    return {name: tuple(sorted(who)) for name, who in holders_by_name.items() if who}


def _open_intents(
    connection: Connection, cmroot: str, names: Collection[str]
) -> Sequence[Row[str, str]]:
    intent, file = HMSB_ARCHIVE_INTENT.c, HMSB_ARCHIVE_INTENT_FILE.c
    is_here = intent.CMROOT.in_(spellings(cmroot))
    return connection.execute(
        select(file.ARCHIVE_NAME, file.INTENT_ID)
        .join(HMSB_ARCHIVE_INTENT, intent.INTENT_ID == file.INTENT_ID)
        .where(file.ARCHIVE_NAME.in_(names), intent.STATE.in_(_OPEN), is_here)
    ).all()
