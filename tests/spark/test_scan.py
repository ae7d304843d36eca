"""What statements read, and what they leave behind."""

from __future__ import annotations

from typing import Any

import pytest

from hms_bridge.connect import LocalStore
from hms_bridge.errors import DmlError
from hms_bridge.model.catalog import Column, Storage, Table, TableType

pytestmark = pytest.mark.spark

def test_databases_whose_names_run_together(run: Any) -> None:
    """A view for each, although a__b and c look like a and b__c."""
    run("CREATE DATABASE a__b; CREATE DATABASE a")
    run("CREATE TABLE a__b.c (x INT); CREATE TABLE a.b__c (x INT)")
    run("INSERT INTO a__b.c VALUES (1); INSERT INTO a.b__c VALUES (2)")
    (rows,) = run("SELECT l.x, r.x FROM a__b.c l CROSS JOIN a.b__c r")
    assert rows == [(1, 2)]
    assert run("DELETE FROM a__b.c WHERE x IN (SELECT x FROM a.b__c)") == [
        "0 rows deleted, nothing was written"
    ]


def test_no_view_is_left_behind(run: Any, spark: Any) -> None:
    run("CREATE TABLE t (id INT); INSERT INTO t VALUES (1)")
    run("SELECT * FROM t; UPDATE t SET id = 2")
    with pytest.raises(DmlError):
        run("SELECT nope(id) FROM t")
    assert not [view for view in spark.catalog.listTables() if view.name.startswith("hive_acid")]


def test_rows_are_counted_without_columns(run: Any) -> None:
    run("CREATE TABLE t (id INT, v STRING); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    run("DELETE FROM t WHERE id = 2")
    (rows,) = run("SELECT count(*), 'x' FROM t")
    assert rows == [(2, "x")]
    run("CREATE TABLE empty (id INT)")
    assert run("SELECT count(*) FROM empty; SELECT ROW__ID, * FROM empty") == [[(0,)], []]
    assert run("UPDATE empty SET id = 1; DELETE FROM empty WHERE id = 1") == [
        "0 rows updated, nothing was written", "0 rows deleted, nothing was written"
    ]  # fmt: skip


def test_a_statement_that_fails_holds_nothing(run: Any, store: LocalStore) -> None:
    run("CREATE TABLE t (id INT); INSERT INTO t VALUES (1)")
    with pytest.raises(DmlError):
        run("SELECT nope(id) FROM t")
    assert store.metastore.show_locks() == ()
    assert run("DROP TABLE t") == ["table default.t dropped"]


@pytest.mark.parametrize(
    ("properties", "advice"),
    [
        ("'transactional_properties'='insert_only'", "insert-only: its files alone show rows that"),
        ("'transactional'='false'", "no ACID table; read it with Spark's Hive client"),
    ],
)
def test_advice_for_other_tables_is_right(run: Any, properties: str, advice: str) -> None:
    """Files of insert-only tables hold aborted rows, and others twice (golden g13_mm_orc)."""
    run(f"CREATE TABLE t (id INT) TBLPROPERTIES ({properties})")
    with pytest.raises(DmlError, match=advice):
        run("SELECT * FROM t")


def test_a_view_is_not_dropped_as_a_table(run: Any, store: LocalStore) -> None:
    for kind in (TableType.VIRTUAL_VIEW, TableType.MATERIALIZED_VIEW):
        name = kind.name.lower()
        store.metastore.create_table(
            Table(
                name=name,
                database_name="default",
                type=kind.value,
                storage=Storage(columns=(Column(name="a", type="int"),)),
            )
        )
        for text in (f"DROP TABLE {name}", f"DROP TABLE IF EXISTS {name}"):
            with pytest.raises(DmlError, match="is a view"):
                run(text)
        assert store.metastore.get_table("default", name).type == kind.value
