"""What is archived, in SQL: one row for a file of a cmroot, one for each place it came from.

A cmroot has several spellings; each function that others call looks under the one that is kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, select, update

from changemanager.errors import ArchiveBusyError, IntentError
from changemanager.location import path_below, spellings
from changemanager.manifest import (
    ArchivedFile,
    ArchiveEntry,
    ArchiveOrigin,
    EntryState,
    ReservedFile,
)
from hms_bridge.archive import leases
from hms_bridge.archive.context_columns import CONTEXT
from hms_bridge.archive.digest import digest
from hms_bridge.archive.lock import hold_archive
from hms_bridge.backend.batches import batches, batches_of_names, insert_rows
from hms_bridge.backend.columns import Columns, flag, member
from hms_bridge.backend.schema.archive_tables import HMSB_ARCHIVE_ORIGIN, HMSB_ARCHIVED_FILE

_FILE = HMSB_ARCHIVED_FILE.c
_ORIGIN = HMSB_ARCHIVE_ORIGIN.c
NO_CLOCK = 0
"""The clock of a file of Hive's, which had no row before its purge."""

_ENTRY_COLUMNS = Columns(
    ArchiveEntry,
    cmroot="CMROOT",
    name="NAME",
    checksum="CHECKSUM",
    size_bytes="SIZE_BYTES",
    state=member("STATE", EntryState),
    archived_at_ms="ARCHIVED_AT_MS",
    is_remaining_in_trash=flag("IS_REMAINING_IN_TRASH"),
)
_ORIGIN_COLUMNS = Columns(
    ArchiveOrigin,
    uri="URI",
    directory="DIRECTORY",
    context=CONTEXT,
    archived_at_ms="ARCHIVED_AT_MS",
)
_ORIGINS_AT_ONCE = 50
"""Each of their names is looked up with each of their digests."""
_LIVE = frozenset({EntryState.RESERVED, EntryState.ARCHIVED})


def held_rows(
    connection: Connection, cmroot: str, names: Collection[str]
) -> Mapping[str, Row[*tuple[Any, ...]]]:
    """Rows by name, held until the transaction ends, in the order of names (no deadlocks)."""
    return {
        row.NAME: row
        for piece in batches_of_names(names)
        for row in connection.execute(
            select(HMSB_ARCHIVED_FILE)
            .where(_FILE.CMROOT_DIGEST == digest(cmroot), _FILE.NAME.in_(piece))
            .order_by(_FILE.NAME)
            .with_for_update()
        )
    }


def purge_lease(cmroot: str, name: str) -> str:
    """The lease of whoever purges a file."""
    return f"purge {digest(cmroot)} {name}"


def at_name(cmroot: str, name: str) -> ColumnElement[bool]:
    """The condition of one file's row."""
    return (_FILE.CMROOT_DIGEST == digest(cmroot)) & (_FILE.NAME == name)


def known_root(connection: Connection, cmroot: str) -> str:
    """The spelling under which a cmroot's files are kept: the purge of `hdfs://nn/cm` must find
    what was archived in `hdfs://nn:8020/cm`, and who holds it."""
    # Each by the primary key: files of others may be many.
    for key in sorted(digest(text) for text in spellings(cmroot)):
        root = connection.scalar(select(_FILE.CMROOT).where(_FILE.CMROOT_DIGEST == key).limit(1))
        if root is not None:
            return str(root)
    return cmroot


def reserve(
    connection: Connection, cmroot: str, files: Sequence[ReservedFile], now_ms: int
) -> None:
    """See ArchiveRecords.reserve. Raises ArchiveBusyError."""
    cmroot = known_root(connection, cmroot)
    known = held_rows(connection, cmroot, [file.name for file in files])
    purging = [n for n, row in known.items() if row.STATE == EntryState.PURGING.value]
    busy = tuple(
        n for n in purging if not leases.is_free(connection, purge_lease(cmroot, n), now_ms)
    )
    if busy:
        raise ArchiveBusyError(
            f"{', '.join(busy[:5])} of {cmroot}: being purged at this moment; try again", busy
        )
    for name in purging:
        _take_from_purge(connection, cmroot, name)
    # With the row go the origins of a file that is gone: the new one has its own.
    purged = [n for n, row in known.items() if _is_history(row)]
    delete_rows(connection, cmroot, purged)
    new = {file.name: file for file in files if file.name not in known or file.name in purged}
    reserved = [
        ArchiveEntry(
            cmroot=cmroot,
            name=file.name,
            checksum=file.checksum,
            size_bytes=file.size_bytes,
            state=EntryState.RESERVED,
            archived_at_ms=now_ms,
        )
        for file in new.values()
    ]
    insert_entries(connection, reserved)
    _advance_clock(connection, cmroot, [n for n in known if n not in new], now_ms)


def insert_entries(connection: Connection, entries: Sequence[ArchiveEntry]) -> None:
    """New rows, without the origins."""
    rows = [
        {"CMROOT_DIGEST": digest(entry.cmroot), **_ENTRY_COLUMNS.values(entry)} for entry in entries
    ]
    insert_rows(connection, HMSB_ARCHIVED_FILE, rows)


def _take_from_purge(connection: Connection, cmroot: str, name: str) -> None:
    """Of a purge that died, the file may still be there: whoever comes now decides."""
    leases.end(connection, purge_lease(cmroot, name))
    connection.execute(
        update(HMSB_ARCHIVED_FILE)
        .where(at_name(cmroot, name))
        .values(STATE=EntryState.RESERVED.value)
    )


def _is_history(row: Row[*tuple[Any, ...]]) -> bool:
    """Whether a row says nothing of a file that is there now."""
    is_of_hives_file = row.STATE == EntryState.PURGING.value and row.ARCHIVED_AT_MS == NO_CLOCK
    return bool(row.STATE == EntryState.PURGED.value or is_of_hives_file)


def _advance_clock(
    connection: Connection, cmroot: str, names: Collection[str], now_ms: int
) -> None:
    for piece in batches_of_names(names):
        connection.execute(
            update(HMSB_ARCHIVED_FILE)
            .where(
                _FILE.CMROOT_DIGEST == digest(cmroot),
                _FILE.NAME.in_(piece),
                # Never back: that would make a file look expired before its time.
                _FILE.ARCHIVED_AT_MS < now_ms,
            )
            .values(ARCHIVED_AT_MS=now_ms)
        )


def record_archived(
    connection: Connection, cmroot: str, files: Sequence[ArchivedFile], now_ms: int
) -> None:
    """See ArchiveRecords.record_archived. Raises IntentError."""
    cmroot = known_root(connection, cmroot)
    names = [file.name for file in files]
    known = held_rows(connection, cmroot, names)
    for name in names:
        if name not in known or EntryState(known[name].STATE) not in _LIVE:
            raise IntentError(f"{name} of {cmroot} was not reserved; archive it anew")
    for piece in batches_of_names(names):
        connection.execute(
            update(HMSB_ARCHIVED_FILE)
            .where(_FILE.CMROOT_DIGEST == digest(cmroot), _FILE.NAME.in_(piece))
            .values(STATE=EntryState.ARCHIVED.value)
        )
    _advance_clock(connection, cmroot, names, now_ms)
    tagged = [file.name for file in files if file.is_remaining_in_trash]
    for piece in batches_of_names(tagged):
        connection.execute(
            update(HMSB_ARCHIVED_FILE)
            .where(_FILE.CMROOT_DIGEST == digest(cmroot), _FILE.NAME.in_(piece))
            .values(IS_REMAINING_IN_TRASH=1)
        )
    _insert_origins(connection, cmroot, files)


def _insert_origins(connection: Connection, cmroot: str, files: Sequence[ArchivedFile]) -> None:
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for file in files:
        context = CONTEXT.values(file.origin.context)
        origin_digest = digest(file.origin.uri, *context.values())
        rows[file.name, origin_digest] = {
            "CMROOT_DIGEST": digest(cmroot),
            "NAME": file.name,
            "ORIGIN_DIGEST": origin_digest,
            **_ORIGIN_COLUMNS.values(file.origin),
        }
    for key in _known_origins(connection, cmroot, list(rows)):
        del rows[key]
    insert_rows(connection, HMSB_ARCHIVE_ORIGIN, list(rows.values()))


def _known_origins(
    connection: Connection, cmroot: str, keys: Sequence[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Those of these names and digests that are there. By both: a file with the same content in
    every directory, as `_orc_acid_version`, has as many origins as directories were archived."""
    known: set[tuple[str, str]] = set()
    for piece in batches(keys, _ORIGINS_AT_ONCE):
        # Names and digests side by side, which any database looks up by the key: for pairs of them
        # SQLite reads all that is archived below the root.
        rows = connection.execute(
            select(_ORIGIN.NAME, _ORIGIN.ORIGIN_DIGEST).where(
                _ORIGIN.CMROOT_DIGEST == digest(cmroot),
                _ORIGIN.NAME.in_(sorted({name for name, _ in piece})),
                _ORIGIN.ORIGIN_DIGEST.in_(sorted({origin_digest for _, origin_digest in piece})),
            )
        )
        known.update((row.NAME, row.ORIGIN_DIGEST) for row in rows)
    return known.intersection(keys)


def withdraw(connection: Connection, cmroot: str, names: Collection[str]) -> None:
    """See ArchiveRecords.withdraw."""
    cmroot = known_root(connection, cmroot)
    held = held_rows(connection, cmroot, names)
    reserved = [n for n, row in held.items() if row.STATE == EntryState.RESERVED.value]
    # Taken over from a purge that died (`_take_from_purge`): the file may be there, its row stays.
    with_origins = {
        name
        for piece in batches_of_names(reserved)
        for name in connection.scalars(
            select(_ORIGIN.NAME).where(
                _ORIGIN.CMROOT_DIGEST == digest(cmroot), _ORIGIN.NAME.in_(piece)
            )
        )
    }
    delete_rows(connection, cmroot, [name for name in reserved if name not in with_origins])


def delete_rows(connection: Connection, cmroot: str, names: Collection[str]) -> None:
    """Forget files with their origins."""
    for piece in batches_of_names(names):
        for table in (HMSB_ARCHIVE_ORIGIN, HMSB_ARCHIVED_FILE):
            connection.execute(
                delete(table).where(
                    table.c.CMROOT_DIGEST == digest(cmroot), table.c.NAME.in_(piece)
                )
            )


def entries(
    connection: Connection, cmroot: str, names: Collection[str] | None = None
) -> Mapping[str, ArchiveEntry]:
    """See ArchiveRecords.entries."""
    cmroot = known_root(connection, cmroot)
    in_root = _FILE.CMROOT_DIGEST == digest(cmroot)
    if names is None:
        is_wanted = in_root & (_FILE.STATE != EntryState.PURGED.value)
        rows = list(connection.execute(select(HMSB_ARCHIVED_FILE).where(is_wanted)))
        origins = _origins(connection, _ORIGIN.CMROOT_DIGEST == digest(cmroot))
        return {row.NAME: _entry(row, origins) for row in rows}
    by_name: dict[str, ArchiveEntry] = {}
    for piece in batches_of_names(names):
        rows = list(
            connection.execute(select(HMSB_ARCHIVED_FILE).where(in_root, _FILE.NAME.in_(piece)))
        )
        origins = _origins(
            connection,
            (_ORIGIN.CMROOT_DIGEST == digest(cmroot)) & _ORIGIN.NAME.in_(piece),
        )
        by_name.update({row.NAME: _entry(row, origins) for row in rows})
    return by_name


def archived_below(connection: Connection, cmroot: str, directory: str) -> tuple[ArchiveEntry, ...]:
    """See ArchiveRecords.archived_below."""
    cmroot = known_root(connection, cmroot)
    prefix = directory.rstrip("/") + "/"
    in_root = _ORIGIN.CMROOT_DIGEST == digest(cmroot)
    origins_by_name = _origins(
        connection, in_root & _ORIGIN.URI.startswith(prefix, autoescape=True)
    )
    # A database may compare without case.
    origins = {
        name: [entry for entry in some if path_below(entry.uri, directory)]
        for name, some in origins_by_name.items()
    }
    return tuple(
        replace(entry, origins=tuple(origins[name]))
        for name, entry in entries(connection, cmroot, [n for n, o in origins.items() if o]).items()
    )


def _origins(
    connection: Connection, condition: ColumnElement[bool]
) -> Mapping[str, list[ArchiveOrigin]]:
    origins: dict[str, list[ArchiveOrigin]] = defaultdict(list)
    rows = connection.execute(
        select(HMSB_ARCHIVE_ORIGIN)
        .where(condition)
        .order_by(_ORIGIN.ARCHIVED_AT_MS, _ORIGIN.ORIGIN_DIGEST)
    )
    for row in rows:
        origins[row.NAME].append(_ORIGIN_COLUMNS.read(row))
    return origins


def _entry(
    row: Row[*tuple[Any, ...]], origins: Mapping[str, Sequence[ArchiveOrigin]]
) -> ArchiveEntry:
    return _ENTRY_COLUMNS.read(row, origins=tuple(origins.get(row.NAME, ())))


def roots(connection: Connection) -> tuple[str, ...]:
    """See ArchiveRecords.roots."""
    return tuple(sorted(connection.scalars(select(_FILE.CMROOT).distinct())))


def amend(
    connection: Connection,
    cmroot: str,
    name: str,
    seen: ArchiveEntry | None,
    wanted: ArchiveEntry | None,
    now_ms: int,
) -> bool:
    """See ArchiveRecords.amend."""
    cmroot = known_root(connection, cmroot)
    hold_archive(connection)
    row = held_rows(connection, cmroot, [name]).get(name)
    is_none = row is None or row.STATE == EntryState.PURGED.value
    now = None if row is None or is_none else (row.STATE, row.ARCHIVED_AT_MS)
    if now != (None if seen is None else (seen.state.value, seen.archived_at_ms)):
        return False
    if not leases.is_free(connection, purge_lease(cmroot, name), now_ms):
        return False
    delete_rows(connection, cmroot, [name])
    if wanted is None:
        return True
    insert_entries(connection, [replace(wanted, cmroot=cmroot, name=name)])
    is_tagged = wanted.is_remaining_in_trash
    _insert_origins(
        connection,
        cmroot,
        [
            ArchivedFile(name=name, origin=origin, is_remaining_in_trash=is_tagged)
            for origin in wanted.origins
        ],
    )
    return True
