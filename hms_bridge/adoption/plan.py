"""What a directory shows of the table that it was: decided from names and schemas. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hms_bridge.acid.listing import DirectoryListing
from hms_bridge.adoption.assumptions import assumptions
from hms_bridge.adoption.checks import (
    check_buckets,
    check_columns,
    check_partition_values,
    check_write_ids,
)
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
from hms_bridge.model.partition_name import partition_name, unescape
from hms_bridge.model.properties import BUCKETING_VERSION, TRANSACTIONAL, TRANSACTIONAL_PROPERTIES
from hms_bridge.model.valid_ids import RangeResponse, ValidWriteIdList


@dataclass(frozen=True, kw_only=True, slots=True)
class SchemaFound:
    """The columns of a data file, and of which write it is."""

    columns: tuple[Column, ...]
    write_id: WriteId


@dataclass(frozen=True, kw_only=True, slots=True)
class RootFound:
    """A table's directory or one partition's, as listed. ``schema``: of its newest data file."""

    path: str
    location: str
    listing: DirectoryListing
    schema: SchemaFound | None = None

    @property
    def has_data(self) -> bool:
        """Whether anything of the ACID format is there."""
        return bool(self.listing.directories or self.listing.originals)


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
    is_open_aborted: bool = False
    owner: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AdoptionPlan:
    """What adopting will do.

    ``write_ids``: the state that the table gets. ``visibility_txn_ids``: transactions of past
    compactions, taken as committed. ``partitions_with_aborts``: names of those to compact.
    ``warnings``: what could not be known and how it was taken.
    """

    table: Table
    partitions: tuple[Partition, ...]
    write_ids: ValidWriteIdList
    visibility_txn_ids: tuple[TxnId, ...]
    partitions_with_aborts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def to_compact(self) -> tuple[str | None, ...]:
        """Names of the partitions that get a major compaction, because of aborted writes; None
        stands for a whole table without partitions."""
        if not self.write_ids.aborted_ids:
            return ()
        return self.partitions_with_aborts if self.table.is_partitioned else (None,)


def plan_adoption(
    request: AdoptionRequest, roots: Sequence[RootFound], strays: Sequence[str] = ()
) -> AdoptionPlan:
    """``strays``: what lies between the partitions and is none of the table's.

    Raises AcidFormatError for a directory that holds no ACID table, or contradicts the request.
    """
    with_data = [root for root in roots if root.has_data]
    if not with_data:
        raise AcidFormatError(
            "no base, delta or original file below this directory: it is no ACID table's; "
            "give the table's own directory",
            request.location,
        )
    keys = _partition_keys(request.location, roots)
    columns = request.columns or _columns(request.location, with_data)
    table = _table(request, columns, keys)
    listings = [root.listing for root in with_data]
    check_columns(table)
    check_buckets(table, listings)
    partitions = _partitions(request, roots, table)
    check_partition_values(table, partitions)
    names = [directory.name for root in with_data for directory in root.listing.directories]
    highest = max([WriteId(0), *(name.max_write_id for name in names)])
    write_ids = _write_ids(request, table.full_name, highest)
    check_write_ids(table, write_ids, listings)
    _refuse_older_list(request, write_ids, highest)
    return AdoptionPlan(
        table=table,
        partitions=partitions,
        write_ids=write_ids,
        visibility_txn_ids=tuple(sorted({n.visibility_txn_id for n in names} - {TxnId(0)})),
        partitions_with_aborts=_with_aborts(table, partitions, with_data, write_ids),
        warnings=assumptions(
            given=request.valid_write_ids,
            table_name=table.full_name,
            highest=highest,
            untyped=[key for key in keys if key not in request.partition_types],
            listings=listings,
            strays=strays,
        ),
    )


def _write_ids(request: AdoptionRequest, table: str, highest: WriteId) -> ValidWriteIdList:
    """Open writes died with their metastore, if the list is of its last moment: they can never
    commit, so they count as aborted, and a cleaner will delete their files.

    Raises AcidFormatError for open ids unless the request says that this is so: one that was open
    when the list was taken may have committed after.
    """
    given = request.valid_write_ids
    if given is None:
        return ValidWriteIdList(table=table, high_watermark=highest)
    if given.open_ids and not request.is_open_aborted:
        ids = ", ".join(map(str, given.open_ids))
        raise AcidFormatError(
            f"write ids {ids} were open when the list was taken. If they committed later, give a "
            "list that says so; if they never did, --open-as-aborted, and their rows are deleted",
            request.location,
        )
    return ValidWriteIdList(
        table=table,
        high_watermark=given.high_watermark,
        aborted_ids=(*given.aborted_ids, *given.open_ids),
    )


def _refuse_older_list(
    request: AdoptionRequest, write_ids: ValidWriteIdList, highest: WriteId
) -> None:
    """Raises AcidFormatError for a list that ends below a directory. Such writes may be committed,
    so they must not be cleaned as aborted; and the next writer would get such a number, so that
    its commit would show their rows."""
    if highest > write_ids.high_watermark:
        raise AcidFormatError(
            f"there are directories up to write id {highest}, but --valid-write-ids ends at "
            f"{write_ids.high_watermark}: the list is older than the directory. Give one with the "
            f"high watermark {highest}, and name as aborted what must never be seen",
            request.location,
        )


def _relative(location: str, path: str) -> tuple[tuple[str, str], ...]:
    """``a=1/b=x`` below the table's directory, as pairs."""
    pairs = []
    for level in path.split("/") if path else ():
        key, separator, value = level.partition("=")
        if not separator or not key:
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
    """Of the newest file of those with most columns: ALTER TABLE ADD COLUMNS only appends."""
    known = [root.schema for root in roots if root.schema]
    if not known:
        raise AcidFormatError("no data file names the columns; give --columns", location)
    return max(known, key=lambda schema: (len(schema.columns), schema.write_id)).columns


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
        storage=_storage(request, columns, request.location),
        partition_columns=tuple(
            Column(name=key, type=request.partition_types.get(key, "string")) for key in keys
        ),
        parameters={
            TRANSACTIONAL: "true",
            TRANSACTIONAL_PROPERTIES: "default",
            BUCKETING_VERSION: "2",
        },
    )


def _storage(request: AdoptionRequest, columns: tuple[Column, ...], location: str) -> Storage:
    return Storage(
        columns=columns,
        location=location,
        input_format=ORC_INPUT_FORMAT,
        output_format=ORC_OUTPUT_FORMAT,
        serde=SerDe(library=ORC_SERDE, parameters={"serialization.format": "1"}),
        bucket_columns=request.bucket_columns,
        bucket_count=request.bucket_count,
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
            storage=_storage(request, table.storage.columns, root.location),
        )
        for root in sorted(roots, key=lambda root: root.path)
    )


def _with_aborts(
    table: Table,
    partitions: Sequence[Partition],
    roots: Sequence[RootFound],
    write_ids: ValidWriteIdList,
) -> tuple[str, ...]:
    locations = {
        root.location
        for root in roots
        for directory in root.listing.directories
        if write_ids.range_aborted(directory.name.min_write_id, directory.name.max_write_id)
        is not RangeResponse.NONE
    }
    return tuple(
        partition_name(table.partition_columns, partition.values)
        for partition in partitions
        if partition.storage.location in locations
    )
