"""We and real Hive on the same ACID tables: each reads, changes and compacts what the other
wrote.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hms_bridge.config.settings import Settings
from hms_bridge.connect import install_schema
from integration.comparison.cases import ACID
from integration.comparison.real_hive import relative_paths
from integration.referees.hive42 import Hive42, table_folder
from integration.referees.java_metastore import JavaMetastore
from integration.referees.ours import (
    PROGRAM,
    OurProgram,
    OurServer,
    OurSession,
    environment_of_ours,
)
from integration.referees.processes import Workplace

OurSessions = Callable[[str], OurSession]


def _hive_writes(hive: Hive42, database: str) -> list[tuple[str, ...]]:
    """A table with inserts, an update and a delete; its rows with ROW__IDs as Hive reads them."""
    hive.main.sql(f"create database {database}")
    hive.main.sql(f"create table {database}.t (id int, v string) {ACID}")
    hive.main.sql(f"insert into {database}.t values (1, 'a'), (2, 'b'), (3, null)")
    hive.main.sql(f"insert into {database}.t values (4, 'd')")
    hive.main.sql(f"update {database}.t set v = 'x' where id = 1")
    hive.main.sql(f"delete from {database}.t where id = 2")
    return sorted(hive.main.sql(f"select row__id, * from {database}.t"))


def _we_write(session: OurSession, database: str) -> list[tuple[str, ...]]:
    session.sql(f"create database {database}")
    session.sql(f"create table {database}.t (id int, v string) {ACID}")
    session.sql(f"insert into {database}.t values (1, 'a'), (2, 'b'), (3, null)")
    session.sql(f"insert into {database}.t values (4, 'd')")
    session.sql(f"update {database}.t set v = 'x' where id = 1")
    session.sql(f"delete from {database}.t where id = 2")
    return sorted(session.sql(f"select row__id, * from {database}.t"))


def test_we_read_what_hive_wrote_through_our_metastore(
    hive42_on_ours: Hive42, ours: OurServer, our_session: OurSessions
) -> None:
    rows = _hive_writes(hive42_on_ours, "read_through_ours")
    assert sorted(our_session(ours.uri).sql("select row__id, * from read_through_ours.t")) == rows


def test_we_read_what_hive_wrote_through_hives_metastore(
    hive42: Hive42, hive42_metastore: JavaMetastore, our_session: OurSessions
) -> None:
    rows = _hive_writes(hive42, "read_through_hive")
    assert (
        sorted(our_session(hive42_metastore.uri).sql("select row__id, * from read_through_hive.t"))
        == rows
    )


def test_hive_reads_a_table_with_partitions_of_hives_and_of_ours(
    hive42_on_ours: Hive42, ours: OurServer, our_session: OurSessions
) -> None:
    """A partition without a SerDe would keep it from reading the others too."""
    hive = hive42_on_ours.main
    hive.sql("create database both_wrote")
    hive.sql(f"create table both_wrote.t (id int) partitioned by (day string) {ACID}")
    hive.sql("insert into both_wrote.t partition (day = 'mon') values (1)")
    our_session(ours.uri).sql("insert into both_wrote.t values (2, 'tue'), (3, 'mon')")
    assert sorted(hive.sql("select * from both_wrote.t")) == [
        ("1", "mon"), ("2", "tue"), ("3", "mon"),
    ]  # fmt: skip
    shown = [
        [row for row in hive.sql(f"describe formatted both_wrote.t partition (day = '{day}')")
         if row[0].startswith(("SerDe Library", "InputFormat", "OutputFormat"))]
        for day in ("mon", "tue")
    ]  # fmt: skip
    assert shown[0] == shown[1]
    assert len(shown[0]) == 3


def test_hive_reads_changes_and_compacts_what_we_wrote(
    hive42_on_ours: Hive42, ours: OurServer, our_session: OurSessions
) -> None:
    rows = _we_write(our_session(ours.uri), "we_wrote")
    hive = hive42_on_ours.main
    assert sorted(hive.sql("select row__id, * from we_wrote.t")) == rows
    hive.sql("update we_wrote.t set v = 'y' where id = 4")
    after = sorted(hive.sql("select row__id, * from we_wrote.t"))
    assert [row[1:] for row in after] == [("3", "NULL"), ("1", "x"), ("4", "y")]
    for kind in ("minor", "major"):
        hive.sql(f"alter table we_wrote.t compact '{kind}'")
        hive.run("Worker")
        hive.run("Cleaner")
        assert sorted(hive.sql("select row__id, * from we_wrote.t")) == after
        assert sorted(our_session(ours.uri).sql("select row__id, * from we_wrote.t")) == after


def test_we_write_into_a_table_of_hives_metastore(
    hive42: Hive42, hive42_metastore: JavaMetastore, our_session: OurSessions
) -> None:
    _hive_writes(hive42, "we_write_there")
    session = our_session(hive42_metastore.uri)
    session.sql("insert into we_write_there.t values (5, 'e')")
    session.sql("update we_write_there.t set v = 'ours' where id = 3")
    session.sql("delete from we_write_there.t where id = 4")
    rows = sorted(session.sql("select row__id, * from we_write_there.t"))
    assert sorted(hive42.main.sql("select row__id, * from we_write_there.t")) == rows
    assert sorted(row[1:] for row in rows) == [("1", "x"), ("3", "ours"), ("5", "e")]


@pytest.mark.parametrize("kind", ["minor", "major"])
def test_hives_cleaner_accepts_our_compaction(
    hive42: Hive42, hive42_metastore: JavaMetastore, our_session: OurSessions, kind: str
) -> None:
    """We are the compaction worker of a real Hive metastore; its cleaner removes what we
    replaced.
    """
    database = f"we_compact_{kind}"
    rows = _hive_writes(hive42, database)
    hive42.main.sql(f"alter table {database}.t compact '{kind}'")
    session = our_session(hive42_metastore.uri)
    assert session.work() is not None
    folder = table_folder(hive42.warehouse, f"{database}.t")
    before = {path for path in relative_paths(folder) if path.endswith("/")}
    assert sorted(hive42.main.sql(f"select row__id, * from {database}.t")) == rows
    hive42.main.run("Cleaner")
    after = {path for path in relative_paths(folder) if path.endswith("/")}
    assert after < before
    assert len(after) == (1 if kind == "major" else 2)
    assert sorted(hive42.main.sql(f"select row__id, * from {database}.t")) == rows
    assert sorted(session.sql(f"select row__id, * from {database}.t")) == rows
    states = hive42.database.query(
        'select "CC_STATE" as s from "COMPLETED_COMPACTIONS" where "CC_DATABASE" = %s', database
    )
    assert states == [{"s": "s"}]


def test_our_worker_leaves_to_hives_what_hive_was_asked_for(
    hive42: Hive42, hive42_metastore: JavaMetastore, workplace: Workplace
) -> None:
    """A claim cannot choose by type, and no call gives a claimed entry back."""
    database = "we_leave"
    _hive_writes(hive42, database)
    hive = hive42.main
    hive.sql(f"create table {database}.skewed stored as orc tblproperties('transactional'='true') "
             f"as select * from {database}.t")  # fmt: skip
    hive.sql(f"alter table {database}.skewed compact 'rebalance'")
    workplace.run(
        "ours-compact",
        [*PROGRAM, "compact", f"{database}.t", "major", "--run",
         "--metastore", hive42_metastore.uri],
        env=environment_of_ours(),
    )  # fmt: skip
    queue = hive42.database.query(
        'select "CQ_TABLE" as t, "CQ_STATE" as s, "CQ_POOL_NAME" as p from "COMPACTION_QUEUE" '
        'where "CQ_DATABASE" = %s order by "CQ_ID"',
        database,
    )
    assert [tuple(entry.values()) for entry in queue] == [
        ("skewed", "i", None),
        ("t", "r", "hms-bridge"),
    ]
    hive.sql(f"drop database {database} cascade")


def test_our_cleaner_removes_what_hive_compacted(
    hive42: Hive42, hive42_metastore: JavaMetastore, our_session: OurSessions
) -> None:
    """On Hive's own database, beside Hive's own server."""
    rows = _hive_writes(hive42, "we_clean")
    hive42.main.sql("alter table we_clean.t compact 'major'")
    hive42.main.run("Worker")
    install_schema(hive42.database.sqlalchemy_url, Settings())  # as `schema init` does
    our_session(hive42_metastore.uri).clean(hive42.database.sqlalchemy_url)
    folder = table_folder(hive42.warehouse, "we_clean.t")
    assert len([path for path in relative_paths(folder) if path.endswith("/")]) == 1
    assert sorted(hive42.main.sql("select row__id, * from we_clean.t")) == rows
    assert hive42.main.sql("show compactions")[1][5] == "succeeded"


def test_command_line_works_on_hives_metastore(
    hive42: Hive42, hive42_metastore: JavaMetastore, workplace: Workplace
) -> None:
    """As a person types it: `hms-bridge sql` and `compact --run`, given the address of Hive."""
    rows = _hive_writes(hive42, "typed")
    program = OurProgram(workplace, hive42_metastore.uri)
    read = "select row__id, * from typed.t"
    found = [(*row["row__id"].values(), row["id"], row["v"]) for row in program.sql(read)]
    assert sorted(found) == [(1, 536870912, 2, 3, None), (2, 536870912, 0, 4, "d"),
                             (3, 536870913, 0, 1, "x")]  # fmt: skip
    program.run("compact", "typed.t", "major", "--run")
    hive42.main.run("Cleaner")
    folder = table_folder(hive42.warehouse, "typed.t")
    assert len([path for path in relative_paths(folder) if path.endswith("/")]) == 1
    assert sorted(hive42.main.sql(read)) == rows
