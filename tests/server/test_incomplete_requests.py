"""Requests that lack what thrift's own readers do not ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hms_bridge.errors import InvalidObjectError, MetaError
from hms_bridge.server.serve import dispatcher_of
from hms_bridge.wire.structs import hive
from tests.support.served_metastore import served_metastore

INCOMPLETE: dict[str, dict[str, Any]] = {
    "add_partitions": {"new_parts": [hive.Partition(
        values=["1"], dbName="db", tableName="t",
        sd=hive.StorageDescriptor(sortCols=[hive.Order()]),
    )]},
    "create_table": {},
    "get_catalog": {},
    "get_open_txns_req": {"getOpenTxnsRequest": hive.GetOpenTxnsRequest(excludeTxnTypes=[-1])},
    "add_write_notification_log": {
        "rqst": hive.WriteNotificationLogRequest(txnId=1, writeId=1, db="db", table="t")
    },
    "add_dynamic_partitions": {
        "rqst": hive.AddDynamicPartitions(txnid=1, writeid=1, dbname="db", tablename="t")
    },
    "allocate_table_write_ids": {"rqst": hive.AllocateTableWriteIdsRequest(
        dbName="db", tableName="t", replPolicy="db.*",
        srcTxnToWriteIdList=[hive.TxnToWriteId(), hive.TxnToWriteId(txnId=2)],
    )},
    "get_partition_values": {"request": hive.PartitionValuesRequest(dbName="db", tblName="t")},
    "commit_txn": {"rqst": hive.CommitTxnRequest(
        txnid=1, keyValue=hive.CommitTxnKeyValue(tableId=1, value="v")
    )},
    "seed_write_id": {"rqst": hive.SeedTableWriteIdsRequest(
        dbName="db", tableName="t", seedWriteId=2**63 - 1
    )},
    "repl_tbl_writeid_state": {"rqst": hive.ReplTblWriteIdStateRequest(
        validWriteIdlist="db.t", user="u", hostName="h", dbName="db", tableName="t"
    )},
}  # fmt: skip
INNER: dict[str, dict[str, Any]] = {
    "create_table": {"tbl": hive.Table(
        tableName="mv", dbName="default", tableType="MATERIALIZED_VIEW", viewOriginalText="s",
        viewExpandedText="s", sd=hive.StorageDescriptor(cols=[]),
        creationMetadata=hive.CreationMetadata(
            catName="hive", dbName="default", tblName="mv", tablesUsed={"default.t"},
            sourceTables=[hive.SourceTable(insertedCount=1)],
        ),
    )},
    "repl_tbl_writeid_state": {"rqst": hive.ReplTblWriteIdStateRequest(
        user="u", hostName="h", dbName="db", tableName="t"
    )},
    "get_partition_values": {"request": hive.PartitionValuesRequest(
        dbName="db", tblName="t", partitionKeys=[hive.FieldSchema()]
    )},
    "commit_txn": {"rqst": hive.CommitTxnRequest(
        txnid=1, replPolicy="db.*", txn_type=1, writeEventInfos=[hive.WriteEventInfo(writeId=1)]
    )},
}  # fmt: skip


@pytest.mark.parametrize(("name", "fields"), [*INCOMPLETE.items(), *INNER.items()], ids=str)
def test_what_is_not_sent_is_told_by_name(
    tmp_path: Path, name: str, fields: dict[str, Any]
) -> None:
    """Clients leave out what their language calls required; none of it is an internal error."""
    with served_metastore(tmp_path) as served:
        call = dispatcher_of(served.metastore)._calls[name]
        with pytest.raises((MetaError, InvalidObjectError)):
            call.answer(call.arguments(**fields))
