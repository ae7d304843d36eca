"""Snapshots with many transactions in a row, which Hive 4 writes as ranges."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.model.txn import AbortReason, OpenTxnsRequest
from integration.comparison.cases import ACID
from integration.referees.hive42 import Hive42
from integration.referees.ours import OurServer


@pytest.fixture
def crowded(ours: OurServer) -> Iterator[OurServer]:
    """Seven transactions in a row are open, seven aborted."""
    with ThriftMetastoreClient(ours.uri) as client:
        txn_ids = client.open_txns(OpenTxnsRequest(count=14, user="crowd", host="h"))
        client.abort_txns(txn_ids[7:], AbortReason.QUERY)
        yield ours
        client.abort_txns(txn_ids[:7], AbortReason.QUERY)


def test_hive_works_while_seven_transactions_in_a_row_are_open(
    hive42: Hive42, crowded: OurServer
) -> None:
    hive = hive42.session_at(crowded.uri)
    hive.sql("create database crowded")
    hive.sql(f"create table crowded.t (id int, v string) {ACID}")
    hive.sql("insert into crowded.t values (1, 'a'), (2, 'b')")
    hive.sql(
        "create materialized view crowded.m stored as orc tblproperties ('transactional'='true') "
        "as select id from crowded.t where id > 0"
    )
    hive.sql("update crowded.t set v = 'x' where id = 2")
    hive.sql("alter materialized view crowded.m rebuild")
    assert sorted(hive.sql("select * from crowded.t")) == [("1", "a"), ("2", "x")]
    assert sorted(hive.sql("select * from crowded.m")) == [("1",), ("2",)]
    hive.close()
