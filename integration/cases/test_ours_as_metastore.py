"""Other programs run on our server as their metastore."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from integration.comparison.cases import ACID, METASTORE_CASES
from integration.comparison.compare import ASPECTS, Case, Difference, differences, observe
from integration.comparison.real_hive import RealHive42Engine
from integration.referees.errors import StatementError
from integration.referees.hive42 import Hive42
from integration.referees.mariadb import MariaDb
from integration.referees.ours import OurServer
from integration.referees.processes import Workplace
from integration.referees.spark import SparkDriver
from integration.referees.trino import Trino

NUMBERS = itertools.count(1)


def _hive_works_over_thrift(hive42: Hive42, server: OurServer, database: str) -> None:
    """No database of its own to look into: everything goes through the server."""
    hive = hive42.session_at(server.uri)
    hive.sql(f"create database {database}")
    hive.sql(f"create table {database}.t (id int, v string) {ACID}")
    hive.sql(f"create table {database}.s (id int, v string) {ACID}")
    hive.sql(f"insert into {database}.t values (1, 'a'), (2, 'b'), (3, 'c')")
    hive.sql(f"insert into {database}.s values (1, 'merged'), (4, 'new')")
    hive.sql(f"update {database}.t set v = 'x' where id = 3")
    hive.sql(f"delete from {database}.t where id = 2")
    hive.sql(
        f"merge into {database}.t using {database}.s on t.id = s.id "
        "when matched then update set v = s.v when not matched then insert values (s.id, s.v)"
    )
    rows = sorted(hive.sql(f"select * from {database}.t"))
    assert rows == [("1", "merged"), ("3", "x"), ("4", "new")]
    assert hive.sql("show transactions")[0][0] == "Transaction ID"
    assert hive.sql("show locks")[0][0] == "Lock ID"
    assert hive.sql("show compactions")[0][0] == "CompactionId"
    hive.close()


def test_hive_sql_runs_on_our_server(hive42: Hive42, ours: OurServer) -> None:
    _hive_works_over_thrift(hive42, ours, "over_thrift")


def test_hive_sql_runs_on_our_server_with_mariadb(
    hive42: Hive42, mariadb: MariaDb, workplace: Workplace
) -> None:
    server = OurServer(workplace, mariadb.database("ours").sqlalchemy_url)
    _hive_works_over_thrift(hive42, server, "over_mariadb")
    server.stop()


def test_hive_sql_runs_on_our_server_with_sqlite(hive42: Hive42, workplace: Workplace) -> None:
    server = OurServer(workplace, f"sqlite:///{workplace.folder('sqlite')}/metastore.db")
    _hive_works_over_thrift(hive42, server, "over_sqlite")
    server.stop()


FOUND: dict[str, list[Difference]] = {}


def _found(hive42: Hive42, hive42_on_ours: Hive42, case: Case) -> list[Difference]:
    """Where the two differ, run once for all aspects."""
    if case.name not in FOUND:
        number = next(NUMBERS)
        real = RealHive42Engine(hive42, f"real_{number:03}")
        on_ours = RealHive42Engine(hive42_on_ours, f"ours_{number:03}", name="Hive on ours")
        FOUND[case.name] = differences(observe(real, case), observe(on_ours, case))
    return FOUND[case.name]


@pytest.mark.parametrize(
    ("case", "aspect"),
    [
        pytest.param(case, aspect, id=f"{case.name}: {aspect}")
        for case in METASTORE_CASES
        for aspect in ASPECTS
    ],
)
def test_hive_does_the_same_on_our_metastore_as_on_its_own(
    hive42: Hive42, hive42_on_ours: Hive42, case: Case, aspect: str
) -> None:
    """Hive's statements and Hive's own compactor threads, over two metastores."""
    found = _found(hive42, hive42_on_ours, case)
    assert [str(difference) for difference in found if difference.aspect == aspect] == []


def _repaired(hive: Hive42, database: str) -> list[list[tuple[str, ...]]]:
    """What MSCK says and leaves where directories came and went beside the metastore."""
    session = hive.main
    table = f"{database}.m"
    session.sql(f"create database {database}")
    session.sql(
        f"create external table {table} (id int) partitioned by (d date, n int, s string) "
        "stored as orc"
    )
    session.sql(
        f"alter table {table} add partition (d = '2024-01-01', n = 1, s = 'a') "
        "partition (d = '2024-01-02', n = 2, s = 'it\\'s % y/z') "
        "partition (d = '2024-01-03', n = 3, s = 'c')"
    )
    (folder,) = [
        Path(row[1].strip().removeprefix("file:"))
        for row in session.sql(f"describe formatted {table}")
        if row[0].startswith("Location")
    ]
    seen = []
    (folder / "d=2030-01-01" / "n=9" / "s=new").mkdir(parents=True)
    shutil.rmtree(folder / "d=2024-01-02")
    for how in ("", " drop partitions", " sync partitions"):
        answer = session.sql(f"msck repair table {table}{how}")
        seen.append([tuple(text.replace(database, "db") for text in row) for row in answer])
        seen.append(session.sql(f"show partitions {table}"))
        shutil.rmtree(folder / "d=2024-01-01", ignore_errors=True)
        (folder / "d=2031-01-01" / "n=10" / "s=newer").mkdir(parents=True, exist_ok=True)
    return seen


def test_msck_repairs_on_our_server_as_on_hives_own(hive42: Hive42, hive42_on_ours: Hive42) -> None:
    real = _repaired(hive42, f"msck_real_{next(NUMBERS)}")
    assert _repaired(hive42_on_ours, f"msck_ours_{next(NUMBERS)}") == real
    assert [len(partitions) for partitions in real[1::2]] == [4, 2, 3]


def test_spark_sql_runs_on_our_server(
    spark_hive: Callable[[str], SparkDriver], ours: OurServer
) -> None:
    spark = spark_hive(ours.uri)
    spark.sql("create database of_spark")
    spark.sql("create table of_spark.t (id int, p string) using hive partitioned by (p)")
    spark.sql("insert into of_spark.t partition (p = 'x') values (1), (2)")
    spark.sql("insert into of_spark.t partition (p) values (3, 'y')")
    assert spark.sql("select * from of_spark.t where p = 'x' order by id") == [[1, "x"], [2, "x"]]
    assert spark.sql("show partitions of_spark.t") == [["p=x"], ["p=y"]]
    spark.sql("alter table of_spark.t rename to of_spark.renamed")
    spark.sql("alter table of_spark.renamed drop partition (p = 'x')")
    assert spark.sql("select * from of_spark.renamed") == [[3, "y"]]
    spark.sql("drop table of_spark.renamed")
    assert spark.sql("show tables in of_spark") == []


def test_trino_reads_and_writes_through_our_server(
    trino476: Trino, ours: OurServer, hive42_on_ours: Hive42
) -> None:
    trino476.add_catalog("ours", ours.uri)
    # Where Hive gathered statistics Trino cannot INSERT: the next case.
    hive = hive42_on_ours.session({"hive.stats.autogather": "false"})
    hive.sql("create database for_trino")
    hive.sql(f"create table for_trino.t (id int, v string) {ACID}")
    hive.sql("insert into for_trino.t values (1, 'a'), (2, 'b')")
    assert sorted(trino476.sql("select * from ours.for_trino.t")) == [[1, "a"], [2, "b"]]
    trino476.sql("update ours.for_trino.t set v = 'x' where id = 1")
    trino476.sql("insert into ours.for_trino.t values (3, 'c')")
    trino476.sql("delete from ours.for_trino.t where id = 2")
    assert sorted(hive.sql("select * from for_trino.t")) == [("1", "x"), ("3", "c")]


def test_trino_is_refused_where_hive_gathered_statistics_as_by_hive(
    trino476: Trino, ours: OurServer, hive42: Hive42, hive42_on_ours: Hive42
) -> None:
    """Trino's INSERT replaces parameters without telling which writes it has seen; what it refuses
    on Hive's metastore it refuses on ours, and nothing is half-written."""
    trino476.add_catalog("ours_refusing", ours.uri)
    for hive, catalog in ((hive42.main, "hive"), (hive42_on_ours.main, "ours_refusing")):
        hive.sql("create database refuses_trino")
        hive.sql(f"create table refuses_trino.t (id int) {ACID}")
        hive.sql("insert into refuses_trino.t values (1)")
        with pytest.raises(StatementError, match="replace table parameters"):
            trino476.sql(f"insert into {catalog}.refuses_trino.t values (2)")
        assert hive.sql("select * from refuses_trino.t") == [("1",)]


def test_trino_keeps_statistics_on_our_server(trino476: Trino, ours: OurServer) -> None:
    """CTAS, ANALYZE and the first INSERT into a partition; a metastore without statistics keeps
    Trino retrying for about 20 s each."""
    trino476.add_catalog("ours_statistics", ours.uri)
    place = f"file://{ours.warehouse}/trino_statistics"
    trino476.sql(f"create schema ours_statistics.trino_statistics with (location = '{place}')")
    table = "ours_statistics.trino_statistics.t"
    started = time.monotonic()
    trino476.sql(
        f"create table {table} with (format = 'ORC', partitioned_by = ARRAY['p']) as "
        "select * from (values (1, 'a', 'x'), (2, 'b', 'x')) as given (id, v, p)"
    )
    trino476.sql(f"insert into {table} values (3, 'c', 'y'), (4, null, 'x')")
    trino476.sql(f"analyze {table}")
    elapsed_seconds = time.monotonic() - started
    rows = trino476.sql(f"select * from {table} order by id")
    assert rows == [[1, "a", "x"], [2, "b", "x"], [3, "c", "y"], [4, None, "x"]]
    shown = {row[0]: row for row in trino476.sql(f"show stats for {table}")}
    assert (shown["id"][2], shown["id"][5], shown["id"][6]) == (3.0, "1", "4")
    assert (shown["v"][3], shown[None][4]) == (0.25, 4.0)
    assert elapsed_seconds < 55  # retries of the three statements take 60; a busy machine takes 40


def test_pyiceberg_keeps_a_table_on_our_server(
    pyiceberg_catalog: Callable[..., Any], ours: OurServer
) -> None:
    catalog = pyiceberg_catalog(ours.port, ours.warehouse)
    catalog.create_namespace("ice")
    schema = Schema(
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "v", StringType(), required=False),
    )
    table = catalog.create_table("ice.t", schema, location=f"file://{ours.warehouse}/ice/t")
    table.append(pa.table({"id": [1, 2], "v": ["a", None]}))
    assert catalog.load_table("ice.t").scan().to_arrow().to_pylist() == [
        {"id": 1, "v": "a"},
        {"id": 2, "v": None},
    ]
    catalog.rename_table("ice.t", "ice.renamed")
    assert catalog.list_tables("ice") == [("ice", "renamed")]


def test_hmsclient_and_pymetastore_read_from_our_server(
    hmsclient: Callable[..., Any],
    pymetastore: Callable[..., Any],
    ours: OurServer,
    hive42_on_ours: Hive42,
) -> None:
    hive = hive42_on_ours.main
    hive.sql("create database for_clients")
    hive.sql(f"create table for_clients.t (id int, v string) partitioned by (p int) {ACID}")
    hive.sql("insert into for_clients.t partition (p = 1) values (1, 'a')")
    with hmsclient(ours.port) as client:
        assert "for_clients" in client.get_all_databases()
        assert [column.name for column in client.get_table("for_clients", "t").sd.cols] == [
            "id",
            "v",
        ]
        assert client.get_partition_names("for_clients", "t", -1) == ["p=1"]
    assert pymetastore(ours.port, "list_tables", "for_clients") == ["t"]
    table = pymetastore(ours.port, "get_table", "for_clients", "t")
    assert [column["name"] for column in table["columns"]] == ["id", "v"]
