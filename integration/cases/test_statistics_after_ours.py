"""Hive answers from statistics that are true, also after statements of ours."""

from __future__ import annotations

from integration.comparison.cases import ACID
from integration.referees.hive42 import Hive42
from integration.referees.java_metastore import JavaMetastore
from integration.referees.ours import OurProgram, OurServer
from integration.referees.processes import Workplace

ASKED = "select count(*), min(id), max(id) from counted.{}"


def test_hive_does_not_answer_from_statistics_that_our_statements_made_untrue(
    hive42_on_ours: Hive42, ours: OurServer, workplace: Workplace
) -> None:
    _check_answers(hive42_on_ours, OurProgram(workplace, ours.uri))


def test_neither_does_hive_on_its_own_metastore(
    hive42: Hive42, hive42_metastore: JavaMetastore, workplace: Workplace
) -> None:
    _check_answers(hive42, OurProgram(workplace, hive42_metastore.uri))


def _check_answers(hive_program: Hive42, ours: OurProgram) -> None:
    hive = hive_program.session(
        {"hive.stats.autogather": "true", "hive.compute.query.using.stats": "true"}
    )
    hive.sql("create database counted")
    for name, partitioned in (("t", ""), ("d", ""), ("e", ""), ("p", "partitioned by (k string)")):
        hive.sql(f"create table counted.{name} (id int) {partitioned} {ACID}")
    for name, partition in (("t", ""), ("d", ""), ("p", "partition (k = 'a')")):
        hive.sql(f"insert into counted.{name} {partition} values (1), (2)")
        hive.sql(f"analyze table counted.{name} {partition} compute statistics for columns")
        assert hive.sql(ASKED.format(name)) == [("2", "1", "2")]
    ours.sql(
        "INSERT INTO counted.t VALUES (7); INSERT INTO counted.e VALUES (7); "
        "INSERT INTO counted.p VALUES (7, 'a'); DELETE FROM counted.d WHERE id = 2"
    )
    found = {name: hive.sql(ASKED.format(name)) for name in "tdep"}
    assert found == {
        "t": [("3", "1", "7")],
        "d": [("1", "1", "1")],
        "e": [("1", "7", "7")],
        "p": [("3", "1", "7")],
    }
    for name, partition in (("t", ""), ("p", "partition (k = 'a')")):
        hive.sql(f"insert into counted.{name} {partition} values (9)")
        assert hive.sql(ASKED.format(name)) == [("4", "1", "9")]
    hive.close()
