"""How much a dump would name, for a dry run: nothing is written, no byte of a file is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from changemanager.location import Resolver
from changemanager.uri import EncodedUri
from changemanager.whereabouts import locate
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table
from hms_bridge.repl.dump.external import places_of
from hms_bridge.repl.dump.snapshot_wait import DatabaseSnapshot, try_snapshot
from hms_bridge.repl.dump.table_files import snapshot_files
from hms_bridge.repl.file_pool import FilePool


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpSize:
    """Files that a dump would name, and what a load would copy for them. A file that is gone has
    no bytes; jars of functions, data of external tables, and writes that nobody reported, which the
    dump itself finds, are not counted."""

    file_count: int = 0
    size_bytes: int = 0


def dump_size(
    source: Metastore,
    resolve: Resolver,
    database: str,
    tables: Sequence[Table],
    named: Iterable[EncodedUri],
) -> DumpSize:
    """Of tables that would come whole, and of files that events name."""
    names = tuple(table.full_name for table in tables if table.is_transactional)
    snapshot, _ = try_snapshot(source, database, names)
    count = size = 0
    with FilePool() as pool:
        listed = pool.each(partial(_listed, source, resolve, snapshot), _places(source, tables))
        files = dict.fromkeys(file for of_place in listed for file in of_place)
        for located in pool.each(
            partial(locate, resolve=resolve, is_content_checked=False),
            [*files, *dict.fromkeys(named)],
        ):
            count += 1
            size += located.size_bytes or 0
    return DumpSize(file_count=count, size_bytes=size)


def _places(source: Metastore, tables: Iterable[Table]) -> Iterator[tuple[Table, str]]:
    """Directories with data that a bootstrap looks into."""
    for table in tables:
        if not (table.is_any_view or table.is_external):
            yield from ((table, location) for _, location in places_of(source, table))


def _listed(
    source: Metastore, resolve: Resolver, snapshot: DatabaseSnapshot, place: tuple[Table, str]
) -> tuple[EncodedUri, ...]:
    table, location = place
    try:
        return snapshot_files(resolve(location), snapshot.of_table(source, table), None)
    except FileNotFoundError:
        return ()
