"""What Hive keeps beside tables and databases goes with them, or stands in their way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table as SqlTable
from sqlalchemy import func, select

from hms_bridge.backend.schema import dependent_tables as d
from hms_bridge.backend.schema.catalog_tables import DBS, SDS, TAB_COL_STATS, TBLS
from hms_bridge.backend.schema.function_tables import FUNC_RU, FUNCS
from hms_bridge.backend.schema.privilege_tables import (
    DB_PRIVS,
    PART_PRIVS,
    TBL_COL_PRIVS,
    TBL_PRIVS,
)
from hms_bridge.catalog.constraints import ColumnChange
from hms_bridge.errors import InvalidOperationError, MetaError
from hms_bridge.model.catalog import Column, Partition, Storage, Table, TableType
from tests.support.world import World

A, B, C = (Column(name=name, type="int") for name in "abc")
GRANT = {"CREATE_TIME": 1, "GRANT_OPTION": 0}


class HiveWorld(World):
    """A metastore, and its database for what Hive would have written."""

    def table(self, name: str, kind: TableType = TableType.MANAGED_TABLE, **more: Any) -> int:
        """A new table; its TBL_ID."""
        self.metastore.create_table(
            Table(
                name=name, database_name="db", type=kind.value,
                storage=Storage(columns=(A, B, C)), **more,
            )
        )  # fmt: skip
        return self.scalar(select(TBLS.c.TBL_ID).where(name == TBLS.c.TBL_NAME))

    def scalar(self, query: Any) -> int:
        """One number."""
        with self.engine.transaction(write=False) as connection:
            return int(connection.execute(query).scalar_one())

    def count(self, table: SqlTable) -> int:
        """How many rows a table has."""
        return self.scalar(select(func.count()).select_from(table))

    def constraint(self, table_id: int, name: str, place: int, **more: Any) -> None:
        """A constraint on one column."""
        column_list = self.scalar(select(func.min(_column_list_of(table_id))))
        values = {
            "PARENT_TBL_ID": table_id, "PARENT_CD_ID": column_list, "PARENT_INTEGER_IDX": place,
            "CONSTRAINT_NAME": name, "POSITION": 1, "CONSTRAINT_TYPE": 0,
            "ENABLE_VALIDATE_RELY": 0,
        }  # fmt: skip
        self.put(d.KEY_CONSTRAINTS, **(values | more))

    def constraints(self) -> dict[str, int]:
        """Name → place of its column."""
        rows = self.records(d.KEY_CONSTRAINTS)
        return {row["CONSTRAINT_NAME"]: row["PARENT_INTEGER_IDX"] for row in rows}


def _column_list_of(table_id: int) -> Any:
    return (
        select(SDS.c.CD_ID)
        .join(TBLS, TBLS.c.SD_ID == SDS.c.SD_ID)
        .where(table_id == TBLS.c.TBL_ID)
        .scalar_subquery()
    )


@pytest.fixture
def world(tmp_path: Path) -> HiveWorld:
    return HiveWorld(tmp_path)


def test_a_table_goes_with_its_privileges_and_statistics(world: HiveWorld) -> None:
    key = world.table("t", partition_columns=(Column(name="p", type="int"),))
    one = Partition(database_name="db", table_name="t", values=("1",))
    world.metastore.add_partitions("db", "t", [one])
    world.put(TBL_PRIVS, TBL_GRANT_ID=1, TBL_ID=key, **GRANT)
    world.put(TBL_COL_PRIVS, TBL_COLUMN_GRANT_ID=1, TBL_ID=key, **GRANT)
    world.put(PART_PRIVS, PART_GRANT_ID=1, PART_ID=1, **GRANT)
    world.metastore.drop_table("db", "t")
    for table in (TBL_PRIVS, TBL_COL_PRIVS, PART_PRIVS):
        assert world.count(table) == 0


def test_constraints_go_with_either_table(world: HiveWorld) -> None:
    parent, child = world.table("parent"), world.table("child")
    world.constraint(parent, "pk", 0)
    world.constraint(parent, "fk", 0, CHILD_TBL_ID=child, POSITION=2)
    world.metastore.drop_table("db", "child")
    assert world.constraints() == {"pk": 0}
    world.metastore.drop_table("db", "parent")
    assert world.constraints() == {}


def test_constraints_follow_their_columns(world: HiveWorld) -> None:
    key = world.table("t")
    for name, place in (("of_a", 0), ("of_b", 1), ("of_c", 2)):
        world.constraint(key, name, place)
    table = world.metastore.get_table("db", "t")
    more = Column(name="d", type="int")
    changed = replace(table, storage=replace(table.storage, columns=(A, C, B, more)))
    world.metastore.alter_table("db", "t", changed)
    assert world.constraints() == {"of_a": 0, "of_b": 2, "of_c": 1}
    changed = replace(table, storage=replace(table.storage, columns=(A, C)))
    world.metastore.alter_table("db", "t", changed)
    assert world.constraints() == {"of_a": 0, "of_c": 1}


@pytest.mark.parametrize(
    ("new", "places"),
    [
        ("abc", [0, 1, 2]),
        ("cab", [1, 2, 0]),
        ("axc", [0, 1, 2]),  # b is x now
        ("axy", [0, None, None]),  # two at once: nobody knows which is which
        ("ac", [0, None, 1]),
        ("abcd", [0, 1, 2]),
    ],
)
def test_where_a_column_is_now(new: str, places: list[int | None]) -> None:
    change = ColumnChange(
        table_id=1, old_list_id=1, new_list_id=2, old=(A, B, C),
        new=tuple(Column(name=name, type="int") for name in new),
    )  # fmt: skip
    assert [change.new_place(place) for place in range(3)] == places
    assert change.new_place(-1) is None
    assert change.new_place(3) is None


def test_statistics_of_changed_columns_go(world: HiveWorld) -> None:
    key = world.table("t")
    for number, column in enumerate("abc"):
        world.put(
            TAB_COL_STATS, CS_ID=number, TBL_ID=key, COLUMN_NAME=column, DB_NAME="db",
            COLUMN_TYPE="int", TABLE_NAME="t", NUM_NULLS=0, LAST_ANALYZED=0, ENGINE="hive",
        )  # fmt: skip
    table = world.metastore.get_table("db", "t")
    wider = (A, Column(name="b", type="bigint"))
    world.metastore.alter_table(
        "db", "t", replace(table, name="u", storage=replace(table.storage, columns=wider))
    )
    with world.engine.transaction(write=False) as connection:
        c = TAB_COL_STATS.c
        assert connection.execute(select(c.COLUMN_NAME, c.TABLE_NAME)).all() == [("a", "u")]


def test_a_table_that_a_materialized_view_reads_stays(world: HiveWorld) -> None:
    base = world.table("base")
    world.table("mv", TableType.MATERIALIZED_VIEW)
    for number, view in ((1, "mv"), (2, "gone")):
        world.put(
            d.MV_CREATION_METADATA, MV_CREATION_METADATA_ID=number, CAT_NAME="hive", DB_NAME="db",
            TBL_NAME=view, MATERIALIZATION_TIME=1,
        )  # fmt: skip
        world.put(d.MV_TABLES_USED, MV_CREATION_METADATA_ID=number, TBL_ID=base)
    with pytest.raises(MetaError, match=r"materialized views \[db\.mv\]$"):
        world.metastore.drop_table("db", "base")
    world.metastore.drop_database("db", is_cascade=True)
    assert world.count(d.MV_TABLES_USED) == 0


@pytest.mark.parametrize(
    ("kind", "table", "values"),
    [
        ("functions", FUNCS, {"FUNC_ID": 1, "CREATE_TIME": 1, "FUNC_TYPE": 1}),
        (
            "stored procedures",
            d.STORED_PROCS,
            {"SP_ID": 1, "CREATE_TIME": 1, "NAME": "p", "OWNER_NAME": "o", "SOURCE": "s"},
        ),
        (
            "packages",
            d.PACKAGES,
            {
                "PKG_ID": 1,
                "CREATE_TIME": 1,
                "NAME": "p",
                "OWNER_NAME": "o",
                "HEADER": "h",
                "BODY": "b",
            },
        ),
        (
            "schemas",
            d.I_SCHEMA,
            {
                "SCHEMA_ID": 1,
                "SCHEMA_TYPE": 1,
                "COMPATIBILITY": 1,
                "VALIDATION_LEVEL": 1,
                "CAN_EVOLVE": True,
            },
        ),
    ],
)
def test_a_database_with_something_else_in_it(
    world: HiveWorld, kind: str, table: SqlTable, values: dict[str, Any]
) -> None:
    key = world.scalar(select(DBS.c.DB_ID).where(DBS.c.NAME == "db"))
    world.put(table, DB_ID=key, **values)
    world.put(DB_PRIVS, DB_GRANT_ID=1, DB_ID=key, **GRANT)
    if table is FUNCS:
        world.put(FUNC_RU, FUNC_ID=1, RESOURCE_TYPE=1, INTEGER_IDX=0)
    if table is d.I_SCHEMA:
        world.put(
            d.SCHEMA_VERSION, SCHEMA_VERSION_ID=1, SCHEMA_ID=1, VERSION=1, CREATED_AT=1, STATE=1
        )
    with pytest.raises(InvalidOperationError, match=f"One or more {kind} exist"):
        world.metastore.drop_database("db")
    world.metastore.drop_database("db", is_cascade=True)
    for left in (table, DB_PRIVS, FUNC_RU, d.SCHEMA_VERSION):
        assert world.count(left) == 0
