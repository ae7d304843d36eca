"""Snapshots with many transactions in a row, which Hive 4 writes as ranges."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.model.ids import MAX_ID, TxnId
from hms_bridge.model.txn import AbortReason, OpenTxnsRequest
from hms_bridge.model.valid_ids import ValidTxnList
from integration.comparison.cases import ACID
from integration.referees.hive42 import Hive42
from integration.referees.ours import OurServer

TEXTS = 60


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


def test_texts_mean_to_us_what_they_mean_to_hive(hive42: Hive42) -> None:
    """Written by Hive's own class, and read by it."""
    numbers = random.Random(20)
    written = [_written_by_hive(hive42.main.jvm, numbers) for _ in range(TEXTS)]
    assert any("-" in text for text in written)
    for text in [*written, "20:2:2-6:9,11-17", "9:2:2-2,4:", "9:5:8-3,5:", "9:4:4-5,6-7", "9:9"]:
        hive = hive42.main.jvm.org.apache.hadoop.hive.common.ValidReadTxnList.fromValue(text)
        ours = ValidTxnList.parse(text)
        unseen = list(hive.getInvalidTransactions())
        assert sorted({*ours.open_ids, *ours.aborted_ids}) == sorted(set(unseen)), text
        assert (ours.high_watermark, ours.min_open) == (
            hive.getHighWatermark(),
            hive.getMinOpenTxn() or MAX_ID,
        ), text
        for txn_id in {*unseen, *numbers.choices(range(1, 60), k=3)}:
            assert ours.is_valid(TxnId(txn_id)) == hive.isTxnValid(txn_id), (text, txn_id)
            assert ours.is_aborted(TxnId(txn_id)) == hive.isTxnAborted(txn_id), (text, txn_id)


def _written_by_hive(jvm: Any, numbers: random.Random) -> str:
    """Of some ids up to 40, in rows of one state."""
    ids = sorted(numbers.sample(range(1, 41), numbers.randrange(41)))
    aborted = jvm.java.util.BitSet()
    array = jvm.java.lang.reflect.Array.newInstance(jvm.java.lang.Long.TYPE, len(ids))
    opened = []
    is_aborted = False
    for index, txn_id in enumerate(ids):
        array[index] = txn_id
        is_aborted ^= numbers.random() < 0.1
        if is_aborted:
            aborted.set(index)
        else:
            opened.append(txn_id)
    lowest = min(opened, default=MAX_ID)
    return str(jvm.org.apache.hadoop.hive.common.ValidReadTxnList(array, aborted, 40, lowest))
