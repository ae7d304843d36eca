"""A Hive that reports what it writes (hive.metastore.dml.events) into partitions of which one's
path begins like another's."""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.model.event import NotificationRequest
from hms_bridge.model.ids import EventId, TxnId
from integration.comparison.cases import ACID
from integration.referees.hive42 import Hive42
from integration.referees.ours import OurServer
from tests.support.event_messages import read_message

DATABASE = "alike"
VALUES = ("1", "10", "1 0", "1%", "1é", "1:0")
INSERT_ONLY = "tblproperties ('transactional'='true', 'transactional_properties'='insert_only')"


@pytest.mark.parametrize(
    ("name", "kind"), [("acid", ACID), ("insert_only", f"stored as orc {INSERT_ONLY}")]
)
def test_each_partition_has_its_own_files_on_record(
    hive42: Hive42, ours: OurServer, name: str, kind: str
) -> None:
    hive = hive42.session_at(ours.uri, {"hive.exec.dynamic.partition.mode": "nonstrict"})
    hive.sql(f"create database if not exists {DATABASE} with dbproperties ('repl.source.for'='x')")
    table = f"{DATABASE}.{name}"
    hive.sql(f"create table {table} (id int) partitioned by (p string) {kind}")
    rows = ", ".join(f"({number}, '{value}')" for number, value in enumerate(VALUES))
    hive.sql(f"insert into {table} partition (p) values {rows}")
    hive.close()
    with ThriftMetastoreClient(ours.uri) as client:
        newest = client.get_open_txns().high_watermark
        found = next(
            events
            for txn_id in range(newest, 0, -1)
            if (events := client.get_write_events(TxnId(txn_id), DATABASE, name))
        )
    assert len(found) == len(VALUES)
    for event in found:
        (file,) = event.files
        assert event.partition in Path(file.split("#")[0]).parts, file


def test_so_have_those_of_a_table_without_transactions(hive42: Hive42, ours: OurServer) -> None:
    """Their files stand in INSERT events, of partitions that were there before."""
    hive = hive42.session_at(ours.uri, {"hive.exec.dynamic.partition.mode": "nonstrict"})
    hive.sql("create database plainly_alike")
    hive.sql("create external table plainly_alike.t (id int) partitioned by (p int) stored as orc")
    for _ in range(2):
        hive.sql("insert into plainly_alike.t partition (p) values (0, 1), (1, 10)")
    hive.close()
    with ThriftMetastoreClient(ours.uri) as client:
        asked = NotificationRequest(
            last_event_id=EventId(0), types=frozenset({"INSERT"}), database_name="plainly_alike"
        )
        told = [read_message(event) for event in client.get_next_notification(asked)]
    assert len(told) == 2
    for message in told:
        assert len({file.partition("/p=")[2].partition("/")[0] for file in message["files"]}) == 1
