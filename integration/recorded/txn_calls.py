"""Calls about transactions and compactions."""

from __future__ import annotations

from typing import Any

from hms_bridge.wire.structs import Struct, hive
from integration.recorded.objects import DATABASE, A, Asked, T

MAJOR, MINOR = 2, 1


def _names(table: str) -> str:
    return f"{DATABASE}.{table}"


def write_ids(ask: Asked) -> None:
    txn = ask.open()
    write_id = ask.allocate(txn)
    for number, given in (
        (txn, {_names(A): write_id}), (txn, {_names(A): write_id}), (txn, {}), (999, {_names(A): 1})
    ):  # fmt: skip
        ask("add_write_ids_to_min_history", txnId=number, writeIds=given)
    ask("commit_txn", rqst=hive.CommitTxnRequest(txnid=txn))
    ask("add_write_ids_to_min_history", txnId=txn, writeIds={_names(A): write_id})


def replayed(ask: Asked) -> None:
    for policy in ("p", None):
        ask("get_replayed_txns_for_policy", policyName=policy)
    opened = ask("open_txns", rqst=hive.OpenTxnRequest(
        num_txns=1, user="u", hostname="h", replPolicy="more.*", replSrcTxnIds=[77], txn_type=1
    ))  # fmt: skip
    ask("get_replayed_txns_for_policy", policyName="more.*")
    ask("abort_txn", rqst=hive.AbortTxnRequest(txnid=opened.txn_ids[0]))


def statistics_of_a_view(ask: Asked) -> None:
    view = ask.table(
        "view", tableType="MATERIALIZED_VIEW", viewOriginalText="select c from more.a",
        viewExpandedText="select c from more.a", rewriteEnabled=True,
        parameters={"transactional": "false"},
        creationMetadata=hive.CreationMetadata(
            catName="hive", dbName=DATABASE, tblName="view", tablesUsed={_names(A)},
            validTxnList="5:9223372036854775807::",
        ),
    )  # fmt: skip
    ask("create_table", tbl=view)
    request = hive.GetTableRequest(dbName=DATABASE, tblName=T)
    for number in (ask("get_table_req", req=request).table.id, 12345, -1):
        ask("update_transaction_statistics", req=hive.UpdateTransactionalStatsRequest(
            tableId=number, insertCount=3, updatedCount=2, deletedCount=1
        ))  # fmt: skip


def compactions(ask: Asked) -> None:
    def queue(table: str = A, partition: str | None = None, kind: int = MAJOR) -> int:
        found: int = ask("compact2", rqst=hive.CompactionRequest(
            dbname=DATABASE, tablename=table, partitionname=partition, type=kind, runas="u"
        )).id  # fmt: skip
        return found

    def shown() -> None:
        ask("show_compact", rqst=hive.ShowCompactRequest())

    def abort(*numbers: int) -> None:
        request = hive.AbortCompactionRequest(compactionIds=list(numbers))
        ask("abort_Compactions", rqst=request)

    first = queue()
    abort(first)
    shown()
    abort(first)
    abort(first, 999)
    abort()
    taken = queue(kind=MINOR)
    request = hive.FindNextCompactRequest(workerId="w-1", workerVersion="4")
    ask("find_next_compact2", rqst=request)
    abort(taken)
    shown()


def compaction_metrics(ask: Asked) -> None:
    def data(**fields: Any) -> Struct:
        return hive.CompactionMetricsDataStruct(**{
            "dbname": DATABASE, "tblname": A, "type": 1, "metricvalue": 12, "version": 1,
            "threshold": 1, **fields,
        })  # fmt: skip

    def remove(**fields: Any) -> None:
        ask("remove_compaction_metrics_data", request=hive.CompactionMetricsDataRequest(
            **{"dbName": DATABASE, "tblName": A, "type": 1, **fields}
        ))  # fmt: skip

    for given in (
        data(), data(metricvalue=13), data(metricvalue=14, version=2),
        data(tblname=T, partitionname="ds=1", type=2), data(tblname="nope"),
    ):  # fmt: skip
        ask("update_compaction_metrics_data", data=given)
    remove()
    remove()
    remove(tblName=T, partitionName="ds=1", type=2)
    remove(tblName="nope")


def cleanups(ask: Asked) -> None:
    def submit(txn: int, high: int = 1, **fields: Any) -> None:
        request = hive.CompactionRequest(**{
            "dbname": DATABASE, "tablename": "never", "type": MAJOR, "runas": "hive",
            "properties": {
                "location": f"file:{ask.warehouse}/{DATABASE}.db/never", "ifPurge": "true"
            }, **fields,
        })  # fmt: skip
        ask("submit_for_cleanup", o1=request, o2=high, o3=txn)

    txn = ask.open()
    ask.allocate(txn, "never")
    submit(txn)
    ask("show_compact", rqst=hive.ShowCompactRequest())
    submit(999)
    ask("abort_txn", rqst=hive.AbortTxnRequest(txnid=txn))
    submit(txn)
