"""ACID tables as tables of Spark, over metastores of ours, of Hive, and over a database."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from changemanager.location import FsspecResolver
from hms_bridge.config.settings import Settings
from hms_bridge.connect import connected, open_local
from hms_bridge.errors import ConfigError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Column, Database, Table
from hms_bridge.model.lock import LockFilter
from hms_bridge.plans.filters import PartitionFilter
from hms_bridge.spark.catalog import configure
from integration.drivers.catalog_rows import READABLE
from integration.referees import install
from integration.referees.acid_writes import write
from integration.referees.errors import StatementError
from integration.referees.golden_tables import put_golden_tables
from integration.referees.hive42 import Hive42
from integration.referees.insert_only import FORMATS, QUESTIONS, as_texts, make_tables
from integration.referees.java_metastore import JavaMetastore
from integration.referees.ours import OurServer
from integration.referees.processes import Workplace
from integration.referees.spark import VERSIONS, SparkDriver, spark_of
from integration.story.sides import wait_until
from tests.conformance import objects
from tests.support.table_write import TableWrite

CALLS = "integration.drivers.catalog_rows"
COLUMNS = (Column(name="id", type="int"), Column(name="item", type="string"))
KEYS = (Column(name="ds", type="string"),)


@pytest.fixture(scope="module", params=VERSIONS)
def driver(workplace: Workplace, request: pytest.FixtureRequest) -> Iterator[SparkDriver]:
    """A Spark of each generation, with nothing of ours in it yet."""
    started = spark_of(workplace, request.param)
    yield started
    started.stop()


@pytest.fixture(scope="module")
def golden_metastore(workplace: Workplace) -> str:
    """Every full ACID table that a real Hive wrote and read."""
    folder = workplace.folder("golden-tables")
    url = f"sqlite:///{folder}/metastore.db"
    store = open_local(url, Settings(warehouse=f"file:{folder}/warehouse"))
    store.metastore.create_database(Database(name="golden"))
    put_golden_tables(store.metastore, READABLE, "golden", folder / "warehouse" / "golden.db")
    store.metastore.close()
    return url


def test_all_goldens_are_read_as_hive_read_them(driver: SparkDriver, golden_metastore: str) -> None:
    driver.call(f"{CALLS}:attach_catalog", metastore=golden_metastore, name="of_hive")
    different = driver.call(f"{CALLS}:golden_differences", catalog="of_hive", database="golden")
    unions = {stage for stage, text in different.items() if "uniontype" in text}
    assert {stage.split("/")[0] for stage in unions} <= {"g11b_union"}
    assert {stage: text for stage, text in different.items() if stage not in unions} == {}
    assert len(READABLE) > 20


@pytest.fixture(scope="module")
def insert_only_rows(hive42: Hive42) -> dict[str, list[tuple[str, ...]]]:
    """What Hive, whose clock is not Spark's, answers to each question."""
    zones = hive42.main.jvm.java.util.TimeZone
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone("Europe/Berlin"))
    try:
        make_tables(hive42.main, "insert_only")
        questions = [ask.format(f"insert_only.{name}") for name in FORMATS for ask in QUESTIONS]
        return {question: as_texts(hive42.main.sql(question)) for question in questions}
    finally:
        zones.setDefault(before)


def test_insert_only_tables_in_other_formats(
    driver: SparkDriver,
    insert_only_rows: dict[str, list[tuple[str, ...]]],
    hive42_metastore: JavaMetastore,
) -> None:
    driver.call(f"{CALLS}:attach_catalog", metastore=hive42_metastore.uri, name="acid")
    for question, rows in insert_only_rows.items():
        seen = driver.sql(question.replace("insert_only.", "acid.insert_only."))
        assert sorted(as_texts(seen)) == sorted(rows), question


@pytest.fixture(params=["ours", "database", "hive 4.2", "hive 3.1.3"])
def metastore(request: pytest.FixtureRequest) -> tuple[str, str, Path]:
    """A name for a database in it, its URL, and its warehouse."""
    name = f"of_{request.param.translate({ord(' '): None, ord('.'): None})}"
    if request.param == "database":
        folder: Path = request.getfixturevalue("workplace").folder("catalog-database")
        return name, f"sqlite:///{folder}/metastore.db", folder
    if request.param == "ours":
        server: OurServer = request.getfixturevalue("ours")
        return name, server.uri, server.warehouse
    fixture = "hive42_metastore_alone" if request.param == "hive 4.2" else "hms313"
    hive: JavaMetastore = request.getfixturevalue(fixture)
    return name, hive.uri, hive.warehouse


def test_tables_of_every_metastore(
    driver: SparkDriver, metastore: tuple[str, str, Path], request: pytest.FixtureRequest
) -> None:
    name, url, warehouse = metastore
    database = f"{name}_{driver.version[0]}"
    with connected(url) as port:
        table = _orders(port, database, warehouse, is_marked="hive313" not in name)
        if "hive313" in name:
            _mark(request.getfixturevalue("hms313").database, database)
        driver.call(f"{CALLS}:attach_catalog", metastore=url, name="acid")
        orders = f"acid.{database}.orders"
        assert [database] in driver.sql("show namespaces in acid")
        assert driver.sql(f"show tables in acid.{database}") == [[database, "orders", False]]
        driver.sql(f"explain select * from {orders}")
        assert _locks(port, database) == []
        assert driver.sql(f"select count(*), sum(id) from {orders}") == [[6, 21]]
        assert _locks(port, database) == ["orders"]
        assert driver.sql(f"select item from {orders} where ds = '2' and id > 4") == [["e"], ["f"]]
        assert driver.sql(f"select id from {orders} where row__id.rowid = 2 order by 1") == [
            [3],
            [6],
        ]
        _delete(port, table, "ds=1", [(1, 536870912, 1)])
        assert driver.sql(f"select id from {orders} where ds = '1' order by id") == [[1], [3]]
        if "hive313" in name:
            with pytest.raises(StatementError, match="has no method add_write_notification_log"):
                driver.sql(f"insert into {orders} values (7, 'g', '3')")
        else:
            driver.sql(f"insert into {orders} values (7, 'g', '3')")
            assert driver.sql(f"select id from {orders} where ds = '3'") == [[7]]
        with pytest.raises(StatementError, match="does not support"):
            driver.sql(f"delete from {orders} where id = 7")
        with pytest.raises(StatementError, match="nope"):
            driver.sql(f"select nope from {orders}")
        count = 5 if "hive313" in name else 6
        ways = ("collected", "iterated", "rdd", "foreach", "cached", "joined")
        expected = {**dict.fromkeys(ways, count), "tasks of one partition": 1}
        assert driver.call(f"{CALLS}:uses_of_frames", table=orders) == expected


def test_a_statement_and_a_frame_keep_their_snapshot(driver: SparkDriver, ours: OurServer) -> None:
    database = f"kept_{driver.version[0]}"
    with connected(ours.uri) as port:
        table = _orders(port, database, ours.warehouse)
        driver.call(f"{CALLS}:attach_catalog", metastore=ours.uri, name="acid")
        driver.call(f"{CALLS}:keep_frame", table=f"acid.{database}.orders")
        assert driver.call(f"{CALLS}:kept_rows", derived=False) == 6
        _write(port, table, {"ds=1": [(9, "z")]})
        assert driver.call(f"{CALLS}:kept_rows", derived=False) == 6
        assert driver.call(f"{CALLS}:kept_rows", derived=True) == 7


def test_a_fork_of_the_driver_ends_nothing(driver: SparkDriver, ours: OurServer) -> None:
    database = f"fork_{driver.version[0]}"
    with connected(ours.uri) as port:
        _orders(port, database, ours.warehouse)
        driver.call(f"{CALLS}:attach_catalog", metastore=ours.uri, name="acid")
        assert driver.sql(f"select count(*) from acid.{database}.orders") == [[6]]
        assert driver.call(f"{CALLS}:fork_and_end") == 0
        assert _locks(port, database) == ["orders"]


def test_of_many_scans_the_idle_ones_end_soon(driver: SparkDriver, ours: OurServer) -> None:
    database = f"many_{driver.version[0]}"
    with connected(ours.uri) as port:
        _orders(port, database, ours.warehouse)
        driver.call(f"{CALLS}:attach_catalog", metastore=ours.uri, name="acid")
        driver.call(f"{CALLS}:count_often", table=f"acid.{database}.orders", times=205)
        seen = partial(_locks, port, database)
        wait_until(lambda: len(seen()) < 200, "the end of some of 205 scans", timeout_seconds=15)


def test_a_table_that_is_made_again_has_its_own_deletes(
    driver: SparkDriver, ours: OurServer
) -> None:
    """Paths, write ids and watermark are those of the table before."""
    database = f"again_{driver.version[0]}"
    with connected(ours.uri) as port:
        driver.call(f"{CALLS}:attach_catalog", metastore=ours.uri, name="acid")
        for victim in (0, 1):
            table = _orders(port, database, ours.warehouse)
            _delete(port, table, "ds=1", [(1, 536870912, victim)])
            seen = driver.sql(f"select id from acid.{database}.orders where ds = '1' order by id")
            assert seen == [[2 - victim], [3]]
            port.drop_table(database, "orders", is_data_deleted=True)
            port.drop_database(database)


def test_a_table_that_is_made_again_under_a_reader_ends_it(
    driver: SparkDriver, ours: OurServer
) -> None:
    """Spark and Trino drop without asking for a lock, and the new files have the old names."""
    database = f"remade_{driver.version[0]}"
    with connected(ours.uri) as port, ThreadPoolExecutor(1) as thread:
        driver.call(f"{CALLS}:attach_catalog", metastore=ours.uri, name="acid")
        _orders(port, database, ours.warehouse)
        slowly = "reflect('java.lang.Thread', 'sleep', 1500L) is not null"
        statement = f"select id from acid.{database}.orders where {slowly}"
        reading = thread.submit(driver.sql, statement)
        wait_until(lambda: _locks(port, database) == ["orders"], "the start of the query")
        time.sleep(1)
        port.drop_table(database, "orders", is_data_deleted=True)
        port.drop_database(database)
        _orders(port, database, ours.warehouse)
        with pytest.raises(StatementError, match="dropped and made again"):
            reading.result()


def test_a_boolean_that_is_always_null_is_read(driver: SparkDriver, ours: OurServer) -> None:
    """By Java's ORC, and so are the file's statistics."""
    database = f"nulls_{driver.version[0]}"
    place = f"file:{ours.warehouse}/{database}.db"
    columns = (Column(name="id", type="int"), Column(name="flag", type="boolean"))
    with connected(ours.uri) as port:
        port.create_database(Database(name=database, location=place))
        storage = objects.orc_storage(columns, location=f"{place}/t")
        port.create_table(objects.acid_table(database, "t", storage=storage))
        nulls = pa.array([None], pa.bool_())
        batch = pa.record_batch([pa.array([1], pa.int32()), nulls], names=["id", "flag"])
        _change(port, port.get_table(database, "t"), lambda write: write.insert([batch]))
        driver.call(f"{CALLS}:attach_catalog", metastore=ours.uri, name="acid")
        table = f"acid.{database}.t"
        assert driver.sql(f"select * from {table}") == [[1, None]]
        assert driver.sql(f"select id from {table} where flag or id > 0") == [[1]]
        assert driver.sql(f"select id from {table} where flag is null and id = 1") == [[1]]
        (file,) = (ours.warehouse / f"{database}.db").rglob("bucket_*")
        trues = driver.call(f"{CALLS}:counted_trues", file=str(file), column=1 + 6 + 1)
        assert trues == 0


def test_a_tables_that_changes_or_goes(driver: SparkDriver, ours: OurServer) -> None:
    database = f"gone_{driver.version[0]}"
    with connected(ours.uri) as port:
        _orders(port, database, ours.warehouse)
        driver.call(f"{CALLS}:attach_catalog", metastore=ours.uri, name="acid")
        driver.call(f"{CALLS}:keep_frame", table=f"acid.{database}.orders")
        port.drop_table(database, "orders", is_data_deleted=False)
        with pytest.raises(StatementError, match="orders"):
            driver.call(f"{CALLS}:kept_rows", derived=True)
        with pytest.raises(StatementError, match="TABLE_OR_VIEW_NOT_FOUND"):
            driver.sql(f"select * from acid.{database}.orders")


@pytest.mark.parametrize(
    ("key", "value", "name", "said"),
    [
        ("spark.sql.catalog.spark_catalog", "org.example.Other", "acid", "is org.example.Other"),
        ("spark.app.name", "x", "spark_catalog", "session_catalog=True"),
        ("spark.app.name", "x", "a.b", "take letters"),
    ],
)
def test_what_spark_would_misunderstand_is_refused(
    key: str, value: str, name: str, said: str
) -> None:
    builder = SparkSession.builder.config(key, value)
    with pytest.raises(ConfigError, match=said):
        configure(builder, name, metastore="sqlite:///none.db", session_catalog=True)


def test_thousands_of_values_for_thousands_of_partitions_take_no_minutes() -> None:
    values = [{"type": "string", "value": str(number)} for number in range(5_000)]
    started = time.monotonic()
    tree = {"op": "in", "column": ["ds"], "values": values}
    kept = PartitionFilter(tree, KEYS)
    assert sum(kept.keeps([str(number)]) for number in range(4_000, 9_000)) == 1_000
    assert time.monotonic() - started < 20


def test_leases_end_where_spark_drops_events(workplace: Workplace, ours: OurServer) -> None:
    """As it does once listeners of others are ten thousand events behind."""
    few = {"spark.scheduler.listenerbus.eventqueue.shared.capacity": "1"}
    idle = {"spark.sql.catalog.acid.idle": "2"}
    driver = SparkDriver(workplace, settings=few | idle, catalog={"metastore": ours.uri})
    try:
        with connected(ours.uri) as port:
            _orders(port, "dropped_events", ours.warehouse)
            for _ in range(20):
                assert driver.sql("select sum(id) from acid.dropped_events.orders") == [[21]]
            wait_until(lambda: _locks(port, "dropped_events") == [], "the end of all leases")
    finally:
        driver.stop()


@pytest.mark.parametrize("version", VERSIONS)
def test_existing_two_part_names(workplace: Workplace, ours: OurServer, version: str) -> None:
    """Spark's own catalog goes on to serve everything else."""
    driver = SparkDriver(
        workplace,
        metastore_uri=ours.uri,
        catalog={"metastore": ours.uri, "session_catalog": True},
        python=install.spark_35() if version == "3.5" else sys.executable,
    )
    database = f"two_parts_{version[0]}"
    try:
        with connected(ours.uri) as port:
            _orders(port, database, ours.warehouse)
        assert not driver.call(f"{CALLS}:is_token_seen")
        driver.sql(f"use {database}")
        driver.sql("create table plain (id int) using parquet")
        driver.sql("insert into plain values (2), (3)")
        assert driver.sql("select count(*) from orders") == [[6]]
        assert driver.sql(f"select count(*) from acid.{database}.orders") == [[6]]
        joined = "select item from orders join plain using (id) order by 1"
        assert driver.sql(joined) == [["b"], ["c"]]
        driver.sql("create view some as select id from orders where ds = '1'")
        assert driver.sql("select count(*) from some") == [[3]]
        tables = [row[1] for row in driver.sql("show tables")]
        assert tables == ["orders", "plain", "some"]
        driver.sql("insert into orders values (7, 'g', '1')")
        with pytest.raises(StatementError, match="would drop this ACID table"):
            driver.call(f"{CALLS}:save_over", table="orders")
        assert driver.sql("select count(*) from orders") == [[7]]
        with pytest.raises(StatementError, match=r"is org\.example\.Other already"):
            driver.call(
                f"{CALLS}:attach_for_two_parts", metastore=ours.uri, taken="org.example.Other"
            )
        driver.sql("drop view some")
    finally:
        driver.stop()


def _mark(store: Any, database: str) -> None:
    """As a table of Hive 3: without Hive's other jars its metastore knows no format of ACID."""
    store.execute(
        """insert into "TABLE_PARAMS" ("TBL_ID", "PARAM_KEY", "PARAM_VALUE")
           select t."TBL_ID", 'transactional', 'true'
           from "TBLS" t join "DBS" d on t."DB_ID" = d."DB_ID" where d."NAME" = """
        f"'{database}'"
    )


def _orders(port: Metastore, database: str, warehouse: Path, *, is_marked: bool = True) -> Table:
    place = f"file:{warehouse}/{database}.db"
    port.create_database(Database(name=database, location=place))
    storage = objects.orc_storage(COLUMNS, location=f"{place}/orders")
    made = objects.acid_table(database, "orders", storage=storage, partition_columns=KEYS)
    port.create_table(made if is_marked else replace(made, parameters={}))
    table = port.get_table(database, "orders")
    rows = {"ds=1": [(1, "a"), (2, "b"), (3, "c")], "ds=2": [(4, "d"), (5, "e"), (6, "f")]}
    _write(port, table, rows)
    return table


def _write(port: Metastore, table: Table, rows: dict[str, list[tuple[int, str]]]) -> None:
    def insert(write: TableWrite) -> None:
        for partition, values in rows.items():
            ids, items = zip(*values, strict=True)
            columns = [pa.array(ids, pa.int32()), pa.array(items)]
            batch = pa.record_batch(columns, names=["id", "item"])
            write.insert([batch], partition=partition)

    _change(port, table, insert)


def _delete(
    port: Metastore, table: Table, partition: str, victims: list[tuple[int, int, int]]
) -> None:
    _change(port, table, lambda write: write.delete(victims, partition=partition))


def _change(port: Metastore, table: Table, change: Callable[[TableWrite], None]) -> None:
    is_hive_3 = table.database_name.startswith("of_hive313")  # which takes no reports of writes
    write(port, FsspecResolver(), table.full_name, change, is_reporting=not is_hive_3)


def _locks(port: Metastore, database: str) -> list[str | None]:
    return [
        lock.scope.table
        for lock in port.show_locks(LockFilter())
        if lock.scope.database == database
    ]
