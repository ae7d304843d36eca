"""Requests that lack what thrift's own readers do not ask for.

Of every method that is answered, without a line here: those that are empty at some depth, and those
that lack one field. By hand: what such requests do not reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from thrift.Thrift import TType

from hms_bridge.errors import HmsBridgeError, InvalidObjectError, MetaError
from hms_bridge.server.dispatch import Dispatcher
from hms_bridge.server.serve import offered_names
from hms_bridge.wire.methods import method
from hms_bridge.wire.structs import Struct, hive
from tests.support.filled_requests import DEPTH_MAX, dispatcher_of_filled, filled
from tests.support.served_metastore import ServedMetastore, served_metastore

KINDS = (("", 0), ("x", 1))
"""What texts and numbers are."""

INCOMPLETE: dict[str, dict[str, Any]] = {
    "add_partitions": {"new_parts": [hive.Partition(
        values=["1"], dbName="db", tableName="t",
        sd=hive.StorageDescriptor(sortCols=[hive.Order()], serdeInfo=hive.SerDeInfo()),
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
    "commit_txn": {"rqst": hive.CommitTxnRequest(
        txnid=1, replPolicy="db.*", txn_type=1, writeEventInfos=[hive.WriteEventInfo(writeId=1)]
    )},
}  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedMetastore]:
    with served_metastore(tmp_path_factory.mktemp("incomplete")) as served:
        yield served


@pytest.fixture
def dispatcher(served: ServedMetastore) -> Dispatcher:
    return dispatcher_of_filled(served)


@pytest.mark.parametrize("name", sorted(offered_names()))
def test_no_incomplete_request_is_an_internal_error(dispatcher: Dispatcher, name: str) -> None:
    arguments = method(name).arguments
    requests = [filled(arguments, depth, *kind) for depth in range(DEPTH_MAX) for kind in KINDS]
    requests += [_without(arguments, path) for path in _paths(arguments)]
    for request in requests:
        try:
            dispatcher._calls[name].answer(request)
        except HmsBridgeError as error:
            assert str(error)


def _paths(arguments: type[Struct]) -> Iterator[tuple[str, ...]]:
    """Of an argument, or of a field of one that is a struct."""
    for entry in filter(None, arguments.thrift_spec):
        yield (entry[2],)
        if entry[1] == TType.STRUCT:
            yield from ((entry[2], inner[2]) for inner in filter(None, entry[3][0].thrift_spec))


def _without(arguments: type[Struct], path: tuple[str, ...]) -> Struct:
    whole = filled(arguments, DEPTH_MAX, *KINDS[-1])
    holder = whole
    for field in path[:-1]:
        holder = getattr(holder, field)
    setattr(holder, path[-1], None)
    return whole


@pytest.mark.parametrize(("name", "fields"), [*INCOMPLETE.items(), *INNER.items()], ids=str)
def test_what_is_not_sent_is_told_by_name(
    dispatcher: Dispatcher, name: str, fields: dict[str, Any]
) -> None:
    """Clients leave out what their language calls required; none of it is an internal error."""
    call = dispatcher._calls[name]
    with pytest.raises((MetaError, InvalidObjectError)):
        call.answer(call.arguments(**fields))
