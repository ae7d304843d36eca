"""Every verb of the port arrives at the server as the client was called, and answers come back."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from hms_bridge import errors
from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.metastore import Metastore
from hms_bridge.model.compaction import (
    AbortOutcome,
    CompactionRequest,
    CompactionResponse,
    CompactionState,
    CompactionType,
    ShowCompactionsRequest,
)
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind, ReferredColumn
from hms_bridge.model.event import (
    InsertNotification,
    NotificationEvent,
    NotificationRequest,
    WriteNotification,
)
from hms_bridge.model.ids import CompactionId, EventId, LockId, TxnId, WriteId
from hms_bridge.model.lock import (
    DataOperation,
    LockComponent,
    LockFilter,
    LockInfo,
    LockLevel,
    LockRequest,
    LockResponse,
    LockState,
    LockType,
)
from hms_bridge.model.materialization import MaterializationChanges
from hms_bridge.model.statistics import (
    AggregatedStatistics,
    ChangedRows,
    ObjectStatistics,
    StatisticsQuery,
    StatisticsUpdate,
)
from hms_bridge.model.target import Scope, Target
from hms_bridge.model.txn import (
    AbortReason,
    AbortTxnRequest,
    AllocateWriteIdsRequest,
    CommitKeyValue,
    CommitTxnRequest,
    DynamicPartitions,
    HeartbeatRangeResult,
    OpenTxn,
    OpenTxns,
    OpenTxnsRequest,
    ReplLastId,
    TableWriteIdState,
    TxnInfo,
    TxnState,
    TxnToWriteId,
    TxnType,
    WriteEvent,
)
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.server.serve import MetastoreServer
from tests.support.fake_metastore import FakeMetastore
from tests.support.sample_records import (
    COLUMN_STATISTICS,
    COMPACTION,
    CREATION,
    DATABASE,
    FUNCTION,
    HISTORY,
    MATERIALIZED,
    PARTITION,
    TABLE,
    VIEW,
)
from tests.wire.test_fields import LAYOUTS

WRITE_EVENT = WriteEvent(
    write_id=WriteId(3), target=Target("db", "t", "ds=1"),
    table_object="{}", partition_object="{}", files=("a###", "b#1#c#d"),
)  # fmt: skip
EVENT = NotificationEvent(
    id=EventId(3), time_seconds=9, type="CREATE_TABLE", database_name="db", table_name="t",
    message='{"é":1}',
)  # fmt: skip
LOCK = LockInfo(
    lock_id=LockId(1), internal_id=2, scope=Scope("db", "t", "ds=1"),
    state=LockState.WAITING, type=LockType.EXCL_WRITE, txn_id=TxnId(0), last_heartbeat_ms=5,
    acquired_at_ms=6, user="u", host="h", agent="a", blocked_by_lock_id=LockId(9),
    blocked_by_internal_id=1,
)  # fmt: skip
COMPONENTS = (
    LockComponent(type=LockType.SHARED_READ, level=LockLevel.DB, scope=Scope("db")),
    LockComponent(
        type=LockType.EXCL_WRITE, level=LockLevel.PARTITION, scope=Scope("db", "t", "ds=1"),
        operation=DataOperation.UPDATE, is_transactional=True,
        is_dynamic_partition_write=True,
    ),
    LockComponent(
        type=LockType.EXCLUSIVE, level=LockLevel.TABLE, scope=Scope("db", "t"),
        operation=DataOperation.NO_TXN, is_transactional=False,
    ),
)  # fmt: skip

BEHAVIOUR = Path(__file__).parents[1] / "conformance"

# verb, arguments, keyword arguments, what the server's metastore answers
CONSTRAINTS = (
    ColumnConstraint(name="c", kind=ConstraintKind.CHECK, column=None, expression="a > 1"),
    ColumnConstraint(name="d", kind=ConstraintKind.DEFAULT, column="b", expression="7",
                     is_enabled=False, is_relied_on=True),
    *(
        ColumnConstraint(
            name="fk", kind=ConstraintKind.FOREIGN_KEY, column=column, position=position,
            refers_to=ReferredColumn(
                database_name="other", table_name="p", column=f"p{column}", key_name="pk",
                update_rule=1, delete_rule=2,
            ),
        )
        for position, column in enumerate("ab", start=1)
    ),
    ColumnConstraint(name="n", kind=ConstraintKind.NOT_NULL, column="a", is_validated=True),
    ColumnConstraint(name="pk", kind=ConstraintKind.PRIMARY_KEY, column="a", position=1),
    ColumnConstraint(name="pk", kind=ConstraintKind.PRIMARY_KEY, column="b", position=2),
    ColumnConstraint(name="u", kind=ConstraintKind.UNIQUE, column="c"),
)  # fmt: skip
VERBS: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    ("create_database", (DATABASE,), {}, None),
    ("get_database", ("db",), {}, DATABASE),
    ("get_databases", ("d*|x",), {}, ("db", "dx")),
    ("alter_database", ("db", DATABASE), {}, None),
    ("drop_database", ("db",), {"is_data_deleted": False, "is_cascade": True}, None),
    ("create_table", (TABLE,), {}, None),
    ("create_table", (VIEW,), {}, None),
    ("get_table", ("db", "t"), {}, TABLE),
    ("get_tables", ("db", "t*"), {}, ("t1", "t2")),
    ("get_tables", ("db", None, "VIRTUAL_VIEW"), {}, ("v",)),
    ("get_tables_by_names", ("db", ["t", "v"]), {}, (TABLE, VIEW)),
    ("alter_table", ("db", "t", TABLE),
     {"environment": {"k": "v"}, "valid_write_ids": "db.t:5:9::"}, None),
    ("drop_table", ("db", "t"), {"is_data_deleted": True, "is_purge": True}, None),
    ("truncate_table", ("db", "t", ["ds=1"]), {"is_data_deleted": True}, None),
    ("truncate_table", ("db", "t"),
     {"write_id": 7, "valid_write_ids": "db.t:7:9::", "is_data_deleted": False}, None),
    ("add_partitions", ("db", "t", [PARTITION]), {"is_if_not_exists": True}, (PARTITION,)),
    ("get_partition", ("db", "t", ["2024-01-01"]), {}, PARTITION),
    ("get_partition_names", ("db", "t", 5), {}, ("ds=1", "ds=2")),
    ("get_partitions", ("db", "t", 5), {}, (PARTITION,)),
    ("get_partitions_by_names", ("db", "t", ("ds=1",)), {}, (PARTITION,)),
    ("get_partitions_by_values", ("db", "t", ("", "x"), 3), {}, (PARTITION,)),
    ("get_partitions_by_filter", ("db", "t", 'ds = "1"', 3), {}, (PARTITION,)),
    ("alter_partitions", ("db", "t", [PARTITION]), {"environment": {"k": "v"}}, None),
    ("drop_partitions", ("db", "t", ["ds=1"]),
     {"is_data_deleted": True, "is_purge": True, "is_if_exists": True}, None),
    ("open_txns", (OpenTxnsRequest(
        count=2, user="u", host="h", agent="a", type=TxnType.REPL_CREATED, repl_policy="p",
        repl_source_txn_ids=(TxnId(5), TxnId(6))),), {}, (TxnId(1), TxnId(2))),
    ("get_open_txns", (), {}, OpenTxns(
        high_watermark=TxnId(9), min_open_txn=TxnId(4),
        txns=(OpenTxn(id=TxnId(4), state=TxnState.OPEN),
              OpenTxn(id=TxnId(8), state=TxnState.ABORTED)))),
    ("get_open_txns", (frozenset({TxnType.COMPACTION}),), {},
     OpenTxns(high_watermark=TxnId(0), txns=())),
    ("get_open_txns_info", (), {}, (TxnInfo(
        id=TxnId(1), state=TxnState.OPEN, user="u", host="h", agent="a", meta="m", started_ms=1,
        last_heartbeat_ms=2),)),
    ("commit_txn", (CommitTxnRequest(
        txn_id=TxnId(1), type=TxnType.REPL_CREATED, is_exclusive_write_enabled=False,
        repl_policy="p", write_events=(WRITE_EVENT,),
        repl_last_id=ReplLastId(database_name="db", last_repl_id=8, table_name="t",
                                partitions=("ds=1",), catalog_name="hive"),
        key_value=CommitKeyValue(table_id=4, key="_meta.x", value="v")),), {}, None),
    ("commit_txn", (CommitTxnRequest(txn_id=TxnId(1)),), {}, None),
    ("abort_txn", (AbortTxnRequest(
        txn_id=TxnId(1), repl_policy="p", type=TxnType.REPL_CREATED,
        reason=AbortReason.ROLLBACK),), {}, None),
    ("abort_txns", ([TxnId(1), TxnId(2)], AbortReason.TIMEOUT), {}, None),
    ("heartbeat", (TxnId(1), LockId(0)), {}, None),
    ("heartbeat_txn_range", (TxnId(1), TxnId(9)), {},
     HeartbeatRangeResult(aborted=(TxnId(2), TxnId(3)), missing=(TxnId(4),))),
    ("get_latest_txn_in_conflict", (TxnId(4),), {}, TxnId(3)),
    ("get_latest_txn_in_conflict", (TxnId(4),), {}, None),
    ("allocate_table_write_ids", (AllocateWriteIdsRequest(
        database_name="db", table_name="t", txn_ids=(TxnId(1),), is_reallocation=True),), {},
     (TxnToWriteId(txn_id=TxnId(1), write_id=WriteId(2)),)),
    ("allocate_table_write_ids", (AllocateWriteIdsRequest(
        database_name="db", table_name="t", repl_policy="p",
        repl_source=(TxnToWriteId(txn_id=TxnId(7), write_id=WriteId(8)),)),), {}, ()),
    ("get_valid_write_ids", (["db.t", "db.u"],
     ValidTxnList.parse("9:2:2,5:7"), WriteId(4)), {},
     (ValidWriteIdList.parse("db.t:9:2:2,5:1,7"), ValidWriteIdList.parse("db.u:0:5::"))),
    ("get_max_allocated_write_id", ("db", "t"), {}, WriteId(12)),
    ("seed_write_id", ("db", "t", WriteId(10000000)), {}, None),
    ("seed_txn_id", (TxnId(99),), {}, None),
    ("add_dynamic_partitions", (DynamicPartitions(
        txn_id=TxnId(1), write_id=WriteId(2), database_name="db", table_name="t",
        partition_names=("ds=1",), operation=DataOperation.DELETE),), {}, None),
    ("add_dynamic_partitions", (DynamicPartitions(
        txn_id=TxnId(1), write_id=WriteId(2), database_name="db", table_name="t",
        partition_names=()),), {}, None),
    ("repl_table_write_id_state", (TableWriteIdState(
        valid_write_ids="db.t:5:9::", user="u", host="h", database_name="db", table_name="t",
        partition_names=("ds=1",)),), {}, None),
    ("add_write_ids_to_min_history", (TxnId(4), {"db.t": WriteId(7)}), {}, None),
    ("lock", (LockRequest(components=COMPONENTS, txn_id=TxnId(4), user="u", host="h", agent="a",
                          is_zero_wait_read=True, is_exclusive_ctas=True),), {},
     LockResponse(lock_id=LockId(8), state=LockState.NOT_ACQUIRED, error_message="busy")),
    ("check_lock", (LockId(8),), {}, LockResponse(lock_id=LockId(8), state=LockState.ACQUIRED)),
    ("unlock", (LockId(8),), {}, None),
    ("show_locks", (LockFilter(scope=Scope("db", "t", "ds=1"),
                               txn_id=TxnId(3)),), {}, (LOCK,)),
    ("compact", (CompactionRequest(
        target=Target("db", "t", "ds=1"), type=CompactionType.REBALANCE,
        run_as="u", properties={"k": "v"}, initiator_id="i", initiator_version="4",
        pool_name="p", bucket_count=3, order_by="id"),), {},
     CompactionResponse(id=CompactionId(4), is_accepted=True, state="initiated")),
    ("compact", (CompactionRequest(
        target=Target("db", "t"), type=CompactionType.MINOR),), {},
     CompactionResponse(id=None, is_accepted=False, state="refused", error_message="why")),
    ("show_compactions", (ShowCompactionsRequest(
        id=CompactionId(8), scope=Scope("db", "t"), pool_name="p",
        type=CompactionType.MINOR, state=CompactionState.SUCCEEDED, limit=3),), {}, (HISTORY,)),
    ("find_next_compaction", ("w", "4.1", "big"), {}, replace(COMPACTION, worker_id="w")),
    ("find_next_compaction", ("w", "4.1", None), {}, None),
    ("update_compactor_state", (COMPACTION, TxnId(5)), {}, None),
    ("set_hadoop_job_id", ("job_1", CompactionId(7)), {}, None),
    ("mark_compacted", (COMPACTION,), {}, None),
    ("mark_failed", (COMPACTION,), {}, None),
    ("mark_refused", (COMPACTION,), {}, None),
    # What a client claims of write ids is not heard: only the cleaner forgets aborted ones.
    ("mark_cleaned", (replace(COMPACTION, highest_write_id=WriteId(0)),), {}, None),
    ("abort_compactions", ([CompactionId(1), CompactionId(2)],), {},
     {CompactionId(1): AbortOutcome(is_aborted=True, message="m"),
      CompactionId(2): AbortOutcome(is_aborted=False, message="n")}),
    ("get_next_notification", (NotificationRequest(
        last_event_id=EventId(2), max_events=5, types=frozenset({EVENT.type}),
        skipped_types=frozenset({"OPEN_TXN"}),
        catalog_name="hive", database_name="db", table_names=("t",)),), {}, (EVENT,)),
    ("get_current_event_id", (), {}, EventId(77)),
    ("get_notification_events_count", (EventId(3), "db", "hive"), {"tables": ("t",)}, 12),
    ("add_write_notifications", ([WriteNotification(
        txn_id=1, write_id=2, database_name="db", table_name="t", partition_values=("1",),
        files=("f",), checksums=("c",), subdirectories=("d",))],), {}, None),
    ("get_write_events", (TxnId(1), "db", "t"), {}, (WRITE_EVENT,)),
    ("fire_inserts", ([InsertNotification(
        database_name="db", table_name="t", partition_values=("1",), files=("f",),
        checksums=("c",), subdirectories=("d",), is_replace=True)],), {}, (EventId(9),)),
    ("create_table", (TABLE,), {"trusted_columns": ("id", "v")}, None),
    ("get_table", ("db", "mv"), {}, MATERIALIZED),
    ("alter_partitions", ("db", "t", [PARTITION]), {"valid_write_ids": "db.t:5:9::"}, None),
    ("set_column_statistics", (StatisticsUpdate(
        database_name="db", table_name="t", engine="impala", is_merge=True, write_id=WriteId(5),
        valid_write_ids="db.t:5:9::",
        objects=(ObjectStatistics(columns=COLUMN_STATISTICS, analyzed_seconds=7),)),), {}, True),
    ("set_column_statistics", (StatisticsUpdate(
        database_name="db", table_name="t",
        objects=tuple(ObjectStatistics(columns=COLUMN_STATISTICS[:1], partition_name=name)
                      for name in ("ds=1", "ds=2"))),), {}, False),
    ("get_column_statistics", (StatisticsQuery(
        database_name="db", table_name="t", columns=["l", "s"], engine="impala",
        valid_write_ids="db.t:5:9::"),), {}, (ObjectStatistics(columns=COLUMN_STATISTICS),)),
    ("get_column_statistics", (StatisticsQuery(
        database_name="db", table_name="t", columns=["l"], partition_names=["ds=1", "ds=2"]),), {},
     (ObjectStatistics(columns=COLUMN_STATISTICS[1:2], partition_name="ds=1"),)),
    ("get_aggregated_statistics", (StatisticsQuery(
        database_name="db", table_name="t", columns=["l"], partition_names=["ds=1"]),), {},
     AggregatedStatistics(columns=COLUMN_STATISTICS[1:2], partition_count=1)),
    ("delete_column_statistics", ("db", "t"),
     {"columns": ["l", "s"], "partition_names": ["ds=1"], "engine": "hive"}, True),
    ("delete_column_statistics", ("db", "t"), {"partition_names": None, "engine": None}, True),
    ("get_columns_with_statistics", ("db", "t", "ds=1"), {}, ("l", "s")),
    ("count_changed_rows", (ChangedRows(table_id=4, inserted=1, updated=2, deleted=3),), {}, None),
    ("create_function", (FUNCTION,), {}, None),
    ("alter_function", ("db", "fn", FUNCTION), {}, None),
    ("drop_function", ("db", "fn"), {}, None),
    ("get_function", ("db", "fn"), {}, FUNCTION),
    ("get_functions", (), {}, (FUNCTION,)),
    ("get_constraints", ("db", "t"), {}, CONSTRAINTS),
    ("add_constraints", ("db", "t", CONSTRAINTS[2:4]), {}, None),
    ("drop_constraint", ("db", "t", "fk"), {}, None),
    ("update_creation_metadata", ("db", "mv", CREATION), {}, None),
    ("get_materialized_views", (), {}, (MATERIALIZED,)),
    ("get_materialization_changes", (CREATION, ValidTxnList.parse("9:2:2,5:7")), {},
     MaterializationChanges(has_updates_or_deletes=True, has_compactions=False)),
    ("get_materialization_changes", (CREATION, ValidTxnList.parse("9:2:2,5:7")), {}, None),
    ("lock_materialization_rebuild", ("db", "mv", TxnId(4)), {}, True),
    ("lock_materialization_rebuild", ("db", "mv", TxnId(4)), {}, False),
    ("heartbeat_materialization_rebuild", ("db", "mv", TxnId(4)), {}, False),
]  # fmt: skip


@pytest.fixture(scope="module")
def fake() -> FakeMetastore:
    return FakeMetastore()


@pytest.fixture(scope="module")
def client(fake: FakeMetastore) -> Iterator[ThriftMetastoreClient]:
    with (
        MetastoreServer(0, fake) as server,  # type: ignore[arg-type]
        ThriftMetastoreClient(f"thrift://127.0.0.1:{server.port}") as client,
    ):
        yield client


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("verb", "args", "kwargs", "answer"), VERBS, ids=[f"{i}-{v[0]}" for i, v in enumerate(VERBS)]
)
def test_calls_and_answers_pass_unchanged(
    client: ThriftMetastoreClient, fake: FakeMetastore, verb: str, args: Any, kwargs: Any,
    answer: Any,
) -> None:  # fmt: skip
    fake.answers = {"get_open_txns": OpenTxns(high_watermark=TxnId(1), txns=()), verb: answer}
    fake.calls.clear()

    result = getattr(client, verb)(*args, **kwargs)

    assert result == answer
    name, seen_args, seen_kwargs = next(call for call in fake.calls if call[0] == verb)
    assert name == verb
    sent = [_plain(value) for value in args if value is not None]
    assert [_plain(value) for value in seen_args if value is not None][: len(sent)] == sent
    assert {k: seen_kwargs[k] for k in kwargs} == kwargs


SENT_THERE_AND_BACK = {
    layout._record
    for layout in LAYOUTS.values()
    if {field.name for field in fields(layout._record)}
    <= {name.partition(".")[0] for name in layout._names}
}
"""Records of which tests/wire/test_fields.py compares every field."""


def _has_record(annotation: object) -> bool:
    """Whether a field may be missed that nothing else compares."""
    if is_dataclass(annotation):
        return annotation not in SENT_THERE_AND_BACK
    return any(_has_record(part) for part in get_args(annotation))


def test_every_verb_of_the_port_is_tried() -> None:
    port = {
        name: value
        for protocol in Metastore.__mro__
        for name, value in vars(protocol).items()
        if callable(value) and not name.startswith("_")
    }
    # The timeout is asked of the server's settings, tests/session/test_heartbeat.py; who holds a
    # place is looked up in the tables of a database, tests/repl/test_dump_place.py.
    # Several commits are several calls, tests/conformance.
    asked_otherwise = {
        "close", "get_txn_timeout_ms", "find_holder", "heeds_fences", "commit_replays",
    }  # fmt: skip
    # Ids, texts and records that are sent there and back are compared by the behaviour suite, which
    # runs over thrift, too; of another record it may miss a field.
    suite = "".join(path.read_text() for path in BEHAVIOUR.glob("*_behaviour.py"))
    compared = {
        name
        for name, verb in port.items()
        if f"metastore.{name}(" in suite
        and not any(_has_record(one) for one in get_type_hints(verb).values())
    }
    tried = {verb for verb, *_ in VERBS}
    assert tried <= port.keys()
    untried = port.keys() - asked_otherwise - compared - tried
    assert untried == set(), "add a case to VERBS, or to tests/conformance"


@pytest.mark.parametrize(
    ("verb", "args", "error"),
    [
        ("get_database", ("db",), errors.NoSuchObjectError("no")),
        ("create_database", (DATABASE,), errors.AlreadyExistsError("there")),
        ("create_table", (TABLE,), errors.InvalidObjectError("bad")),
        ("drop_database", ("db",), errors.InvalidOperationError("not empty")),
        ("get_partitions_by_filter", ("db", "t", "?"), errors.MetaError("no filter: at all")),
        ("commit_txn", (CommitTxnRequest(txn_id=TxnId(1)),), errors.NoSuchTxnError("1")),
        ("commit_txn", (CommitTxnRequest(txn_id=TxnId(1)),), errors.TxnAbortedError("1")),
        ("check_lock", (LockId(1),), errors.NoSuchLockError("1")),
        ("unlock", (LockId(1),), errors.TxnOpenError("1")),
        # Not declared by their methods: the class travels in the message.
        ("mark_compacted", (COMPACTION,), errors.NoSuchCompactionError("lost")),
        ("update_compactor_state", (COMPACTION, TxnId(1)), errors.NoSuchCompactionError("lost")),
        ("open_txns", (OpenTxnsRequest(user="u", host="h", count=0),), errors.MetaError("0")),
        ("compact", (CompactionRequest(target=Target("d", "t"),
                                       type=CompactionType.MINOR),), errors.NoSuchObjectError("t")),
        ("get_partition_names", ("db", "t"), errors.NoSuchObjectError("t")),
        ("add_dynamic_partitions", (DynamicPartitions(
            txn_id=TxnId(1), write_id=WriteId(2), database_name="db", table_name="t",
            partition_names=()),), errors.TxnAbortedError("1")),
    ],
)  # fmt: skip
def test_errors_pass_unchanged(
    client: ThriftMetastoreClient, fake: FakeMetastore, verb: str, args: Any, error: Exception
) -> None:
    fake.answers = {"get_database": DATABASE, "get_table": TABLE, verb: error}
    with pytest.raises(type(error)) as raised:
        getattr(client, verb)(*args)
    assert type(raised.value) is type(error)
    assert str(raised.value) == str(error)


@pytest.mark.parametrize(
    ("verb", "args"),
    [
        ("alter_table", ("db", "gone", TABLE)),
        ("add_partitions", ("db", "t", [PARTITION])),
        ("alter_partitions", ("db", "t", [PARTITION])),
        ("create_table", (TABLE,)),
    ],
)
def test_a_missing_table_is_told_where_thrift_has_no_word_for_it(
    client: ThriftMetastoreClient, fake: FakeMetastore, verb: str, args: Any
) -> None:
    gone = errors.NoSuchObjectError("gone")
    fake.answers = {verb: gone, "get_table": gone, "get_partition": gone, "get_database": gone}
    with pytest.raises(errors.NoSuchObjectError):
        getattr(client, verb)(*args)


def test_a_failure_that_nobody_foresaw_is_told_and_harms_nothing(
    client: ThriftMetastoreClient, fake: FakeMetastore, caplog: pytest.LogCaptureFixture
) -> None:
    fake.answers = {"get_current_event_id": ZeroDivisionError("oops"), "get_database": DATABASE}
    with pytest.raises(errors.MetaError, match="get_current_notificationEventId.*oops"):
        client.get_current_event_id()
    assert "oops" in caplog.text
    assert client.get_database("db") == DATABASE


def test_a_database_failure_is_told(client: ThriftMetastoreClient, fake: FakeMetastore) -> None:
    fake.answers = {"get_database": errors.BackendError("disk full")}
    with pytest.raises(errors.MetaError, match="disk full"):
        client.get_database("db")
    fake.answers = {"show_locks": errors.BackendError("disk full")}
    with pytest.raises(errors.MetaError, match="disk full"):
        client.show_locks()
