"""What a directory tells about the table that it was: decided from names and schemas. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hms_bridge.acid.listing import DirectoryListing
from hms_bridge.errors import AcidFormatError
from hms_bridge.model.catalog import (
    ORC_INPUT_FORMAT,
    ORC_OUTPUT_FORMAT,
    ORC_SERDE,
    Column,
    Partition,
    SerDe,
    Storage,
    Table,
)
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.partition_name import unescape
from hms_bridge.model.valid_ids import ValidWriteIdList


@dataclass(frozen=True, kw_only=True, slots=True)
class RootFound:
    """A table's directory or one partition's, as listed. ``columns``: of its newest data file."""

    path: str
    location: str
    listing: DirectoryListing
    columns: tuple[Column, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AdoptionRequest:
    """What the admin knows. ``partition_types`` and buckets cannot be read off files."""

    database_name: str
    table_name: str
    location: str
    partition_types: dict[str, str] = field(default_factory=dict)
    bucket_columns: tuple[str, ...] = ()
    bucket_count: int = -1
    columns: tuple[Column, ...] = ()
    valid_write_ids: ValidWriteIdList | None = None
    owner: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AdoptionPlan:
    """What adopting will do.

    ``write_ids``: the state that the table gets. ``visibility_txn_ids``: transactions of past
    compactions, taken as committed. ``warnings``: what could not be known and how it was taken.
    """

    table: Table
    partitions: tuple[Partition, ...]
    write_ids: ValidWriteIdList
    visibility_txn_ids: tuple[TxnId, ...]
    warnings: tuple[str, ...]


def plan_adoption(request: AdoptionRequest, roots: Sequence[RootFound]) -> AdoptionPlan:
    """Raises AcidFormatError for a directory that holds no ACID table, or more than the list."""
    found = [root for root in roots if root.listing.directories or root.listing.originals]
    if not found:
        raise AcidFormatError(
            "no base, delta or original file below this directory: it is no ACID table's; "
            "give the table's own directory",
            request.location,
        )
    keys = _partition_keys(request.location, found)
    columns = request.columns or _columns(request.location, found)
    table = _table(request, columns, keys)
    names = [directory.name for root in found for directory in root.listing.directories]
    highest = max((name.max_write_id for name in names), default=WriteId(0))
    write_ids = _write_ids(request, table.full_name, max(highest, WriteId(0)))
    return AdoptionPlan(
        table=table,
        partitions=_partitions(request, found, table),
        write_ids=write_ids,
        visibility_txn_ids=tuple(sorted({n.visibility_txn_id for n in names} - {TxnId(0)})),
        warnings=_warnings(request, found, highest, keys),
    )


def _write_ids(request: AdoptionRequest, table: str, highest: WriteId) -> ValidWriteIdList:
    """Open writes died with their metastore: they can never commit, so they count as aborted.

    Raises AcidFormatError for a list that ends below a directory. Such writes may be committed, so
    they must not be cleaned as aborted; and the next writer would get such a number, so that its
    commit would show their rows.
    """
    given = request.valid_write_ids
    if given is None:
        return ValidWriteIdList(table=table, high_watermark=highest)
    if highest > given.high_watermark:
        raise AcidFormatError(
            f"there are directories up to write id {highest}, but --valid-write-ids ends at "
            f"{given.high_watermark}: the list is older than the directory. Give one with the high "
            f"watermark {highest}, and name as aborted what must never be seen",
            request.location,
        )
    return ValidWriteIdList(
        table=table,
        high_watermark=given.high_watermark,
        aborted_ids=(*given.aborted_ids, *given.open_ids),
    )


def _relative(location: str, path: str) -> tuple[tuple[str, str], ...]:
    """``a=1/b=x`` below the table's directory, as pairs."""
    pairs = []
    for level in path.split("/") if path else ():
        key, separator, value = level.partition("=")
        if not separator:
            raise AcidFormatError(f"{path} is no partition directory (key=value)", location)
        pairs.append((unescape(key).lower(), unescape(value)))
    return tuple(pairs)


def _partition_keys(location: str, roots: Sequence[RootFound]) -> tuple[str, ...]:
    shapes = {tuple(key for key, _ in _relative(location, root.path)) for root in roots}
    if len(shapes) > 1:
        texts = " and ".join(sorted("/".join(shape) or "none" for shape in shapes))
        raise AcidFormatError(f"partitions have different keys: {texts}", location)
    return shapes.pop()


def _columns(location: str, roots: Sequence[RootFound]) -> tuple[Column, ...]:
    """Those of the file with most columns: ALTER TABLE ADD COLUMNS only appends."""
    known = [root.columns for root in roots if root.columns]
    if not known:
        raise AcidFormatError("no data file tells the columns; give --columns", location)
    return max(known, key=len)


def _table(request: AdoptionRequest, columns: tuple[Column, ...], keys: tuple[str, ...]) -> Table:
    unknown = sorted(set(request.partition_types) - set(keys))
    if unknown:
        raise AcidFormatError(
            f"{unknown[0]} is no partition column; found {', '.join(keys) or 'none'}",
            request.location,
        )
    return Table(
        name=request.table_name,
        database_name=request.database_name,
        owner=request.owner,
        storage=Storage(
            columns=columns,
            location=request.location,
            input_format=ORC_INPUT_FORMAT,
            output_format=ORC_OUTPUT_FORMAT,
            serde=SerDe(library=ORC_SERDE, parameters={"serialization.format": "1"}),
            bucket_columns=request.bucket_columns,
            bucket_count=request.bucket_count,
        ),
        partition_columns=tuple(
            Column(name=key, type=request.partition_types.get(key, "string")) for key in keys
        ),
        parameters={
            "transactional": "true",
            "transactional_properties": "default",
            "bucketing_version": "2",
        },
    )


def _partitions(
    request: AdoptionRequest, roots: Sequence[RootFound], table: Table
) -> tuple[Partition, ...]:
    if not table.partition_columns:
        return ()
    return tuple(
        Partition(
            values=tuple(value for _, value in _relative(request.location, root.path)),
            database_name=table.database_name,
            table_name=table.name,
            storage=Storage(
                columns=table.storage.columns,
                location=root.location,
                input_format=ORC_INPUT_FORMAT,
                output_format=ORC_OUTPUT_FORMAT,
                serde=table.storage.serde,
                bucket_columns=request.bucket_columns,
                bucket_count=request.bucket_count,
            ),
        )
        for root in sorted(roots, key=lambda root: root.path)
    )


def _warnings(
    request: AdoptionRequest,
    roots: Sequence[RootFound],
    highest: WriteId,
    keys: tuple[str, ...],
) -> tuple[str, ...]:
    warnings = []
    given = request.valid_write_ids
    if given is None:
        warnings.append(
            f"write ids 1 to {max(highest, 0)} are taken as committed, because names do not tell "
            "aborted ones; give --valid-write-ids if you know them"
        )
    if given is not None and given.open_ids:
        warnings.append(
            f"write ids {', '.join(map(str, given.open_ids))} were open; they count as aborted now"
        )
    untyped = [key for key in keys if key not in request.partition_types]
    if untyped:
        warnings.append(
            f"partition columns {', '.join(untyped)} are taken as string; "
            "give --partition-type column=type if they were not"
        )
    unknown = [root.listing.full_path(file.path) for root in roots for file in root.listing.unknown]
    if unknown:
        warnings.append(f"{len(unknown)} files are none of the ACID format, as {unknown[0]}; left")
    return tuple(warnings)
