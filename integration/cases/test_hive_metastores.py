"""Hive's own metastore servers of four generations answer Hive's thrift interface as PyIceberg
ships it.
"""

from __future__ import annotations

import pytest
from hive_metastore.ttypes import (
    AllocateTableWriteIdsRequest,
    CommitTxnRequest,
    Database,
    GetValidWriteIdsRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    NoSuchObjectException,
    OpenTxnRequest,
)
from thrift.Thrift import TApplicationException

from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from integration.referees.java_metastore import JavaMetastore
from integration.referees.outside import thrift_client

UNKNOWN_METHOD = 1
NOTHING_OPEN = 2**63 - 1


def _commit_in_a_transaction(metastore: JavaMetastore, *, has_write_ids: bool) -> None:
    """Open, lock, write id, commit: what one INSERT asks of a metastore."""
    database = f"txn_{metastore.version.replace('.', '_')}"
    with thrift_client(metastore.port) as client:
        client.create_database(
            Database(name=database, locationUri=f"file:{metastore.external_warehouse}/{database}")
        )
        assert database in client.get_all_databases()
        (txn,) = client.open_txns(OpenTxnRequest(num_txns=1, user="u", hostname="h")).txn_ids
        assert txn in {info.id for info in client.get_open_txns_info().open_txns}
        if has_write_ids:
            request = AllocateTableWriteIdsRequest(dbName=database, tableName="t", txnIds=[txn])
            (pair,) = client.allocate_table_write_ids(request).txnToWriteIds
            assert (pair.txnId, pair.writeId) == (txn, 1)
        component = LockComponent(
            type=LockType.SHARED_READ,
            level=LockLevel.TABLE,
            dbname=database,
            tablename="t",
            operationType=2,
        )
        answer = client.lock(LockRequest(component=[component], txnid=txn, user="u", hostname="h"))
        assert answer.state == LockState.ACQUIRED
        client.commit_txn(CommitTxnRequest(txnid=txn))
        after = client.get_open_txns_info()
        assert txn not in {info.id for info in after.open_txns}
        assert after.txn_high_water_mark >= txn
        if has_write_ids:
            snapshot = f"{after.txn_high_water_mark}:{NOTHING_OPEN}::"
            asked = GetValidWriteIdsRequest(fullTableNames=[f"{database}.t"], validTxnList=snapshot)
            (valid,) = client.get_valid_write_ids(asked).tblValidWriteIds
            assert (valid.writeIdHighWaterMark, valid.invalidWriteIds) == (1, [])


def test_transaction_on_420(hive42_metastore: JavaMetastore) -> None:
    _commit_in_a_transaction(hive42_metastore, has_write_ids=True)


def test_transaction_on_401(hms401: JavaMetastore) -> None:
    _commit_in_a_transaction(hms401, has_write_ids=True)


def test_transaction_on_313(hms313: JavaMetastore) -> None:
    _commit_in_a_transaction(hms313, has_write_ids=True)


def test_transaction_on_2310(hive2310: JavaMetastore) -> None:
    _commit_in_a_transaction(hive2310, has_write_ids=False)


def test_420_writes_the_notification_log(hive42_metastore: JavaMetastore) -> None:
    with thrift_client(hive42_metastore.port) as client:
        before = client.get_current_notificationEventId().eventId
        client.create_database(
            Database(
                name="logged", locationUri=f"file:{hive42_metastore.external_warehouse}/logged"
            )
        )
        assert client.get_current_notificationEventId().eventId == before + 1
    (row,) = hive42_metastore.database.query(
        'select * from "NOTIFICATION_LOG" where "EVENT_ID" = %s', before + 1
    )
    assert (row["EVENT_TYPE"], row["DB_NAME"]) == ("CREATE_DATABASE", "logged")


def _heeds_no_fence(metastore: JavaMetastore) -> None:
    """`repl promote --dry-run` goes by that: nothing may be changed to find it out."""
    with ThriftMetastoreClient(f"thrift://127.0.0.1:{metastore.port}") as client:
        assert not client.heeds_fences()


def test_420_heeds_no_fence(hive42_metastore: JavaMetastore) -> None:
    _heeds_no_fence(hive42_metastore)


def test_401_heeds_no_fence(hms401: JavaMetastore) -> None:
    _heeds_no_fence(hms401)


def _does_not_know_get_table(metastore: JavaMetastore) -> None:
    with thrift_client(metastore.port) as client, pytest.raises(TApplicationException) as refusal:
        client.get_table("default", "nope")
    assert refusal.value.type == UNKNOWN_METHOD


def test_401_does_not_know_get_table(hms401: JavaMetastore) -> None:
    _does_not_know_get_table(hms401)


def test_420_does_not_know_get_table(hive42_metastore: JavaMetastore) -> None:
    _does_not_know_get_table(hive42_metastore)


def test_313_knows_get_table(hms313: JavaMetastore) -> None:
    with thrift_client(hms313.port) as client, pytest.raises(NoSuchObjectException):
        client.get_table("default", "nope")


def test_2310_knows_get_table(hive2310: JavaMetastore) -> None:
    with thrift_client(hive2310.port) as client, pytest.raises(NoSuchObjectException):
        client.get_table("default", "nope")
