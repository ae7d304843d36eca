"""What Hive's SQL keeps in a metastore beside tables, kept in ours: roles, privileges, scheduled
queries, data connectors, resource plans, catalogs; and the archive of what it replaces."""

from __future__ import annotations

import getpass
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from integration.referees.errors import StatementError
from integration.referees.hive42 import Hive42, HiveSession
from integration.referees.ours import OurServer
from integration.referees.processes import Workplace
from tests.support.stored_rows import rows_of

ADMIN = getpass.getuser()


@pytest.fixture(scope="module")
def archive(workplace: Workplace) -> Path:
    return workplace.folder("archive")


@pytest.fixture(scope="module")
def server(workplace: Workplace, archive: Path) -> Iterator[OurServer]:
    url = f"sqlite:///{workplace.folder('sqlite')}/metastore.db"
    settings = {"hive.users.in.admin.role": ADMIN, "hive.repl.cmrootdir": str(archive)}
    server = OurServer(workplace, url, settings=settings)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def hive(hive42: Hive42, server: OurServer) -> Iterator[HiveSession]:
    settings = {"hive.scheduled.queries.executor.idle.sleep.time": "1s"}
    session = hive42.session_at(server.uri, settings)
    session._session.setIsHiveServerQuery(True)  # workload management asks for it
    yield session
    session.close()


def _first(rows: list[tuple[str, ...]]) -> list[str]:
    return [row[0] for row in rows]


def test_roles_and_privileges(hive: HiveSession) -> None:
    hive.sql("set role admin")
    assert _first(hive.sql("show current roles")) == ["admin"]
    hive.sql("create role writers")
    hive.sql("create role readers")
    assert sorted(_first(hive.sql("show roles"))) == ["admin", "public", "readers", "writers"]
    hive.sql("grant readers to role writers")
    hive.sql("grant writers to user ann with admin option")
    with pytest.raises(StatementError, match="no cycles allowed"):
        hive.sql("grant writers to role readers")
    assert sorted(_first(hive.sql("show role grant user ann"))) == ["public", "writers"]
    assert _first(hive.sql("show principals writers")) == ["ann"]
    hive.sql("create table kept (a int) tblproperties ('transactional'='false')")
    hive.sql("grant select, insert on table kept to role readers")
    shown = hive.sql("show grant role readers on table kept")
    assert sorted(row[6] for row in shown) == ["INSERT", "SELECT"]
    hive.sql("alter table kept rename to kept_2")
    hive.sql("revoke insert on table kept_2 from role readers")
    assert [row[6] for row in hive.sql("show grant role readers on table kept_2")] == ["SELECT"]
    hive.sql("revoke admin option for writers from user ann")
    hive.sql("revoke writers from user ann")
    hive.sql("drop role readers")
    assert hive.sql("show grant role readers on table kept_2") == []
    hive.sql("drop table kept_2")


def test_scheduled_queries(hive: HiveSession, server: OurServer) -> None:
    """Hive's own service polls our server, executes what is due, and says how it went."""
    scheduled = hive._jvm.org.apache.hadoop.hive.ql.scheduled
    service = scheduled.ScheduledQueryExecutionService
    with closing(service.startScheduledQueryExecutorService(hive._conf)):
        hive.sql("create scheduled query nightly cron '0 0 2 * * ? *' as select 1")
        hive.sql("create scheduled query tick cron '* * * * * ? *' as select 2")
        with pytest.raises(StatementError, match="already exists"):
            hive.sql("create scheduled query tick every 10 minutes as select 3")
        for _ in range(60):
            if "FINISHED" in _states(server):
                break
            time.sleep(1)
        assert "FINISHED" in _states(server)
        hive.sql("alter scheduled query nightly disabled")
        hive.sql("alter scheduled query nightly enabled")
        for name in ("tick", "nightly"):
            hive.sql(f"drop scheduled query {name}")
        assert rows_of(server.database_url, "SCHEDULED_QUERIES") == []


def _states(server: OurServer) -> list[str]:
    rows = rows_of(server.database_url, "SCHEDULED_EXECUTIONS")
    return [str(row["STATE"]) for row in rows]


def test_data_connectors(hive: HiveSession) -> None:
    hive.sql(
        "create connector pg type 'postgres' url 'jdbc:postgresql://h/d' comment 'c' "
        "with dcproperties ('hive.sql.dbcp.username'='u')"
    )
    assert _first(hive.sql("show connectors")) == ["pg"]
    assert hive.sql("describe connector pg")[0][:3] == ("pg", "postgres", "jdbc:postgresql://h/d")
    hive.sql("alter connector pg set url 'jdbc:postgresql://h/e'")
    with pytest.raises(StatementError, match="databases over data connectors are not kept"):
        hive.sql(
            "create remote database r using pg with dbproperties ('connector.remoteDbName'='d')"
        )
    hive.sql("drop connector pg")
    assert hive.sql("show connectors") == []


def test_resource_plans(hive: HiveSession) -> None:
    hive.sql("create resource plan day with query_parallelism=5")
    hive.sql("alter pool day.default set alloc_fraction=0.4, query_parallelism=2")
    hive.sql("create pool day.etl with alloc_fraction=0.6, query_parallelism=3")
    hive.sql("create trigger day.slow when ELAPSED_TIME > 10000 do kill")
    hive.sql("alter trigger day.slow add to pool etl")
    hive.sql("create user mapping 'ann' in day to etl with order 1")
    shown = "\n".join(_first(hive.sql("show resource plan day")))
    assert "etl" in shown
    assert "trigger slow" in shown
    hive.sql("alter resource plan day validate")
    hive.sql("alter resource plan day enable")
    hive.sql("alter resource plan day disable")
    hive.sql("create resource plan night like day")
    assert sorted(_first(hive.sql("show resource plans"))) == ["day", "night"]
    for name in ("day", "night"):
        hive.sql(f"drop resource plan {name}")


def test_catalogs(hive: HiveSession, server: OurServer) -> None:
    place = server.warehouse / "other"
    hive.sql(f"create catalog other location 'file://{place}' comment 'c'")
    assert sorted(_first(hive.sql("show catalogs"))) == ["hive", "other"]
    hive.sql(f"alter catalog other set location 'file://{place}_2'")
    hive.sql("drop catalog other")
    assert _first(hive.sql("show catalogs")) == ["hive"]


def test_what_an_overwrite_replaces_is_archived(
    hive42: Hive42, server: OurServer, archive: Path
) -> None:
    hive = hive42.session_at(server.uri, {"hive.repl.cm.enabled": "true"})
    hive.sql("create database src with dbproperties ('repl.source.for'='p')")
    hive.sql("create table src.t (a int) stored as orc tblproperties ('transactional'='false')")
    hive.sql("insert into src.t values (1)")
    assert list(archive.glob("*_*")) == []
    hive.sql("insert overwrite table src.t values (2)")
    assert hive.sql("select a from src.t") == [("2",)]
    assert len(list(archive.glob("000000_0_*"))) == 1
    hive.close()
