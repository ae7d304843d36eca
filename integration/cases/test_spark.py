"""Spark on local[2], on a standalone cluster, and with its built-in Hive client."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from integration.referees.errors import StatementError
from integration.referees.java_metastore import JavaMetastore
from integration.referees.spark import SparkDriver, SparkStandalone

PROBE = "integration.drivers.spark_probe:squares_by_process"
SUM_OF_SQUARES = sum(number * number for number in range(100))


def test_local_session_runs_sql_and_jobs(spark_local2: SparkDriver) -> None:
    assert spark_local2.sql("select id, id * 2 from range(3)") == [[0, 0], [1, 2], [2, 4]]
    assert spark_local2.call(PROBE, count=100, slices=4)["sum"] == SUM_OF_SQUARES


def test_local_session_says_what_it_refuses(spark_local2: SparkDriver) -> None:
    with pytest.raises(StatementError, match="UNRESOLVED_COLUMN"):
        spark_local2.sql("select nope")


def test_job_runs_in_the_executors_of_both_workers(spark_standalone: SparkStandalone) -> None:
    driver = spark_standalone.driver()
    answer = driver.call(PROBE, count=100, slices=8)
    driver.stop()
    assert answer["sum"] == SUM_OF_SQUARES
    assert len(answer["executors"]) == 2


def test_built_in_client_works_on_its_own_generation(
    spark_hive: Callable[[str], SparkDriver], hive2310: JavaMetastore
) -> None:
    spark = spark_hive(hive2310.uri)
    spark.sql(f"create database of_spark location 'file:{hive2310.warehouse}/of_spark.db'")
    spark.sql("create table of_spark.t (id int, p string) using hive partitioned by (p)")
    spark.sql("insert into of_spark.t partition (p = 'x') values (1), (2)")
    assert spark.sql("select * from of_spark.t order by id") == [[1, "x"], [2, "x"]]
    assert spark.sql("show partitions of_spark.t") == [["p=x"]]


def test_built_in_client_cannot_read_a_table_of_a_stock_401(
    spark_hive: Callable[[str], SparkDriver], hms401: JavaMetastore
) -> None:
    spark = spark_hive(hms401.uri)
    with pytest.raises(StatementError, match="Invalid method name: 'get_table'"):
        spark.sql("select * from default.anything")
