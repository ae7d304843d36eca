"""hmsclient (bindings of Hive 3) as it is, before our server."""

from collections.abc import Iterator

import pytest
from hmsclient import HMSClient
from hmsclient.genthrift.hive_metastore import ttypes as hive3
from thrift.Thrift import TApplicationException

from tests.support.served_metastore import ServedMetastore, served_metastore


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedMetastore]:
    with served_metastore(tmp_path_factory.mktemp("hmsclient")) as served:
        yield served


@pytest.fixture
def client(served: ServedMetastore) -> Iterator[HMSClient]:
    with HMSClient(host="127.0.0.1", port=served.port) as client:
        yield client


def _table(name: str, served: ServedMetastore, keys: list[str], **parameters: str) -> hive3.Table:
    storage = hive3.StorageDescriptor(
        cols=HMSClient.make_schema(["id:int", "v"]),
        location=f"file://{served.warehouse}/one.db/{name}",
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        serdeInfo=hive3.SerDeInfo(
            serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}
        ),
    )
    return hive3.Table(
        tableName=name, dbName="one", owner="bob", sd=storage, parameters=parameters,
        partitionKeys=HMSClient.make_schema(keys), tableType="EXTERNAL_TABLE",
    )  # fmt: skip


def test_databases_tables_and_partitions(client: HMSClient, served: ServedMetastore) -> None:
    client.create_database(hive3.Database(name="one", description="first", parameters={}))
    assert client.get_all_databases() == ["default", "one"]
    assert client.get_database("one").description == "first"

    client.create_table(_table("t", served, ["ds"], EXTERNAL="TRUE"))
    client.create_table(_table("u", served, [], EXTERNAL="TRUE"))
    assert client.get_all_tables("one") == ["t", "u"]
    assert client.get_tables("one", "t*") == ["t"]
    table = client.get_table("one", "t")
    assert [(c.name, c.type) for c in table.sd.cols] == [("id", "int"), ("v", "string")]
    assert (table.owner, table.tableType) == ("bob", "EXTERNAL_TABLE")

    for day in ("2024-01-01", "2024-01-02"):
        client.add_partition(table, [day])
    assert client.get_partition_names("one", "t", -1) == ["ds=2024-01-01", "ds=2024-01-02"]
    assert client.check_for_named_partition("one", "t", "ds=2024-01-02")
    assert not client.check_for_named_partition("one", "t", "ds=1999-01-01")
    found = client.get_partitions_by_filter("one", "t", 'ds > "2024-01-01"', -1)
    assert [one.values for one in found] == [["2024-01-02"]]
    client.drop_partitions("one", "t", ["ds=2024-01-01"])
    client.drop_partitions("one", "t", ["ds=2024-01-02"], need_result=True)
    assert client.get_partition_names("one", "t", -1) == []

    table.parameters["note"] = "changed"
    client.alter_table("one", "t", table)
    assert client.get_table("one", "t").parameters["note"] == "changed"
    client.drop_table("one", "u", False)
    with pytest.raises(hive3.NoSuchObjectException):
        client.get_table("one", "u")
    client.drop_database("one", True, True)
    assert client.get_all_databases() == ["default"]
    assert client.get_current_notification_id() > 5


def test_transactions_and_locks(client: HMSClient) -> None:
    opened = client.open_txns(hive3.OpenTxnRequest(num_txns=2, user="u", hostname="h"))
    first, second = opened.txn_ids
    assert client.get_open_txns().min_open_txn == first
    component = hive3.LockComponent(type=2, level=2, dbname="default", tablename="x")
    request = hive3.LockRequest(component=[component], txnid=first, user="u", hostname="h")
    response = client.lock(request)
    assert response.state == hive3.LockState.ACQUIRED
    assert client.check_lock(hive3.CheckLockRequest(lockid=response.lockid)).state == 1
    with pytest.raises(hive3.TxnOpenException):
        client.unlock(hive3.UnlockRequest(lockid=response.lockid))
    client.commit_txn(hive3.CommitTxnRequest(txnid=first))
    client.abort_txn(hive3.AbortTxnRequest(txnid=second))
    with pytest.raises(hive3.TxnAbortedException):
        client.commit_txn(hive3.CommitTxnRequest(txnid=second))
    with pytest.raises(hive3.NoSuchTxnException):
        client.abort_txn(hive3.AbortTxnRequest(txnid=99999))


def test_methods_that_hive_4_dropped_are_unknown(client: HMSClient) -> None:
    with pytest.raises(TApplicationException) as raised:
        client.get_index_names("default", "t", -1)
    assert raised.value.type == TApplicationException.UNKNOWN_METHOD
    assert client.get_all_databases() == ["default"]
