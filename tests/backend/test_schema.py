from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from sqlalchemy import Column, Index, Integer, Table, inspect, select, text, update
from sqlalchemy.dialects import postgresql

from hms_bridge.backend.engine import Database, open_database
from hms_bridge.backend.schema import meaning, txn_tables
from hms_bridge.backend.schema.all_tables import TABLES
from hms_bridge.backend.schema.install import (
    check_schema,
    install,
    schema_info,
)
from hms_bridge.backend.schema.notification_tables import NOTIFICATION_LOG
from hms_bridge.backend.schema.shape import IndexShape
from hms_bridge.backend.schema.steps import AddIndex
from hms_bridge.backend.schema.txn_tables import MIN_HISTORY_LEVEL, TXNS, VERSION
from hms_bridge.backend.schema.unused_tables import METASTORE_DB_PROPERTIES
from hms_bridge.backend.schema.versions import version_number
from hms_bridge.errors import BackendError
from hms_bridge.service.schema import tables_to_make
from tests.support.added_indexes import added_indexes
from tests.support.golden import golden_roots
from tests.support.rules import holds_for

HIVE_NAMES = {
    "BIGINT": "bigint",
    "BIGSERIAL": "bigint",
    "INTEGER": "integer",
    "SMALLINT": "smallint",
    "BOOLEAN": "boolean",
    "TEXT": "text",
    "BYTEA": "bytea",
    "FLOAT": "double precision",
    "DOUBLE PRECISION": "double precision",
    "TIMESTAMP WITHOUT TIME ZONE": "timestamp without time zone",
}
OURS = "HMSB_"


def _golden() -> dict[str, dict[str, dict[str, str]]]:
    name = "schema-columns-4.0.1.tsv"
    root = next(root for root in golden_roots("wire") if (root / name).exists())
    tables: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    with (root / name).open() as stream:
        for row in csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE):
            tables[row["table"]][row["column"]] = row
    return tables


GOLDEN = _golden()
HIVE_TABLES = [table for table in TABLES.sorted_tables if not table.name.startswith(OURS)]
TXN_TABLES = [one for one in vars(txn_tables).values() if isinstance(one, Table)]


def _type(column: object) -> str:
    written = column.type.compile(dialect=postgresql.dialect())  # type: ignore[attr-defined]
    if written.startswith("VARCHAR"):
        return written.replace("VARCHAR", "character varying")
    if written.startswith("CHAR"):
        return written.replace("CHAR", "character")
    return HIVE_NAMES[written]


@pytest.mark.golden
@holds_for(HIVE_TABLES)
def test_tables_are_hives(table: Table) -> None:
    hive = GOLDEN[table.name]
    assert [column.name for column in table.columns if column.name not in hive] == []
    assert [name for name in hive if name not in table.columns] == []
    for column in table.columns:
        wanted = hive[column.name]
        assert _type(column) == wanted["type"], column
        assert column.nullable is (wanted["nullable"] == "YES"), column
    keys = sorted((row["pk"], name) for name, row in hive.items() if row["pk"])
    assert [column.name for column in table.primary_key.columns] == [name for _, name in keys]


@pytest.mark.golden
def test_every_table_of_hive_is_made() -> None:
    """Else its version is a claim that Hive's schematool finds to be wrong."""
    assert {table.name for table in HIVE_TABLES} == set(GOLDEN)


def test_tables_that_only_hive_uses_are_not_missed(database: Database) -> None:
    unused = [table for table in TABLES.sorted_tables if table.info.get("is_unused")]
    with database.transaction(write=True) as connection:
        TABLES.drop_all(connection, tables=unused)
    try:
        assert check_schema(database).missing_tables == ()
    finally:
        install(database)
    with database.transaction(write=False) as connection:
        assert {table.name for table in unused} <= set(inspect(connection).get_table_names())


@pytest.mark.golden
@pytest.mark.parametrize("table", TXN_TABLES, ids=lambda table: table.name)
def test_indexes_of_hive_are_there(table: Table) -> None:
    wanted: dict[str, set[str]] = defaultdict(set)
    for name, row in GOLDEN[table.name].items():
        for index in filter(None, row["indexes"].split(",")):
            wanted[index.removesuffix("(u)").upper()].add(name)
    unique = [
        frozenset(column.name for column in constraint.columns)
        for constraint in table.constraints
        if constraint is not table.primary_key and hasattr(constraint, "columns")
    ]
    have = {frozenset(column.name for column in index.columns) for index in table.indexes}
    for index, columns in wanted.items():
        is_covered = frozenset(columns) in have or frozenset(columns) in unique
        is_key_prefix = columns <= {column.name for column in table.primary_key.columns}
        assert is_covered or is_key_prefix, f"{table.name}: index {index} on {columns}"


def _is_number(columns: Iterable[Column[Any]]) -> bool:
    return [isinstance(column.type, Integer) for column in columns] == [True]


def test_a_number_that_is_the_key_needs_no_index_in_a_file() -> None:
    """SQLite finds rows by it as they lie; else each transaction writes a page more."""
    database = open_database("sqlite://")
    install(database)
    tables = [table for table in TABLES.sorted_tables if _is_number(table.primary_key.columns)]
    assert {TXNS, NOTIFICATION_LOG, MIN_HISTORY_LEVEL} <= set(tables)
    with database.transaction(write=False) as connection:
        for table in tables:
            # One that is the row's own number is no key of an index, not even of an automatic one.
            indexes = connection.execute(
                text("SELECT origin FROM pragma_index_list(:name)"), {"name": table.name}
            )
            assert "pk" not in set(indexes.scalars()), table.name
    database.close()


def test_installing_twice_changes_nothing(database: Database) -> None:
    with database.transaction(write=False) as connection:
        before = connection.execute(select(TXNS)).all()
    info = install(database)
    assert info.is_complete
    assert info.version == "4.0.0"
    with database.transaction(write=False) as connection:
        assert connection.execute(select(TXNS)).all() == before
        assert [row.TXN_ID for row in before] == [0]


def _indices(database: Database, table: str) -> dict[str | None, list[str | None]]:
    with database.transaction(write=False) as connection:
        found = inspect(connection).get_indexes(table)
    return {index["name"]: index["column_names"] for index in found}


@pytest.mark.parametrize("index", added_indexes(), ids=lambda index: index.name)
def test_an_index_that_hive_lacks_is_made_on_a_table_in_use(
    database: Database, index: Index
) -> None:
    assert index.table is not None
    assert str(index.name).startswith(OURS), "an upgrade of Hive's may make one of any other name"
    if database.engine.dialect.name == "mysql" and index.columns[0].foreign_keys:
        pytest.skip("InnoDB has one for its foreign keys")
    if index.info.get("dialect", database.engine.dialect.name) != database.engine.dialect.name:
        assert index.name not in _indices(database, index.table.name), "Hive's own serves as well"
        return
    columns = [column.name for column in index.columns]
    with database.transaction(write=True) as connection:
        index.drop(connection)
    assert index.name not in _indices(database, index.table.name)
    install(database)
    assert _indices(database, index.table.name)[index.name] == columns


def test_an_index_of_ours_that_none_describes_any_more_goes(database: Database) -> None:
    before = _indices(database, "HIVE_LOCKS")
    with database.transaction(write=True) as connection:
        for name in ("HMSB_LOCKS_OF_TABLE", "SOMEBODYS_INDEX"):
            index = IndexShape(name=name, columns=("HL_DB", "HL_TABLE"))
            for statement in AddIndex("HIVE_LOCKS", index).statements(connection.dialect):
                connection.execute(text(statement))
    install(database)
    after = _indices(database, "HIVE_LOCKS")
    assert after.keys() - before.keys() == {"SOMEBODYS_INDEX"}


def test_no_second_index_is_made_where_one_serves(database: Database) -> None:
    (ours,) = [index for index in added_indexes() if index.table is TXNS]
    hives = Index("TXN_STATE_IDX", TXNS.c.TXN_STATE, TXNS.c.TXN_ID, unique=True)  # of 4.1
    TXNS.indexes.remove(hives)
    with database.transaction(write=True) as connection:
        ours.drop(connection)
        hives.create(connection)
    install(database)
    try:
        assert ours.name not in _indices(database, "TXNS")
    finally:
        with database.transaction(write=True) as connection:
            hives.drop(connection)
        install(database)


@pytest.fixture
def empty() -> Iterator[Database]:
    opened = open_database("sqlite://")
    yield opened
    opened.close()


def test_an_empty_database(empty: Database) -> None:
    info = schema_info(empty)
    assert info.version is None
    assert not info.is_complete
    assert set(info.missing_tables) == set(TABLES.tables)
    with pytest.raises(BackendError, match="holds no metastore schema; run 'hms-bridge schema"):
        check_schema(empty)


@pytest.mark.parametrize("version", ["3.1.0", "2.3.0", "0.13", "x"])
def test_an_old_schema_is_refused_and_left_alone(empty: Database, version: str) -> None:
    with empty.transaction(write=True) as connection:
        VERSION.create(connection)
        row = {"VER_ID": 1, "SCHEMA_VERSION": version, "VERSION_COMMENT": ""}
        connection.execute(VERSION.insert().values(row))
    for look in (install, check_schema):
        with pytest.raises(BackendError, match=f"schema {version}; 4.0.0 or later is needed"):
            look(empty)
    assert len(schema_info(empty).missing_tables) == len(TABLES.tables) - 1


@pytest.mark.parametrize("version", ["4.0.0", "4.1.0", "4.2.0-SNAPSHOT", "4.2.7"])
def test_later_schemas_are_welcome(empty: Database, version: str) -> None:
    install(empty)
    with empty.transaction(write=True) as connection:
        connection.execute(update(VERSION).values(SCHEMA_VERSION=version))
    assert check_schema(empty).version == version


@pytest.mark.parametrize("version", ["4.3.0", "4.3.0-SNAPSHOT", "5.0.0"])
def test_a_schema_that_is_newer_than_the_program_is_refused(empty: Database, version: str) -> None:
    install(empty)
    with empty.transaction(write=True) as connection:
        connection.execute(update(VERSION).values(SCHEMA_VERSION=version))
    for look in (install, check_schema):
        with pytest.raises(BackendError, match=f"schema {version}; it is newer than this program"):
            look(empty)
    assert "take a release of hms-bridge that knows it" in (schema_info(empty).next_step() or "")


@pytest.mark.parametrize(
    ("stated", "is_known"), [(None, True), ("1", True), ("2", False), ("10", False), ("1b", False)]
)
def test_tables_of_ours_that_a_newer_release_means_otherwise_are_left_alone(
    empty: Database, stated: str | None, is_known: bool
) -> None:
    install(empty)
    if stated is not None:
        row = {"PROPERTY_KEY": meaning.KEY, "PROPERTY_VALUE": stated}
        with empty.transaction(write=True) as connection:
            connection.execute(METASTORE_DB_PROPERTIES.insert().values(row))
    if is_known:
        assert (install(empty).meaning, check_schema(empty).meaning) == ("1", "1")
        return
    looks: list[Callable[[Database], object]] = [
        install, check_schema, lambda database: tables_to_make(database, None),
    ]  # fmt: skip
    for look in looks:
        with pytest.raises(BackendError, match=f"number {stated}; this program knows 1"):
            look(empty)
    assert "take that release or a later one" in (schema_info(empty).next_step() or "")


def test_what_is_missing_is_named(empty: Database) -> None:
    install(empty)
    with empty.transaction(write=True) as connection:
        connection.execute(text('DROP TABLE "WRITE_SET"'))
        connection.execute(text('ALTER TABLE "COMPACTION_QUEUE" DROP COLUMN "CQ_POOL_NAME"'))
    info = schema_info(empty)
    assert info.missing_tables == ("WRITE_SET",)
    assert info.missing_columns == ("COMPACTION_QUEUE.CQ_POOL_NAME",)
    with pytest.raises(BackendError, match=r"lacks WRITE_SET, COMPACTION_QUEUE\.CQ_POOL_NAME"):
        check_schema(empty)


def test_what_only_hive_uses_is_made_again(empty: Database) -> None:
    """Nothing of ours misses it, so it does not stop us; an installation adds it all the same."""
    install(empty)
    unused = next(table for table in TABLES.sorted_tables if table.info.get("is_unused"))
    with empty.transaction(write=True) as connection:
        unused.drop(connection)
    assert check_schema(empty).is_complete
    install(empty)
    with empty.transaction(write=False) as connection:
        assert inspect(connection).has_table(unused.name)


@pytest.mark.parametrize(
    ("version", "dropped", "step"),
    [
        ("4.0.0", None, None),
        ("4.2.0", "table", "run 'hms-bridge schema init': it adds the missing tables"),
        ("4.2.0", "column", "columns of Hive's are missing"),
        (
            "3.1.0",
            None,
            "schema upgrade --to 4.0.0' (or a later one), then 'hms-bridge schema init'",
        ),
    ],
)
def test_the_next_step_is_told(
    empty: Database, version: str, dropped: str | None, step: str | None
) -> None:
    install(empty)
    with empty.transaction(write=True) as connection:
        connection.execute(update(VERSION).values(SCHEMA_VERSION=version))
        if dropped == "column":
            connection.execute(text('ALTER TABLE "COMPACTION_QUEUE" DROP COLUMN "CQ_POOL_NAME"'))
        elif dropped:
            connection.execute(text(f'DROP TABLE "{_one_of_ours()}"'))
    found = schema_info(empty).next_step()
    assert found is None if step is None else step in (found or "")


def _one_of_ours() -> str:
    return next(name for name in TABLES.tables if name.startswith(OURS))


def test_an_empty_database_is_to_be_made(empty: Database) -> None:
    assert schema_info(empty).next_step() == (
        "there is no metastore schema; run: hms-bridge schema init"
    )


def test_old_names_in_lower_case_are_not_missed(empty: Database) -> None:
    """As Hive 3.1 has them on PostgreSQL, and MySQL may keep them."""
    with empty.transaction(write=True) as connection:
        VERSION.create(connection)
        row = {"VER_ID": 1, "SCHEMA_VERSION": "3.1.0", "VERSION_COMMENT": ""}
        connection.execute(VERSION.insert().values(row))
        connection.execute(text("CREATE TABLE txns (txn_id INTEGER, txn_state TEXT)"))
    info = schema_info(empty)
    assert "TXNS" not in info.missing_tables
    assert "TXNS.TXN_ID" not in info.missing_columns
    assert "TXNS.TXN_TYPE" in info.missing_columns


def test_another_table_of_that_name(empty: Database) -> None:
    with empty.transaction(write=True) as connection:
        connection.execute(text('CREATE TABLE "VERSION" (number INTEGER)'))
    with pytest.raises(BackendError, match="is not Hive's"):
        schema_info(empty)


def test_other_tables_do_not_matter(database: Database) -> None:
    with database.transaction(write=False) as connection:
        assert inspect(connection).has_table("TXNS")
    assert schema_info(database).is_complete


@pytest.mark.parametrize(
    ("version", "number"), [("4.1.0", (4, 1, 0)), ("4.2.0-beta-1", (4, 2, 0)), ("x", ()), ("", ())]
)
def test_version_numbers(version: str, number: tuple[int, ...]) -> None:
    assert version_number(version) == number
