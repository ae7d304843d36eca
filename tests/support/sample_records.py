"""Records with every field set, for tests that send them somewhere and back."""

from hms_bridge.model.catalog import (
    Column,
    CreationMetadata,
    Database,
    Partition,
    PrincipalType,
    SerDe,
    Skew,
    SortColumn,
    SourceTable,
    Storage,
    Table,
    TableType,
)
from hms_bridge.model.compaction import Compaction, CompactionState, CompactionType
from hms_bridge.model.function import Function, Resource, ResourceType
from hms_bridge.model.ids import CompactionId, TxnId, WriteId
from hms_bridge.model.statistics import ColumnStatistics, StatisticsKind
from hms_bridge.model.target import Target

STORAGE = Storage(
    columns=(Column(name="id", type="int"), Column(name="v", type="string", comment="é")),
    location="hdfs://nn:8020/w/db.db/t",
    input_format="in",
    output_format="out",
    is_compressed=True,
    bucket_count=4,
    serde=SerDe(name="s", library="lib", parameters={"serialization.format": "1"}),
    bucket_columns=("id",),
    sort_columns=(SortColumn(name="v", order=0),),
    parameters={"p": ""},
    skew=Skew(columns=("id",), values=(("1",), ("2",)), locations={("1",): "hdfs://nn/skewed"}),
    is_stored_as_subdirectories=True,
)

TABLE = Table(
    name="t",
    database_name="db",
    owner="bob",
    owner_type=PrincipalType.ROLE,
    create_time=1_700_000_000,
    last_access_time=7,
    retention=3,
    storage=STORAGE,
    partition_columns=(Column(name="ds", type="string"),),
    parameters={"transactional": "true", "transactional_properties": "default"},
    type=TableType.MANAGED_TABLE.value,
    write_id=5,
    id=42,
)

VIEW = Table(
    name="v",
    database_name="db",
    storage=Storage(columns=(Column(name="id", type="int"),)),
    view_original_text="select id from t",
    view_expanded_text="select `t`.`id` from `db`.`t`",
    type=TableType.VIRTUAL_VIEW.value,
    is_rewrite_enabled=True,
    is_temporary=True,
)

PARTITION = Partition(
    values=("2024-01-01",),
    database_name="db",
    table_name="t",
    create_time=1,
    last_access_time=2,
    storage=STORAGE,
    parameters={"numFiles": "1"},
    write_id=9,
)

DATABASE = Database(
    name="db",
    description="a database",
    location="hdfs://nn:8020/ext/db.db",
    managed_location="hdfs://nn:8020/w/db.db",
    parameters={"repl.source.for": "1,2"},
    owner_name="bob",
    owner_type=PrincipalType.USER,
    create_time=1_700_000_000,
)

COMPACTION = Compaction(
    id=CompactionId(7),
    target=Target("db", "t", "ds=2024-01-01"),
    type=CompactionType.MAJOR,
    state=CompactionState.WORKING,
    worker_id="host-1",
    enqueued_ms=10,
    started_ms=20,
    run_as="hive",
    highest_write_id=WriteId(12),
    error_message="none yet",
    pool_name="big",
    bucket_count=2,
    order_by="id desc",
)

HISTORY = Compaction(
    id=CompactionId(8),
    target=Target("db", "t"),
    type=CompactionType.MINOR,
    state=CompactionState.SUCCEEDED,
    worker_id="host-1",
    worker_version="4.1.0",
    initiator_id="i",
    initiator_version="4.1.0",
    enqueued_ms=10,
    started_ms=20,
    ended_ms=30,
    committed_ms=25,
    cleaner_started_ms=28,
    run_as="hive",
    highest_write_id=WriteId(12),
    txn_id=TxnId(3),
    next_txn_id=TxnId(4),
    hadoop_job_id="job_1",
    error_message="m",
    pool_name="p",
)

CREATION = CreationMetadata(
    database_name="db",
    table_name="mv",
    table_names=frozenset({"db.t"}),
    snapshot='{"validTxnList":"5$db.t:5:9::","tableSnapshots":null}',
    materialized_ms=1_700_000_000_123,
    sources=(SourceTable(table=TABLE, inserted=1, updated=2, deleted=3),),
)

MATERIALIZED = Table(
    name="mv",
    database_name="db",
    storage=STORAGE,
    type=TableType.MATERIALIZED_VIEW.value,
    is_rewrite_enabled=True,
    is_statistics_compliant=True,
    creation=CREATION,
)

FUNCTION = Function(
    name="fn",
    database_name="db",
    class_name="org.example.Fn",
    owner_name="bob",
    owner_type=PrincipalType.USER,
    create_time=1_700_000_000,
    resources=(
        Resource(type=ResourceType.JAR, uri="hdfs://nn/a.jar"),
        Resource(type=ResourceType.ARCHIVE, uri="hdfs://nn/b.zip"),
    ),
)

COLUMN_STATISTICS = (
    ColumnStatistics(
        column="b", type="boolean", kind=StatisticsKind.BOOLEAN, null_count=1, true_count=2,
        false_count=3, bit_vector=b"v",
    ),
    ColumnStatistics(
        column="l", type="bigint", kind=StatisticsKind.LONG, low=-5, high=2**62, null_count=1,
        distinct_count=4, bit_vector=b"HLL\xa0\x00", histogram=b"\x00kll",
    ),
    ColumnStatistics(
        column="d", type="double", kind=StatisticsKind.DOUBLE, low=-0.5, high=1.5,
        distinct_count=2,
    ),
    ColumnStatistics(
        column="s", type="varchar(9)", kind=StatisticsKind.STRING, distinct_count=7,
        average_length=4.5, length_max=9,
    ),
    ColumnStatistics(
        column="y", type="binary", kind=StatisticsKind.BINARY, average_length=2.0, length_max=4,
    ),
    ColumnStatistics(
        column="n", type="decimal(38,10)", kind=StatisticsKind.DECIMAL, low="-12345678901234567.89",
        high="1.29E-8", distinct_count=3,
    ),
    ColumnStatistics(
        column="e", type="date", kind=StatisticsKind.DATE, low=-1, high=20, distinct_count=4,
    ),
    ColumnStatistics(
        column="w", type="timestamp", kind=StatisticsKind.TIMESTAMP, low=10, high=99,
        distinct_count=4,
    ),
    ColumnStatistics(column="u", type="int", kind=StatisticsKind.LONG, distinct_count=0),
)  # fmt: skip
"""One of each kind, and one of which nothing is known."""
