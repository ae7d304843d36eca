"""Clients commit by ALTER TABLE without a lock, as Iceberg does: the metastore compares the
parameter that they expect in the transaction that changes the table (docs/hive/metastore.md §44).
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, update
from sqlalchemy.pool import NullPool

from hms_bridge.backend.schema.catalog_tables import TABLE_PARAMS
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Column, Storage, Table
from hms_bridge.wire.convert_catalog import table_to_struct
from hms_bridge.wire.structs import hive
from tests.support.databases import ON_A_SERVER
from tests.support.served_metastore import ServedMetastore, served_metastore

COMMITTERS = 8
COMMITS = 5
KEY = "metadata_location"
STALE = (
    "The table has been modified. The parameter value for key 'metadata_location' is '2'. "
    "The expected was value was '1'"
)
Alter = Callable[[ServedMetastore, str, Any, Mapping[str, str]], None]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedMetastore]:
    with served_metastore(tmp_path) as served:
        storage = Storage(columns=(Column(name="a", type="int"),))
        table = Table(name="t", database_name="default", storage=storage, parameters={KEY: "0"})
        served.call("create_table", tbl=table_to_struct(table))
        yield served


def expecting(key: str | None, value: str | None) -> dict[str, str]:
    pair = {"expected_parameter_key": key, "expected_parameter_value": value}
    return {name: text for name, text in pair.items() if text is not None}


def by_context(served: ServedMetastore, name: str, new: Any, expected: Mapping[str, str]) -> None:
    context = hive.EnvironmentContext(properties=dict(expected))
    served.call(
        "alter_table_with_environment_context",
        dbname="default", tbl_name=name, new_tbl=new, environment_context=context,
    )  # fmt: skip


def by_request(served: ServedMetastore, name: str, new: Any, expected: Mapping[str, str]) -> None:
    request = hive.AlterTableRequest(
        dbName="default", tableName=name, table=new,
        expectedParameterKey=expected.get("expected_parameter_key"),
        expectedParameterValue=expected.get("expected_parameter_value"),
    )  # fmt: skip
    served.call("alter_table_req", req=request)


def by_context_of_request(
    served: ServedMetastore, name: str, new: Any, expected: Mapping[str, str]
) -> None:
    context = hive.EnvironmentContext(properties=dict(expected))
    request = hive.AlterTableRequest(
        dbName="default", tableName=name, table=new, environmentContext=context
    )
    served.call("alter_table_req", req=request)


ROADS = pytest.mark.parametrize("alter", (by_context, by_request, by_context_of_request))


def table_of(served: ServedMetastore, name: str = "t") -> Any:
    return served.call("get_table", dbname="default", tbl_name=name)


def value_of(served: ServedMetastore, name: str = "t") -> str | None:
    value: str | None = table_of(served, name).parameters.get(KEY)
    return value


def alter_to(
    served: ServedMetastore, alter: Alter, new: str | None, expected: Mapping[str, str]
) -> None:
    table = table_of(served)
    table.parameters.pop(KEY, None)
    if new is not None:
        table.parameters[KEY] = new
    alter(served, "t", table, expected)


@ROADS
def test_each_of_many_commits_at_once_is_there_or_refused(
    served: ServedMetastore, alter: Alter
) -> None:
    together = threading.Barrier(COMMITTERS)

    def commits() -> int:
        done = 0
        together.wait()
        for _ in range(COMMITS):
            table = table_of(served)
            seen = table.parameters[KEY]
            table.parameters[KEY] = str(int(seen) + 1)
            try:
                alter(served, "t", table, expecting(KEY, seen))
            except MetaError as error:
                assert str(error).startswith("The table has been modified. The parameter value")
            else:
                done += 1
        return done

    with ThreadPoolExecutor(COMMITTERS) as threads:
        tries = [threads.submit(commits) for _ in range(COMMITTERS)]
        done = sum(one.result() for one in tries)
    assert 1 <= done <= COMMITTERS * COMMITS
    assert value_of(served) == str(done)


@ROADS
def test_a_stale_value_is_refused_with_hives_words(served: ServedMetastore, alter: Alter) -> None:
    alter_to(served, alter, "2", expecting(KEY, "0"))
    with pytest.raises(MetaError) as refused:
        alter_to(served, alter, "3", expecting(KEY, "1"))
    assert str(refused.value) == STALE
    assert value_of(served) == "2"


@ROADS
def test_a_parameter_that_the_table_lacks_has_not_the_expected_value(
    served: ServedMetastore, alter: Alter
) -> None:
    alter_to(served, alter, None, {})
    for expected in ("0", ""):
        with pytest.raises(MetaError, match="'metadata_location' is 'null'. The expected was"):
            alter_to(served, alter, "1", expecting(KEY, expected))
    assert value_of(served) is None


@ROADS
def test_an_expected_parameter_needs_a_new_value(served: ServedMetastore, alter: Alter) -> None:
    with pytest.raises(MetaError, match="New value for expected key metadata_location is not set"):
        alter_to(served, alter, None, expecting(KEY, "0"))
    assert value_of(served) == "0"


@ROADS
def test_half_of_a_pair_expects_nothing(served: ServedMetastore, alter: Alter) -> None:
    alter_to(served, alter, "1", expecting(KEY, None))
    alter_to(served, alter, "2", expecting(None, "7"))
    assert value_of(served) == "2"


@ROADS
def test_a_rename_that_expects_another_value_moves_nothing(
    served: ServedMetastore, alter: Alter
) -> None:
    table = table_of(served)
    file = served.warehouse / "t" / "000000_0"
    file.write_bytes(b"1\n")
    table.tableName, table.parameters[KEY] = "t2", "2"
    # A move would fail for it.
    in_the_way = served.warehouse / "t2" / "of somebody"
    in_the_way.mkdir(parents=True)
    with pytest.raises(MetaError, match="The table has been modified"):
        alter(served, "t", table, expecting(KEY, "1"))
    assert file.exists()
    shutil.rmtree(in_the_way.parent)
    assert served.call("get_all_tables", db_name="default") == ["t"]
    alter(served, "t", table, expecting(KEY, "0"))
    assert (served.warehouse / "t2" / "000000_0").exists()
    assert value_of(served, "t2") == "2"


@ON_A_SERVER
def test_who_waits_for_a_commit_sees_its_value(served: ServedMetastore) -> None:
    """The expected value is compared with the one that the row has once its lock is had."""
    read = threading.Barrier(2)

    def commit() -> bool:
        table = table_of(served)
        read.wait()
        table.parameters[KEY] = "1"
        try:
            by_context(served, "t", table, expecting(KEY, "0"))
        except MetaError:
            return False
        return True

    for _ in range(10):
        with ThreadPoolExecutor(2) as threads:
            assert sorted(threads.map(lambda _: commit(), range(2))) == [False, True]
        alter_to(served, by_context, "0", {})


@ROADS
def test_a_commit_of_a_hive_beside_us_counts_too(served: ServedMetastore, alter: Alter) -> None:
    """It changes the parameter's row in this way, and holds no row of TBLS
    (MetaStoreDirectSql.updateTableParam)."""
    table = table_of(served)
    table.parameters[KEY] = "ours"
    with ThreadPoolExecutor(1) as threads:
        with create_engine(served.database_url, poolclass=NullPool).begin() as connection:
            here = (TABLE_PARAMS.c.PARAM_KEY == KEY, TABLE_PARAMS.c.PARAM_VALUE == "0")
            connection.execute(update(TABLE_PARAMS).where(*here).values(PARAM_VALUE="Hive's"))
            waiting = threads.submit(alter, served, "t", table, expecting(KEY, "0"))
            wait([waiting], timeout=0.3)
        with pytest.raises(MetaError, match="The table has been modified"):
            waiting.result()
    assert value_of(served) == "Hive's"
