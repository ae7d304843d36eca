"""What Hive made in the database can be dropped and changed through us, and nothing is left."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from hms_bridge.backend.schema.all_tables import TABLES
from hms_bridge.config.settings import Settings
from hms_bridge.connect import connected, install_schema
from hms_bridge.model.catalog import Column, Database, Partition, Storage, Table
from integration.comparison.cases import ACID
from integration.referees.beside import Beside
from integration.referees.errors import StatementError
from integration.referees.hive_schema import HiveSchemas
from integration.referees.postgresql import Database as Store
from integration.referees.postgresql import PostgreSql

NUMBERS = itertools.count(1000)

# Foreign keys that our tables do not have, and why what they refer to can be deleted all the same.
ELSEWHERE = {
    ("DBS", "CTLG_NAME"): "a catalog with databases is not dropped",
    ("WM_RESOURCEPLAN", "DEFAULT_POOL_ID"): "emptied before the pools of a plan are deleted",
    ("CATALOG_PARAMS", "CTLG_ID"): "since 4.2: deleted with its catalog by the database",
}
FOREIGN_KEYS = """
    select c.conrelid::regclass::text as child, a.attname as "column",
           c.confrelid::regclass::text as parent
    from pg_constraint c join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
    where c.contype = 'f'
"""
NEEDED = """
    select column_name as name, data_type as type from information_schema.columns
    where table_name = %s and is_nullable = 'NO' and column_default is null
"""


@dataclass(frozen=True)
class Reference:
    """A foreign key: rows of `child` name a row of `parent`."""

    child: str
    column: str
    parent: str


def _references(store: Store) -> list[Reference]:
    rows = store.query(FOREIGN_KEYS)
    return sorted(
        (
            Reference(*(row[key].strip('"') for key in ("child", "column", "parent")))
            for row in rows
        ),
        key=str,
    )


def _insert(store: Store, references: list[Reference], table: str, **given: int) -> None:
    """A row with what must be there; rows that it needs are made too."""
    number = next(NUMBERS)
    values: dict[str, object] = dict(given)
    parents = {one.column: one for one in references if one.child == table}
    for row in store.query(NEEDED, table):
        name = row["name"]
        if name in values:
            continue
        if name in parents:
            values[name] = next(NUMBERS)
            parent = parents[name].parent
            (key,) = TABLES.tables[parent].primary_key.columns
            _insert(store, references, parent, **{key.name: int(str(values[name]))})
        elif row["type"] == "boolean":
            values[name] = False
        elif row["type"] in ("bigint", "integer", "smallint"):
            values[name] = number
        else:
            values[name] = f"x{number}"
    names = ", ".join(f'"{name}"' for name in values)
    texts = ", ".join(
        f"'{value}'" if isinstance(value, str) else str(value).lower() for value in values.values()
    )
    store.execute(f'insert into "{table}" ({names}) values ({texts})')


@pytest.mark.parametrize("version", ["4.0.1", "4.2.0"])
def test_every_foreign_key_of_hive_is_known(
    postgresql: PostgreSql, hive_schemas: HiveSchemas, version: str
) -> None:
    """What refers to a row is deleted before it, so each reference of Hive's has to be known."""
    found = _references(hive_schemas.database(version, "foreign_keys"))
    assert len(found) >= 50, postgresql.version
    ours = {
        Reference(table.name, key.parent.name, key.column.table.name)
        for table in TABLES.sorted_tables
        for key in table.foreign_keys
    }
    unknown = {(one.child, one.column) for one in found if one not in ours}
    assert unknown == {key for key in ELSEWHERE if key[0] != "CATALOG_PARAMS" or version == "4.2.0"}


@pytest.mark.parametrize("version", ["4.0.1", "4.2.0"])
def test_rows_that_hold_a_database_go_with_it(
    postgresql: PostgreSql, hive_schemas: HiveSchemas, version: str
) -> None:
    """A row in every table that refers to databases, tables or partitions, then a drop."""
    store = hive_schemas.database(version, "held")
    assert postgresql.port == store.port
    references = _references(store)
    install_schema(store.sqlalchemy_url, Settings())
    with connected(store.sqlalchemy_url) as metastore:
        metastore.create_database(Database(name="held"))
        column = Column(name="id", type="int")
        key = Column(name="p", type="int")
        table = Table(
            name="t",
            database_name="held",
            storage=Storage(columns=(column,)),
            partition_columns=(key,),
        )
        metastore.create_table(table)
        one = Partition(database_name="held", table_name="t", values=("1",), storage=table.storage)
        metastore.add_partitions("held", "t", [one])
        held = {
            parent: int(store.query(f'select max("{key_name}") as k from "{parent}"')[0]["k"])
            for parent, key_name in (
                ("DBS", "DB_ID"),
                ("TBLS", "TBL_ID"),
                ("PARTITIONS", "PART_ID"),
            )
        }
        before = {one.child: _count(store, one.child) for one in references}
        holders = [
            one
            for one in references
            if one.parent in held and one.child not in ("TBLS", "PARTITIONS", *_OURS_MAKES)
        ]
        for one in holders:
            _insert(store, references, one.child, **{one.column: held[one.parent]})
        assert {one.child for one in holders} >= {
            "TBL_PRIVS",
            "FUNCS",
            "I_SCHEMA",
            "MV_TABLES_USED",
        }
        with pytest.raises(Exception, match="One or more tables exist"):
            metastore.drop_database("held")
        metastore.drop_database("held", is_cascade=True)
    left = {one.child: _count(store, one.child) for one in holders}
    assert left == {name: before[name] for name in left}


# Rows of these are there already, because the table and the partition have parameters and columns.
_OURS_MAKES = ("TABLE_PARAMS", "PARTITION_PARAMS", "PARTITION_KEYS", "PARTITION_KEY_VALS")


def _count(store: Store, table: str) -> int:
    return int(store.query(f'select count(*) as n from "{table}"')[0]["n"])


MADE_BY_HIVE = (
    "create table {0}.parent (id int, v string, primary key (id) disable novalidate rely)",
    "create table {0}.t (id int not null disable, v string default 'x', w int, "
    "primary key (id) disable novalidate rely, unique (v) disable novalidate, "
    "constraint {0}_fk foreign key (w) references {0}.parent(id) disable novalidate rely) " + ACID,
    "create table {0}.p (id int, v string) partitioned by (d string) " + ACID,
    "insert into {0}.t values (1, 'a', 1), (2, 'b', 2)",
    "insert into {0}.p partition (d) values (1, 'a', 'x'), (2, 'b', 'y')",
    "analyze table {0}.t compute statistics for columns",
    "analyze table {0}.p partition (d) compute statistics for columns",
    "create external table {0}.e (id int) stored as orc",
    "create view {0}.seen as select * from {0}.t",
    "create materialized view {0}.kept as select id, count(*) as n from {0}.p group by id",
    "create function {0}.again as 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFUpper'",
)
# What drops leave is compared in these; the rest is history, sequences and transactions.
COMPARED = (
    "BUCKETING_COLS", "CDS", "COLUMNS_V2", "DATABASE_PARAMS", "DBS", "DB_PRIVS", "FUNCS", "FUNC_RU",
    "KEY_CONSTRAINTS", "MV_CREATION_METADATA", "MV_TABLES_USED", "PARTITIONS", "PARTITION_KEYS",
    "PARTITION_KEY_VALS", "PARTITION_PARAMS", "PART_COL_PRIVS", "PART_COL_STATS", "PART_PRIVS",
    "SDS", "SD_PARAMS", "SERDES", "SERDE_PARAMS", "SORT_COLS", "TABLE_PARAMS", "TAB_COL_STATS",
    "TBLS", "TBL_COL_PRIVS", "TBL_PRIVS",
)  # fmt: skip


@pytest.fixture
def before(hive42_beside: Beside) -> dict[str, int]:
    """Rows of each table before `made`; other cases may have left theirs."""
    return _counts(hive42_beside)


@pytest.fixture
def made(hive42_beside: Beside, before: dict[str, int]) -> Iterator[str]:
    """A database that Hive filled."""
    name = f"made_{next(NUMBERS)}"
    hive = hive42_beside.hive.main
    hive.sql(f"create database {name}")
    for statement in MADE_BY_HIVE:
        hive.sql(statement.format(name))
    yield name
    hive.sql(f"drop database if exists {name} cascade")


def _counts(beside: Beside) -> dict[str, int]:
    return {table: beside.count(table) for table in COMPARED}


def test_a_database_that_hive_filled_is_dropped_without_a_trace(
    hive42_beside: Beside, before: dict[str, int], made: str
) -> None:
    with_it = _counts(hive42_beside)
    filled = ("TBL_PRIVS", "KEY_CONSTRAINTS", "FUNCS", "PART_COL_STATS", "DBS")
    assert all(with_it[name] > before[name] for name in filled)
    hive42_beside.on_ours.sql(f"drop database {made} cascade")
    assert (made,) not in hive42_beside.hive.main.sql("show databases")
    assert _counts(hive42_beside) == before


def test_single_things_that_hive_made_are_dropped(hive42_beside: Beside, made: str) -> None:
    ours = hive42_beside.on_ours
    with connected(hive42_beside.store.sqlalchemy_url, hive42_beside.settings) as metastore:
        metastore.drop_partitions(made, "p", ["d=x"])
    assert hive42_beside.hive.main.sql(f"show partitions {made}.p") == [("d=y",)]
    with pytest.raises(
        StatementError, match=f"used in the following materialized views.*{made}.kept"
    ):
        ours.sql(f"drop table {made}.p")
    ours.sql(f"drop materialized view {made}.kept")
    for name in ("p", "t", "parent", "e"):
        ours.sql(f"drop table {made}.{name}")
    ours.sql(f"drop view {made}.seen")
    with pytest.raises(StatementError, match="One or more functions exist"):
        ours.sql(f"drop database {made}")
    assert hive42_beside.count("KEY_CONSTRAINTS") == 0
    assert hive42_beside.count("MV_CREATION_METADATA") == 0


def test_constraints_follow_their_table(hive42_beside: Beside, made: str) -> None:
    """Hive still tells them of a table that was renamed and got other columns through us."""
    hive = hive42_beside.hive.main
    with connected(hive42_beside.store.sqlalchemy_url, hive42_beside.settings) as metastore:
        table = metastore.get_table(made, "t")
        columns = table.storage.columns
        others = (Column(name="other", type="string"), columns[2], Column(name="n", type="int"))
        wanted = (columns[0], *others)
        storage = replace(table.storage, columns=wanted)
        (seen,) = metastore.get_valid_write_ids([table.full_name])
        # Statistics of v go with it, and whoever changes statistics tells what it has seen.
        changed = replace(table, name="moved", storage=storage)
        metastore.alter_table(made, "t", changed, valid_write_ids=seen.format())
    told = " ".join(" ".join(row) for row in hive.sql(f"describe formatted {made}.moved"))
    assert "Primary Key" in told
    assert f"{made}_fk" in told
    assert "Unique Constraints" not in told, "its column v is gone"
