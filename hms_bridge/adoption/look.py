"""Looks at a directory that Hive left behind: its roots, their files, the columns these name."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from changemanager.filesystem.volume import FileKind, Volume
from changemanager.location import Location, Resolver
from hms_bridge.acid.listing import DirectoryListing, ListedFile
from hms_bridge.acid.names import BucketFileName, DirectoryName, OriginalFileName, is_hidden
from hms_bridge.adoption.plan import (
    AdoptionPlan,
    AdoptionRequest,
    RootFound,
    SchemaFound,
    plan_adoption,
)
from hms_bridge.directories.listing import list_acid_directory
from hms_bridge.errors import AcidFormatError
from hms_bridge.model.catalog import Column
from hms_bridge.model.ids import WriteId
from hms_bridge.orc.acid_layout import rows_in
from hms_bridge.orc.hive_types import hive_type_text
from hms_bridge.orc.tail import read_tail
from hms_bridge.rows.reader import has_raw_rows


def look(request: AdoptionRequest, resolver: Resolver) -> AdoptionPlan:
    """Read the directory and decide; nothing is changed.

    Raises AcidFormatError for what is no ACID table's directory, NotOrcError for a data file that
    is no ORC file.
    """
    place = resolver(request.location)
    volume = place.volume
    status = volume.status(volume.real_path(place.path))
    if status is None or status.kind is not FileKind.DIRECTORY:
        raise AcidFormatError("there is no such directory; check the path", request.location)
    tree = _look_for_roots(volume, place, request.location)
    roots = []
    for relative in tree.roots:
        root = place.child(relative)
        listing = list_acid_directory(
            volume, root.path, has_raw_rows=functools.partial(has_raw_rows, volume)
        )
        roots.append(
            RootFound(
                path=relative,
                location=root.uri,
                listing=listing,
                schema=_newest_schema(volume, listing),
            )
        )
    return plan_adoption(request, roots, strays=tree.strays)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tree:
    """Paths relative to the table's directory; ``strays``: what is neither data nor hidden."""

    roots: tuple[str, ...]
    strays: tuple[str, ...]


def _look_for_roots(volume: Volume, place: Location, location: str) -> _Tree:
    """The table itself, or every partition below it: also those that hold originals only."""
    roots: list[str] = []
    strays: list[str] = []
    pending = [""]
    while pending:
        relative = pending.pop()
        partitions, others = _children(volume, place.child(relative).path)
        if not partitions:
            roots.append(relative)
            continue
        data = next((name for name in others if DirectoryName.parse(name)), None)
        if data is not None:
            raise AcidFormatError(
                f"{relative or 'it'} holds partitions ({partitions[0]}) and data of its own "
                f"({data}), which no table does; give the table's own directory",
                location,
            )
        above = f"{relative}/" if relative else ""
        strays += [above + name for name in others]
        pending += [above + name for name in partitions]
    return _Tree(roots=tuple(sorted(roots)), strays=tuple(sorted(strays)))


def _children(volume: Volume, path: str) -> tuple[list[str], list[str]]:
    """Names of the partition directories right below, and of everything else that is visible."""
    partitions, others = list[str](), list[str]()
    for status in volume.children(path):
        name = status.name
        if status.kind is FileKind.LINK and "=" in name and not is_hidden(name):
            raise AcidFormatError(
                "is a symbolic link; put the partition's directory itself there, or mount it there",
                f"{path.rstrip('/')}/{name}",
            )
        if not is_hidden(name):
            is_partition = status.kind is FileKind.DIRECTORY and "=" in name
            (partitions if is_partition else others).append(name)
    return sorted(partitions), sorted(others)


def _newest_schema(volume: Volume, listing: DirectoryListing) -> SchemaFound | None:
    """Of the newest file with rows; of one with deletes if there is no other.

    A file without bytes names no columns, and strangers in a delta are not asked.
    """
    newest = max(_data_files(listing), key=lambda pair: pair[0], default=None)
    if newest is None:
        return None
    (_, write_id), file = newest
    rows = rows_in(read_tail(volume, listing.full_path(file.path)).schema)
    columns = tuple(
        Column(name=name.lower(), type=hive_type_text(child))
        for name, child in zip(rows.names, rows.children, strict=True)
    )
    return SchemaFound(columns=columns, write_id=write_id) if columns else None


def _data_files(listing: DirectoryListing) -> Iterator[tuple[tuple[bool, WriteId], ListedFile]]:
    """Each data file, with what makes one the newest: rows before deletes, then write ids."""
    for file in listing.originals:
        if file.size_bytes:
            yield (True, WriteId(0)), file
    for directory in listing.directories:
        for file in directory.files:
            is_named = BucketFileName.parse(file.name) or OriginalFileName.parse(file.name)
            if file.size_bytes and is_named:
                yield (not directory.name.is_delete, directory.name.max_write_id), file
