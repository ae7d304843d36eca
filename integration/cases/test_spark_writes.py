"""What Spark appends to ACID tables: values as Hive and goldens have them, in Hive's buckets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_bridge.config.settings import Settings
from hms_bridge.connect import connected, open_local
from hms_bridge.model.catalog import Database
from integration.comparison.cases import ACID
from integration.drivers.catalog_rows import COPIED
from integration.referees.errors import StatementError
from integration.referees.golden_tables import copy_definitions, put_golden_tables
from integration.referees.hive42 import Hive42, table_folder
from integration.referees.ours import OurServer
from integration.referees.processes import Workplace
from integration.referees.spark import VERSIONS, SparkDriver, spark_of

CALLS = "integration.drivers.catalog_rows"
KEYS = {
    "b": ("boolean", "i % 2 = 0"),
    "t": ("tinyint", "i - 20"),
    "s": ("smallint", "i * 700 - 14000"),
    "l": ("bigint", "(i - 20) * 1234567890123"),
    "p": ("decimal(10,2)", "(i - 20) / 4"),
    "q": ("decimal(38,10)", "(i - 20) * 1234567890123456.25"),
    "e": ("string", "concat(repeat('é', cast(i % 7 as int)), i)"),
    "c": ("char(6)", "concat(i, '  ')"),
    "v": ("varchar(8)", "concat('ü', i)"),
    "d": ("date", "date_add(date '1500-01-01', cast(i * 5000 as int))"),
}
"""Types that tables are CLUSTERED BY: a column's name, its type, values for numbers i."""
REFUSED = re.compile("uniontype|equal values have several texts|bucketing_version 1")


@pytest.fixture(scope="module", params=VERSIONS)
def driver(workplace: Workplace, request: pytest.FixtureRequest) -> Iterator[SparkDriver]:
    started = spark_of(workplace, request.param)
    yield started
    started.stop()


def test_goldens_are_copied(driver: SparkDriver, workplace: Workplace) -> None:
    """The values that a real Hive read, in tables of the same columns."""
    folder = workplace.folder("copied-goldens")
    url = f"sqlite:///{folder}/metastore.db"
    store = open_local(url, Settings(warehouse=f"file:{folder}/warehouse"))
    store.metastore.create_database(Database(name="golden"))
    put_golden_tables(store.metastore, COPIED, "golden", folder / "warehouse" / "golden.db")
    copy_definitions(store.metastore, "golden", "copy")
    store.metastore.close()
    driver.call(f"{CALLS}:attach_catalog", metastore=url, name="copied")
    different = driver.call(
        f"{CALLS}:copy_differences", catalog="copied", database="golden", copy="copy"
    )
    assert {stage: text for stage, text in different.items() if not REFUSED.search(text)} == {}


def test_hive_reads_and_changes_what_spark_appends(
    driver: SparkDriver, ours: OurServer, hive42_on_ours: Hive42
) -> None:
    hive, table = hive42_on_ours.main, f"spark_appends_{driver.version[0]}.t"
    hive.sql(f"create database {table.partition('.')[0]}")
    hive.sql(
        f"create table {table} (id int, v varchar(4), at timestamp, tags array<string>) "
        f"partitioned by (ds string, day date) {ACID}"
    )
    driver.call(f"{CALLS}:attach_catalog", metastore=ours.uri, name="acid")
    driver.sql(
        f"insert into acid.{table} partition (ds = 'a%', day) values "
        "(1, 'one', timestamp_ntz '1969-12-31 23:59:58.5', array('x', null), date '0001-01-01'), "
        "(2, 'two', null, null, null)"
    )
    driver.sql(f"insert into acid.{table} values (3, null, null, array(), '', date '2024-02-29')")
    expected = [
        ("1", "one", "1969-12-31 23:59:58.5", '["x",null]', "a%", "0001-01-01"),
        ("2", "two", "NULL", "NULL", "a%", "NULL"),
        ("3", "NULL", "NULL", "[]", "__HIVE_DEFAULT_PARTITION__", "2024-02-29"),
    ]
    assert sorted(hive.sql(f"select * from {table}"), key=lambda row: row[0]) == expected
    hive.sql(f"update {table} set v = 'new' where id = 1")
    hive.sql(f"delete from {table} where id = 3")
    hive.sql(f"alter table {table} partition (ds = 'a%', day = '0001-01-01') compact 'major'")
    hive.run("Worker")
    driver.sql(f"insert into acid.{table} values (4, 'four', null, null, 'a%', date '0001-01-01')")
    seen = [[1, "new"], [2, "two"], [4, "four"]]
    assert driver.sql(f"select id, v from acid.{table} order by id") == seen
    assert sorted(hive.sql(f"select id, v from {table}")) == [(str(i), v) for i, v in seen]
    folder = table_folder(ours.warehouse, table)
    assert [path for path in folder.rglob("*") if "_tmp" in path.name] == []


def test_a_row_is_in_the_bucket_where_hive_puts_it(
    driver: SparkDriver, ours: OurServer, hive42_on_ours: Hive42
) -> None:
    hive, database = hive42_on_ours.main, f"spark_buckets_{driver.version[0]}"
    hive.sql(f"create database {database}")
    driver.call(f"{CALLS}:attach_catalog", metastore=ours.uri, name="acid")
    for name, (kind, value) in KEYS.items():
        for table in ("spark", "hive"):
            hive.sql(
                f"create table {database}.{table}_{name} (i int, {name} {kind}) clustered by "
                f"({name}, i) into 5 buckets {ACID}"
            )
        driver.sql(
            f"insert into acid.{database}.spark_{name} select cast(i as int), "
            f"cast({value} as {kind}) from range(40) as r(i)"
        )
        hive.sql(f"insert into {database}.hive_{name} select * from {database}.spark_{name}")
        buckets = "select i, shiftright(row__id.bucketid, 16) & 4095 from acid.%s order by i"
        by_spark = driver.sql(buckets % f"{database}.spark_{name}")
        assert by_spark == driver.sql(buckets % f"{database}.hive_{name}"), kind


def test_what_fails_leaves_nothing(
    driver: SparkDriver, ours: OurServer, hive42_on_ours: Hive42
) -> None:
    hive, database = hive42_on_ours.main, f"spark_fails_{driver.version[0]}"
    hive.sql(f"create database {database}")
    hive.sql(f"create table {database}.t (id int not null, v string, at timestamp) {ACID}")
    hive.sql(f"create table {database}.floats (id int) partitioned by (f float) {ACID}")
    driver.call(f"{CALLS}:attach_catalog", metastore=ours.uri, name="acid")
    table = f"acid.{database}.t"
    for statement, said in (
        ("select cast(if(i = 7, null, i) as int), 'x', null from range(9) as r(i)", "NOT NULL"),
        ("select cast(i as int), raise_error('no more'), null from range(9) as r(i)", "no more"),
        ("values ('x', 'y', null)", "CAST|cast"),
        ("values (1, 'x', timestamp_ntz '1969-12-31 23:59:59.5')", "last second before 1970"),
        ("values (1, 'x', timestamp_ntz '1582-10-10 00:00:00')", "1582-10-15 follows"),
    ):
        with pytest.raises(StatementError, match=said):
            driver.sql(f"insert into {table} {statement}")
    with pytest.raises(StatementError, match="equal values have several texts"):
        driver.sql(f"insert into acid.{database}.floats values (1, 1.5)")
    with connected(ours.uri) as port:
        assert [lock for lock in port.show_locks() if lock.scope.database == database] == []
    assert driver.sql(f"select count(*) from {table}") == [[0]]
    folder: Path = table_folder(ours.warehouse, f"{database}.t")
    assert [path for path in folder.rglob("*") if path.is_file()] == []
