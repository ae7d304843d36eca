"""Records of the catalog: databases, tables, partitions. Field by field what Hive stores.

Names of catalogs, databases, tables and columns are lower case. Times are seconds, as Hive's
catalog keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from hms_bridge.model.properties import (
    EXTERNAL,
    INSERT_ONLY,
    SOURCE_FOR,
    TRANSACTIONAL,
    TRANSACTIONAL_PROPERTIES,
    is_true,
)

DEFAULT_CATALOG = "hive"
DEFAULT_DATABASE = "default"
DEFAULT_PARTITION_VALUE = "__HIVE_DEFAULT_PARTITION__"

KEEP_FILES = "hms.bridge.keep.files"
"""Parameter of a table or partition that is made over files that are there: a DROP that has not
deleted them yet must not do so any more. It only asks: our server stores it in the event alone."""
WRITE_IDS_ABOVE = "hms.bridge.write.ids.above"
"""Parameter of a new table in its event alone: its write ids begin above this one, because its name
had those up to it before, or writers of a dropped table may still bring them."""
ORC_INPUT_FORMAT = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
ORC_OUTPUT_FORMAT = "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"
ORC_SERDE = "org.apache.hadoop.hive.ql.io.orc.OrcSerde"


def asks_to_keep(parameters: Mapping[str, str]) -> bool:
    """Whether files that are there already become the object's."""
    return parameters.get(KEEP_FILES, "").lower() == "true"


def stored_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    """What is stored of those of a client: neither a request, nor what only events say."""
    not_stored = (KEEP_FILES, WRITE_IDS_ABOVE)
    return {name: value for name, value in parameters.items() if name not in not_stored}


class PrincipalType(IntEnum):
    """Who owns an object; the number stands on the wire."""

    USER = 1
    ROLE = 2
    GROUP = 3


class TableType(StrEnum):
    """Hive's table types; the text is stored in TBLS.TBL_TYPE."""

    MANAGED_TABLE = "MANAGED_TABLE"
    EXTERNAL_TABLE = "EXTERNAL_TABLE"
    VIRTUAL_VIEW = "VIRTUAL_VIEW"
    MATERIALIZED_VIEW = "MATERIALIZED_VIEW"


@dataclass(frozen=True, kw_only=True, slots=True)
class Catalog:
    """A catalog: a set of databases."""

    name: str
    description: str | None = None
    location: str
    create_time: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SentFields:
    """How a client's object differed from its record: for its event.

    Hive puts objects into events as clients sent them, also what it does not store. ``others``:
    fields that a record does not hold, by their number, as texts. ``absent``: fields that a record
    always fills, but the client left out; those of an inner object with a dot.
    """

    others: Mapping[int, str] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class Database:
    """Names are stored in lower case. ``location`` is of external tables, ``managed_location`` of
    others; None: the default below the warehouse. ``create_time`` is in seconds since the epoch."""

    name: str
    catalog_name: str = DEFAULT_CATALOG
    description: str | None = None
    location: str | None = None
    managed_location: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    owner_name: str | None = None
    owner_type: PrincipalType | None = None
    create_time: int | None = None
    sent: SentFields | None = field(default=None, compare=False, repr=False)

    @property
    def is_replication_source(self) -> bool:
        """Whether replaced files must be archived (property ``repl.source.for``; Hive:
        ReplChangeManager.isSourceOfReplication, docs/hive/replication.md §1)."""
        return bool(self.parameters.get(SOURCE_FOR, "").strip())


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A column: Hive's FieldSchema. ``type`` is Hive's type text, e.g. ``decimal(10,2)``."""

    name: str
    type: str
    comment: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SortColumn:
    """One column of SORTED BY; 1 ascending, 0 descending."""

    name: str
    order: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class SerDe:
    """How rows are serialised."""

    name: str | None = None
    library: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    description: str | None = None
    serializer_class: str | None = None
    deserializer_class: str | None = None
    type: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Skew:
    """Skewed columns: names, value tuples, and where a value tuple has a directory of its own."""

    columns: tuple[str, ...] = ()
    values: tuple[tuple[str, ...], ...] = ()
    locations: Mapping[tuple[str, ...], str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Storage:
    """Hive's StorageDescriptor: columns, place and format."""

    columns: tuple[Column, ...] = ()
    location: str | None = None
    input_format: str | None = None
    output_format: str | None = None
    is_compressed: bool = False
    bucket_count: int = -1
    serde: SerDe = field(default_factory=SerDe)
    bucket_columns: tuple[str, ...] = ()
    sort_columns: tuple[SortColumn, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    skew: Skew = field(default_factory=Skew)
    is_stored_as_subdirectories: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceTable:
    """A table that a materialized view reads, and how many of its rows changed since the view was
    made or rebuilt."""

    table: Table
    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class CreationMetadata:
    """Of which tables, and of which state of them, a materialized view was made.

    ``snapshot`` is the text of the snapshot that its query saw. ``table_names`` are
    ``database.table``.
    """

    database_name: str
    table_name: str
    catalog_name: str = DEFAULT_CATALOG
    table_names: frozenset[str] = frozenset()
    snapshot: str | None = None
    materialized_ms: int | None = None
    sources: tuple[SourceTable, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table or view. ``id`` and ``write_id`` are set by the metastore.

    ``is_statistics_compliant`` is answered to a reader that names its snapshot.
    """

    name: str
    database_name: str
    catalog_name: str = DEFAULT_CATALOG
    owner: str | None = None
    owner_type: PrincipalType = PrincipalType.USER
    create_time: int = 0
    last_access_time: int = 0
    retention: int = 0
    storage: Storage = field(default_factory=Storage)
    partition_columns: tuple[Column, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    view_original_text: str | None = None
    view_expanded_text: str | None = None
    type: str = TableType.MANAGED_TABLE.value
    is_rewrite_enabled: bool = False
    is_temporary: bool = False
    write_id: int = -1
    id: int | None = None
    creation: CreationMetadata | None = None
    is_statistics_compliant: bool | None = None
    sent: SentFields | None = field(default=None, compare=False, repr=False)

    @property
    def full_name(self) -> str:
        """``database.table``, as write-id lists name it."""
        return f"{self.database_name}.{self.name}"

    @property
    def is_transactional(self) -> bool:
        """Whether the table is ACID (full or insert-only). The property's case does not count."""
        return is_true(self.parameters, TRANSACTIONAL)

    @property
    def is_in_txn_tables(self) -> bool:
        """Whether the tables of transactions name it: they have no column for the catalog."""
        return self.is_transactional and self.catalog_name == DEFAULT_CATALOG

    @property
    def is_insert_only(self) -> bool:
        """Whether the table is ACID without row identifiers."""
        return self.is_transactional and (
            self.parameters.get(TRANSACTIONAL_PROPERTIES, "").lower() == INSERT_ONLY
        )

    @property
    def is_full_acid(self) -> bool:
        """Whether rows have identifiers, so that UPDATE and DELETE work."""
        return self.is_transactional and not self.is_insert_only

    @property
    def is_external(self) -> bool:
        """Whether the files belong to someone else. Hive goes by the property
        (MetaStoreUtils.isExternalTable) and stores the type after it
        (ObjectStore.convertToMTable); what was stored by others may have only one of them."""
        return self.type == TableType.EXTERNAL_TABLE.value or is_true(self.parameters, EXTERNAL)

    @property
    def is_view(self) -> bool:
        """Whether it is a query by name, without files."""
        return self.type == TableType.VIRTUAL_VIEW.value

    @property
    def is_materialized_view(self) -> bool:
        """Whether it is a query whose rows are kept in files."""
        return self.type == TableType.MATERIALIZED_VIEW.value

    @property
    def is_any_view(self) -> bool:
        """Whether its rows come from other tables."""
        return self.is_view or self.is_materialized_view

    @property
    def is_partitioned(self) -> bool:
        """Whether the table has partition columns."""
        return bool(self.partition_columns)


@dataclass(frozen=True, kw_only=True, slots=True)
class Partition:
    """One partition. Its column list goes stale after ALTER TABLE (docs/hive/acid.md §20)."""

    values: tuple[str, ...]
    database_name: str
    table_name: str
    catalog_name: str = DEFAULT_CATALOG
    create_time: int = 0
    last_access_time: int = 0
    storage: Storage = field(default_factory=Storage)
    parameters: Mapping[str, str] = field(default_factory=dict)
    write_id: int = -1
    is_statistics_compliant: bool | None = None
    sent: SentFields | None = field(default=None, compare=False, repr=False)
