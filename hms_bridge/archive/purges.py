"""The purge's claims on archived files, in SQL: a claim is a state and a lease."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, select, update

from changemanager.manifest import ArchiveEntry, EntryState
from hms_bridge.archive import leases, pins
from hms_bridge.archive.digest import digest
from hms_bridge.archive.leases import lease_time_ms
from hms_bridge.archive.lock import hold_archive
from hms_bridge.archive.records import (
    NO_CLOCK,
    at_name,
    delete_rows,
    held_rows,
    insert_entries,
    known_root,
    purge_lease,
)
from hms_bridge.backend.schema.archive_tables import HMSB_ARCHIVED_FILE
from hms_bridge.backend.work import Work

_FILE = HMSB_ARCHIVED_FILE.c


def claim_purge(
    work: Work,
    cmroot: str,
    name: str,
    *,
    seen_archived_at_ms: int | None,
    overridden_holders: Collection[str],
    owner: str,
    now_ms: int,
) -> bool:
    """See ArchiveRecords.claim_purge."""
    connection, now_ms = work.connection, lease_time_ms(work, now_ms)
    cmroot = known_root(connection, cmroot)
    # Before anything is looked at: a pin that comes meanwhile waits, and then sees PURGING.
    hold_archive(connection)
    row = held_rows(connection, cmroot, [name]).get(name)
    is_purged = row is not None and row.STATE == EntryState.PURGED.value
    clock = None if row is None or is_purged else row.ARCHIVED_AT_MS
    if clock != seen_archived_at_ms:
        return False
    holders = pins.holders(connection, cmroot, [name], now_ms).get(name, ())
    if set(holders) - set(overridden_holders):
        return False
    if not leases.take(connection, purge_lease(cmroot, name), owner, now_ms):
        return False
    if clock is not None:
        connection.execute(
            update(HMSB_ARCHIVED_FILE)
            .where(at_name(cmroot, name))
            .values(STATE=EntryState.PURGING.value)
        )
        return True
    delete_rows(connection, cmroot, [name])
    purging = ArchiveEntry(
        cmroot=cmroot,
        name=name,
        checksum="",
        size_bytes=0,
        state=EntryState.PURGING,
        archived_at_ms=NO_CLOCK,
    )
    insert_entries(connection, [purging])
    return True


def holds_purge(work: Work, cmroot: str, name: str, *, owner: str, now_ms: int) -> bool:
    """See ArchiveRecords.holds_purge."""
    connection, now_ms = work.connection, lease_time_ms(work, now_ms)
    cmroot = known_root(connection, cmroot)
    row = held_rows(connection, cmroot, [name]).get(name)
    is_purging = row is not None and row.STATE == EntryState.PURGING.value
    return is_purging and leases.renew(connection, purge_lease(cmroot, name), owner, now_ms)


def release_purge(work: Work, cmroot: str, name: str, *, owner: str | None, now_ms: int) -> bool:
    """See ArchiveRecords.release_purge."""
    connection, now_ms = work.connection, lease_time_ms(work, now_ms)
    cmroot = known_root(connection, cmroot)
    row = held_rows(connection, cmroot, [name]).get(name)
    lease = purge_lease(cmroot, name)
    if row is None or row.STATE != EntryState.PURGING.value:
        return False
    if owner is None and not leases.is_free(connection, lease, now_ms):
        return False
    if owner is not None and not leases.is_owned(connection, lease, owner):
        return False
    leases.end(connection, lease)
    if row.ARCHIVED_AT_MS == NO_CLOCK:
        delete_rows(connection, cmroot, [name])
        return True
    connection.execute(
        update(HMSB_ARCHIVED_FILE)
        .where(at_name(cmroot, name))
        .values(STATE=EntryState.ARCHIVED.value)
    )
    return True


def record_purged(
    connection: Connection, cmroot: str, name: str, *, owner: str, now_ms: int
) -> bool:
    """See ArchiveRecords.record_purged."""
    cmroot = known_root(connection, cmroot)
    row = held_rows(connection, cmroot, [name]).get(name)
    lease = purge_lease(cmroot, name)
    is_purging = row is not None and row.STATE == EntryState.PURGING.value
    if not is_purging or not leases.is_owned(connection, lease, owner):
        return False
    leases.end(connection, lease)
    connection.execute(
        update(HMSB_ARCHIVED_FILE)
        .where(at_name(cmroot, name))
        .values(STATE=EntryState.PURGED.value, ARCHIVED_AT_MS=now_ms)
    )
    return True


def live_purges(work: Work, cmroot: str, now_ms: int) -> frozenset[str]:
    """See ArchiveRecords.live_purges."""
    connection, now_ms = work.connection, lease_time_ms(work, now_ms)
    cmroot = known_root(connection, cmroot)
    purging = connection.scalars(
        select(_FILE.NAME).where(
            _FILE.CMROOT_DIGEST == digest(cmroot), _FILE.STATE == EntryState.PURGING.value
        )
    ).all()
    return frozenset(
        name
        for name in purging
        if not leases.is_free(connection, purge_lease(cmroot, name), now_ms)
    )


def forget_purged(connection: Connection, cmroot: str, before_ms: int) -> int:
    """See ArchiveRecords.forget_purged."""
    cmroot = known_root(connection, cmroot)
    gone = list(
        connection.scalars(
            select(_FILE.NAME)
            .where(
                _FILE.CMROOT_DIGEST == digest(cmroot),
                _FILE.STATE == EntryState.PURGED.value,
                _FILE.ARCHIVED_AT_MS < before_ms,
            )
            .with_for_update()
        )
    )
    delete_rows(connection, cmroot, gone)
    return len(gone)
