"""Which directories of external tables a dump asks to copy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from changemanager.location import Resolver, path_below
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.repl.format.external_list import (
    ExternalDirectory,
    external_target,
    format_external_list,
)
from hms_bridge.repl.format.layout import DumpPaths
from hms_bridge.repl.lookup import if_there

_PARTITIONS_AT_ONCE = 1000


def partitions_of(source: Metastore, table: Table) -> tuple[Partition, ...]:
    """All partitions of a table, in the order of their names."""
    if not table.is_partitioned:
        return ()
    names = source.get_partition_names(table.database_name, table.name)
    partitions: list[Partition] = []
    for start in range(0, len(names), _PARTITIONS_AT_ONCE):
        partitions += source.get_partitions_by_names(
            table.database_name, table.name, names[start : start + _PARTITIONS_AT_ONCE]
        )
    return tuple(partitions)


def places_of(source: Metastore, table: Table) -> tuple[tuple[Partition | None, str], ...]:
    """Where a table's data is: the place of each partition, or (None) its own."""
    holders = partitions_of(source, table) if table.is_partitioned else (None,)
    located = ((holder, (holder or table).storage.location) for holder in holders)
    return tuple((holder, location) for holder, location in located if location is not None)


def external_directories(
    resolve: Resolver, table: Table, partitions: Sequence[Partition], base: str
) -> tuple[ExternalDirectory, ...]:
    """The directory of an external table, and those of its partitions outside of it."""
    root = table.storage.location
    if root is None:
        return ()
    top = resolve(root).uri
    outside = (
        resolve(partition.storage.location).uri
        for partition in partitions
        if partition.storage.location
    )
    places = [top, *(uri for uri in outside if path_below(uri, top) is None)]
    return tuple(
        ExternalDirectory(source=uri, target=external_target(base, uri), table_name=table.name)
        for uri in places
    )


def list_external(
    source: Metastore, resolve: Resolver, tables: Iterable[Table], base: str
) -> tuple[ExternalDirectory, ...]:
    """The directories of the external ones of some tables, as they are now.

    An incremental dump lists them all: their data has no events.
    """
    return tuple(
        directory
        for table in tables
        if table.is_external
        # A table that is dropped meanwhile has none; its directory may be gone, which is no error.
        for partitions in [if_there(partitions_of, source, table) or ()]
        for directory in external_directories(resolve, table, partitions, base)
    )


def external_list_text(
    paths: DumpPaths, directories: Sequence[ExternalDirectory]
) -> Mapping[str, str]:
    """The list by its path; nothing for no directories."""
    return {paths.external_file_list: format_external_list(directories)} if directories else {}
