"""Tables as DataFrames on any Spark: `read_table`, and what statements read."""

from __future__ import annotations

from typing import Any

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.connect import LocalStore
from hms_bridge.errors import DmlError, NoSuchObjectError
from hms_bridge.model.catalog import Column, Storage, Table, TableType
from hms_bridge.session.transaction import Client
from hms_bridge.spark.scan import read_table

pytestmark = pytest.mark.spark

CLIENT = Client(user="test", host="test", lock_wait_seconds=0.5)


def test_a_table_is_a_frame_under_a_transaction(run: Any, spark: Any, store: LocalStore) -> None:
    run("CREATE TABLE t (id INT, v STRING) PARTITIONED BY (p INT)")
    run("INSERT INTO t VALUES (1, 'a', 7), (2, 'b', 8); DELETE FROM t WHERE id = 2")
    metastore, resolver = store.metastore, FsspecResolver()
    with read_table(
        spark, metastore, resolver, "t", client=CLIENT, columns=("p", "ID"), has_row_ids=True
    ) as frame:
        assert frame.columns == ["p", "id", "row__id", "row__partition"]
        (lock,) = metastore.show_locks()
        assert lock.scope.table == "t"
        assert [tuple(row)[:2] + (row.row__partition,) for row in frame.collect()] == [
            (7, 1, "p=7")
        ]
        assert frame.count() == 1
    assert metastore.show_locks() == ()


@pytest.mark.parametrize("values", ["", "INSERT INTO t VALUES (1)"], ids=["empty", "a row"])
def test_a_frame_that_outlives_its_block_fails(
    run: Any, spark: Any, store: LocalStore, values: str
) -> None:
    """Nothing protects its files any more, and its snapshot is an old one."""
    run(f"CREATE TABLE t (id INT); {values}")
    with read_table(spark, store.metastore, FsspecResolver(), "t", client=CLIENT) as frame:
        rows, doubled = frame.count(), frame.selectExpr("id * 2")
        kept = frame.persist()
        assert kept.count() == rows
        frame.unpersist(blocking=True)
    for late in (frame, doubled):
        with pytest.raises(Exception, match="after it was destroyed"):
            late.collect()
    run("INSERT INTO t VALUES (2)")
    with read_table(spark, store.metastore, FsspecResolver(), "t", client=CLIENT) as frame:
        assert frame.count() == rows + 1


def test_what_is_no_table_to_read(run: Any, spark: Any, store: LocalStore) -> None:
    run("CREATE TABLE t (id INT)")
    for name, columns, error in (("t", ("x",), DmlError), ("nope", (), NoSuchObjectError)):
        with (
            pytest.raises(error),
            read_table(
                spark, store.metastore, FsspecResolver(), name, client=CLIENT, columns=columns
            ),
        ):
            pass


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
    (rows,) = run("SELECT count(*) FROM empty")
    assert rows == [(0,)]


def test_a_block_that_fails_holds_nothing(run: Any, spark: Any, store: LocalStore) -> None:
    run("CREATE TABLE t (id INT); INSERT INTO t VALUES (1)")
    metastore = store.metastore
    with (
        pytest.raises(ZeroDivisionError),
        read_table(spark, metastore, FsspecResolver(), "t", client=CLIENT) as frame,
    ):
        assert frame.count() == 1
        _ = 1 / 0
    with pytest.raises(DmlError):
        run("SELECT nope(id) FROM t")
    assert metastore.show_locks() == ()
    assert run("DROP TABLE t") == ["table default.t dropped"]


@pytest.mark.parametrize(
    ("properties", "advice"),
    [
        ("'transactional_properties'='insert_only'", "insert-only: its files alone show rows that"),
        ("'transactional'='false'", "no ACID table; read it with Spark's Hive client"),
    ],
)
def test_advice_for_other_tables_is_right(
    run: Any, spark: Any, store: LocalStore, properties: str, advice: str
) -> None:
    """Files of insert-only tables hold aborted rows, and others twice (golden g13_mm_orc)."""
    run(f"CREATE TABLE t (id INT) TBLPROPERTIES ({properties})")
    with (
        pytest.raises(DmlError, match=advice),
        read_table(spark, store.metastore, FsspecResolver(), "t", client=CLIENT),
    ):
        pass
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
