"""Records survive the way over the wire, whatever stands in them."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TTransport import TMemoryBuffer

from hms_bridge.errors import InvalidObjectError, MetaError
from hms_bridge.model.catalog import (
    Column,
    Database,
    Partition,
    PrincipalType,
    SerDe,
    Skew,
    SortColumn,
    Storage,
    Table,
    TableType,
)
from hms_bridge.model.compaction import CompactionState
from hms_bridge.model.ids import MAX_ID, WriteId
from hms_bridge.model.lock import DataOperation
from hms_bridge.model.target import Scope
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.wire import (
    convert_catalog,
    convert_compaction,
    convert_event,
    convert_lock,
    convert_txn,
    object_json,
)
from hms_bridge.wire.catalog_names import join_catalog, split_catalog
from hms_bridge.wire.structs import Struct, hive
from tests.support.sample_records import COMPACTION, DATABASE, HISTORY, PARTITION, TABLE, VIEW

# Java cannot hold lone surrogates in UTF-8, and neither can thrift.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True)
MAPS = st.dictionaries(TEXTS, TEXTS, max_size=3)
OPTIONAL = st.none() | TEXTS
SECONDS = st.integers(-(2**31), 2**31 - 1)

COLUMNS = st.lists(
    st.builds(Column, name=NAMES, type=TEXTS.filter(bool), comment=OPTIONAL), max_size=3
).map(tuple)
SKEWS = st.builds(
    Skew,
    columns=st.lists(NAMES, max_size=2).map(tuple),
    values=st.lists(st.lists(TEXTS, max_size=2).map(tuple), max_size=2).map(tuple),
    locations=st.dictionaries(
        st.lists(TEXTS, min_size=1, max_size=2).map(tuple), TEXTS, max_size=2
    ),
)
STORAGES = st.builds(
    Storage,
    columns=COLUMNS,
    location=st.none() | TEXTS.filter(bool),
    input_format=OPTIONAL,
    output_format=OPTIONAL,
    is_compressed=st.booleans(),
    bucket_count=SECONDS,
    serde=st.builds(SerDe, name=OPTIONAL, library=OPTIONAL, parameters=MAPS,
                    description=OPTIONAL, type=st.none() | st.just(1)),
    bucket_columns=st.lists(NAMES, max_size=2).map(tuple),
    sort_columns=st.lists(st.builds(SortColumn, name=NAMES, order=st.integers(0, 1)),
                          max_size=2).map(tuple),
    parameters=MAPS,
    skew=SKEWS,
    is_stored_as_subdirectories=st.booleans(),
)  # fmt: skip
TABLES = st.builds(
    Table,
    name=NAMES,
    database_name=NAMES,
    catalog_name=NAMES,
    owner=OPTIONAL,
    owner_type=st.sampled_from(PrincipalType),
    create_time=SECONDS,
    last_access_time=SECONDS,
    retention=SECONDS,
    storage=STORAGES,
    partition_columns=COLUMNS,
    parameters=MAPS,
    view_original_text=OPTIONAL,
    view_expanded_text=OPTIONAL,
    type=st.sampled_from([one.value for one in TableType]),
    is_rewrite_enabled=st.booleans(),
    is_temporary=st.booleans(),
    write_id=st.integers(-1, 2**63 - 1),
    id=st.none() | st.integers(0, 2**63 - 1),
)
PARTITIONS = st.builds(
    Partition,
    values=st.lists(TEXTS, min_size=1, max_size=3).map(tuple),
    database_name=NAMES,
    table_name=NAMES,
    catalog_name=NAMES,
    create_time=SECONDS,
    last_access_time=SECONDS,
    storage=STORAGES,
    parameters=MAPS,
    write_id=st.integers(-1, 2**63 - 1),
)
DATABASES = st.builds(
    Database,
    name=NAMES,
    catalog_name=NAMES,
    description=OPTIONAL,
    location=st.none() | TEXTS.filter(bool),
    managed_location=st.none() | TEXTS.filter(bool),
    parameters=MAPS,
    owner_name=OPTIONAL,
    owner_type=st.none() | st.sampled_from(PrincipalType),
    create_time=st.none() | SECONDS,
)


def over_the_wire(struct: Struct) -> Any:
    buffer = TMemoryBuffer()
    struct.write(TBinaryProtocolAccelerated(buffer))
    seen = type(struct)()
    seen.read(TBinaryProtocolAccelerated(TMemoryBuffer(buffer.getvalue())))
    return seen


@given(TABLES)
def test_tables_survive(table: Table) -> None:
    struct = over_the_wire(convert_catalog.table_to_struct(table))
    assert convert_catalog.table_from_struct(struct) == table
    assert object_json.table_from_json(object_json.table_to_json(table)) == table


@given(PARTITIONS)
def test_partitions_survive(partition: Partition) -> None:
    struct = over_the_wire(convert_catalog.partition_to_struct(partition))
    assert convert_catalog.partition_from_struct(struct) == partition
    text = object_json.partition_to_json(partition)
    assert object_json.partition_from_json(text) == partition


@given(DATABASES)
def test_databases_survive(database: Database) -> None:
    struct = over_the_wire(convert_catalog.database_to_struct(database))
    assert convert_catalog.database_from_struct(struct) == database
    assert object_json.database_from_json(object_json.database_to_json(database)) == database


@given(st.lists(st.booleans(), max_size=70))
def test_bit_sets_are_javas(bits: list[bool]) -> None:
    binary = convert_txn.bits_to_binary(bits)
    assert convert_txn.binary_to_bits(binary, len(bits)) == tuple(bits)
    assert not binary.endswith(b"\0")
    assert len(binary) <= (len(bits) + 7) // 8


def test_bit_sets_by_hand() -> None:
    assert convert_txn.bits_to_binary([]) == b""
    assert convert_txn.bits_to_binary([True, True]) == b"\x03"
    assert convert_txn.bits_to_binary([False] * 9 + [True]) == b"\x00\x02"


@given(st.sets(st.integers(1, 50)), st.sets(st.integers(1, 50)), st.integers(0, 60))
def test_write_id_lists_survive(opened: set[int], aborted: set[int], high: int) -> None:
    valid = ValidWriteIdList(
        table="db.t",
        high_watermark=WriteId(high),
        open_ids=tuple(WriteId(i) for i in opened),
        aborted_ids=tuple(WriteId(i) for i in aborted),
    )
    struct = over_the_wire(convert_txn.valid_write_ids_to_struct(valid))
    assert convert_txn.valid_write_ids_from_struct(struct) == valid
    assert (struct.minOpenWriteId is None) == (valid.min_open == MAX_ID)


def test_compactions_survive_both_forms() -> None:
    info = over_the_wire(convert_compaction.compaction_info_to_struct(COMPACTION))
    assert convert_compaction.compaction_info_from_struct(info) == COMPACTION
    element = over_the_wire(convert_compaction.compaction_to_element(HISTORY))
    assert convert_compaction.compaction_from_element(element) == HISTORY


def test_a_worker_of_hive_that_sends_no_state_is_working() -> None:
    struct = convert_compaction.compaction_info_to_struct(COMPACTION)
    struct.state = "\0"
    found = convert_compaction.compaction_info_from_struct(struct)
    assert found.state is CompactionState.WORKING


@pytest.mark.parametrize("state", ["initiated", "i", "Ready for Cleaning"])
def test_states_are_words_or_characters(state: str) -> None:
    request = convert_compaction.show_request_from_struct(hive.ShowCompactRequest(state=state))
    assert request.state is not None


def test_names_become_lower_case() -> None:
    struct = convert_catalog.table_to_struct(TABLE)
    struct.tableName, struct.dbName, struct.catName = "T", "DB", "Hive"
    struct.partitionKeys[0].name = "DS"
    assert convert_catalog.table_from_struct(struct) == TABLE
    partition = convert_catalog.partition_to_struct(PARTITION)
    partition.tableName, partition.dbName = "T", "@HIVE#DB"
    assert convert_catalog.partition_from_struct(partition) == PARTITION
    lock = convert_lock.lock_component_from_struct(
        hive.LockComponent(type=1, level=2, dbname="DB", tablename="T")
    )
    assert lock.scope == Scope("db", "t")


def test_what_a_client_did_not_set_is_empty() -> None:
    table = convert_catalog.table_from_struct(hive.Table(tableName="t", dbName="d"))
    assert table == Table(name="t", database_name="d")
    view = hive.Table(tableName="t", dbName="d", viewOriginalText="select 1")
    assert convert_catalog.table_from_struct(view).type == "VIRTUAL_VIEW"
    external = hive.Table(tableName="t", dbName="d", parameters={"EXTERNAL": "TRUE"})
    assert convert_catalog.table_from_struct(external).type == "EXTERNAL_TABLE"
    part = convert_catalog.partition_from_struct(hive.Partition(values=["1"]), "d", "t")
    assert part == Partition(values=("1",), database_name="d", table_name="t")
    sort = hive.StorageDescriptor(sortCols=[hive.Order(col="A")])
    assert convert_catalog.storage_from_struct(sort).sort_columns == (SortColumn(name="a"),)


@pytest.mark.parametrize(
    ("convert", "struct"),
    [
        (convert_catalog.table_from_struct, hive.Table(dbName="d")),
        (convert_catalog.table_from_struct, hive.Table(tableName="t")),
        (convert_catalog.table_from_struct, hive.Table(tableName="t", dbName="d", ownerType=9)),
        (convert_catalog.database_from_struct, hive.Database(name="")),
        (convert_catalog.partition_from_struct, hive.Partition()),
        (convert_catalog.storage_from_struct,
         hive.StorageDescriptor(cols=[hive.FieldSchema(name="a")])),
    ],
)  # fmt: skip
def test_objects_without_their_essentials_are_refused(convert: Any, struct: Struct) -> None:
    with pytest.raises(InvalidObjectError):
        convert(struct)


@pytest.mark.parametrize(
    ("convert", "struct"),
    [
        (convert_txn.commit_request_from_struct, hive.CommitTxnRequest()),
        (convert_txn.open_request_from_struct, hive.OpenTxnRequest(num_txns=1, txn_type=99)),
        (convert_txn.allocate_request_from_struct, hive.AllocateTableWriteIdsRequest(dbName="d")),
        (convert_txn.open_txns_from_struct, hive.GetOpenTxnsResponse(txn_high_water_mark=1)),
        (convert_lock.lock_component_from_struct, hive.LockComponent(type=9, level=1, dbname="d")),
        (convert_lock.lock_component_from_struct, hive.LockComponent(type=1, level=0, dbname="d")),
        (convert_lock.lock_component_from_struct, hive.LockComponent(type=1, level=1)),
        (convert_lock.lock_component_from_struct,
         hive.LockComponent(type=1, level=1, dbname="d", operationType=0)),
        (convert_compaction.compaction_request_from_struct,
         hive.CompactionRequest(dbname="d", tablename="t", type=17)),
        (convert_compaction.compaction_request_from_struct,
         hive.CompactionRequest(dbname="d", tablename="t")),
        (convert_compaction.show_request_from_struct, hive.ShowCompactRequest(state="lazy")),
        (convert_event.notification_request_from_struct, hive.NotificationEventRequest()),
        (convert_event.write_notification_from_struct, hive.WriteNotificationLogRequest(
            txnId=1, writeId=1, db="d", table="t", fileInfo=hive.InsertEventRequestData(
                filesAdded=["a"], filesAddedChecksum=["1", "2"]))),
    ],
)  # fmt: skip
def test_requests_that_mean_nothing_are_refused(convert: Any, struct: Struct) -> None:
    with pytest.raises(MetaError):
        convert(struct)


def test_unset_and_unset_operation_mean_the_same() -> None:
    unset = DataOperation.UNSET.number
    for number, meant in ((None, None), (unset, None), (6, DataOperation.NO_TXN)):
        struct = hive.LockComponent(type=1, level=1, dbname="d", operationType=number)
        assert convert_lock.lock_component_from_struct(struct).operation is meant
        struct = hive.AddDynamicPartitions(
            txnid=1, writeid=1, dbname="d", tablename="t", partitionnames=[], operationType=number
        )
        assert convert_txn.dynamic_partitions_from_struct(struct).operation is meant


def test_exclusive_writes_are_meant_where_nothing_is_said() -> None:
    unset = convert_txn.commit_request_from_struct(hive.CommitTxnRequest(txnid=1))
    told = hive.CommitTxnRequest(txnid=1, exclWriteEnabled=False)
    assert unset.is_exclusive_write_enabled
    assert not convert_txn.commit_request_from_struct(told).is_exclusive_write_enabled


def test_a_text_keeps_what_a_record_does_not_hold() -> None:
    text = object_json.table_to_json(TABLE)
    richer = text[:-1] + ',"22":{"i8":8},"24":{"lst":["str",1,"X"]}}'
    changed = replace(object_json.table_from_json(richer), retention=99)
    again = object_json.table_to_json(changed, like=richer)
    assert '"22":{"i8":8}' in again
    assert '"24":{"lst":["str",1,"X"]}' in again
    assert object_json.table_from_json(again) == changed
    view = object_json.table_to_json(VIEW)
    plain = object_json.table_to_json(replace(VIEW, view_original_text=None), like=view)
    assert view.count('"10"') == plain.count('"10"') + 1


def test_texts_have_what_a_load_of_hive_needs() -> None:
    fields = object_json.struct_from_json("Table", object_json.table_to_json(
        Table(name="t", database_name="d")))  # fmt: skip
    assert fields.tableType == "MANAGED_TABLE"
    assert (fields.sd.bucketCols, fields.sd.sortCols) == ([], [])
    database = object_json.struct_from_json("Database", object_json.database_to_json(DATABASE))
    assert (database.parameters, database.ownerName) == (DATABASE.parameters, "bob")
    assert " " not in object_json.table_to_json(Table(name="t", database_name="d"))


@pytest.mark.parametrize(
    "text",
    ["[" * 50_000, '{"1":' + "9" * 5000 + "}", "no JSON", ""],
    ids=["deep", "long number", "words", "nothing"],
)
def test_a_text_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidObjectError, match="no Table in thrift's JSON form"):
        object_json.struct_from_json("Table", text)


@pytest.mark.parametrize(
    ("text", "catalog", "database"),
    [
        (None, "hive", None),
        ("Db", "hive", "db"),
        ("@Cat#Db", "cat", "db"),
        ("@cat#", "cat", None),
        ("@cat#!", "cat", ""),
        ("@strange", "hive", "@strange"),
        ("", "hive", ""),
    ],
)
def test_catalogs_stand_in_names(text: str, catalog: str, database: str | None) -> None:
    assert split_catalog(text) == (catalog, database)


@given(st.sampled_from(["hive", "other"]), st.none() | st.just("") | NAMES)
def test_catalogs_in_names_survive(catalog: str, database: str | None) -> None:
    assert split_catalog(join_catalog(catalog, database)) == (catalog, database)
