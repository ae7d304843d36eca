"""Our SQL, DML and compaction on the oldest Spark of the declared range."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.referees.errors import StatementError
from integration.referees.ours import OurServer, OurSession
from integration.referees.processes import Workplace
from integration.referees.spark import OurSparkDriver

pytestmark = pytest.mark.spark_35


@pytest.fixture(scope="module")
def server(workplace: Workplace) -> Iterator[OurServer]:
    """A metastore of our own over SQLite."""
    folder = workplace.folder("spark-35")
    started = OurServer(workplace, f"sqlite:///{folder}/metastore.db")
    yield started
    started.stop()


@pytest.fixture(scope="module")
def session(server: OurServer, spark_35: OurSparkDriver) -> OurSession:
    return OurSession(spark_35, server.uri)


def compact(session: OurSession, target: str, kind: str) -> str | None:
    session.sql(f"alter table {target} compact '{kind}'")
    return session.work()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_it_is_that_version(spark_35: OurSparkDriver) -> None:
    assert spark_35.version.startswith("3.5.")


def test_changes_and_compactions(session: OurSession, server: OurServer) -> None:
    session.sql("create database one")
    session.sql("create table one.t (id int, name string)")
    session.sql("insert into one.t values (1, 'a'), (2, 'b'), (3, 'c'), (4, null)")
    session.sql("update one.t set name = upper(name) where id <= 2")
    session.sql("delete from one.t where name is null")
    rows = session.sql("select row__id, id, name from one.t order by id")
    assert [row[1:] for row in rows] == [("1", "A"), ("2", "B"), ("3", "c")]
    assert session.sql("select count(*) from one.t") == [("3",)]
    assert compact(session, "one.t", "minor") is not None
    assert session.sql("select row__id, id, name from one.t order by id") == rows
    with pytest.raises(StatementError, match="already scheduled with state='ready for cleaning'"):
        compact(session, "one.t", "major")  # Hive's rule: the cleaner comes first
    session.clean(server.database_url)
    said = compact(session, "one.t", "major")
    assert said is not None
    assert "became base_0000003_v" in said
    assert session.sql("select row__id, id, name from one.t order by id") == rows
    folder = server.warehouse / "one.db" / "t"
    assert not [name for name in names(folder) if name.startswith("_tmp")]


def test_types(session: OurSession) -> None:
    session.sql("create database two")
    session.sql(
        "create table two.t (b boolean, i bigint, f double, n decimal(10,2), d date, ts timestamp, "
        "c char(3), v varchar(3), a array<timestamp>, m map<string,int>, s struct<x:int,y:string>)"
    )
    session.sql(
        "insert into two.t select true, 9000000000, 1.5, 12.34, date '1582-10-04', "
        "timestamp '1500-12-31 23:59:58.25', 'a', 'abcdef', array(timestamp '2020-01-01 00:00:00'),"
        " map('k', 1), named_struct('x', 1, 'y', 'z')"
    )
    (row,) = session.sql("select * from two.t")
    assert row == (
        "true", "9000000000", "1.5", "12.34", "1582-10-04", "1500-12-31 23:59:58.250000", "a  ",
        "abc", "[datetime.datetime(2020, 1, 1, 0, 0)]", '{"k":1}', '{"x":1,"y":"z"}',
    )  # fmt: skip


def test_partitions_and_buckets(session: OurSession) -> None:
    session.sql("create database three")
    session.sql(
        "create table three.t (id int) partitioned by (p string) clustered by (id) into 3 buckets"
    )
    session.sql("insert into three.t select id, if(id % 2 = 0, 'even', null) from range(24)")
    session.sql("delete from three.t where id % 4 = 0")
    counted = "select p, count(*), count(distinct row__id.bucketid) from three.t group by p"
    expected = [("__HIVE_DEFAULT_PARTITION__", "12", "3"), ("even", "6", "3")]
    assert sorted(session.sql(counted)) == expected
    said = compact(session, "three.t partition (p='even')", "major")
    assert said is not None
    assert "became base_0000002_v" in said
    assert sorted(session.sql(counted)) == expected


def test_a_value_that_does_not_fit_is_refused(session: OurSession) -> None:
    """Spark 3.5 would make NULL of it, were it not told otherwise."""
    session.sql("create database four")
    session.sql("create table four.t (id int)")
    with pytest.raises(StatementError, match="CAST_INVALID_INPUT"):
        session.sql("insert into four.t values ('x')")
    assert session.sql("select * from four.t") == []
