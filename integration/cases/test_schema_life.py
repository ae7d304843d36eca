"""Hive's schema made and upgraded by us: its own schematool and metastores of three generations
judge it, and it is compared with what Hive's own upgrade makes of the same database.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hive_metastore.ttypes import (
    AbortTxnRequest,
    AllocateTableWriteIdsRequest,
    CommitTxnRequest,
    Database,
    FieldSchema,
    GetPartitionsByNamesRequest,
    GetTableRequest,
    OpenTxnRequest,
    Partition,
    Table,
)
from sqlalchemy import event

from hms_bridge.backend.engine import open_database
from hms_bridge.backend.schema.upgrade import connections_of_others, upgrade_schema
from hms_bridge.connect import opened_database
from hms_bridge.service.schema import make_version, schema_problems
from integration.comparison.mixed_load import storage
from integration.referees import install
from integration.referees.errors import RefereeError
from integration.referees.hive_schema import HiveSchemas, scripts_of, upgrade_scripts
from integration.referees.java_metastore import (
    Flavour,
    JavaMetastore,
    flavour_42,
    flavour_313,
    flavour_401,
)
from integration.referees.jdbc import JdbcDatabase
from integration.referees.mariadb import Database as MariaStore
from integration.referees.mariadb import MariaDb
from integration.referees.ours import OurProgram, OurServer
from integration.referees.outside import thrift_client
from integration.referees.postgresql import Database as Store
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import Workplace
from integration.referees.schematool import VALID, SchemaTool

PARTITIONS = ("2026-01-01", "2026-01-02")


@dataclass(frozen=True, kw_only=True, slots=True)
class Old:
    """What a Hive 3.1.3 metastore did in the database."""

    last_txn: int
    open_txn: int
    next_write_id: int


def _work_as_313(server: JavaMetastore | OurServer) -> Old:
    """A database, a table with partitions, transactions that committed and left no row, one that
    aborted, one that is still open."""
    place = f"file:{server.folder}/external/old"
    with thrift_client(server.port) as client:
        client.create_database(Database(name="old", locationUri=place))
        client.create_table(
            Table(
                dbName="old", tableName="t", owner="u", createTime=1, lastAccessTime=1,
                sd=storage(f"{place}/t"), tableType="EXTERNAL_TABLE",
                partitionKeys=[FieldSchema(name="day", type="string", comment="")],
                parameters={"EXTERNAL": "TRUE"},
            )
        )  # fmt: skip
        for day in PARTITIONS:
            client.add_partition(
                Partition(
                    values=[day], dbName="old", tableName="t", createTime=1, lastAccessTime=1,
                    sd=storage(f"{place}/t/day={day}"), parameters={"k": "v"},
                )
            )  # fmt: skip
        txns = client.open_txns(OpenTxnRequest(num_txns=5, user="u", hostname="h")).txn_ids
        for txn in txns[:3]:
            request = AllocateTableWriteIdsRequest(dbName="old", tableName="t", txnIds=[txn])
            client.allocate_table_write_ids(request)
        client.commit_txn(CommitTxnRequest(txnid=txns[0]))
        client.abort_txn(AbortTxnRequest(txnid=txns[1]))
        client.commit_txn(CommitTxnRequest(txnid=txns[2]))
        client.commit_txn(CommitTxnRequest(txnid=txns[4]))
    return Old(last_txn=txns[4], open_txn=txns[3], next_write_id=4)


def _works_on(server: JavaMetastore | OurServer, old: Old) -> int:
    """What was there is there; the next transaction is a new one, and gets the next write id."""
    with thrift_client(server.port) as client:
        assert "old" in client.get_all_databases()
        table = client.get_table_req(GetTableRequest(dbName="old", tblName="t")).table
        assert [column.name for column in table.partitionKeys] == ["day"]
        names = [f"day={day}" for day in PARTITIONS]
        asked = GetPartitionsByNamesRequest(db_name="old", tbl_name="t", names=names)
        found = client.get_partitions_by_names_req(asked).partitions
        assert sorted(one.values[0] for one in found) == list(PARTITIONS)
        assert {one.parameters["k"] for one in found} == {"v"}
        opened = {info.id: info.state for info in client.get_open_txns_info().open_txns}
        assert old.open_txn in opened
        (txn,) = client.open_txns(OpenTxnRequest(num_txns=1, user="u", hostname="h")).txn_ids
        assert txn > old.last_txn
        request = AllocateTableWriteIdsRequest(dbName="old", tableName="t", txnIds=[txn])
        (pair,) = client.allocate_table_write_ids(request).txnToWriteIds
        assert pair.txnId == txn
        client.commit_txn(CommitTxnRequest(txnid=txn))
        return int(pair.writeId)


COLUMNS = """
    select c.table_name || '.' || c.column_name as name,
           concat_ws(' ', c.data_type, c.character_maximum_length, c.is_nullable) as what
    from information_schema.columns c where c.table_schema = 'public'
"""
KEYS = """
    select i.indrelid::regclass::text || ' ' || case when i.indisprimary then 'primary key'
             when i.indisunique then 'unique' else 'index' end || ' ' ||
           (select string_agg(a.attname, ',' order by k.place)
            from unnest(i.indkey) with ordinality as k(number, place)
            join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number) as name,
           '' as what
    from pg_index i join pg_class t on t.oid = i.indrelid
    join pg_namespace n on n.oid = t.relnamespace where n.nspname = 'public'
"""

PG_DIFFERENCES = {
    # of a table whose primary key is the same column
    '- "SCHEDULED_EXECUTIONS" unique SCHEDULED_EXECUTION_ID': "",
}
"""What Hive's own upgrade has otherwise, line for line."""


def _catalog(store: Store) -> dict[str, str]:
    return {row["name"]: row["what"] for query in (COLUMNS, KEYS) for row in store.query(query)}


def _differences(ours: dict[str, str], hives: dict[str, str]) -> dict[str, str]:
    """``+ name``: only ours; ``- name``: only Hive's; ``~ name``: otherwise."""
    changed = {n: f"{hives[n]} → {w}" for n, w in ours.items() if n in hives and hives[n] != w}
    return (
        {f"+ {name}": what for name, what in ours.items() if name not in hives}
        | {f"- {name}": what for name, what in hives.items() if name not in ours}
        | {f"~ {name}": what for name, what in changed.items()}
    )


def _rows(store: Store) -> dict[str, list[str]]:
    tables = store.query("select table_name as t from information_schema.tables "
                         "where table_schema = 'public'")  # fmt: skip
    return {
        row["t"]: sorted(
            one["j"] for one in store.query(f'select to_jsonb(x)::text as j from "{row["t"]}" x')
        )
        for row in tables
    }


def test_a_310_database_becomes_one_of_42(
    postgresql: PostgreSql, hive_schemas: HiveSchemas, workplace: Workplace
) -> None:
    store = hive_schemas.database("3.1.3", "old")
    server = JavaMetastore(workplace, flavour_313(), database=store)
    old = _work_as_313(server)
    server.stop()
    hives = postgresql.database("old_by_hive", template=store)
    SchemaTool(workplace, "4.0.1").run(hives, "-upgradeSchema")
    postgresql.run_script(hives, install.RECIPES / "hive-4.2.0-schema.postgres.sql")

    before = _catalog(store)
    words = ("schema", "upgrade", "--to", "4.2.0", "--database", store.sqlalchemy_url)
    ours = OurProgram(workplace, "")
    planned = ours.verb(*words, "--dry-run")
    assert _catalog(store) == before
    assert ours.verb(*words) == planned

    assert _differences(_catalog(store), _catalog(hives)) == PG_DIFFERENCES
    mine, theirs = _rows(store), _rows(hives)
    (forgotten,) = set(mine.pop("TXNS")) - set(theirs.pop("TXNS"))
    assert f'"TXN_ID": {old.last_txn}, ' in forgotten, "no id is given again"
    assert mine == theirs

    assert VALID in SchemaTool(workplace, "4.2.0").run(store, "-validate")
    ours.verb("schema", "validate", "--database", store.sqlalchemy_url)
    hive = JavaMetastore(workplace, flavour_42(), database=store)
    assert _works_on(hive, old) == old.next_write_id
    hive.stop()
    beside = OurServer(workplace, store.sqlalchemy_url)
    assert _works_on(beside, old) == old.next_write_id + 1
    beside.stop()
    assert VALID in SchemaTool(workplace, "4.2.0").run(store, "-validate")


STARTED = [("4.0.0", flavour_401), ("4.2.0", flavour_42)]
"""Versions that we make, and the Hive that is to start on each."""


@pytest.mark.parametrize(("version", "flavour"), STARTED)
def test_hive_starts_on_a_database_that_we_made(
    postgresql: PostgreSql, workplace: Workplace, version: str, flavour: Callable[[], Flavour]
) -> None:
    _hive_starts_on_ours(postgresql.database("made"), workplace, version, flavour())


@pytest.mark.parametrize(("version", "flavour"), STARTED)
def test_hive_starts_on_a_database_that_we_made_on_mariadb(
    mariadb: MariaDb, workplace: Workplace, version: str, flavour: Callable[[], Flavour]
) -> None:
    _hive_starts_on_ours(mariadb.database("made"), workplace, version, flavour())


def test_hive_31_starts_on_a_database_that_we_made(
    postgresql: PostgreSql, workplace: Workplace
) -> None:
    """We do not, before it is upgraded; Hive's own upgrade finds what it drops."""
    store = postgresql.database("made")
    words = ("--database", store.sqlalchemy_url)
    ours = OurProgram(workplace, "")
    _make(store, workplace, "3.1.0")
    assert VALID in SchemaTool(workplace, "3.1.3").run(store, "-validate")
    hives = postgresql.database("made_for_hive", template=store)
    SchemaTool(workplace, "4.0.1").run(hives, "-upgradeSchema")
    assert _problems(hives) == ()

    server = JavaMetastore(
        workplace, flavour_313(), database=store, settings={"metastore.schema.verification": "true"}
    )
    old = _work_as_313(server)
    server.stop()
    assert _problems(store) == ()
    with pytest.raises(RefereeError, match=r"run 'hms-bridge schema upgrade --to 4\.0\.0'"):
        ours.verb("serve", "--port", "0", *words)
    with opened_database(store.sqlalchemy_url) as database:
        upgrade_schema(database, "4.0.0")
    ours.verb("schema", "init", *words)
    beside = OurServer(workplace, store.sqlalchemy_url)
    assert _works_on(beside, old) == old.next_write_id
    beside.stop()


def test_what_we_made_of_31_is_valid_on_mariadb(mariadb: MariaDb, workplace: Workplace) -> None:
    store = mariadb.database("made")
    _make_tables(store, "3.1.0")
    assert VALID in SchemaTool(workplace, "3.1.3").run(store, "-validate")
    assert _problems(store) == ()
    SchemaTool(workplace, "4.0.1").run(store, "-upgradeSchema")
    assert _problems(store) == ()


def test_what_we_made_of_41_is_valid(
    postgresql: PostgreSql, mariadb: MariaDb, workplace: Workplace
) -> None:
    tool = SchemaTool(workplace, "4.1.0")
    for store in (postgresql.database("made"), mariadb.database("made")):
        _make_tables(store, "4.1.0")
        assert VALID in tool.run(store, "-validate")


def _make(store: JdbcDatabase, workplace: Workplace, version: str) -> None:
    words = ("--schema-version", version, "--database", store.sqlalchemy_url)
    OurProgram(workplace, "").verb("schema", "init", *words)


def _make_tables(store: JdbcDatabase, version: str) -> None:
    """Hive's, without what the program does beside."""
    with opened_database(store.sqlalchemy_url) as database:
        make_version(database, version)


def _problems(store: JdbcDatabase) -> tuple[dict[str, str], ...]:
    with opened_database(store.sqlalchemy_url) as database:
        return schema_problems(database)


def _hive_starts_on_ours(
    store: JdbcDatabase, workplace: Workplace, version: str, flavour: Flavour
) -> None:
    """Its schematool finds nothing wrong, it works, and then we do."""
    _make(store, workplace, version)
    assert VALID in SchemaTool(workplace, flavour.version).run(store, "-validate")
    server = JavaMetastore(
        workplace, flavour, database=store, settings={"metastore.schema.verification": "true"}
    )
    old = _work_as_313(server)
    database = open_database(store.sqlalchemy_url)
    assert connections_of_others(database) > 0, "an upgrade now would say so"
    database.close()
    server.stop()
    beside = OurServer(workplace, store.sqlalchemy_url)
    assert _works_on(beside, old) == old.next_write_id
    beside.stop()
    OurProgram(workplace, "").verb("schema", "validate", "--database", store.sqlalchemy_url)


def test_hives_own_upgrade_works_on_what_we_made(
    postgresql: PostgreSql, workplace: Workplace
) -> None:
    """It drops indexes by their names."""
    store = postgresql.database("made_for_hive")
    words = ("--database", store.sqlalchemy_url)
    ours = OurProgram(workplace, "")
    ours.verb("schema", "init", *words)
    store.execute('drop index "HMSB_TXN_STATE"')
    postgresql.run_script(store, install.RECIPES / "hive-4.2.0-schema.postgres.sql")
    ours.verb("schema", "validate", *words)
    assert VALID in SchemaTool(workplace, "4.2.0").run(store, "-validate")


def test_validation_finds_what_schematool_finds(
    postgresql: PostgreSql, workplace: Workplace
) -> None:
    store = postgresql.database("broken")
    words = ("--database", store.sqlalchemy_url)
    ours, tool = OurProgram(workplace, ""), SchemaTool(workplace, "4.0.1")
    ours.verb("schema", "init", *words)
    store.execute('update "DBS" set "DB_LOCATION_URI" = \'/no/file/system\'')
    with pytest.raises(RefereeError, match="FAIL"):
        tool.run(store, "-validate")
    with pytest.raises(RefereeError, match="names no file system"):
        ours.verb("schema", "validate", *words)


MARIA_COLUMNS = """
    select concat(table_name, '.', column_name) as name,
           concat_ws(' ', data_type, character_maximum_length, is_nullable) as what
    from information_schema.columns where table_schema = database()
"""
MARIA_KEYS = """
    select concat(table_name, if(index_name = 'PRIMARY', ' primary key ',
                  if(non_unique, ' index ', ' unique ')),
                  group_concat(column_name order by seq_in_index)) as name, '' as what
    from information_schema.statistics where table_schema = database()
    group by table_name, index_name, non_unique
"""
MARIA_DIFFERENCES = {
    "- SCHEDULED_EXECUTIONS unique SCHEDULED_EXECUTION_ID": "",
    # seconds and numbers with 64 bits, as PostgreSQL has them
    "~ CTLGS.CREATE_TIME": "int YES → bigint YES",
    "~ DBS.CREATE_TIME": "int YES → bigint YES",
    "~ DC_PRIVS.CREATE_TIME": "int NO → bigint NO",
    "~ SCHEDULED_QUERIES.ACTIVE_EXECUTION_ID": "int YES → bigint YES",
    # as in a new database of Hive's
    "~ TXN_LOCK_TBL.TXN_LOCK": "bigint YES → bigint NO",
}


def test_a_310_database_on_mariadb_becomes_one_of_40(
    mariadb: MariaDb, workplace: Workplace
) -> None:
    """With ids of transactions that left no row; the second upgrade has nothing to do."""
    stores = [mariadb.database("old") for _ in range(2)]
    for store in stores:
        for script in scripts_of("3.1.3", "mysql"):
            mariadb.run_script(store, script)
        store.query("update NEXT_TXN_ID set NTXN_NEXT = 42")
        store.query(
            "insert into TXNS (TXN_ID, TXN_STATE, TXN_STARTED, TXN_LAST_HEARTBEAT, TXN_USER, "
            "TXN_HOST) values (7, 'a', 1, 1, 'u', 'h')"
        )
    mine, hives = stores
    for script in upgrade_scripts():
        mariadb.run_script(hives, script)
    ours = OurProgram(workplace, "")
    words = ("schema", "upgrade", "--to", "4.0.0", "--database", mine.sqlalchemy_url)
    ours.verb(*words)
    found = [
        {
            row["name"]: row["what"]
            for query in (MARIA_COLUMNS, MARIA_KEYS)
            for row in s.query(query)
        }
        for s in stores
    ]
    assert _differences(*found) == MARIA_DIFFERENCES
    ours.verb("schema", "validate", "--database", mine.sqlalchemy_url)
    mine.query(
        "insert into TXNS (TXN_STATE, TXN_STARTED, TXN_LAST_HEARTBEAT, TXN_USER, TXN_HOST) "
        "values ('o', 1, 1, 'u', 'h')"
    )
    ids = [row["TXN_ID"] for row in mine.query("select TXN_ID from TXNS order by TXN_ID")]
    assert ids == [7, 41, 42]
    ours.verb("schema", "upgrade", "--to", "4.2.0", "--database", mine.sqlalchemy_url)
    ours.verb("schema", "validate", "--database", mine.sqlalchemy_url)
    assert VALID in SchemaTool(workplace, "4.2.0").run(mine, "-validate")
    _we_work_on_theirs(hives, workplace)


def _we_work_on_theirs(store: MariaStore, workplace: Workplace) -> None:
    OurProgram(workplace, "").verb("schema", "init", "--database", store.sqlalchemy_url)
    server = OurServer(workplace, store.sqlalchemy_url)
    old = _work_as_313(server)
    assert _works_on(server, old) == old.next_write_id
    server.stop()


class KilledError(Exception):
    """What stands for the end of the process."""


def test_an_upgrade_on_mariadb_goes_on_after_each_end(
    mariadb: MariaDb, workplace: Workplace
) -> None:
    """It commits each statement by itself: with ends after three, and more each time, none is lost
    or done twice. What may be done twice is, so that a constant number would never be enough."""
    whole, cut = (mariadb.database("cut") for _ in range(2))
    for store in (whole, cut):
        for script in scripts_of("3.1.3", "mysql"):
            mariadb.run_script(store, script)
        store.query("update NEXT_TXN_ID set NTXN_NEXT = 42")
        store.query("insert into WM_RESOURCEPLAN (RP_ID, NAME, STATUS) values (1, 'p', 'ACTIVE')")
    words = ("schema", "upgrade", "--to", "4.2.0", "--database")
    OurProgram(workplace, "").verb(*words, whole.sqlalchemy_url)
    ends = 0
    while not _upgraded_until(cut, statements=3 + ends // 2):
        ends += 1
    assert ends > 10
    asked = (MARIA_COLUMNS, MARIA_KEYS)
    schemas = [
        {row["name"]: row["what"] for query in asked for row in store.query(query)}
        for store in (whole, cut)
    ]
    assert _differences(*schemas) == {}
    for table in ("TXNS", "SEQUENCE_TABLE", "VERSION", "WM_RESOURCEPLAN", "TXN_LOCK_TBL"):
        rows = [store.query(f"select * from {table} order by 1") for store in (whole, cut)]
        assert rows[0] == rows[1], table


def _upgraded_until(store: MariaStore, statements: int) -> bool:
    """Whether the upgrade came to its end before it has made so many changes."""
    database = open_database(store.sqlalchemy_url)
    changes = iter(range(statements))

    @event.listens_for(database.engine, "before_cursor_execute")
    def die(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        is_change = statement.startswith(("ALTER", "CREATE", "DROP", "INSERT", "UPDATE"))
        if is_change and next(changes, None) is None:
            raise KilledError

    try:
        upgrade_schema(database, "4.2.0")
    except KilledError:
        return False
    finally:
        database.close()
    return True
