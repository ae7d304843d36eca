"""Pins that outlived their budget, and how much a pin holds, in SQL."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import ColumnElement, Connection, delete, func, insert, or_, select

from changemanager.given_up import GivenUp, HeldFiles
from changemanager.manifest import EntryState
from hms_bridge.archive.digest import digest
from hms_bridge.archive.lock import hold_archive
from hms_bridge.backend.schema.archive_tables import (
    HMSB_ARCHIVE_GIVEN_UP,
    HMSB_ARCHIVE_ORIGIN,
    HMSB_ARCHIVE_PIN,
    HMSB_ARCHIVE_PIN_NAME,
    HMSB_ARCHIVED_FILE,
)

_MARK = HMSB_ARCHIVE_GIVEN_UP.c
_PIN = HMSB_ARCHIVE_PIN.c
_NAME = HMSB_ARCHIVE_PIN_NAME.c
_FILE = HMSB_ARCHIVED_FILE.c
_ORIGIN = HMSB_ARCHIVE_ORIGIN.c
_HOUR_MS = 3_600_000


def give_up(
    connection: Connection, holder: str, *, seen_created_at_ms: int, given_up: GivenUp
) -> bool:
    """See GivenUpStore.give_up."""
    hold_archive(connection)
    there = connection.scalar(
        select(_PIN.HOLDER).where(
            _PIN.HOLDER_DIGEST == digest(holder), _PIN.CREATED_AT_MS == seen_created_at_ms
        )
    )
    if there is None:
        return False
    if of_holder(connection, holder) is None:
        write_down(connection, holder, given_up)
    return True


def write_down(connection: Connection, holder: str, given_up: GivenUp) -> None:
    """That a pin which is there was given up."""
    connection.execute(
        insert(HMSB_ARCHIVE_GIVEN_UP).values(
            HOLDER_DIGEST=digest(holder), GIVEN_UP_AT_MS=given_up.at_ms, REASON=given_up.reason
        )
    )


def forget(connection: Connection, holder: str) -> None:
    """Its pin goes, or begins anew."""
    connection.execute(delete(HMSB_ARCHIVE_GIVEN_UP).where(_MARK.HOLDER_DIGEST == digest(holder)))


def of_holder(connection: Connection, holder: str) -> GivenUp | None:
    """That it was given up; None if it was not."""
    return all_given_up(connection, _MARK.HOLDER_DIGEST == digest(holder)).get(digest(holder))


def all_given_up(connection: Connection, *conditions: ColumnElement[bool]) -> Mapping[str, GivenUp]:
    """What was given up, by the digest of its holder."""
    rows = connection.execute(select(HMSB_ARCHIVE_GIVEN_UP).where(*conditions))
    return {row.HOLDER_DIGEST: GivenUp(at_ms=row.GIVEN_UP_AT_MS, reason=row.REASON) for row in rows}


def held_files(connection: Connection, holder: str) -> tuple[HeldFiles, ...]:
    """See GivenUpStore.held_files."""
    held = _held_by(connection, holder)
    if held is None:
        return ()
    rows = connection.execute(
        select(func.min(_FILE.ARCHIVED_AT_MS), func.sum(_FILE.SIZE_BYTES))
        .where(_FILE.STATE == EntryState.ARCHIVED.value, held)
        .group_by(_FILE.ARCHIVED_AT_MS - _FILE.ARCHIVED_AT_MS % _HOUR_MS)
    )
    groups = (HeldFiles(oldest_ms=at_ms, size_bytes=int(size)) for at_ms, size in rows)
    return tuple(sorted(groups, key=lambda files: files.oldest_ms))


def _held_by(connection: Connection, holder: str) -> ColumnElement[bool] | None:
    """The condition of a file that a pin holds, as ``Pin.holds``."""
    key = digest(holder)
    pin = connection.execute(select(HMSB_ARCHIVE_PIN).where(_PIN.HOLDER_DIGEST == key)).first()
    if pin is None:
        return None
    named = _FILE.NAME.in_(select(_NAME.NAME).where(_NAME.HOLDER_DIGEST == key))
    if pin.DB_NAME is None:
        return named
    is_of_it = (
        (_ORIGIN.CMROOT_DIGEST == _FILE.CMROOT_DIGEST)
        & (_ORIGIN.NAME == _FILE.NAME)
        & (_ORIGIN.DB_NAME == pin.DB_NAME)
    )
    if pin.TBL_NAME is not None:
        is_of_it &= _ORIGIN.TBL_NAME == pin.TBL_NAME
    of_database = select(1).select_from(HMSB_ARCHIVE_ORIGIN).where(is_of_it).exists()
    since_ms = pin.ARCHIVED_SINCE_MS or 0
    return or_(named, of_database & (_FILE.ARCHIVED_AT_MS >= since_ms))
