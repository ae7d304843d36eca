from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import delete, insert, inspect, select, text, update
from sqlalchemy.exc import OperationalError

from hms_bridge.backend.dialect import insert_generating_ids
from hms_bridge.backend.engine import Database, open_database
from hms_bridge.backend.schema import steps
from hms_bridge.backend.schema import upgrade as upgrade_module
from hms_bridge.backend.schema.catalog_tables import CTLGS, DBS, TBLS
from hms_bridge.backend.schema.data_steps import NumberTxns
from hms_bridge.backend.schema.install import check_schema, schema_info
from hms_bridge.backend.schema.privilege_tables import DB_PRIVS
from hms_bridge.backend.schema.shape import SchemaShape, read_shape
from hms_bridge.backend.schema.txn_tables import SEQUENCE_TABLE, TXN_LOCK_TBL, TXNS, VERSION
from hms_bridge.backend.schema.upgrade import planned_upgrade, upgrade_schema
from hms_bridge.backend.schema.upgrade_plan import UpgradePlan, differences, plan_upgrade
from hms_bridge.backend.schema.versions import wanted_shape
from hms_bridge.errors import BackendError
from tests.support.databases import memory_database
from tests.support.schema_golden import DIALECTS, golden_shape

_GRANT = (
    "AUTHORIZER", "DB_PRIV", "GRANTOR", "GRANTOR_TYPE", "PRINCIPAL_NAME", "PRINCIPAL_TYPE",
)  # fmt: skip


@pytest.fixture
def database() -> Iterator[Database]:
    opened = memory_database()
    yield opened
    opened.close()


def _shape(database: Database) -> SchemaShape:
    with database.transaction(write=False) as connection:
        return read_shape(connection)


def _plan_of(version: str, kind: str, wanted: str) -> UpgradePlan:
    return plan_upgrade(version[-5:], golden_shape(version, kind), wanted, DIALECTS[kind])


@pytest.mark.golden
@pytest.mark.parametrize("kind", DIALECTS)
@pytest.mark.parametrize("version", ["4.0.0", "4.2.0", "3.1.0-to-4.2.0"])
def test_what_hives_scripts_made_lacks_nothing(version: str, kind: str) -> None:
    assert _plan_of(version, kind, version[-5:]).steps == ()


@pytest.mark.golden
@pytest.mark.parametrize("version", ["3.1.0", "4.0.0", "4.2.0"])
def test_ours_has_every_index_of_hives_script(version: str) -> None:
    """But those that the key of their table is, or begins with."""
    dialect = DIALECTS["postgresql"]
    ours = wanted_shape(version, dialect)
    lacking = [
        f"{table.name}.{index.name}"
        for table in golden_shape(version, "postgresql").values()
        for index in table.indexes
        if index.columns != ours[table.name].key[: len(index.columns)]
        and (index.columns, index.is_unique)
        not in {(own.columns, own.is_unique) for own in ours[table.name].indexes}
    ]
    assert lacking == []


@pytest.mark.golden
@pytest.mark.parametrize("kind", DIALECTS)
def test_the_version_is_written_last(kind: str) -> None:
    plan = plan_upgrade("3.1.0", golden_shape("3.1.0", kind), "4.2.0", DIALECTS[kind])
    assert plan.steps[-1] == steps.SetVersion("4.2.0")
    assert [one for one in plan.steps if isinstance(one, steps.SetVersion)] == [plan.steps[-1]]


@pytest.mark.golden
def test_names_in_lower_case_are_renamed_before_anything_else() -> None:
    plan = plan_upgrade(
        "3.1.0", golden_shape("3.1.0", "postgresql"), "4.0.0", DIALECTS["postgresql"]
    )
    renames = [isinstance(one, steps.RenameTable | steps.RenameColumn) for one in plan.steps]
    assert renames == sorted(renames, reverse=True)
    tables = {one.table: one.to for one in plan.steps if isinstance(one, steps.RenameTable)}
    assert tables["next_txn_id"] == "TXN_LOCK_TBL"
    assert tables["compaction_queue"] == "COMPACTION_QUEUE"
    assert steps.RenameColumn("TXN_LOCK_TBL", "ntxn_next", "TXN_LOCK") in plan.steps


@pytest.mark.golden
@pytest.mark.parametrize("kind", DIALECTS)
def test_only_what_a_version_gave_up_is_dropped(kind: str) -> None:
    plan = plan_upgrade("3.1.0", golden_shape("3.1.0", kind), "4.2.0", DIALECTS[kind])
    tables = {one.table for one in plan.steps if isinstance(one, steps.DropTable)}
    columns = {one.table for one in plan.steps if isinstance(one, steps.DropColumns)}
    assert tables == {"IDXS", "INDEX_PARAMS"}
    assert columns == {"TAB_COL_STATS", "PART_COL_STATS"}


@pytest.mark.golden
def test_a_unique_index_of_mysql_is_replaced_in_one_statement() -> None:
    """Each is committed by itself there: between two, two tables of one name could be made."""
    dialect = DIALECTS["mariadb"]
    plan = plan_upgrade("4.0.0", golden_shape("4.0.0", "mariadb"), "4.2.0", dialect)
    (unique,) = [one for one in plan.steps if getattr(one, "replaced", None) and "TBLS" in one.what]
    (statement,) = unique.statements(dialect)
    assert "DROP INDEX `UNIQUETABLE`, ADD UNIQUE INDEX `UNIQUETABLE`" in statement


@pytest.mark.parametrize("wanted", ["4.1.0", "4.2.0"])
def test_ours_is_upgraded(database: Database, wanted: str) -> None:
    plan = upgrade_schema(database, wanted)
    assert (plan.present, plan.wanted) == ("4.0.0", wanted)
    assert check_schema(database).version == wanted
    names = _shape(database)
    assert "DB_NAME" not in {column.name for column in names["TAB_COL_STATS"].columns}
    assert ("CATALOG_PARAMS" in names) is (wanted == "4.2.0")
    assert upgrade_schema(database, wanted).steps == ()


def test_rows_stay(database: Database) -> None:
    with database.transaction(write=True) as connection:
        connection.execute(insert(CTLGS).values(CTLG_ID=1, NAME="hive", LOCATION_URI="file:/w"))
        connection.execute(insert(DBS).values(DB_ID=1, NAME="d", DB_LOCATION_URI="file:/w"))
        connection.execute(
            insert(TBLS).values(
                TBL_ID=7, DB_ID=1, TBL_NAME="t", CREATE_TIME=0, LAST_ACCESS_TIME=0, RETENTION=0,
                IS_REWRITE_ENABLED=False,
            )
        )  # fmt: skip
        connection.execute(
            text(
                'INSERT INTO "TAB_COL_STATS" ("CS_ID", "DB_NAME", "TABLE_NAME", "CAT_NAME", '
                '"TBL_ID", "COLUMN_NAME", "NUM_NULLS", "LAST_ANALYZED", "ENGINE") '
                "VALUES (3, 'd', 't', 'hive', 7, 'c', 5, 6, 'hive')"
            )
        )
    upgrade_schema(database, "4.2.0")
    with database.transaction(write=False) as connection:
        rows = connection.execute(text('SELECT * FROM "TAB_COL_STATS"')).mappings().all()
        tables = connection.execute(select(TBLS.c.TBL_NAME)).scalars().all()
    assert [(row["CS_ID"], row["TBL_ID"], row["NUM_NULLS"]) for row in rows] == [(3, 7, 5)]
    assert tables == ["t"]


def test_a_dry_run_changes_nothing(database: Database) -> None:
    before = _shape(database)
    plan = planned_upgrade(database, "4.2.0")
    assert plan.steps
    assert _shape(database) == before
    assert schema_info(database).version == "4.0.0"
    assert upgrade_schema(database, "4.2.0") == plan


def _count(plan: UpgradePlan) -> int:
    return len(plan.steps)


def test_an_upgrade_that_dies_is_begun_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every step; SQLite, as PostgreSQL, then has nothing of it."""
    before = _shape(database)
    plan = planned_upgrade(database, "4.2.0")
    carry_out = upgrade_module._carry_out
    for dies_at in range(_count(plan)):
        left = iter(range(dies_at))

        def die(step: object, connection: object, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise OperationalError("killed", None, Exception("killed"))
            carry_out(step, connection)  # type: ignore[arg-type]

        monkeypatch.setattr(upgrade_module, "_carry_out", die)
        with pytest.raises(BackendError):
            upgrade_schema(database, "4.2.0")
        assert _shape(database) == before
    monkeypatch.undo()
    upgrade_schema(database, "4.2.0")
    assert check_schema(database).version == "4.2.0"


def test_what_is_left_of_an_upgrade_is_done(database: Database) -> None:
    """As MySQL leaves it, which keeps each statement."""
    plan = planned_upgrade(database, "4.2.0")
    statements = [
        statement for one in plan.steps for statement in one.statements(database.engine.dialect)
    ]
    for statement in statements[:-1]:
        with database.transaction(write=True) as connection:
            connection.execute(text(statement))
        assert schema_info(database).version == "4.0.0"
    assert planned_upgrade(database, "4.2.0").steps == (steps.SetVersion("4.2.0"),)


@pytest.mark.parametrize(
    ("found", "wanted", "why"),
    [
        ("4.2.0", "4.0.0", "newer than 4.0.0; there is no way back"),
        ("4.3.0", "4.2.0", "'4.3.0' is not known here"),
        ("5.0.0", "4.2.0", "'5.0.0' is not known here"),
        ("4.0.0-beta-1", "4.2.0", "'4.0.0-beta-1' is not known here"),
        ("2.3.0", "4.2.0", "'2.3.0' is not known here"),
        ("x", "4.2.0", "'x' is not known here"),
        ("4.0.0", "4.3.0", "'4.3.0' is no version to upgrade to"),
        ("4.0.0", "3.1.0", "newer than 3.1.0; there is no way back"),
    ],
)
def test_versions_without_a_way_are_refused(
    database: Database, found: str, wanted: str, why: str
) -> None:
    with database.transaction(write=True) as connection:
        connection.execute(update(VERSION).values(SCHEMA_VERSION=found))
    before = _shape(database)
    for attempt in (planned_upgrade, upgrade_schema):
        with pytest.raises(BackendError, match=why):
            attempt(database, wanted)
    assert _shape(database) == before
    assert schema_info(database).version == found


def test_an_empty_database_is_refused() -> None:
    empty = open_database("sqlite://")
    with pytest.raises(BackendError, match="holds no metastore schema"):
        upgrade_schema(empty, "4.2.0")
    empty.close()


def test_what_cannot_be_repaired_keeps_the_old_version(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upgrade_module, "_carry_out", lambda _step, _connection: None)
    with pytest.raises(BackendError, match="there is still to do: table CATALOG_PARAMS: make"):
        upgrade_schema(database, "4.2.0")
    assert schema_info(database).version == "4.0.0"


def test_an_index_that_somebody_dropped_is_made_again(database: Database) -> None:
    with database.transaction(write=True) as connection:
        connection.execute(text('DROP INDEX "NEXT_WRITE_ID_IDX"'))
        connection.execute(text('ALTER TABLE "DBS" DROP COLUMN "REMOTE_DBNAME"'))
    done = upgrade_schema(database, "4.0.0")
    assert [one.what for one in done.steps] == [
        "column DBS.REMOTE_DBNAME: add",
        "table NEXT_WRITE_ID: unique index NEXT_WRITE_ID_IDX on NWI_DATABASE, NWI_TABLE",
    ]
    with database.transaction(write=False) as connection:
        assert list(differences(read_shape(connection), "4.0.0", connection.dialect)) == []


def test_a_grant_that_is_there_twice_stops_an_upgrade(database: Database) -> None:
    """Databases of earlier versions have no rule against it."""
    values = {"CREATE_TIME": 1, "GRANT_OPTION": 0, "DB_ID": 1, **dict.fromkeys(_GRANT, "x")}
    columns = ", ".join(f'"{column.name}"' for column in DB_PRIVS.columns)
    with database.transaction(write=True) as connection:
        connection.execute(text('ALTER TABLE "DB_PRIVS" RENAME TO "OF_NOW"'))
        connection.execute(text(f'CREATE TABLE "DB_PRIVS" AS SELECT {columns} FROM "OF_NOW"'))
        connection.execute(text('DROP TABLE "OF_NOW"'))
        twice = [{"DB_GRANT_ID": number, **values} for number in (1, 2)]
        connection.execute(insert(DB_PRIVS), twice)
    with pytest.raises(BackendError, match="rows stand against .* all but one of equal ones, then"):
        upgrade_schema(database, "4.0.0")


@pytest.mark.parametrize("open_txn", [None, 30, 41])
def test_no_transaction_id_is_given_again(database: Database, open_txn: int | None) -> None:
    """Committed transactions leave no row in 3.1: the old counter alone knows how far ids went."""
    with database.transaction(write=True) as connection:
        connection.execute(delete(TXNS))
        connection.execute(update(TXN_LOCK_TBL).values(TXN_LOCK=42))
        given = {"TXN_STARTED": 0, "TXN_LAST_HEARTBEAT": 0, "TXN_USER": "", "TXN_HOST": ""}
        if open_txn is not None:
            connection.execute(insert(TXNS).values(TXN_ID=open_txn, TXN_STATE="o", **given))
        for _ in range(2):
            for statement in NumberTxns(is_generating=True).statements(connection.dialect):
                connection.execute(text(statement))
        (new,) = insert_generating_ids(
            connection, TXNS, TXNS.c.TXN_ID, [{"TXN_STATE": "o", **given}]
        )
        states = connection.execute(select(TXNS.c.TXN_ID, TXNS.c.TXN_STATE)).all()
    assert new == 42
    assert dict(map(tuple, states)) == (
        {41: "o", 42: "o"}
        if open_txn == 41
        else {41: "c", 42: "o"} | ({open_txn: "o"} if open_txn else {})
    )


def test_hives_listener_finds_its_sequences(database: Database) -> None:
    with database.transaction(write=False) as connection:
        rows = dict(map(tuple, connection.execute(select(SEQUENCE_TABLE)).all()))
    model = "org.apache.hadoop.hive.metastore.model"
    assert rows == {f"{model}.MNotificationLog": 1, f"{model}.MTxnWriteNotificationLog": 1}
    assert inspect(database.engine).has_table("SEQUENCE_TABLE")
