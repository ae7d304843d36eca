"""What every metastore logs, and what it remembers of writes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hms_bridge.errors import AlreadyExistsError, NoSuchObjectError, TxnAbortedError
from hms_bridge.metastore import Metastore
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.event import EventType, NotificationRequest, WriteNotification
from hms_bridge.model.ids import EventId
from hms_bridge.model.lock import DataOperation
from hms_bridge.model.target import Target
from hms_bridge.model.txn import TxnType
from tests.conformance.objects import (
    DS,
    abort,
    acid_table,
    commit,
    events_after,
    new_database,
    new_table,
    open_txn,
    partition,
    write,
)
from tests.support.event_messages import read_message


def types_after(metastore: Metastore, last: int) -> list[str]:
    return [event.type for event in events_after(metastore, last)]


class NotificationBehaviour:
    """Inherit through MetastoreBehaviour. Nobody else may write to the metastore meanwhile."""

    def test_ids_have_no_gaps(self, metastore: Metastore) -> None:
        last = metastore.get_current_event_id()
        name = new_database(metastore)
        new_table(metastore, name)
        with pytest.raises(AlreadyExistsError):
            metastore.create_table(acid_table(name))
        txn, _ = write(metastore, name)
        commit(metastore, txn)
        events = events_after(metastore, last)
        assert [event.id for event in events] == list(range(last + 1, last + 1 + len(events)))
        assert metastore.get_current_event_id() == events[-1].id

    def test_every_change_of_the_catalog_is_logged(self, metastore: Metastore) -> None:
        last = metastore.get_current_event_id()
        name = new_database(metastore)
        made = new_table(metastore, name, partition_columns=DS)
        metastore.add_partitions(name, "t", [partition(name, "t", v) for v in ("a", "b")])
        known = metastore.get_partition(name, "t", ["a"])
        metastore.alter_partitions(name, "t", [replace(known, parameters={"k": "v"})])
        metastore.alter_table(name, "t", replace(made, parameters={**made.parameters, "k": "v"}))
        metastore.drop_partitions(name, "t", ["ds=a", "ds=b"])
        metastore.drop_table(name, "t")
        metastore.alter_database(name, metastore.get_database(name))
        metastore.drop_database(name)
        assert types_after(metastore, last) == [
            "CREATE_DATABASE", "CREATE_TABLE", "ADD_PARTITION", "ALTER_PARTITIONS", "ALTER_TABLE",
            "DROP_PARTITION", "DROP_TABLE", "ALTER_DATABASE", "DROP_DATABASE",
        ]  # fmt: skip

    def test_a_change_of_partitions_is_one_event(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name, partition_columns=DS)
        metastore.add_partitions(name, "t", [partition(name, "t", v) for v in ("a", "b")])
        last = metastore.get_current_event_id()
        changed = [
            replace(known, parameters={"k": "v"}) for known in metastore.get_partitions(name, "t")
        ]
        metastore.alter_partitions(name, "t", changed)
        (event,) = events_after(metastore, last)
        message = read_message(event)
        assert event.type == EventType.ALTER_PARTITIONS.value
        assert sorted(one["ds"] for one in message["partitions"]) == ["a", "b"]
        told = [json.loads(text) for text in message["partitionListJson"]]
        assert sorted(one["1"]["lst"][2] for one in told) == ["a", "b"]
        assert all(one["7"]["map"][3]["k"] == "v" for one in told)

    def test_a_change_of_one_partition_tells_before_and_after(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name, partition_columns=DS)
        metastore.add_partitions(name, "t", [partition(name, "t", "a")])
        last = metastore.get_current_event_id()
        known = metastore.get_partition(name, "t", ["a"])
        changed = replace(known, parameters={"k": "v"})
        metastore.alter_partitions(name, "t", [changed], is_event_each=True)
        (event,) = events_after(metastore, last)
        message = read_message(event)
        assert event.type == EventType.ALTER_PARTITION.value
        before, after = (
            json.loads(message[key])["7"]["map"][3]
            for key in ("partitionObjBeforeJson", "partitionObjAfterJson")
        )
        assert ("k" in before, after["k"]) == (False, "v")

    def test_a_message_tells_what_happened(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name, partition_columns=DS)
        last = metastore.get_current_event_id()
        metastore.add_partitions(name, "t", [partition(name, "t", v) for v in ("a", "b")])
        (event,) = events_after(metastore, last)
        message = read_message(event)
        assert (event.database_name, event.table_name) == (name, "t")
        assert (message["db"], message["table"], message["tableType"]) == (
            name, "t", "MANAGED_TABLE",
        )  # fmt: skip
        assert message["partitions"] == [{"ds": "a"}, {"ds": "b"}]
        assert json.loads(message["tableObjJson"])["1"] == {"str": "t"}
        assert [json.loads(text)["1"]["lst"][2] for text in message["partitionListJson"]] == [
            "a", "b",
        ]  # fmt: skip

    def test_a_truncation_is_logged_under_its_write_id(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        txn, given = write(metastore, name)
        last = metastore.get_current_event_id()
        (seen,) = metastore.get_valid_write_ids([f"{name}.t"])
        metastore.truncate_table(
            name, "t", write_id=given, valid_write_ids=seen.format(), is_data_deleted=False
        )
        (event,) = events_after(metastore, last)
        message = read_message(event)
        assert (event.type, message["isTruncateOp"], message["writeId"]) == (
            "ALTER_TABLE", "true", given,
        )  # fmt: skip
        assert metastore.get_table(name, "t").write_id == given
        abort(metastore, txn)

    def test_a_rename_names_both(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        made = new_table(metastore, name)
        last = metastore.get_current_event_id()
        metastore.alter_table(name, "t", replace(made, name="t2"))
        (event,) = events_after(metastore, last)
        message = read_message(event)
        assert (event.type, event.table_name, message["table"]) == ("ALTER_TABLE", "t2", "t")
        before, after = (
            json.loads(message[key])["1"]["str"]
            for key in ("tableObjBeforeJson", "tableObjAfterJson")
        )
        assert (before, after) == ("t", "t2")

    def test_dropping_by_cascade_logs_every_table(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        for table in ("a", "b"):
            new_table(metastore, name, table)
        last = metastore.get_current_event_id()
        metastore.drop_database(name, is_cascade=True)
        assert types_after(metastore, last) == ["DROP_TABLE", "DROP_TABLE", "DROP_DATABASE"]

    def test_transactions_are_logged(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        last = metastore.get_current_event_id()
        txn, given = write(metastore, name)
        commit(metastore, txn)
        opened, allocated, committed = events_after(metastore, last)
        assert (opened.type, allocated.type, committed.type) == (
            "OPEN_TXN", "ALLOC_WRITE_ID_EVENT", "COMMIT_TXN",
        )  # fmt: skip
        assert opened.database_name is None
        assert (allocated.database_name, allocated.table_name) == (name, "t")
        told = read_message(allocated)
        assert (told["txnIdList"], told["writeIdList"]) == ([txn], [given])
        assert read_message(committed)["txnid"] == txn

    def test_an_abort_names_the_databases(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        txn, _ = write(metastore, name)
        last = metastore.get_current_event_id()
        abort(metastore, txn)
        abort(metastore, txn)
        (event,) = events_after(metastore, last)
        message = read_message(event)
        assert (event.type, message["txnid"], message["dbsUpdated"]) == ("ABORT_TXN", txn, [name])

    def test_a_lost_conflict_is_logged_as_abort(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        first, _ = write(metastore, name, operation=DataOperation.UPDATE)
        second, _ = write(metastore, name, operation=DataOperation.UPDATE)
        commit(metastore, first, is_exclusive_write_enabled=False)
        last = metastore.get_current_event_id()
        with pytest.raises(TxnAbortedError):
            commit(metastore, second, is_exclusive_write_enabled=False)
        assert types_after(metastore, last) == ["ABORT_TXN"]

    def test_readers_leave_no_trace(self, metastore: Metastore) -> None:
        last = metastore.get_current_event_id()
        txn = open_txn(metastore, TxnType.READ_ONLY)
        commit(metastore, txn)
        assert types_after(metastore, last) == []

    def test_events_are_read_in_parts(self, metastore: Metastore) -> None:
        last = metastore.get_current_event_id()
        name = new_database(metastore)
        for table in ("a", "b", "c"):
            new_table(metastore, name, table)

        def read(**given: object) -> list[str | None]:
            wanted = NotificationRequest(last_event_id=last, **given)  # type: ignore[arg-type]
            return [event.table_name for event in metastore.get_next_notification(wanted)]

        assert read(max_events=2) == [None, "a"]
        assert read(skipped_types=frozenset({"CREATE_DATABASE"})) == ["a", "b", "c"]
        # The most that are asked for count after every choice, else a follower gets nothing for
        # a page and takes it for the end of the log.
        assert read(max_events=2, types=frozenset({"CREATE_TABLE"})) == ["a", "b"]
        assert read(max_events=1, types=frozenset({"CREATE_TABLE"}), table_names=("c",)) == ["c"]
        assert read(database_name=name, table_names=("b",)) == ["b"]
        assert read(database_name="none") == []
        # As Hive's server has it: names in any case, and no most where none is sensible.
        assert read(database_name=name.upper(), table_names=("B",)) == ["b"]
        created = frozenset({"CREATE_TABLE"})
        assert read(catalog_name="HIVE", types=created, max_events=0) == ["a", "b", "c"]
        assert read(catalog_name="other", types=created, max_events=-1) == []
        assert read(types=created, max_events=-1) == ["a", "b", "c"]
        assert metastore.get_notification_events_count(EventId(last), name) == 4
        assert metastore.get_notification_events_count(EventId(last), name, tables=["A", "c"]) == 2

    # -- writes

    def test_written_files_are_remembered(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        made = new_table(metastore, name)
        txn, given = write(metastore, name)
        place = f"{made.storage.location}/delta_0000001_0000001_0000"
        first, second = (
            WriteNotification(
                txn_id=txn, write_id=given, database_name=name, table_name="t",
                files=(f"{place}/{bucket}",), checksums=("",),
                subdirectories=("delta_0000001_0000001_0000",),
            )
            for bucket in ("bucket_00000", "bucket_00001")
        )  # fmt: skip
        for _ in range(2):
            metastore.add_write_notifications([first])
        metastore.add_write_notifications([second])
        (event,) = metastore.get_write_events(txn)
        assert (event.write_id, event.target) == (given, Target(name, "t"))
        assert event.files == tuple(
            f"{place}/{bucket}###delta_0000001_0000001_0000"
            for bucket in ("bucket_00001", "bucket_00000")
        )
        assert json.loads(event.table_object)["1"] == {"str": "t"}
        assert metastore.get_write_events(txn, "none") == ()
        commit(metastore, txn)
        assert len(metastore.get_write_events(txn, name, "t")) == 1

    def test_writes_of_partitions_are_apart(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        place = new_table(metastore, name, partition_columns=DS).storage.location
        metastore.add_partitions(name, "t", [partition(name, "t", v) for v in ("a", "b")])
        txn, given = write(metastore, name)
        metastore.add_write_notifications(
            [
                WriteNotification(
                    txn_id=txn, write_id=given, database_name=name, table_name="t",
                    partition_values=(value,), files=(f"{place}/ds={value}/f",),
                )
                for value in ("b", "a")
            ]
        )  # fmt: skip
        found = metastore.get_write_events(txn)
        assert [event.partition for event in found] == ["ds=a", "ds=b"]
        assert all(event.partition_object for event in found)
        abort(metastore, txn)

    def test_a_write_of_an_unknown_table_is_refused(self, metastore: Metastore) -> None:
        txn = open_txn(metastore)
        with pytest.raises(NoSuchObjectError):
            metastore.add_write_notifications(
                [WriteNotification(txn_id=txn, write_id=1, database_name="no", table_name="t")]
            )
        abort(metastore, txn)


class OwnEventBehaviour:
    """Events that Hive does not log: only for our metastore, local or over thrift."""

    def test_a_compaction_is_logged_from_request_to_commit(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        txn, given = write(metastore, name)
        commit(metastore, txn)
        last = metastore.get_current_event_id()
        asked = metastore.compact(
            CompactionRequest(target=Target(name, "t"), type=CompactionType.MINOR)
        )
        found = metastore.find_next_compaction("w-1", "4.0")
        while found is not None and found.id != asked.id:
            found = metastore.find_next_compaction("w-1", "4.0")
        assert found is not None
        own = open_txn(metastore, TxnType.COMPACTION)
        ready = replace(found, highest_write_id=given, txn_id=own)
        metastore.update_compactor_state(ready, own)
        metastore.mark_compacted(ready)
        commit(metastore, own)
        events = events_after(metastore, last)
        assert [event.type for event in events] == [
            "REQUEST_COMPACTION", "OPEN_TXN", "COMMIT_TXN", "COMMIT_COMPACTION_EVENT",
        ]  # fmt: skip
        for event in (events[0], events[3]):
            told = read_message(event)
            assert (told["compactionId"], told["type"], told["dbname"], told["tableName"]) == (
                asked.id, "MINOR", name, "t",
            )  # fmt: skip
            assert told["partName"] is None

    def test_a_failed_compaction_is_logged(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        metastore.compact(
            CompactionRequest(target=Target(name, "t"), type=CompactionType.MAJOR, pool_name=name)
        )
        found = metastore.find_next_compaction("w-1", "4.0", name)
        assert found is not None
        last = metastore.get_current_event_id()
        metastore.mark_failed(replace(found, error_message="disk full"))
        (event,) = events_after(metastore, last)
        assert event.type == EventType.FAIL_COMPACTION.value
        assert read_message(event)["errorMessage"] == "disk full"
