"""Schema 3.1.0 as we make it: that of Hive's own script, and none that we work on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from hms_bridge.backend.engine import Database, open_database
from hms_bridge.backend.schema import install_3_1 as install_module
from hms_bridge.backend.schema.install import check_schema, schema_info
from hms_bridge.backend.schema.install_3_1 import install_3_1, tables_lacking_of_3_1
from hms_bridge.backend.schema.shape import Kind, SchemaShape, TableShape
from hms_bridge.backend.schema.upgrade import upgrade_schema
from hms_bridge.backend.schema.upgrade_plan import plan_upgrade
from hms_bridge.backend.schema.validation import validate
from hms_bridge.backend.schema.versions import wanted_shape
from hms_bridge.errors import BackendError
from hms_bridge.service.schema import make_version, tables_to_make
from tests.support.databases import memory_database
from tests.support.schema_golden import DIALECTS, golden_shape


@pytest.fixture
def empty() -> Iterator[Database]:
    opened = open_database("sqlite://")
    yield opened
    opened.close()


@pytest.fixture
def database(empty: Database) -> Database:
    install_3_1(empty)
    return empty


def _run(database: Database, *statements: str) -> None:
    with database.transaction(write=True) as connection:
        for statement in statements:
            connection.execute(text(statement))


def _facts(shape: SchemaShape) -> set[tuple[object, ...]]:
    return {fact for table in shape.values() for fact in _facts_of(table)}


def _facts_of(table: TableShape) -> Iterator[tuple[object, ...]]:
    """Sizes of numbers are left out: on MySQL ours have 64 bits where many of Hive's have 32."""
    yield table.name, "key", table.key
    for column in table.columns:
        size = 0 if column.kind in (Kind.INTEGER, Kind.BOOLEAN) else column.capacity
        yield table.name, "column", column.name, column.kind, size, column.is_nullable
    for index in table.indexes:
        yield table.name, "index", index.columns, index.is_unique


OF_A_FOREIGN_KEY = ("MV_TABLES_USED", "index", ("TBL_ID",), False)
"""MySQL makes it by itself."""


@pytest.mark.golden
@pytest.mark.parametrize("kind", DIALECTS)
def test_it_is_hives_where_that_of_4_0_is(kind: str) -> None:
    """Where ours of 4.0.0 departs from Hive's (an index that a key serves), this one does."""
    ours, hives, ours_of_4_0, hives_of_4_0 = (
        _facts(shape)
        for version in ("3.1.0", "4.0.0")
        for shape in (wanted_shape(version, DIALECTS[kind]), golden_shape(version, kind))
    )
    assert (ours - hives) - (ours_of_4_0 - hives_of_4_0) == set()
    assert (hives - ours) - (hives_of_4_0 - ours_of_4_0) <= {OF_A_FOREIGN_KEY}


@pytest.mark.golden
@pytest.mark.parametrize("kind", DIALECTS)
def test_what_hives_script_made_lacks_nothing(kind: str) -> None:
    shape = golden_shape("3.1.0", kind)
    assert plan_upgrade("3.1.0", shape, "3.1.0", DIALECTS[kind]).steps == ()


def test_nothing_is_wrong_in_a_new_one(database: Database) -> None:
    assert schema_info(database).version == "3.1.0"
    assert validate(database) == ()
    install_3_1(database)
    assert validate(database) == ()


@pytest.mark.parametrize("version", ["4.0.0", "4.2.0"])
def test_it_is_upgraded(database: Database, version: str) -> None:
    upgrade_schema(database, version)
    assert validate(database) == ()


def test_we_do_not_work_on_it(database: Database) -> None:
    with pytest.raises(
        BackendError, match=r"holds Hive's schema 3\.1\.0; .* 'hms-bridge schema up"
    ):
        check_schema(database)


COMPACTION = (
    'INSERT INTO "COMPLETED_COMPACTIONS" ("CC_ID", "CC_DATABASE", "CC_TABLE", "CC_STATE", '
    "\"CC_TYPE\") VALUES (3, 'd', 't', 's', 'a')"
)
TXN = (
    'INSERT INTO "TXNS" ("TXN_ID", "TXN_STATE", "TXN_STARTED", "TXN_LAST_HEARTBEAT", "TXN_USER", '
    "\"TXN_HOST\") VALUES (7, 'o', 0, 0, 'u', 'h')"
)
SEQUENCE = "INSERT INTO \"SEQUENCE_TABLE\" VALUES ('org.apache.hadoop.hive.metastore.model.{}', 1)"
WRITE_IDS = (
    "INSERT INTO \"NEXT_WRITE_ID\" VALUES ('d', 't', 4)",
    "INSERT INTO \"TXN_TO_WRITE_ID\" VALUES (7, 'd', 't', 4)",
)


@pytest.mark.parametrize(
    ("statements", "what"),
    [
        (['DROP TABLE "IDXS"'], "table IDXS: make"),
        (['DROP INDEX "TBL_TO_WRITE_ID_IDX"'], "unique index TBL_TO_WRITE_ID_IDX"),
        ([COMPACTION], "NEXT_COMPACTION_QUEUE_ID.NCQ_NEXT would give 1, but 3 was given"),
        ([TXN], "NEXT_TXN_ID.NTXN_NEXT would give 1, but 7 was given"),
        (['DELETE FROM "NEXT_TXN_ID"'], "NEXT_TXN_ID.NTXN_NEXT has no row"),
        (WRITE_IDS, "NEXT_WRITE_ID of d.t would give 4, but 4 was given"),
        (
            [SEQUENCE.format("MRuntimeStat"), "INSERT INTO \"RUNTIME_STATS\" VALUES (5, 0, 1, '')"],
            "SEQUENCE_TABLE of org.apache.hadoop.hive.metastore.model.MRuntimeStat would give 1",
        ),
    ],
)
def test_what_is_wrong_is_told(database: Database, statements: list[str], what: str) -> None:
    _run(database, *statements)
    (problem,) = validate(database)
    assert what in problem.what


def test_a_counter_of_a_table_that_it_has_not_is_passed_over(database: Database) -> None:
    _run(database, SEQUENCE.format("MScheduledQuery"))
    assert validate(database) == ()


def test_what_lacks_is_made_again(database: Database) -> None:
    _run(database, 'DROP TABLE "IDXS"')
    assert [step.what for step in upgrade_schema(database, "3.1.0").steps] == ["table IDXS: make"]
    assert validate(database) == ()


def test_the_version_comes_last(empty: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """On MySQL, which keeps each statement, an end before it leaves a database without one."""
    names: list[str] = []
    put = install_module._put
    monkeypatch.setattr(
        install_module, "_put", lambda *given: (names.append(given[1].name), put(*given))
    )
    install_3_1(empty)
    assert names[-1] == "VERSION"


def test_tables_of_a_later_version_are_not_taken_for_its_own(empty: Database) -> None:
    _run(empty, 'CREATE TABLE "TXN_LOCK_TBL" ("TXN_LOCK" BIGINT)')
    with pytest.raises(BackendError, match="holds tables of a later schema.*TXN_LOCK_TBL"):
        install_3_1(empty)
    assert schema_info(empty).version is None
    assert "IDXS" in tables_lacking_of_3_1(empty)


def test_it_is_planned_and_made_once(empty: Database) -> None:
    planned = tables_to_make(empty, "3.1.0")
    assert planned.version == "3.1.0"
    assert {"IDXS", "NEXT_TXN_ID", "DBS"} <= set(planned.tables)
    assert not any(name.startswith("HMSB_") for name in planned.tables)
    for _ in range(2):
        make_version(empty, "3.1.0")
    assert tables_to_make(empty, "3.1.0").tables == ()
    with pytest.raises(BackendError, match="holds schema 3.1.0 already; run 'hms-bridge schema up"):
        make_version(empty, "4.0.0")


def test_one_of_4_0_stays() -> None:
    database = memory_database()
    with pytest.raises(BackendError, match=r"holds schema 4\.0\.0 already; there is no way back"):
        make_version(database, "3.1.0")
    database.close()
