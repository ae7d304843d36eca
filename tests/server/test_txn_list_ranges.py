"""Snapshots as Hive's storage-api 2.8.1 and later writes them: five ids in a row are a range."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.model.ids import MAX_ID
from hms_bridge.model.txn import (
    AbortReason,
    AllocateWriteIdsRequest,
    CommitTxnRequest,
    OpenTxnsRequest,
)
from hms_bridge.model.valid_ids import ValidTxnWriteIdList
from hms_bridge.wire.structs import Struct, hive
from tests.support.served_metastore import ServedMetastore, served_metastore

NAMES = ["db.t"]


@pytest.fixture
def served(fast_folder: Path) -> Iterator[ServedMetastore]:
    """Of db.t, write id 1 is committed, 2 to 8 are open, 9 to 15 aborted, 16 is open."""
    with served_metastore(fast_folder) as served:
        with ThriftMetastoreClient(served.uri) as client:
            request = OpenTxnsRequest(count=16, user="u", host="h")
            txn_ids = client.open_txns(request)
            client.allocate_table_write_ids(
                AllocateWriteIdsRequest(database_name="db", table_name="t", txn_ids=txn_ids)
            )
            client.commit_txn(CommitTxnRequest(txn_id=txn_ids[0]))
            client.abort_txns(txn_ids[8:15], AbortReason.QUERY)
        yield served


def invalid(served: ServedMetastore, text: str) -> tuple[list[int], bytes]:
    """The ids that nobody sees, and which of them are aborted."""
    request = hive.GetValidWriteIdsRequest(fullTableNames=NAMES, validTxnList=text)
    (found,) = served.call("get_valid_write_ids", rqst=request).tblValidWriteIds
    return found.invalidWriteIds, found.abortedBits


def materialization(served: ServedMetastore, text: str) -> Struct:
    seen = f"1$db.t:16:2:{','.join(map(str, (*range(2, 9), 16)))}:"
    creation = hive.CreationMetadata(
        catName="hive", dbName="db", tblName="v", tablesUsed=NAMES, validTxnList=seen
    )
    assert ValidTxnWriteIdList.parse(seen).lists[0].min_open == 2
    return served.call(
        "get_materialization_invalidation_info", creation_metadata=creation, validTxnList=text
    )


def test_seven_open_and_seven_aborted_in_a_row_are_read(served: ServedMetastore) -> None:
    plain = f"16:2:{','.join(map(str, (*range(2, 9), 16)))}:{','.join(map(str, range(9, 16)))}"
    ranges = "16:2:2-8,16:9-15"
    answer = invalid(served, ranges)
    assert answer == invalid(served, plain)
    assert answer[0] == list(range(2, 17))
    assert materialization(served, ranges) == materialization(served, plain)
    assert not materialization(served, ranges).sourceTablesCompacted


def test_a_text_of_a_stranger_costs_no_more_than_its_length(served: ServedMetastore) -> None:
    """Ten thousand ranges of all ids that there may be."""
    everything = ",".join(f"{first}-{MAX_ID}" for first in range(2, 10_000))
    invalid(served, "16:2:2-8:")
    tracemalloc.start()
    assert invalid(served, f"16:1:{everything}:{everything}") == (list(range(2, 17)), b"")
    assert invalid(served, f"{MAX_ID}:{MAX_ID}::1-{MAX_ID}") == (list(range(1, 17)), b"\xff\xff")
    assert not materialization(served, f"{MAX_ID}:1:{everything}:").sourceTablesCompacted
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 40_000_000


def test_what_is_no_range_is_refused(served: ServedMetastore) -> None:
    for text in ("16:2:2-:", "16:2:2--8:", "16:2:2-8-9:", "16:2::9-x", f"16:2:2-{MAX_ID + 1}:"):
        with pytest.raises(Exception, match="malformed; it should be"):
            invalid(served, text)
