"""Materialized views of a real Hive as tables of Spark."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from integration.referees import install
from integration.referees.beside import Beside
from integration.referees.processes import Workplace
from integration.referees.spark import SparkDriver

PYTHONS = {"4.3": lambda: Path(sys.executable), "3.5": install.spark_35}


@pytest.mark.parametrize("version", PYTHONS)
def test_the_rows_that_hive_keeps(
    workplace: Workplace, hive42_beside: Beside, version: str
) -> None:
    """Those of the last rebuild, also while the tables below have others."""
    hive, name = hive42_beside.hive.main, f"views_{version.replace('.', '')}"
    hive.sql(f"create database {name}")
    acid = "stored as orc tblproperties ('transactional'='true')"
    hive.sql(f"create table {name}.sold (item string) {acid}")
    hive.sql(f"insert into {name}.sold values ('tea'), ('tea'), ('salt')")
    select = f"select item, count(*) as n from {name}.sold group by item"
    hive.sql(f"create materialized view {name}.kept {acid} as {select}")
    hive.sql(f"insert into {name}.sold values ('salt')")
    driver = SparkDriver(
        workplace, catalog={"metastore": hive42_beside.ours.uri}, python=PYTHONS[version]()
    )
    try:
        assert ["kept"] in [row[1:2] for row in driver.sql(f"show tables in acid.{name}")]
        for _ in range(2):
            kept = [list(row) for row in hive.sql(f"select item, n from {name}.kept")]
            read = driver.sql(f"select item, cast(n as string) from acid.{name}.kept")
            assert sorted(read) == sorted(kept)
            hive.sql(f"alter materialized view {name}.kept rebuild")
        assert sorted(read) == [["salt", "2"], ["tea", "2"]]
    finally:
        driver.stop()
