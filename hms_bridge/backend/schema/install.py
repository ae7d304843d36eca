"""Install Hive's schema into an empty database, and look at the schema of one that is in use."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import (
    Connection,
    Index,
    Inspector,
    Table,
    exists,
    insert,
    inspect,
    literal,
    select,
    text,
    union_all,
)
from sqlalchemy.exc import SQLAlchemyError

from hms_bridge.backend.engine import Database
from hms_bridge.backend.schema.all_tables import SEEDS, TABLES
from hms_bridge.backend.schema.data_steps import LOG_SEQUENCE, WRITE_LOG_SEQUENCE, AddSequence
from hms_bridge.backend.schema.exact_names import compare_exactly, loose_columns
from hms_bridge.backend.schema.meaning import MEANING, stated_meaning, why_unknown
from hms_bridge.backend.schema.shape import IndexShape
from hms_bridge.backend.schema.steps import DropIndex
from hms_bridge.backend.schema.txn_tables import VERSION
from hms_bridge.backend.schema.unused_tables import METASTORE_DB_PROPERTIES
from hms_bridge.backend.schema.versions import OURS, TARGETS, is_newer, is_old, version_number
from hms_bridge.errors import BackendError

_log = logging.getLogger(__name__)

SCHEMA_VERSION = "4.0.0"
"""The version of Hive's schema that :func:`install` makes; :mod:`upgrade` makes others of it."""

Present = Mapping[str | None, Sequence[str | None]]

_SQLITE_COLUMNS = text(
    "SELECT held.name, described.name "
    "FROM sqlite_master AS held, pragma_table_info(held.name) AS described "
    "WHERE held.type = 'table'"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class SchemaInfo:
    """What was found: ``version`` is None where no metastore schema is."""

    version: str | None
    missing_tables: tuple[str, ...]
    missing_columns: tuple[str, ...]
    has_all_tables: bool
    """Those of Hive's that nobody here uses, too."""
    loose_columns: tuple[str, ...] = ()
    """Where MySQL takes names of partitions for the same that differ in case (exact_names)."""
    meaning: str = str(MEANING)
    """Of our own tables (meaning)."""

    @property
    def is_complete(self) -> bool:
        """Whether everything that we use is there, as we need it."""
        lacking = self.missing_tables or self.missing_columns or self.loose_columns
        return self.version is not None and not lacking

    def next_step(self, init: str = "hms-bridge schema init") -> str | None:
        """What makes the database usable; None if it is. ``init``: the command that makes its
        schema, for who knows its URL."""
        if self.version is None:
            return f"there is no metastore schema; run: {init}"
        unusable = _why_unusable(self.version) or why_unknown(self.meaning)
        if unusable is not None:
            return unusable
        if self.missing_columns:
            return (
                f"columns of Hive's are missing: run 'hms-bridge schema upgrade --to "
                f"{self.version}', then '{init}'"
            )
        if self.missing_tables:
            return (
                f"run '{init}': it adds the missing tables and leaves the rows of all others as "
                "they are; a Hive metastore on the same database works on"
            )
        if self.loose_columns:
            return f"run '{init}': {_why_loose(self)}"
        return None


def install(database: Database) -> SchemaInfo:
    """Create what is missing of the schema, our indices on Hive's tables among it, its seed rows
    and its version; idempotent.

    Raises BackendError for a database that holds a schema which is too old, or newer than this
    program.
    """
    schema = schema_info(database)
    if schema.version is not None:
        refuse_unusable(schema.version, database.name)
    refuse_unknown(schema, database.name)
    with database.transaction(write=True) as connection:
        if not schema.has_all_tables:
            TABLES.create_all(connection)
        _add_indices(connection)
        compare_exactly(connection)
        put_seeds(connection)
    if schema.missing_tables:
        _log.info("%s: made %d tables of the schema", database.name, len(schema.missing_tables))
    return schema if schema.is_complete else check_schema(database)


def schema_info(database: Database) -> SchemaInfo:
    """Which version is there, and what of our tables and columns is not."""
    with database.transaction(write=False) as connection:
        columns_of = _columns_by_table(connection)
        existing = columns_of.keys()
        # MySQL may keep names in lower case, and finds them all the same; so did Hive before 4.0.
        known = {name.upper() for name in existing}
        version = stated_version(connection) if VERSION.name in known else None
        is_before_ours = is_old(version or SCHEMA_VERSION)
        loose = () if version is None or is_before_ours else loose_columns(connection)
        has_properties = METASTORE_DB_PROPERTIES.name in known and not is_before_ours
        meaning = stated_meaning(connection) if has_properties else str(MEANING)
        is_case_kept = connection.dialect.name == "postgresql" and not is_before_ours
    columns = _missing_columns(columns_of, version, is_case_kept=is_case_kept)
    used = {
        name
        for name, table in TABLES.tables.items()
        if version is None or is_before_ours or not table.info.get("is_unused")
    }
    present = existing if is_case_kept else known
    return SchemaInfo(
        version=version,
        missing_tables=tuple(sorted(used - present)),
        missing_columns=columns,
        has_all_tables=TABLES.tables.keys() <= present,
        loose_columns=tuple(column.name for column in loose),
        meaning=meaning,
    )


def check_schema(database: Database) -> SchemaInfo:
    """The schema, if it can be worked with.

    Raises BackendError if it is not there, too old, newer than this program, or incomplete.
    """
    schema = schema_info(database)
    if schema.version is None:
        raise BackendError(
            f"{database.name} holds no metastore schema; run 'hms-bridge schema init'"
        )
    refuse_unusable(schema.version, database.name)
    refuse_unknown(schema, database.name)
    if schema.is_complete:
        return schema
    ours = {name for name in TABLES.tables if name.startswith(OURS)}
    if not schema.missing_columns and ours == set(schema.missing_tables):
        raise BackendError(
            f"{database.name}: the database of a real Hive (schema {schema.version}), without "
            "tables of ours. Use its metastore: --metastore thrift://HOST:9083. Only if "
            "the database is to be ours, too, 'hms-bridge schema init' adds "
            f"{', '.join(schema.missing_tables[:2])} …"
        )
    if not schema.missing_columns and not schema.missing_tables:
        raise BackendError(f"{database.name}: run 'hms-bridge schema init': {_why_loose(schema)}")
    raise BackendError(
        f"{database.name}: schema {schema.version} lacks {_shorten(schema)}; 'hms-bridge schema "
        f"init' adds missing tables, 'hms-bridge schema upgrade --to {schema.version}' columns"
    )


def stated_version(connection: Connection) -> str | None:
    """What table VERSION says; None where it has no row. Raises BackendError for a table of that
    name that is another program's."""
    try:
        return connection.execute(
            select(VERSION.c.SCHEMA_VERSION).order_by(VERSION.c.VER_ID)
        ).scalar()
    except SQLAlchemyError as error:
        raise BackendError(
            f"table {VERSION.name} is there but is not Hive's: {error}; use a database of its own"
        ) from error


def refuse_unusable(version: str, name: str) -> None:
    """Raises BackendError for a version that hms-bridge does not work on."""
    unusable = _why_unusable(version)
    if unusable is not None:
        raise BackendError(
            f"{name} holds Hive's schema {version}; {unusable}; or use an empty database"
        )


def refuse_unknown(schema: SchemaInfo, name: str) -> None:
    """Raises BackendError where a newer release means tables of ours otherwise."""
    unknown = why_unknown(schema.meaning)
    if unknown is not None:
        raise BackendError(f"{name}: {unknown}")


def _why_unusable(version: str) -> str | None:
    """Whoever does not know what a later Hive keeps where would write what it takes for wrong."""
    if is_old(version):
        return (
            f"{SCHEMA_VERSION} or later is needed: run 'hms-bridge schema upgrade --to "
            f"{SCHEMA_VERSION}' (or a later one), then 'hms-bridge schema init'"
        )
    if is_newer(version):
        return (
            f"it is newer than this program, which knows up to {TARGETS[-1]}: take a release of "
            "hms-bridge that knows it"
        )
    return None


def _columns_by_table(connection: Connection) -> dict[str, frozenset[str]]:
    """As the database spells them. Every command looks, so SQLite is asked in one statement, where
    SQLAlchemy needs several for each table."""
    if connection.dialect.name != "sqlite":
        described = inspect(connection).get_multi_columns().items()
        return {
            name: frozenset(column["name"] for column in columns)
            for (_, name), columns in described
        }
    columns: defaultdict[str, set[str]] = defaultdict(set)
    for table, column in connection.execute(_SQLITE_COLUMNS).all():
        columns[table].add(column)
    return {table: frozenset(names) for table, names in columns.items()}


def _missing_columns(
    columns_of: Mapping[str, frozenset[str]], version: str | None, *, is_case_kept: bool
) -> tuple[str, ...]:
    """Of the tables that are there. A column with ``info["until"]`` is missed only in versions
    before that one."""

    def spelled(name: str) -> str:
        return name if is_case_kept else name.upper()

    at = version_number(version or SCHEMA_VERSION)
    have = {
        spelled(name): {spelled(column) for column in columns}
        for name, columns in columns_of.items()
    }
    return tuple(
        f"{table.name}.{column.name}"
        for table in TABLES.sorted_tables
        if table.name in have
        for column in table.columns
        if not table.info.get("is_unused")
        and column.name not in have[table.name]
        and not ("until" in column.info and at >= version_number(column.info["until"]))
    )


def put_seeds(connection: Connection) -> None:
    """Put the first rows into tables that have none."""
    rows = (
        *SEEDS,
        (
            VERSION,
            {
                "VER_ID": 1,
                "SCHEMA_VERSION": SCHEMA_VERSION,
                "VERSION_COMMENT": f"Hive release version {SCHEMA_VERSION}",
            },
        ),
    )
    tables = {table.name: table for table, _ in rows}
    filled = (
        connection.execute(
            union_all(
                *(
                    select(literal(name)).where(exists(select(1).select_from(table)))
                    for name, table in tables.items()
                )
            )
        )
        .scalars()
        .all()
    )
    for table, row in rows:
        if table.name not in filled:
            connection.execute(insert(table).values(row))
    for name in (LOG_SEQUENCE, WRITE_LOG_SEQUENCE):
        for statement in AddSequence(name).statements(connection.dialect):
            connection.execute(text(statement))


def lacking_indices(database: Database) -> tuple[str, ...]:
    """Indices of ours that an installation adds to tables which are there, as ``INDEX of TABLE``:
    who writes to such a table waits meanwhile."""
    with database.transaction(write=False) as connection:
        inspector = inspect(connection)
        present = {name.upper() for name in inspector.get_table_names()}
        return tuple(
            f"{index.name} of {table.name}"
            for table in TABLES.sorted_tables
            if table.name in present and not table.name.startswith(OURS)
            for index in _lacking(table, _indices_of(table, inspector), connection.dialect.name)
        )


def _add_indices(connection: Connection) -> None:
    """Make those of our indices that tables in use lack; nothing where another serves as well. One
    that an earlier version made, and none describes any more, goes."""
    inspector = inspect(connection)
    for table in TABLES.sorted_tables:
        added = {index.name for index in table.indexes if index.info.get("is_added")}
        if not added:
            continue
        present = _indices_of(table, inspector)
        for index in _lacking(table, present, connection.dialect.name):
            index.create(connection)
        for name, names in present.items():
            if (name or "").startswith(OURS) and name not in added:
                shape = IndexShape(name=str(name), columns=tuple(map(str, names)))
                for statement in DropIndex(table.name, shape).statements(connection.dialect):
                    connection.execute(text(statement))


def _indices_of(table: Table, inspector: Inspector) -> Present:
    """What each index is over, by name."""
    return {index["name"]: index["column_names"] for index in inspector.get_indexes(table.name)}


def _lacking(table: Table, present: Present, dialect: str) -> list[Index]:
    ours = (index for index in table.indexes if index.info.get("is_added"))
    return [index for index in ours if not _is_served(index, present, dialect)]


def _is_served(index: Index, present: Present, dialect: str) -> bool:
    """Whether one of the indices that are there is this one, or serves as well."""
    only_in = index.info.get("dialect")
    if only_in is not None:
        return index.name in present or only_in != dialect
    wanted = [column.name for column in index.columns]
    return any(names[: len(wanted)] == wanted for names in present.values())


def _why_loose(schema: SchemaInfo) -> str:
    return (
        f"{', '.join(schema.loose_columns)} take partitions for the same whose names differ in "
        "case, and rows of aborted transactions would be seen; it lets them be compared exactly"
    )


def _shorten(schema: SchemaInfo) -> str:
    lacking = (*schema.missing_tables, *schema.missing_columns)
    shown = ", ".join(lacking[:8])
    return shown if len(lacking) <= 8 else f"{shown} and {len(lacking) - 8} more"
