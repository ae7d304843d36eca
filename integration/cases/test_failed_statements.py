"""A CREATE TABLE AS SELECT that fails in a Hive 4.2: what it asks of its metastore, and what our
cleaner makes of it."""

from __future__ import annotations

import pytest

from integration.comparison.cases import ACID
from integration.referees.errors import StatementError
from integration.referees.hive42 import Hive42
from integration.referees.ours import OurProgram, OurServer
from integration.referees.postgresql import Database
from integration.referees.processes import Workplace

OWN_NUMBERS = ("CQ_ID", "CQ_TXN_ID", "CQ_ENQUEUE_TIME")
ASKED = 'select * from "COMPACTION_QUEUE" where "CQ_DATABASE" = %s'
STATEMENT = (
    f"create table failing.t {ACID} as select id, v from failing.source "
    "where assert_true(id < 3) is null"
)


def _fail(hive: Hive42) -> None:
    hive.main.sql("create database failing")
    hive.main.sql(f"create table failing.source (id int, v string) {ACID}")
    hive.main.sql("insert into failing.source values (1, 'a'), (2, 'b'), (3, 'c')")
    with pytest.raises(StatementError, match="Error while running task"):
        hive.main.sql(STATEMENT)


def _asked(hive: Hive42, store: Database) -> dict[str, object]:
    (row,) = store.query(ASKED, "failing")
    place = hive.warehouse / "failing.db" / "t"
    assert place.is_dir()
    text = str(row["CQ_TBLPROPERTIES"])
    length = f"{len(f'file:{place}')}:file:{place}"
    assert length in text
    return {key: value for key, value in row.items() if key not in OWN_NUMBERS} | {
        "CQ_TBLPROPERTIES": text.replace(length, "its place")
    }


def test_its_directory_is_asked_for_as_of_hives_own_metastore_and_cleaned(
    hive42: Hive42, hive42_on_ours: Hive42, ours: OurServer, workplace: Workplace
) -> None:
    for hive in (hive42, hive42_on_ours):
        _fail(hive)
    assert _asked(hive42_on_ours, ours.store) == _asked(hive42, hive42.database)
    folder = ours.warehouse / "failing.db" / "t"
    OurProgram(workplace, ours.database_url).run("cleaner", "run")
    assert not folder.exists()
    assert ours.store.query(ASKED, "failing") == []
    # The statement is tried again, and has all its rows.
    hive42_on_ours.main.sql(STATEMENT.replace("id < 3", "id < 4"))
    assert len(hive42_on_ours.main.sql("select * from failing.t")) == 3
