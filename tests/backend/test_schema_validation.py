from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from hms_bridge.backend.engine import Database, open_database
from hms_bridge.backend.schema.upgrade import upgrade_schema
from hms_bridge.backend.schema.validation import validate, why_no_location
from tests.support.databases import memory_database

MODEL = "org.apache.hadoop.hive.metastore.model"


@pytest.fixture
def database() -> Iterator[Database]:
    opened = memory_database()
    yield opened
    opened.close()


def _run(database: Database, *statements: str) -> None:
    with database.transaction(write=True) as connection:
        for statement in statements:
            connection.execute(text(statement))


@pytest.mark.parametrize("version", ["4.0.0", "4.1.0", "4.2.0"])
def test_nothing_is_wrong_in_a_new_database(database: Database, version: str) -> None:
    upgrade_schema(database, version)
    assert validate(database) == ()


EVENT = (
    'INSERT INTO "NOTIFICATION_LOG" ("NL_ID", "EVENT_ID", "EVENT_TIME", "EVENT_TYPE") '
    "VALUES (9, 5, 0, 'X')"
)
LOCK = (
    'INSERT INTO "HIVE_LOCKS" ("HL_LOCK_EXT_ID", "HL_LOCK_INT_ID", "HL_TXNID", "HL_DB", '
    '"HL_LOCK_STATE", "HL_LOCK_TYPE", "HL_LAST_HEARTBEAT", "HL_USER", "HL_HOST") '
    "VALUES (1, 1, 0, 'd', 'a', 'r', 0, 'u', 'h')"
)
COMPACTION = (
    'INSERT INTO "COMPLETED_COMPACTIONS" ("CC_ID", "CC_DATABASE", "CC_TABLE", "CC_STATE", '
    "\"CC_TYPE\") VALUES (3, 'd', 't', 's', 'a')"
)
DATABASE = (
    'INSERT INTO "DBS" ("DB_ID", "NAME", "DB_LOCATION_URI", "CTLG_NAME", "TYPE") '
    "VALUES (1, 'd', '{}', 'hive', 'NATIVE')"
)
TABLE = (
    'INSERT INTO "TBLS" ("TBL_ID", "TBL_NAME", "TBL_TYPE", "CREATE_TIME", "LAST_ACCESS_TIME", '
    "\"RETENTION\", \"IS_REWRITE_ENABLED\") VALUES (1, 't', '{}', 0, 0, 0, 0)"
)


@pytest.mark.parametrize(
    ("statements", "what", "remedy"),
    [
        (['DROP TABLE "WRITE_SET"'], "table WRITE_SET: make", "schema upgrade --to 4.0.0"),
        (['DROP TABLE "HMSB_LEASE"'], "tables of ours are missing: HMSB_LEASE", "schema init"),
        (
            ['ALTER TABLE "COMPACTION_QUEUE" DROP COLUMN "CQ_POOL_NAME"'],
            "column COMPACTION_QUEUE.CQ_POOL_NAME: add", "schema upgrade --to 4.0.0",
        ),
        (
            ['DROP INDEX "TBL_TO_WRITE_ID_IDX"'],
            "table TXN_TO_WRITE_ID: unique index TBL_TO_WRITE_ID_IDX", "schema upgrade --to 4.0.0",
        ),
        (
            ["UPDATE \"VERSION\" SET \"SCHEMA_VERSION\" = '4.3.0'"],
            "table VERSION: '4.3.0' is none of 3.1.0, 4.0.0, 4.1.0, 4.2.0", "another release",
        ),
        (
            ["INSERT INTO \"VERSION\" VALUES (2, '4.0.0', '')"],
            "table VERSION has 2 rows", "remove",
        ),
        ([EVENT], "NOTIFICATION_SEQUENCE.NEXT_EVENT_ID would give 1, but 5 was given", "6 in"),
        (
            [EVENT, 'UPDATE "NOTIFICATION_SEQUENCE" SET "NEXT_EVENT_ID" = 6'],
            f"SEQUENCE_TABLE of {MODEL}.MNotificationLog would give 1, but 9 was", "NEXT_VAL = 10",
        ),
        ([LOCK], "NEXT_LOCK_ID.NL_NEXT would give 1, but 1 was given", "one row with 2"),
        (['DELETE FROM "NEXT_LOCK_ID"'], "NEXT_LOCK_ID.NL_NEXT has no row", "one row with 1"),
        ([COMPACTION], "NEXT_COMPACTION_QUEUE_ID.NCQ_NEXT would give 1, but 3", "one row with 4"),
        (
            [
                "INSERT INTO \"NEXT_WRITE_ID\" VALUES ('d', 't', 2)",
                "INSERT INTO \"TXN_TO_WRITE_ID\" VALUES (1, 'd', 't', 2)",
            ],
            "NEXT_WRITE_ID of d.t would give 2, but 2 was given", "NWI_NEXT = 3",
        ),
        ([DATABASE.format("/warehouse/d")], "'/warehouse/d' names no file system", "hdfs://"),
        ([DATABASE.format("/w:/d")], "'/w:/d' names no file system", "hdfs://"),
        ([DATABASE.format("file:d")], "'file:d' has no absolute path", "hdfs://"),
        (
            [COMPACTION, "UPDATE \"COMPLETED_COMPACTIONS\" SET \"CC_START\" = 'soon'"],
            "COMPLETED_COMPACTIONS.CC_START is no number in row 3: 'soon'", "WHERE rowid = 3",
        ),
        ([TABLE.format("MANAGED_TABLE")], "TBLS: table t (TBL_ID 1) has no storage", "drop"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(
    database: Database, statements: list[str], what: str, remedy: str
) -> None:
    _run(database, *statements)
    found = [one for one in validate(database) if what in one.what]
    assert len(found) == 1, validate(database)
    assert remedy in found[0].remedy


@pytest.mark.parametrize(
    "statement",
    [
        DATABASE.format("file:/w/d"),
        DATABASE.format("hdfs://nn:8020/w/d"),
        DATABASE.format("s3a://bucket/"),
        TABLE.format("VIRTUAL_VIEW"),
        'DELETE FROM "SEQUENCE_TABLE"',
        "INSERT INTO \"NEXT_WRITE_ID\" VALUES ('d', 't', 1)",
    ],
)
def test_what_is_well_is_not_told(database: Database, statement: str) -> None:
    _run(database, statement)
    assert validate(database) == ()


def test_a_hives_database_needs_no_table_of_ours(database: Database) -> None:
    with database.transaction(write=False) as connection:
        names = connection.execute(
            text("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'HMSB%'")
        ).scalars()
        ours = list(names)
    _run(database, "PRAGMA defer_foreign_keys = ON", *(f'DROP TABLE "{name}"' for name in ours))
    assert validate(database) == ()


def test_an_empty_and_an_old_database() -> None:
    empty = open_database("sqlite://")
    assert [one.remedy for one in validate(empty)] == ["hms-bridge schema init"]
    empty.close()


@pytest.mark.parametrize(
    ("location", "is_one"),
    [
        ("file:/a", True),
        ("hdfs://nn/a", True),
        ("s3a://bucket", True),
        ("/a", False),
        ("a", False),
        ("file:a", False),
        ("hdfs://[x/a", False),
    ],
)
def test_locations(location: str, is_one: bool) -> None:  # noqa: FBT001
    assert (why_no_location(location) is None) is is_one
