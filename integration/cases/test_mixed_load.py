"""A Hive 4.0.1 metastore and ours on one database, driven at once over thrift: nothing that a
client was told is untrue afterwards.

How long: HMS_BRIDGE_MIXED_SECONDS (40; the ten minutes of a release: 600). What both do to files,
and Hive's own sessions, is in `test_storm_beside_hive.py`.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hive_metastore.ttypes import Database

from integration.comparison.mixed_load import TABLES, MixedClient, Told, run_all, table_of
from integration.referees.hive_schema import HiveSchemas, scripts_of
from integration.referees.java_metastore import JavaMetastore, flavour_401
from integration.referees.mariadb import Database as MariaStore
from integration.referees.mariadb import MariaDb
from integration.referees.ours import OurProgram, OurServer
from integration.referees.outside import thrift_client
from integration.referees.postgresql import Database as PostgreSqlStore
from integration.referees.processes import Workplace

SECONDS = float(os.environ.get("HMS_BRIDGE_MIXED_SECONDS", "40"))
CLIENTS_EACH = 4
NAME = "mixed"
Store = PostgreSqlStore | MariaStore


@pytest.mark.timeout(SECONDS + 600)
def test_both_under_load_keep_what_they_said(
    hive_schemas: HiveSchemas, workplace: Workplace, tmp_path: Path
) -> None:
    store = hive_schemas.database("4.0.1", "mixed")
    _load(store, workplace, tmp_path)
    deadlocks = "select deadlocks as n from pg_stat_database where datname = current_database()"
    print(f"{store.query(deadlocks)[0]['n']} deadlocks")


@pytest.mark.timeout(SECONDS + 600)
def test_both_on_mariadb_keep_what_they_said(
    mariadb: MariaDb, workplace: Workplace, tmp_path: Path
) -> None:
    store = mariadb.database("mixed")
    for script in scripts_of("4.0.1", store.db_type):
        mariadb.run_script(store, script)
    _load(store, workplace, tmp_path)
    print(f"{mariadb.deadlocks()} deadlocks")


def _load(store: Store, workplace: Workplace, folder: Path) -> None:
    hive = JavaMetastore(workplace, flavour_401(), database=store)
    ours = OurServer(workplace, store.sqlalchemy_url, warehouse=hive.warehouse)
    place = f"file:{hive.warehouse}/{NAME}.db"
    with thrift_client(ours.port) as client:
        client.create_database(Database(name=NAME, locationUri=f"file:{folder}/external"))
        for name in (*TABLES, "parts"):
            here = f"file:{folder}/external/parts" if name == "parts" else f"{place}/{name}"
            client.create_table(table_of(NAME, name, here))
    told = Told()
    clients = [
        MixedClient(f"{side}{number}", port, NAME, told, seed=number)
        for number in range(CLIENTS_EACH)
        for side, port in (("hive", hive.port), ("ours", ours.port))
    ]
    run_all(clients, SECONDS)
    print(f"{dict(told.done)}, ended {Counter(told.ended.values())}")
    assert told.errors == [], "a deadlock, or anything else, came through to a client"
    _ids_are_given_once(told)
    _transactions_ended_as_told(store, told)
    _write_ids_are_whole(store, told)
    _compactions_are_single(store, told)
    _partitions_are_as_told(store, told)
    _events_are_whole(store)
    hive.stop()
    ours.stop()
    OurProgram(workplace, "").verb("schema", "validate", "--database", store.sqlalchemy_url)
    assert min(told.done[f"{side} write"] for side in ("hive", "ours")) > SECONDS / 4


def _ids_are_given_once(told: Told) -> None:
    for ids in (told.txns, told.locks, told.compactions):
        assert [one for one, count in Counter(ids).items() if count > 1] == []
    pairs = Counter((table, number) for table, number, _ in told.write_ids)
    assert [one for one, count in pairs.items() if count > 1] == []
    assert told.compactions


def _transactions_ended_as_told(store: Store, told: Told) -> None:
    """Committed ones left what they wrote, with its write id; others left nothing."""
    states = {row["i"]: row["s"] for row in store.query(
        'select "TXN_ID" as i, "TXN_STATE" as s from "TXNS"')}  # fmt: skip
    assert {txn for txn, state in states.items() if state == "o"} == set()
    completed = {
        row["t"]: (row["n"], row["w"])
        for row in store.query(
            'select "CTC_TXNID" as t, "CTC_TABLE" as n, "CTC_WRITEID" as w '
            'from "COMPLETED_TXN_COMPONENTS" where "CTC_WRITEID" is not null'
        )
    }
    assert completed == told.committed
    assert {txn for txn in told.committed if states.get(txn) == "a"} == set()
    assert told.ended.keys() == set(told.txns)


def _write_ids_are_whole(store: Store, told: Told) -> None:
    """1, 2, 3 … of each table, to the transactions that were told so, and the next one after it.
    Both sides forget those of transactions below all that are open or aborted."""
    given: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for table, number, txn in told.write_ids:
        given[table][number] = txn
    for row in store.query('select * from "NEXT_WRITE_ID" where "NWI_DATABASE" = %s', NAME):
        assert sorted(given[row["NWI_TABLE"]]) == list(range(1, row["NWI_NEXT"]))
    kept = store.query('select * from "TXN_TO_WRITE_ID" where "T2W_DATABASE" = %s', NAME)
    for row in kept:
        assert given[row["T2W_TABLE"]][row["T2W_WRITEID"]] == row["T2W_TXNID"]
    forgotten = {txn for _, _, txn in told.write_ids} - {row["T2W_TXNID"] for row in kept}
    left = store.query('select min("TXN_ID") as n from "TXNS" where "TXN_STATE" = \'a\'')
    assert max(forgotten, default=0) < left[0]["n"]
    assert len(kept) + len(forgotten) == len(told.write_ids)


def _compactions_are_single(store: Store, told: Told) -> None:
    """But where Hive alone doubled one: it lets the mutex go before it commits what it has queued
    (CompactFunction), and looks into the queue before it takes the counter."""
    waiting = defaultdict(list)
    for row in store.query(
        'select "CQ_TABLE" as t, "CQ_ID" as n from "COMPACTION_QUEUE" '
        "where \"CQ_STATE\" in ('i', 'w')"
    ):
        waiting[row["t"]].append(told.queued[row["n"]][:4])
    doubled = [sides for sides in waiting.values() if len(sides) > 1]
    print(f"compactions of one table: {doubled}")
    assert [sides for sides in doubled if "ours" in sides] == []
    ids = store.query(
        'select id from (select "CQ_ID" as id from "COMPACTION_QUEUE" union all '
        'select "CC_ID" from "COMPLETED_COMPACTIONS") x group by id having count(*) > 1'
    )
    assert ids == []


def _partitions_are_as_told(store: Store, told: Told) -> None:
    rows = store.query(
        'select p."PART_NAME" as n, v."PARAM_VALUE" as v from "PARTITIONS" p '
        'join "PARTITION_PARAMS" v on v."PART_ID" = p."PART_ID" and v."PARAM_KEY" = \'k\''
    )
    assert {row["n"]: row["v"] for row in rows} == {
        name: "2" for (_, name), is_there in told.partitions.items() if is_there
    }


def _events_are_whole(store: Store) -> None:
    """This Hive logs none; ours are without a gap, and no row number is given twice."""
    ids = [row["e"] for row in store.query(
        'select "EVENT_ID" as e from "NOTIFICATION_LOG" order by 1')]  # fmt: skip
    (following,) = store.query('select "NEXT_EVENT_ID" as n from "NOTIFICATION_SEQUENCE"')
    assert ids == list(range(1, following["n"]))
