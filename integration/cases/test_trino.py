"""Trino 476, Hive 4.2 and we on the same ACID tables."""

from __future__ import annotations

from collections.abc import Callable

from integration.referees.hive42 import Hive42
from integration.referees.ours import OurServer, OurSession
from integration.referees.trino import Trino

ACID = "stored as orc tblproperties('transactional'='true')"


def test_trino_misses_deletes_of_hive_until_they_are_compacted(
    hive42: Hive42, trino476: Trino
) -> None:
    """Hive 4 names the files of a delete delta `bucket_00000_0`; Trino looks for `bucket_00000`, as
    a compaction writes them (trinodb/trino issue 31302). Whoever compares with Trino has to know;
    this fails when it is mended.
    """
    hive = hive42.main
    hive.sql("create database deletes_for_trino")
    hive.sql(f"create table deletes_for_trino.t (id int) {ACID}")
    hive.sql(
        "insert into deletes_for_trino.t values (1)"
    )  # one delta and one delete delta: Hive refuses a minor
    hive.sql("insert into deletes_for_trino.t values (2)")
    hive.sql("delete from deletes_for_trino.t where id = 2")
    assert sorted(trino476.sql("select * from deletes_for_trino.t")) == [[1], [2]]
    hive.sql("alter table deletes_for_trino.t compact 'minor'")
    hive.run("Worker")
    hive.run("Cleaner")
    assert trino476.sql("select * from deletes_for_trino.t") == [[1]]


def test_trino_reads_and_changes_what_hive_wrote(hive42: Hive42, trino476: Trino) -> None:
    # Where Hive gathered statistics Trino cannot INSERT (test_ours_as_metastore.py compares that).
    hive = hive42.session({"hive.stats.autogather": "false"})
    hive.sql("create database shared_with_trino")
    hive.sql(f"create table shared_with_trino.t (id int, v string) {ACID}")
    hive.sql("insert into shared_with_trino.t values (1, 'a'), (2, 'b')")
    assert sorted(trino476.sql("select * from shared_with_trino.t")) == [[1, "a"], [2, "b"]]

    trino476.sql("update shared_with_trino.t set v = 'x' where id = 1")
    trino476.sql("insert into shared_with_trino.t values (4, 'd')")
    trino476.sql("delete from shared_with_trino.t where id = 2")
    assert sorted(hive.sql("select * from shared_with_trino.t")) == [("1", "x"), ("4", "d")]


def test_trino_reads_what_hive_compacted(hive42: Hive42, trino476: Trino) -> None:
    hive = hive42.main
    hive.sql("create database compacted_for_trino")
    hive.sql(f"create table compacted_for_trino.t (id int, v string) {ACID}")
    hive.sql("insert into compacted_for_trino.t values (1, 'a'), (2, 'b')")
    hive.sql("update compacted_for_trino.t set v = 'x' where id = 1")
    for kind in ("minor", "major"):
        hive.sql(f"alter table compacted_for_trino.t compact '{kind}'")
        hive.run("Worker")
        hive.run("Cleaner")
        assert sorted(trino476.sql("select * from compacted_for_trino.t")) == [[1, "x"], [2, "b"]]


def test_trino_reads_what_we_updated_and_deleted(
    trino476: Trino, ours: OurServer, our_session: Callable[[str], OurSession]
) -> None:
    """Files of our delete events have the names that Trino looks for, before any compaction."""
    session = our_session(ours.uri)
    trino476.add_catalog("ours_deletes", ours.uri)
    session.sql("create database deletes_of_ours")
    for name, clauses in {
        "plain": "",
        "parted": "partitioned by (p string)",
        "bucketed": "clustered by (id) into 3 buckets",
    }.items():
        table = f"deletes_of_ours.{name}"
        key = ", 'x'" if name == "parted" else ""
        session.sql(f"create table {table} (id int, v string) {clauses} {ACID}")
        session.sql(f"insert into {table} select id, 'a'{key} from range(6)")
        session.sql(f"insert into {table} select id, 'b'{key} from range(6, 9)")
        session.sql(f"update {table} set v = 'new' where id in (1, 7)")
        session.sql(f"delete from {table} where id in (2, 7, 8)")
        found = sorted(trino476.sql(f"select id, v from ours_deletes.{table}"))
        assert found == [[0, "a"], [1, "new"], [3, "a"], [4, "a"], [5, "a"], [6, "b"]], name
