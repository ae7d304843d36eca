"""What statements read, and what they leave behind."""

from __future__ import annotations

from typing import Any

import pytest

from hms_bridge.connect import LocalStore
from hms_bridge.errors import DmlError
from hms_bridge.model.catalog import Column, Storage, Table, TableType
from tests.conformance import objects

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


def test_a_query_holds_its_snapshot_to_its_last_row(
    run: Any, session: Any, store: LocalStore
) -> None:
    run("CREATE TABLE t (id INT); INSERT INTO t VALUES (1), (2)")
    (result,) = session.run("SELECT id FROM t")
    assert next(result.rows) == (1,)
    (lock,) = store.metastore.show_locks()
    assert (lock.scope.table, (lock.agent or "").split()[0]) == ("t", "spark")
    assert list(result.rows) == [(2,)]
    assert store.metastore.show_locks() == ()


def test_a_column_that_spark_lacks_is_in_nobodys_way(run: Any, store: LocalStore) -> None:
    columns = (Column(name="id", type="int"), Column(name="u", type="uniontype<int,string>"))
    store.metastore.create_table(
        objects.acid_table("default", "t", storage=objects.orc_storage(columns))
    )
    assert run("SELECT id FROM t; SELECT count(*) FROM t") == [[], [(0,)]]


def test_advice_for_other_tables_is_right(run: Any) -> None:
    """Files of insert-only tables hold aborted rows, and others twice (golden g13_mm_orc)."""
    run("CREATE TABLE t (id INT) TBLPROPERTIES ('transactional_properties'='insert_only')")
    run("CREATE TABLE p (id INT) TBLPROPERTIES ('transactional'='false'); CREATE TABLE u (id INT)")
    assert run("SELECT * FROM t") == [[]]
    with pytest.raises(DmlError, match="insert-only: its files alone show rows that"):
        run("INSERT INTO u SELECT * FROM t")
    with pytest.raises(DmlError, match="no ACID table; read it with Spark's Hive client"):
        run("SELECT * FROM p")


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
