"""Hive 4.2.0 as the referee: one ACID table from its first row to its major compaction, and its
REPL.
"""

from __future__ import annotations

import re

import pytest

from integration.comparison.real_hive import relative_paths
from integration.referees.errors import StatementError
from integration.referees.hive42 import Hive42, table_folder

ACID = "stored as orc tblproperties('transactional'='true')"


def _directories(hive: Hive42, table: str) -> list[str]:
    paths = relative_paths(table_folder(hive.warehouse, table))
    return [re.sub(r"_v\d+", "_vT", path) for path in paths if path.endswith("/")]


def test_acid_table_lives_through_both_compactions(hive42: Hive42) -> None:
    hive = hive42.main
    hive.sql("create database life")
    hive.sql(f"create table life.t (id int, v string) {ACID}")
    hive.sql("insert into life.t values (1, 'a'), (2, 'b')")
    hive.sql("insert into life.t values (3, 'c')")
    hive.sql("update life.t set v = 'x' where id = 1")
    hive.sql("delete from life.t where id = 2")
    rows = [
        ('{"writeid":2,"bucketid":536870912,"rowid":0}', "3", "c"),
        ('{"writeid":3,"bucketid":536870913,"rowid":0}', "1", "x"),
    ]
    read = "select row__id, * from life.t"
    assert sorted(hive.sql(read)) == rows

    hive.sql("alter table life.t compact 'minor'")
    hive.run("Worker")
    hive.run("Cleaner")
    assert _directories(hive42, "life.t") == [
        "delete_delta_0000001_0000004_vT/",
        "delta_0000001_0000004_vT/",
    ]
    assert sorted(hive.sql(read)) == rows

    hive.sql("alter table life.t compact 'major'")
    hive.run("Worker")
    hive.run("Cleaner")
    assert _directories(hive42, "life.t") == ["base_0000004_vT/"]
    assert sorted(hive.sql(read)) == rows

    header, *compactions = hive.sql("show compactions")
    state, table = header.index("State"), header.index("Database")
    assert [row[state] for row in compactions if row[table] == "life"] == ["succeeded", "succeeded"]


def test_initiator_asks_for_a_compaction_by_itself(hive42: Hive42) -> None:
    hive = hive42.main
    hive.sql("create database busy")
    hive.sql(f"create table busy.t (id int) {ACID}")
    for number in range(11):
        hive.sql(f"insert into busy.t values ({number})")
    hive.run("Initiator")
    queue = hive42.database.query('select * from "COMPACTION_QUEUE" where "CQ_DATABASE" = \'busy\'')
    assert [(row["CQ_TABLE"], row["CQ_TYPE"], row["CQ_STATE"]) for row in queue] == [
        ("t", "a", "i")
    ]  # no base yet: major
    hive.run("Worker")
    hive.run("Cleaner")


def test_refusal_carries_hives_own_words(hive42: Hive42) -> None:
    with pytest.raises(StatementError, match="Invalid table alias or column reference 'nope'"):
        hive42.main.sql("select nope from (select 1 as a) s")


def test_sessions_have_settings_of_their_own(hive42: Hive42) -> None:
    one, two = hive42.main, hive42.session()
    two.sql("set hivevar:who=two")
    one.sql("set hivevar:who=one")
    assert (one.sql("select '${hivevar:who}'"), two.sql("select '${hivevar:who}'")) == (
        [("one",)],
        [("two",)],
    )
    two.close()


def test_database_is_dumped_and_loaded(hive42: Hive42) -> None:
    hive = hive42.main
    hive.sql("create database src with dbproperties('repl.source.for'='policy')")
    hive.sql(f"create table src.t (id int) {ACID}")
    hive.sql("insert into src.t values (1), (2)")
    (dump,) = hive.sql("repl dump src")
    hive.sql("repl load src into dst")
    assert sorted(hive.sql("select * from dst.t")) == [("1",), ("2",)]
    hive.sql("delete from src.t where id = 1")
    (later,) = hive.sql("repl dump src")
    hive.sql("repl load src into dst")
    assert hive.sql("select * from dst.t") == [("2",)]
    assert int(later[1]) > int(dump[1])
