"""What each thrift method asks of the metastore, and answers: the forms that our client does not
use (it uses one form of each, see tests/client)."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hms_bridge.client.addresses import Address
from hms_bridge.client.caller import Caller, CallSettings, UnknownMethodError
from hms_bridge.clock import SystemClock
from hms_bridge.errors import (
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
    TxnAbortedError,
)
from hms_bridge.model.catalog import (
    DEFAULT_PARTITION_VALUE,
    Column,
    Partition,
    Storage,
    Table,
)
from hms_bridge.model.compaction import CompactionState, ShowCompactionsRequest
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind, ReferredColumn
from hms_bridge.model.event import InsertNotification, NotificationEvent, WriteNotification
from hms_bridge.model.expression import (
    Call,
    ColumnReference,
    ConditionToDrop,
    Constant,
    FilterText,
    Function,
    Unread,
)
from hms_bridge.model.ids import CompactionId, EventId, LockId, TxnId
from hms_bridge.model.statistics import ObjectStatistics, StatisticsQuery, StatisticsUpdate
from hms_bridge.model.statistics_state import ACCURATE
from hms_bridge.model.target import Scope, TableName, Target
from hms_bridge.model.txn import AbortReason, OpenTxns, TxnInfo, TxnState, TxnType
from hms_bridge.server.serve import MetastoreServer, offered_names
from hms_bridge.wire.convert_catalog import (
    database_to_struct,
    partition_to_struct,
    table_to_struct,
)
from hms_bridge.wire.convert_statistics import statistics_to_structs
from hms_bridge.wire.methods import OLDER_METHODS, all_names
from hms_bridge.wire.structs import Struct, hive
from tests.server.test_golden_replay import played_methods
from tests.support.fake_metastore import FakeMetastore
from tests.support.partition_expressions import sent_for
from tests.support.sample_records import (
    COLUMN_STATISTICS,
    COMPACTION,
    DATABASE,
    FUNCTION,
    HISTORY,
    MATERIALIZED,
    TABLE,
    VIEW,
)

MM = replace(TABLE, name="mm", parameters={
    "transactional": "true", "transactional_properties": "insert_only"})  # fmt: skip
PART = Partition(values=("1", "x"), database_name="db", table_name="p", write_id=3)
PARTITIONED = Table(
    name="p", database_name="db",
    storage=Storage(columns=(Column(name="id", type="int"),), location="file:/w/p"),
    partition_columns=(Column(name="a", type="int"), Column(name="b", type="string")),
)  # fmt: skip
P = TableName("db", "p")
NAMES = ("a=1/b=x", "a=1/b=y", "a=2/b=x%2Fy")
ROOT = Path(__file__).parents[2]
CALLERS = (ROOT / "tests/server", ROOT / "tests/service", ROOT / "hms_bridge/client")
CONFIG = {"hive.metastore.warehouse.dir": "file:/w", "hive.db.password": "x"}


class Rig:
    """A server over a fake, and a caller of any method."""

    def __init__(self, fake: FakeMetastore, caller: Caller) -> None:
        self.fake = fake
        self._caller = caller

    def __call__(self, name: str, /, **arguments: Any) -> Any:
        self.fake.calls.clear()
        return self._caller.call(name, **arguments)

    @property
    def asked(self) -> list[Any]:
        """The calls of the port; arguments only, with keywords at the end if there are any."""
        return [(n, *a, *([k] if k else [])) for n, a, k in self.fake.calls]


@pytest.fixture(scope="module")
def shared_rig() -> Iterator[Rig]:
    fake: Any = FakeMetastore()
    with MetastoreServer(0, fake, config=CONFIG, database_uuid="u-1") as server:
        caller = Caller(
            (Address("127.0.0.1", server.port),), CallSettings(attempts=1), SystemClock()
        )
        yield Rig(fake, caller)
        caller.close()


@pytest.fixture
def rig(shared_rig: Rig) -> Rig:
    shared_rig.fake.answers = {
        "get_database": DATABASE, "get_databases": ("db", "default"), "get_table": PARTITIONED,
        "get_tables": ("t", "v", "mm"), "get_tables_by_names": (TABLE, VIEW),
        "get_partition_names": NAMES, "get_partitions": (PART,), "get_partition": PART,
        "get_partitions_by_names": (PART,), "get_partitions_by_values": (PART,),
        "get_partitions_by_filter": (PART, PART), "add_partitions": (PART,),
    }  # fmt: skip
    return shared_rig


# Service


def test_fb303(rig: Rig) -> None:
    assert rig("getName") == "hms-bridge"
    assert rig("getVersion").startswith("4.")
    assert rig("getStatus") == 2
    assert rig("aliveSince") > 0
    assert rig("getStatusDetails") == rig("getCpuProfile", profileDurationInSec=1) == ""
    assert rig("getCounters") == rig("getOptions") == {}
    assert rig("getCounter", key="x") == 0
    assert rig("getOption", key="x") == ""
    rig("flushCache")


def test_set_ugi_echoes_as_hive_does(rig: Rig) -> None:
    assert rig("set_ugi", user_name="hive", group_names=["hive"]) == ["hive", "hive"]
    assert rig("set_ugi", user_name="bob") == ["bob"]


def test_settings(rig: Rig) -> None:
    warehouse = "hive.metastore.warehouse.dir"
    assert rig("get_config_value", name=warehouse, defaultValue="d") == "file:/w"
    assert rig("get_config_value", name="hive.unset", defaultValue="d") == "d"
    assert rig("get_config_value", name="hive.unset") == ""
    for prefix in ("metastore.", "hive.metastore."):
        assert rig("getMetaConf", key=f"{prefix}try.direct.sql") == "true"
        assert rig("getMetaConf", key=f"{prefix}partition.name.whitelist.pattern") == ""
    rig("setMetaConf", key="metastore.try.direct.sql", value="false")
    rig("setMetaConf", key="metastore.client.capability.check", value="true")
    for key in ("metastore.client.capability.check", "nope"):
        with pytest.raises(MetaError):
            rig("setMetaConf", key=key, value="false")
    assert rig("get_metastore_db_uuid") == "u-1"
    for secret in ("hive.db.password", "javax.jdo.option.ConnectionPassword", "no.such.key"):
        with pytest.raises(MetaError, match="security reasons"):
            rig("get_config_value", name=secret, defaultValue="d")
    for key in ("nope", warehouse, "hive.db.password"):
        with pytest.raises(MetaError, match="Invalid configuration key"):
            rig("getMetaConf", key=key)


def test_constraints_that_writers_keep(rig: Rig) -> None:
    told = [
        ColumnConstraint(name="n", kind=ConstraintKind.NOT_NULL, column="a"),
        ColumnConstraint(name="d", kind=ConstraintKind.DEFAULT, column="b", expression="7"),
        ColumnConstraint(name="c", kind=ConstraintKind.CHECK, column=None, expression="a > 1"),
    ]
    rig.fake.answers["get_constraints"] = told
    given = {"db_name": "DB", "tbl_name": "T"}
    nulls = rig("get_not_null_constraints", request=hive.NotNullConstraintsRequest(**given))
    assert [(n.nn_name, n.column_name) for n in nulls.notNullConstraints] == [("n", "a")]
    assert rig.asked == [("get_constraints", "db", "t", "hive")]
    defaults = rig("get_default_constraints", request=hive.DefaultConstraintsRequest(**given))
    assert [d.default_value for d in defaults.defaultConstraints] == ["7"]
    checks = rig("get_check_constraints", request=hive.CheckConstraintsRequest(**given))
    assert [(c.dc_name, c.check_expression) for c in checks.checkConstraints] == [("c", "a > 1")]
    request = hive.AllTableConstraintsRequest(dbName="db", tblName="t")
    every = rig("get_all_table_constraints", request=request).allTableConstraints
    assert every.notNullConstraints == nulls.notNullConstraints
    assert every.checkConstraints[0].enable_cstr is True
    assert every.primaryKeys == []


def _is_empty(value: Any) -> bool:
    if isinstance(value, Struct):
        return all(_is_empty(field) for field in vars(value).values())
    return not value


def test_what_is_not_offered_is_unknown(rig: Rig) -> None:
    for name in sorted(set(all_names()) - offered_names() - set(OLDER_METHODS)):
        with pytest.raises(UnknownMethodError):
            rig(name)
    assert rig.asked == []


# Databases


def test_databases_in_other_forms(rig: Rig) -> None:
    assert rig("get_all_databases") == ["db", "default"]
    assert rig("get_databases", pattern="@hive#d*") == ["db", "default"]
    assert rig.asked == [("get_databases", "d*", "hive")]
    assert rig("get_databases", pattern="@hive#")
    assert rig.asked == [("get_databases", None, "hive")]
    wanted = hive.GetDatabaseObjectsRequest(catalogName="hive", pattern="*")
    assert len(rig("get_databases_req", request=wanted).databases) == 2
    assert rig.asked[0] == ("get_databases", None, "hive")
    request = hive.GetDatabaseRequest(name="DB", catalogName="hive")
    assert rig("get_database_req", request=request) == database_to_struct(DATABASE)
    assert rig.asked == [("get_database", "db", "hive")]
    struct = database_to_struct(DATABASE)
    rig("alter_database_req", alterDbReq=hive.AlterDatabaseRequest(oldDbName="db", newDb=struct))
    assert rig.asked == [("alter_database", "db", DATABASE)]
    rig(
        "create_database_req",
        createDatabaseRequest=hive.CreateDatabaseRequest(
            databaseName="DB", description=DATABASE.description, locationUri=DATABASE.location,
            managedLocationUri=DATABASE.managed_location, parameters=dict(DATABASE.parameters),
            ownerName="bob", ownerType=1, createTime=DATABASE.create_time, type=1,
        ),
    )  # fmt: skip
    assert rig.asked == [("create_database", DATABASE)]


def test_dropping_a_database_that_may_be_missing(rig: Rig) -> None:
    rig.fake.answers["drop_database"] = NoSuchObjectError("db")
    request = hive.DropDatabaseRequest(
        name="db", ignoreUnknownDb=True, deleteData=True, cascade=False
    )
    rig("drop_database_req", req=request)
    flags = {"catalog": "hive", "is_data_deleted": True, "is_cascade": False}
    assert rig.asked == [("drop_database", "db", flags)]
    request.ignoreUnknownDb = False
    with pytest.raises(NoSuchObjectError):
        rig("drop_database_req", req=request)


@pytest.mark.parametrize("name", ["get_database", "drop_database"])
def test_a_name_that_was_not_sent_is_asked_for(rig: Rig, name: str) -> None:
    with pytest.raises(MetaError, match="name was not sent"):
        rig(name)
    with pytest.raises(MetaError, match="req"):
        rig("get_table_req")


# Tables


def test_tables_in_old_forms(rig: Rig) -> None:
    assert rig("get_table", dbname="@hive#DB", tbl_name="P") == table_to_struct(PARTITIONED)
    assert rig.asked == [("get_table", "db", "p", "hive")]
    found = rig("get_table_objects_by_name", dbname="db", tbl_names=["T", "v"])
    assert found == [table_to_struct(TABLE), table_to_struct(VIEW)]
    assert rig.asked == [("get_tables_by_names", "db", ["t", "v"], "hive")]
    assert rig("get_all_tables", db_name="db") == ["t", "v", "mm"]
    assert rig("get_tables", db_name="@hive#db", pattern="t|v*") == ["t", "v", "mm"]
    assert rig.asked == [("get_tables", "db", "t|v*", None, "hive")]
    rig("get_tables_by_type", db_name="db", pattern=".*", tableType="VIRTUAL_VIEW")
    assert rig.asked == [("get_tables", "db", None, "VIRTUAL_VIEW", "hive")]


def test_tables_by_pattern_or_by_nothing(rig: Rig) -> None:
    request = hive.GetTablesRequest(dbName="db", tablesPattern="t*")
    assert len(rig("get_table_objects_by_name_req", req=request).tables) == 2
    assert ("get_tables", "db", "t*", None, "hive") in rig.asked
    with pytest.raises(InvalidOperationError, match="null tables"):
        rig("get_table_objects_by_name_req", req=hive.GetTablesRequest(dbName="db"))
    rig.fake.answers |= {"get_tables_by_names": (), "get_database": NoSuchObjectError("nodb")}
    with pytest.raises(NoSuchObjectError, match="nodb"):
        rig("get_table_objects_by_name_req", req=hive.GetTablesRequest(dbName="x", tblNames=["t"]))


def test_tables_with_access(rig: Rig) -> None:
    rig.fake.answers["get_tables_by_names"] = (TABLE, VIEW)
    request = hive.GetTablesExtRequest(
        catalog="Hive", database="db", tableNamePattern="*", requestedFields=2**31 - 1, limit=2,
        processorCapabilities=["HIVESQL"],
    )  # fmt: skip
    tables = rig("get_tables_ext", req=request)
    assert [(table.tblName, table.accessType) for table in tables] == [("t", None), ("v", 2)]
    assert rig.asked == [
        ("get_tables", "db", None, None, "hive"), ("get_tables_by_names", "db", ("t", "v"), "hive")
    ]  # fmt: skip
    request.requestedFields, request.limit = 2, None
    assert [table.accessType for table in rig("get_tables_ext", req=request)] == [None, None]
    assert rig.asked[1][2] == ("t", "v", "mm")
    for capabilities in (None, ["HIVESQL", "MANAGERAWMETADATA"]):
        request.processorCapabilities = capabilities
        assert rig("get_tables_ext", req=request) == []


def test_insert_only_tables_are_for_clients_that_understand_them(rig: Rig) -> None:
    rig.fake.answers |= {"get_table": MM, "get_tables_by_names": (TABLE, MM)}
    request = hive.GetTableRequest(dbName="db", tblName="mm")
    blind = hive.ClientCapabilities(values=[1])
    for arguments in (
        {"name": "get_table", "dbname": "db", "tbl_name": "mm"},
        {"name": "get_table_req", "req": request},
        {"name": "get_table_req", "req": hive.GetTableRequest(
            dbName="db", tblName="mm", capabilities=blind)},
        {"name": "get_table_objects_by_name", "dbname": "db", "tbl_names": ["mm"]},
    ):  # fmt: skip
        with pytest.raises(MetaError, match="insert-only.*capability.check"):
            rig(arguments.pop("name"), **arguments)
    request.capabilities = hive.ClientCapabilities(values=[2])
    assert rig("get_table_req", req=request).table.tableName == "mm"


def test_the_capability_check_can_be_turned_off() -> None:
    fake: Any = FakeMetastore(get_table=MM)
    config = {"metastore.client.capability.check": "false"}
    with MetastoreServer(0, fake, config=config) as server:
        caller = Caller((Address("127.0.0.1", server.port),), CallSettings(), SystemClock())
        assert caller.call("get_table", dbname="db", tbl_name="mm").tableName == "mm"
        with pytest.raises(MetaError, match="no database id"):
            caller.call("get_metastore_db_uuid")
        caller.close()


def test_columns(rig: Rig) -> None:
    plain = [hive.FieldSchema(name="id", type="int")]
    keys = [hive.FieldSchema(name="a", type="int"), hive.FieldSchema(name="b", type="string")]
    for name in ("get_fields", "get_fields_with_environment_context"):
        assert rig(name, db_name="db", table_name="p") == plain
    for name in ("get_schema", "get_schema_with_environment_context"):
        assert rig(name, db_name="db", table_name="p") == plain + keys
    fields = hive.GetFieldsRequest(dbName="db", tblName="p")
    assert rig("get_fields_req", req=fields).fields == plain
    schema = hive.GetSchemaRequest(dbName="db", tblName="p")
    assert rig("get_schema_req", req=schema).fields == plain + keys


def test_table_meta(rig: Rig) -> None:
    found = rig("get_table_meta", db_patterns="@hive#d*", tbl_patterns="*", tbl_types=[])
    assert [(one.dbName, one.tableName, one.tableType) for one in found] == [
        ("db", "t", "MANAGED_TABLE"), ("db", "v", "VIRTUAL_VIEW")] * 2  # fmt: skip
    views = rig("get_table_meta", db_patterns="*", tbl_patterns="*", tbl_types=["VIRTUAL_VIEW"])
    assert {one.tableName for one in views} == {"v"}


def test_table_names_by_filter(rig: Rig) -> None:
    text = 'hive_filter_field_params__transactional = "true" and hive_filter_field_owner__ = "bob"'
    name = "get_table_names_by_filter"
    assert rig(name, dbname="db", filter=text, max_tables=-1) == ["t"]
    assert rig(name, dbname="db", filter=text, max_tables=0) == []
    with pytest.raises(MetaError, match="cannot be parsed"):
        rig(name, dbname="db", filter="bogus = 1")


def test_constraints_are_made_and_dropped(rig: Rig) -> None:
    column = {"table_db": "DB", "table_name": "T", "column_name": "a"}
    told = {
        "add_primary_key": ("primaryKeyCols", hive.SQLPrimaryKey(**column, key_seq=1)),
        "add_unique_constraint": ("uniqueConstraintCols", hive.SQLUniqueConstraint(**column)),
        "add_not_null_constraint": ("notNullConstraintCols", hive.SQLNotNullConstraint(**column)),
        "add_default_constraint": ("defaultConstraintCols", hive.SQLDefaultConstraint(**column)),
        "add_check_constraint": ("checkConstraintCols", hive.SQLCheckConstraint(**column)),
        "add_foreign_key": ("foreignKeyCols", hive.SQLForeignKey(
            fktable_db="DB", fktable_name="T", fkcolumn_name="a", pktable_db="db",
            pktable_name="P", pkcolumn_name="b",
        )),
    }  # fmt: skip
    for name, (field, struct) in told.items():
        request = SimpleNamespace(**{field: [struct]})
        rig(name, req=request)
        ((verb, database, table, (constraint,), catalog),) = rig.asked
        assert (verb, database, table, catalog) == ("add_constraints", "db", "t", "hive")
        assert (constraint.name, constraint.column) == ("", "a")
        with pytest.raises(MetaError, match=f"{field} was not sent"):
            rig(name, req=SimpleNamespace(**{field: None}))
        with pytest.raises(MetaError, match="of 0 tables"):
            rig(name, req=SimpleNamespace(**{field: []}))
        with pytest.raises(MetaError, match="at most 1000"):
            rig(name, req=SimpleNamespace(**{field: [struct] * 1001}))
    dropped = hive.DropConstraintRequest(dbname="DB", tablename="T", constraintname="PK")
    rig("drop_constraint", req=dropped)
    assert rig.asked == [("drop_constraint", "db", "t", "pk", "hive")]


def test_foreign_keys_are_of_the_table_that_refers(rig: Rig) -> None:
    rig.fake.answers["get_constraints"] = [
        ColumnConstraint(
            name=name, kind=ConstraintKind.FOREIGN_KEY, column="a",
            refers_to=ReferredColumn(database_name="db", table_name=table, column="id"),
        )
        for name, table in (("f1", "p"), ("f2", "q"))
    ]  # fmt: skip
    of_table = {"foreign_db_name": "DB", "foreign_tbl_name": "T"}
    for parent, names in (({}, ["f1", "f2"]), ({"parent_tbl_name": "Q"}, ["f2"])):
        request = hive.ForeignKeysRequest(**of_table, **parent)
        found = rig("get_foreign_keys", request=request).foreignKeys
        assert [struct.fk_name for struct in found] == names
    for name in ("get_primary_keys", "get_unique_constraints"):
        answer = rig(name, request=hive.PrimaryKeysRequest(db_name="db", tbl_name="t"))
        assert _is_empty(answer)


def test_create_table_in_all_forms(rig: Rig) -> None:
    struct = table_to_struct(TABLE)
    for name in ("create_table", "create_table_with_environment_context",
                 "create_table_with_constraints"):  # fmt: skip
        rig(name, tbl=struct)
        assert rig.asked == [("create_table", TABLE, {"trusted_columns": ()})]
    dry = rig("translate_table_dryrun", request=hive.CreateTableRequest(table=struct))
    assert dry == struct
    assert rig.asked == []


def test_a_table_comes_with_its_constraints(rig: Rig) -> None:
    keys = [hive.SQLPrimaryKey(table_db="db", table_name="T", column_name="id", pk_name="pk")]
    checks = [hive.SQLCheckConstraint(check_expression="id > 0", dc_name="ck", enable_cstr=True)]
    struct = table_to_struct(TABLE)
    expected = (
        ColumnConstraint(name="pk", kind=ConstraintKind.PRIMARY_KEY, column="id", is_enabled=False),
        ColumnConstraint(name="ck", kind=ConstraintKind.CHECK, column=None, expression="id > 0"),
    )
    rig("create_table_with_constraints", tbl=struct, primaryKeys=keys, checkConstraints=checks)
    asked = ("create_constrained_table", TABLE, expected, {"trusted_columns": ()})
    assert rig.asked == [asked]
    request = hive.CreateTableRequest(table=struct, primaryKeys=keys, checkConstraints=checks)
    rig("create_table_req", request=request)
    assert rig.asked == [asked]


def test_constraints_of_another_table_and_too_many_are_refused(rig: Rig) -> None:
    struct = table_to_struct(TABLE)
    keys = [hive.SQLPrimaryKey(table_db="db", table_name="other", column_name="id")]
    with pytest.raises(MetaError, match=r"primaryKeys is of db\.other"):
        rig("create_table_with_constraints", tbl=struct, primaryKeys=keys)
    many = [hive.SQLNotNullConstraint(column_name=f"c{number}") for number in range(1_001)]
    request = hive.CreateTableRequest(table=struct, notNullConstraints=many)
    with pytest.raises(MetaError, match="send at most"):
        rig("create_table_req", request=request)
    assert rig.asked == []


def test_alter_table_in_all_forms(rig: Rig) -> None:
    struct = table_to_struct(TABLE)
    old = {"dbname": "db", "tbl_name": "OLD", "new_tbl": struct}
    context = hive.EnvironmentContext(properties={"DO_NOT_UPDATE_STATS": "true"})

    def asked(**environment: str) -> Any:
        told = {"environment": environment, "valid_write_ids": None}
        return [("alter_table", "db", "old", TABLE, told)]

    rig("alter_table", **old)
    assert rig.asked == asked()
    rig("alter_table_with_cascade", cascade=True, **old)
    assert rig.asked == asked(CASCADE="true")
    rig("alter_table_with_environment_context", environment_context=context, **old)
    assert rig.asked == asked(DO_NOT_UPDATE_STATS="true")
    request = hive.AlterTableRequest(
        dbName="db", tableName="old", table=struct, writeId=77, validWriteIdList="db.t:1:2::"
    )
    rig("alter_table_req", req=request)
    assert rig.asked == [
        ("alter_table", "db", "old", replace(TABLE, write_id=77),
         {"environment": {}, "valid_write_ids": "db.t:1:2::"}),
    ]  # fmt: skip


def test_drop_table_in_all_forms(rig: Rig) -> None:
    purge = hive.EnvironmentContext(properties={"ifPurge": "TRUE"})

    def asked(**flags: bool) -> Any:
        return [("drop_table", "db", "t", {"catalog": "hive", **flags})]

    rig("drop_table", dbname="db", name="t", deleteData=True)
    assert rig.asked == asked(is_data_deleted=True, is_purge=False)
    rig("drop_table", dbname="db", name="t")
    assert rig.asked == asked(is_data_deleted=False, is_purge=False)
    request = hive.DropTableRequest(dbName="db", tableName="t", deleteData=True, envContext=purge)
    rig("drop_table_req", dropTableReq=request)
    assert rig.asked == asked(is_data_deleted=True, is_purge=True)


# Partitions

AT = {"db_name": "db", "tbl_name": "p"}


def test_partitions_are_read_in_all_forms(rig: Rig) -> None:
    struct = partition_to_struct(PART)
    values = ["1", "x"]
    assert rig("get_partition_with_auth", part_vals=values, **AT) == struct
    request = hive.GetPartitionRequest(dbName="db", tblName="p", partVals=values)
    assert rig("get_partition_req", req=request).partition == struct
    assert rig.asked == [("get_partition", "db", "p", values, "hive")]
    assert rig("get_partition_by_name", part_name="a=1/b=x", **AT) == struct
    assert rig("get_partitions", max_parts=-1, **AT) == [struct]
    assert rig("get_partitions_with_auth", max_parts=7, **AT) == [struct]
    assert rig.asked == [("get_partitions", "db", "p", 7, "hive")]
    everything = hive.PartitionsRequest(dbName="db", tblName="p")
    assert rig("get_partitions_req", req=everything).partitions == [struct]
    assert rig.asked == [("get_partitions", "db", "p", -1, "hive")]
    assert rig("fetch_partition_names_req", partitionReq=everything) == list(NAMES)
    (spec,) = rig("get_partitions_pspec", max_parts=-1, **AT)
    assert (spec.rootPath, spec.partitionList.partitions) == ("file:/w/p", [struct])
    assert rig("get_partitions_ps_with_auth", part_vals=["1"], **AT) == [struct]
    by_values = hive.GetPartitionsPsWithAuthRequest(dbName="db", tblName="p", partVals=["1"])
    assert rig("get_partitions_ps_with_auth_req", req=by_values).partitions == [struct]
    assert rig.asked == [("get_partitions_by_values", "db", "p", ("1",), -1, "hive")]
    by_values.partNames = ["a=1/b=x"]
    rig("get_partitions_ps_with_auth_req", req=by_values)
    assert rig.asked == [("get_partitions_by_names", "db", "p", ("a=1/b=x",), "hive")]
    by_names = hive.GetPartitionsByNamesRequest(db_name="db", tbl_name="p", names=["a=1/b=x"])
    assert rig("get_partitions_by_names_req", req=by_names).partitions == [struct]


def test_partitions_by_filter_in_all_forms(rig: Rig) -> None:
    struct = partition_to_struct(PART)
    rig.fake.answers["count_partitions_by_filter"] = 2
    assert rig("get_num_partitions_by_filter", filter="a = 1", **AT) == 2
    assert rig.asked == [("count_partitions_by_filter", P, "a = 1")]
    request = hive.GetPartitionsByFilterRequest(dbName="db", tblName="p", filter="a = 1")
    assert rig("get_partitions_by_filter_req", req=request) == [struct, struct]
    assert rig.asked == [("get_partitions_by_filter", "db", "p", "a = 1", -1, "hive")]
    assert rig("get_partitions_by_filter", filter="", max_parts=-1, **AT) == [struct]


def test_partition_specs_by_filter(rig: Rig) -> None:
    asked = {"db_name": "DB", "tbl_name": "P", "filter": "a = 1", "max_parts": 7}
    (spec,) = rig("get_part_specs_by_filter", **asked)
    assert (spec.dbName, spec.tableName, spec.rootPath) == ("db", "p", "file:/w/p")
    assert [part.values for part in spec.partitionList.partitions] == [["1", "x"]] * 2
    assert ("get_partitions_by_filter", "db", "p", "a = 1", 7, "hive") in rig.asked


def test_partition_names_by_values(rig: Rig) -> None:
    def names(values: list[str], limit: int = -1) -> Any:
        return rig("get_partition_names_ps", part_vals=values, max_parts=limit, **AT)

    assert names(["1"]) == ["a=1/b=x", "a=1/b=y"]
    assert names(["1"], 1) == ["a=1/b=x"]
    assert names(["", "x/y"]) == ["a=2/b=x%2Fy"]
    for wrong in ([], ["1", "2", "3"]):
        with pytest.raises(MetaError, match="Incorrect number of partition values"):
            names(wrong)
    request = hive.GetPartitionNamesPsRequest(dbName="db", tblName="p", partValues=["2"])
    assert rig("get_partition_names_ps_req", req=request).names == ["a=2/b=x%2Fy"]


def test_partition_values(rig: Rig) -> None:
    rig.fake.answers["get_partition_values"] = (("x", "1"), ("x%2Fy", "2"))
    keys = [hive.FieldSchema(name="B", type="string"), hive.FieldSchema(name="a")]
    request = hive.PartitionValuesRequest(
        dbName="DB", tblName="P", partitionKeys=keys, applyDistinct=None, ascending=None,
        maxParts=None, partitionOrder=keys, validWriteIdList="db.p:1:1::",
    )  # fmt: skip
    found = rig("get_partition_values", request=request)
    assert [row.row for row in found.partitionValues] == [["x", "1"], ["x%2Fy", "2"]]
    how = {
        "filter_text": "", "is_distinct": True, "is_ascending": True, "max_parts": -1,
    }  # fmt: skip
    assert rig.asked == [("get_partition_values", P, ["b", "a"], how)]
    request.applyDistinct, request.ascending = False, False
    request.filter, request.maxParts, request.catName = "a = 1", 7, "Other"
    rig("get_partition_values", request=request)
    how = {
        "filter_text": "a = 1", "is_distinct": False, "is_ascending": False, "max_parts": 7,
    }  # fmt: skip
    assert rig.asked == [("get_partition_values", replace(P, catalog="other"), ["b", "a"], how)]
    for missing, why in ((None, "partitionKeys"), ([hive.FieldSchema()], "key's name")):
        request.partitionKeys = missing
        with pytest.raises(MetaError, match=f"{why} was not sent"):
            rig("get_partition_values", request=request)


def test_conditions_in_all_forms(rig: Rig) -> None:
    sent = sent_for("(i = 1)")
    equal = Call(Function.EQUAL, (ColumnReference("i", "int"), Constant(1, "int")), "boolean")
    rig.fake.answers["get_partitions_by_condition"] = ((PART,), True)
    rig.fake.answers["get_partition_names_by_condition"] = NAMES
    request = hive.PartitionsByExprRequest(dbName="db", tblName="p", expr=sent.data, maxParts=7)
    found = rig("get_partitions_by_expr", req=request)
    assert found.partitions == [partition_to_struct(PART)]
    assert found.hasUnknownPartitions
    how = {"max_parts": 7, "default_value": DEFAULT_PARTITION_VALUE}
    assert rig.asked == [("get_partitions_by_condition", P, equal, how)]
    found = rig("get_partitions_spec_by_expr", req=request)
    assert found.partitionsSpec[0].partitionList.partitions == [partition_to_struct(PART)]
    request.order, request.defaultPartitionName = "1:-", "none"
    assert rig("get_partition_names_req", req=request) == list(NAMES)
    how |= {"default_value": "none", "order": "1:-"}
    assert rig.asked == [("get_partition_names_by_condition", P, equal, how)]


@pytest.mark.parametrize(
    ("data", "condition"),
    [
        (b"", None),
        (b"\xff", None),  # how HiveServer2 says "all"
        (b"(a='1' AND b='x')", FilterText("(a='1' AND b='x')")),
        (b"\x01\x00org.apache", Unread("at byte 12: the end of the bytes")),
        (b"\x01\x00com.sun.rowset.JdbcRowSetImp\xec\x01",
         Unread("at byte 32: class 'com.sun.rowset.JdbcRowSetImpl'")),
    ],
)  # fmt: skip
def test_what_stands_where_an_expression_is_due(
    rig: Rig, data: bytes, condition: FilterText | Unread | None
) -> None:
    rig.fake.answers["get_partitions_by_condition"] = ((), True)
    request = hive.PartitionsByExprRequest(dbName="db", tblName="p", expr=data)
    found = rig("get_partitions_spec_by_expr", req=request)
    assert (found.partitionsSpec, found.hasUnknownPartitions) == ([], True)
    assert rig.asked[0][2] == condition


def test_drops_by_condition(rig: Rig) -> None:
    rig.fake.answers["drop_partitions_by_conditions"] = (PART,)
    exprs = [hive.DropPartitionsExpr(expr=b"(a='1')", partArchiveLevel=2)]
    request = hive.DropPartitionsRequest(
        dbName="db", tblName="p", parts=hive.RequestPartsSpec(exprs=exprs), deleteData=True,
        ifExists=False, environmentContext=hive.EnvironmentContext(properties={"ifPurge": "TRUE"}),
    )  # fmt: skip
    assert rig("drop_partitions_req", req=request).partitions == [partition_to_struct(PART)]
    wanted = [ConditionToDrop(condition=FilterText("(a='1')"), archive_level=2)]
    how = {"is_data_deleted": True, "is_purge": True, "is_if_exists": False}
    assert rig.asked == [("drop_partitions_by_conditions", P, wanted, how)]
    request.ignoreProtection, request.needResult = True, False
    assert rig("drop_partitions_req", req=request).partitions is None
    assert rig.asked[0][2] == [ConditionToDrop(condition=FilterText("(a='1')"))]
    request.parts = hive.RequestPartsSpec()
    with pytest.raises(MetaError, match="Partition spec is not set"):
        rig("drop_partitions_req", req=request)


def test_renamed_and_exchanged_partitions(rig: Rig) -> None:
    struct = partition_to_struct(PART)
    rig("rename_partition", part_vals=["1", "x"], new_part=struct, **AT)
    assert rig.asked == [("rename_partition", "db", "p", ("1", "x"), PART, {"catalog": "hive"})]
    request = hive.RenamePartitionRequest(
        dbName="db", tableName="p", partVals=["1", "x"], newPart=struct
    )
    rig("rename_partition_req", req=request)
    assert rig.asked == [("rename_partition", "db", "p", ("1", "x"), PART, {"catalog": "hive"})]
    request.clonePart = True
    with pytest.raises(MetaError, match="makecopy"):
        rig("rename_partition_req", req=request)
    rig.fake.answers["exchange_partitions"] = (PART,)
    where = {
        "partitionSpecs": {"a": "1"}, "source_db": "db", "source_table_name": "p",
        "dest_db": "@hive#two", "dest_table_name": "Q",
    }  # fmt: skip
    asked = ("exchange_partitions", {"a": "1"}, TableName("db", "p"), TableName("two", "q"))
    assert rig("exchange_partitions", **where) == [struct]
    assert rig.asked == [asked]
    assert rig("exchange_partition", **where).values is None
    assert rig.asked == [asked]


def test_partitions_with_specs(rig: Rig) -> None:
    def asked(mode: int | None, *filters: str) -> Any:
        chosen = hive.GetPartitionsFilterSpec(filterMode=mode, filters=list(filters))
        request = hive.GetPartitionsRequest(dbName="db", tblName="p", filterSpec=chosen)
        (spec,) = rig("get_partitions_with_specs", request=request).partitionSpec
        assert spec.sharedSDPartitionSpec.partitions[0].values == list(PART.values)
        return rig.asked[0]

    assert asked(None) == ("get_partitions", "db", "p", -1, "hive")
    assert asked(0, "a=1/b=x") == ("get_partitions_by_names", "db", "p", ("a=1/b=x",), "hive")
    assert asked(1, "1") == ("get_partitions_by_values", "db", "p", ("1",), -1, "hive")
    text = "(a = 1) and (b = 'x')"
    assert asked(2, "a = 1", "b = 'x'") == (
        "get_partitions_by_filter", "db", "p", text, -1, "hive",
    )  # fmt: skip
    with pytest.raises(MetaError, match="filter mode 9"):
        asked(9, "x")


def test_partition_names_as_texts(rig: Rig) -> None:
    assert rig("partition_name_to_vals", part_name="a=1/b=x%3Ay") == ["1", "x:y"]
    assert rig("partition_name_to_spec", part_name="a=1/b=x%3Ay") == {"a": "1", "b": "x:y"}
    assert rig("partition_name_to_vals", part_name="") == []
    assert rig("partition_name_has_valid_characters", part_vals=["é"], throw_exception=True)
    with pytest.raises(MetaError):
        rig("partition_name_to_vals", part_name="nonsense")


def test_partitions_are_added_in_all_forms(rig: Rig) -> None:
    struct = partition_to_struct(PART)
    flags = {"is_if_not_exists": False, "catalog": "hive"}
    asked = [("add_partitions", "db", "p", [PART], flags)]
    for name in ("add_partition", "add_partition_with_environment_context"):
        assert rig(name, new_part=struct) == struct
        assert rig.asked == asked
    assert rig("add_partitions", new_parts=[struct]) == 1
    assert rig.asked == asked
    assert rig("add_partitions", new_parts=[]) == 0
    request = hive.AddPartitionsRequest(
        dbName="db", tblName="p", parts=[struct], ifNotExists=True, needResult=False
    )
    assert rig("add_partitions_req", request=request).partitions is None


def test_columns_that_come_once_for_all_partitions_are_put_into_each(rig: Rig) -> None:
    columns = [hive.FieldSchema(name="ID", type="int")]
    part = partition_to_struct(PART)
    part.sd.cols = None
    request = hive.AddPartitionsRequest(
        dbName="db", tblName="p", parts=[part], ifNotExists=False,
        skipColumnSchemaForPartition=True, partitionColSchema=columns,
    )  # fmt: skip
    result = rig("add_partitions_req", request=request)
    (added,) = rig.fake.calls[0][1][2]
    assert added.storage.columns == (Column(name="id", type="int"),)
    assert result.partitionColSchema == [hive.FieldSchema(name="id", type="int")]
    change = hive.AlterPartitionsRequest(
        dbName="db", tableName="p", partitions=[part], partitionColSchema=columns, writeId=12
    )
    rig("alter_partitions_req", req=change)
    (changed,) = rig.fake.calls[0][1][2]
    assert changed.storage.columns == (Column(name="id", type="int"),)
    assert changed.write_id == 12


def test_partitions_are_added_by_specs(rig: Rig) -> None:
    struct = partition_to_struct(PART)
    whole = hive.PartitionSpec(
        dbName="DB", tableName="P",
        partitionList=hive.PartitionListComposingSpec(partitions=[struct]),
    )  # fmt: skip
    storage = hive.StorageDescriptor(cols=[], location="file:/w/p", serdeInfo=hive.SerDeInfo())
    alike = hive.PartitionSpec(dbName="db", tableName="p", sharedSDPartitionSpec=(
        hive.PartitionSpecWithSharedSD(sd=storage, partitions=[
            hive.PartitionWithoutSD(values=["2", "y"], relativePath="/a=2/b=y", createTime=7),
            hive.PartitionWithoutSD(values=["3", "z"], relativePath="/c"),
        ])))  # fmt: skip
    assert rig("add_partitions_pspec", new_parts=[]) == 0
    assert rig("add_partitions_pspec", new_parts=[whole, alike]) == 1  # as the fake says
    ((name, *place, added, how),) = rig.asked
    assert (name, place) == ("add_partitions", ["db", "p"])
    assert how == {"is_if_not_exists": False, "catalog": "hive"}
    assert added[0] == PART
    others = [(part.values, part.storage.location, part.create_time) for part in added[1:]]
    assert others == [(("2", "y"), "file:/w/p/a=2/b=y", 7), (("3", "z"), "file:/w/p/c", 0)]
    alike.sharedSDPartitionSpec.partitions[1].relativePath = None
    with pytest.raises(MetaError, match="relativePath was not sent"):  # Hive: /w/pnull
        rig("add_partitions_pspec", new_parts=[alike])
    alike.tableName = "q"
    with pytest.raises(MetaError, match=r"specs of 2 tables.*db\.p, .*db\.q"):
        rig("add_partitions_pspec", new_parts=[whole, alike])
    with pytest.raises(MetaError, match="neither"):
        rig("add_partitions_pspec", new_parts=[hive.PartitionSpec(dbName="db", tableName="p")])


def test_partitions_of_two_tables_are_not_mixed(rig: Rig) -> None:
    other = partition_to_struct(replace(PART, table_name="q"))
    with pytest.raises(MetaError, match=r"db\.q .*among"):
        rig("add_partitions", new_parts=[partition_to_struct(PART), other])


def test_partitions_are_appended_in_all_forms(rig: Rig) -> None:
    like_table = replace(PARTITIONED.storage, location=None)
    expected = Partition(values=("1", "x"), database_name="db", table_name="p", storage=like_table)
    for name in ("append_partition", "append_partition_with_environment_context"):
        assert rig(name, part_vals=["1", "x"], **AT) == partition_to_struct(PART)
        assert rig.asked[-1] == ("add_partitions", "db", "p", [expected], {"catalog": "hive"})
    for name in ("append_partition_by_name", "append_partition_by_name_with_environment_context"):
        rig(name, part_name="b=x/a=1", **AT)
        assert rig.asked[-1] == ("add_partitions", "db", "p", [expected], {"catalog": "hive"})
    request = hive.AppendPartitionsRequest(dbName="db", tableName="p", name="a=1/b=x")
    rig("append_partition_req", appendPartitionsReq=request)
    assert rig.asked[-1] == ("add_partitions", "db", "p", [expected], {"catalog": "hive"})
    for bad in ("a=1", "a=1/b=x/c=3", "a=1/c=x"):
        with pytest.raises(InvalidObjectError, match="does not fit"):
            rig("append_partition_by_name", part_name=bad, **AT)


def test_partitions_are_altered_in_all_forms(rig: Rig) -> None:
    struct = partition_to_struct(PART)
    context = hive.EnvironmentContext(properties={"k": "v"})

    def asked(*, is_event_each: bool, **environment: str) -> Any:
        flags = {
            "environment": environment, "catalog": "hive", "is_event_each": is_event_each,
            "valid_write_ids": None,
        }  # fmt: skip
        return [("alter_partitions", "db", "p", [PART], flags)]

    rig("alter_partition", new_part=struct, **AT)
    assert rig.asked == asked(is_event_each=True)
    rig("alter_partitions", new_parts=[struct], **AT)
    assert rig.asked == asked(is_event_each=False)
    named = {"environment_context": context, **AT}
    rig("alter_partition_with_environment_context", new_part=struct, **named)
    assert rig.asked == asked(is_event_each=True, k="v")
    rig("alter_partitions_with_environment_context", new_parts=[struct], **named)
    assert rig.asked == asked(is_event_each=False, k="v")


def test_partitions_are_dropped_in_all_forms(rig: Rig) -> None:
    purge = hive.EnvironmentContext(properties={"ifPurge": "true"})

    def asked(is_purge: bool) -> Any:
        flags = {"catalog": "hive", "is_data_deleted": True, "is_purge": is_purge}
        return ("drop_partitions", "db", "p", ("a=1/b=x",), flags)

    by_values = {"part_vals": ["1", "x"], "deleteData": True, **AT}
    by_name = {"part_name": "a=1/b=x", "deleteData": True, **AT}
    for name, how in (("drop_partition", by_values), ("drop_partition_by_name", by_name)):
        assert rig(name, **how) is True
        assert rig.asked[-1] == asked(False)
        assert rig(f"{name}_with_environment_context", environment_context=purge, **how) is True
        assert rig.asked[-1] == asked(True)
    request = hive.DropPartitionRequest(
        dbName="db", tblName="p", partVals=["1", "x"], deleteData=True, environmentContext=purge
    )
    assert rig("drop_partition_req", dropPartitionReq=request) is True
    assert rig.asked[-1] == asked(True)
    several = hive.DropPartitionsRequest(
        dbName="db", tblName="p", parts=hive.RequestPartsSpec(names=["a=1/b=x"]), deleteData=True
    )
    dropped = rig("drop_partitions_req", req=several).partitions
    assert dropped == [partition_to_struct(PART)]
    assert rig.asked[-1][-1]["is_if_exists"] is True  # as Hive takes it where it is unset


# Transactions, locks, compactions, events


def test_transactions_in_other_forms(rig: Rig) -> None:
    rig.fake.answers["get_open_txns"] = OpenTxns(high_watermark=TxnId(4), txns=())
    request = hive.GetOpenTxnsRequest(excludeTxnTypes=[2, 3])
    assert rig("get_open_txns_req", getOpenTxnsRequest=request).txn_high_water_mark == 4
    assert rig.asked == [("get_open_txns", frozenset({TxnType.READ_ONLY, TxnType.COMPACTION}))]
    rig("get_open_txns_req", getOpenTxnsRequest=hive.GetOpenTxnsRequest())
    assert rig.asked == [("get_open_txns", frozenset())]
    rig("abort_txns", rqst=hive.AbortTxnsRequest(txn_ids=[1]))
    assert rig.asked == [("abort_txns", [1], AbortReason.QUERY)]
    rig("heartbeat", ids=hive.HeartbeatRequest(lockid=5))
    assert rig.asked == [("heartbeat", TxnId(0), LockId(5))]
    rig.fake.answers["get_valid_write_ids"] = ()
    rig("get_valid_write_ids", rqst=hive.GetValidWriteIdsRequest(fullTableNames=["DB.T"]))
    assert rig.asked == [("get_valid_write_ids", ["db.t"], None, None)]
    rig.fake.answers["get_latest_txn_in_conflict"] = None
    assert rig("get_latest_txnid_in_conflict", txnId=5) == 0  # as Hive says "none"
    rig("add_write_ids_to_min_history", txnId=1, writeIds={"db.t": 4})
    assert rig.asked == [("add_write_ids_to_min_history", TxnId(1), {"db.t": 4})]
    rig.fake.answers["add_write_ids_to_min_history"] = TxnAbortedError("Transaction 1 aborted")
    with pytest.raises(MetaError, match="aborted"):  # no other is declared
        rig("add_write_ids_to_min_history", txnId=1, writeIds={"db.t": 4})


def test_workers_of_old_hives(rig: Rig) -> None:
    rig.fake.answers["find_next_compaction"] = COMPACTION
    assert rig("find_next_compact", workerId="w").ci.id == 7
    assert rig.asked == [("find_next_compaction", "w", None)]
    rig("compact", rqst=hive.CompactionRequest(dbname="D", tablename="T", type=2))
    assert rig.asked[0][1].target == Target("d", "t")
    rig.fake.answers["get_columns_with_statistics"] = ("id", "v")
    target = hive.CompactionInfoStruct(dbname="D", tablename="T", partitionname="p=1")
    assert rig("find_columns_with_stats", cr=target) == ["id", "v"]
    assert rig.asked == [("get_columns_with_statistics", "d", "t", "p=1")]


def test_the_latest_committed_compaction_of_each_partition(rig: Rig) -> None:
    ready = CompactionState.READY_FOR_CLEANING
    entries = (
        replace(HISTORY, id=CompactionId(9), target=Target("db", "t", "p=1"), state=ready),
        replace(HISTORY, id=CompactionId(8), target=Target("db", "t", "p=1")),
        replace(HISTORY, id=CompactionId(7), target=Target("db", "t", "p=2")),
        replace(
            HISTORY,
            id=CompactionId(6),
            target=Target("db", "t", "p=3"),
            state=CompactionState.FAILED,
        ),
    )
    rig.fake.answers["show_compactions"] = entries
    request = hive.GetLatestCommittedCompactionInfoRequest(dbname="DB", tablename="t")

    def ids() -> set[int]:
        found = rig("get_latest_committed_compaction_info", rqst=request)
        return {one.id for one in found.compactions}

    assert ids() == {9, 7}
    assert rig.asked == [("show_compactions", ShowCompactionsRequest(scope=Scope("db", "t")))]
    request.partitionnames = ["p=2"]
    assert ids() == {7}
    request.lastCompactionId = 7
    assert ids() == set()


def test_counting_events(rig: Rig) -> None:
    counts = {10: 40, 30: 20}
    rig.fake.answers |= {
        "get_notification_events_count": lambda after, database, catalog, tables: counts[after],
        "get_current_event_id": EventId(100),
    }
    request = hive.NotificationEventsCountRequest(fromEventId=10, dbName="DB")

    def count() -> int:
        return int(rig("get_notification_events_count", rqst=request).eventsCount)

    assert count() == 40
    assert rig.asked == [("get_notification_events_count", 10, "db", "hive", {"tables": ()})]
    request.toEventId = 30
    assert count() == 20
    request.limit = 7
    assert count() == 7
    request.fromEventId, request.toEventId = 30, 10
    assert count() == 0, "none lie between two ids the other way round"
    assert _count(rig, dbName="*") == 90
    assert _count(rig, dbName="db", tableNames=["T"]) == 40
    assert rig.asked == [("get_notification_events_count", 10, "db", "hive", {"tables": ("t",)})]


def _count(rig: Rig, **fields: Any) -> int:
    request = hive.NotificationEventsCountRequest(fromEventId=10, **fields)
    return int(rig("get_notification_events_count", rqst=request).eventsCount)


def test_events_of_some_types(rig: Rig) -> None:
    """Chosen where they are read: after a limit, nothing may be left of a page."""
    event = NotificationEvent(id=EventId(2), time_seconds=1, type="OPEN_TXN", message="{}")
    rig.fake.answers["get_next_notification"] = (event,)
    request = hive.NotificationEventRequest(lastEvent=0, maxEvents=5, eventTypeList=["OPEN_TXN"])
    assert [one.eventId for one in rig("get_next_notification", rqst=request).events] == [2]
    ((_, asked),) = rig.asked
    assert (asked.types, asked.max_events) == ({"OPEN_TXN"}, 5)


def test_what_is_open_is_listed_up_to_the_watermark(rig: Rig) -> None:
    """Also where another client opens a transaction between two reads."""
    opened = [1]

    def read(answer: Callable[[], Any]) -> Any:
        found = answer()
        opened.append(len(opened) + 1)
        return found

    def infos() -> tuple[TxnInfo, ...]:
        return tuple(
            TxnInfo(id=TxnId(one), state=TxnState.OPEN, user="u", host="h", started_ms=1,
                    last_heartbeat_ms=1)
            for one in opened
        )  # fmt: skip

    rig.fake.answers |= {
        "get_open_txns_info": lambda: read(infos),
        "get_open_txns": lambda: read(
            lambda: OpenTxns(high_watermark=TxnId(opened[-1]), txns=(), min_open_txn=TxnId(1))
        ),
    }
    told = rig("get_open_txns_info")
    assert [one.id for one in told.open_txns] == list(range(1, told.txn_high_water_mark + 1))


def test_write_notifications_in_a_batch(rig: Rig) -> None:
    one = hive.WriteNotificationLogRequest(
        txnId=1, writeId=2, db="x", table="x", partitionVals=["1"],
        fileInfo=hive.InsertEventRequestData(filesAdded=["f"]),
    )  # fmt: skip
    rig("add_write_notification_log_in_batch", rqst=hive.WriteNotificationLogBatchRequest(
        catalog="hive", db="DB", table="T", requestList=[one]))  # fmt: skip
    expected = WriteNotification(
        txn_id=1, write_id=2, database_name="db", table_name="t", partition_values=("1",),
        files=("f",),
    )  # fmt: skip
    assert rig.asked == [("add_write_notifications", [expected])]


# Statistics, functions, materialized views, privileges

LONGS = COLUMN_STATISTICS[1:2]
DESCRIBED = {"dbName": "DB", "tableName": "T", "isTblLevel": True}


def _column_statistics(**description: Any) -> Struct:
    return hive.ColumnStatistics(
        statsDesc=hive.ColumnStatisticsDesc(**(DESCRIBED | description)),
        statsObj=statistics_to_structs(LONGS),
    )


def test_statistics_are_updated_in_all_forms(rig: Rig) -> None:
    rig.fake.answers["set_column_statistics"] = True
    one = StatisticsUpdate(
        database_name="db", table_name="t", objects=(ObjectStatistics(columns=LONGS),)
    )
    of_partition = replace(one, objects=(replace(one.objects[0], partition_name="ds=1"),))
    named = _column_statistics(isTblLevel=False, partName="ds=1")
    assert rig("update_table_column_statistics", stats_obj=_column_statistics()) is True
    assert rig.asked == [("set_column_statistics", one)]
    assert rig("update_partition_column_statistics", stats_obj=named) is True
    assert rig.asked == [("set_column_statistics", of_partition)]
    told = {"writeId": 5, "validWriteIdList": "db.t:5:9::", "engine": "impala"}
    in_txn = {"write_id": 5, "valid_write_ids": "db.t:5:9::", "engine": "impala"}
    for name, sent, expected in (
        ("update_table_column_statistics_req", _column_statistics(), one),
        ("update_partition_column_statistics_req", named, of_partition),
    ):
        request = hive.SetPartitionsStatsRequest(colStats=[sent], **told)
        assert rig(name, req=request).result is True
        assert rig.asked == [("set_column_statistics", replace(expected, **in_txn))]
        request.needMerge = True
        with pytest.raises(InvalidObjectError, match="Merge is not supported"):
            rig(name, req=request)
    assert rig("set_aggr_stats_for", request=hive.SetPartitionsStatsRequest(colStats=[])) is True
    assert rig.asked == []


def test_statistics_of_several_tables_or_none_are_refused(rig: Rig) -> None:
    two = [_column_statistics(), _column_statistics(tableName="u")]
    twice = [_column_statistics(), _column_statistics()]
    for several in (two, twice):
        with pytest.raises(InvalidObjectError):
            rig("set_aggr_stats_for", request=hive.SetPartitionsStatsRequest(colStats=several))
    empty = _column_statistics()
    empty.statsObj[0].statsData = hive.ColumnStatisticsData()
    with pytest.raises(InvalidObjectError, match="column l have 0 kinds"):
        rig("update_table_column_statistics", stats_obj=empty)
    assert rig.asked == []


def test_statistics_of_a_column(rig: Rig) -> None:
    at = {"db_name": "DB", "tbl_name": "T", "col_name": "L"}
    rig.fake.answers["get_column_statistics"] = (
        ObjectStatistics(columns=LONGS, analyzed_seconds=7),
    )
    found = rig("get_table_column_statistics", **at)
    assert (found.statsDesc.tableName, found.statsDesc.isTblLevel) == ("t", True)
    assert found.statsDesc.lastAnalyzed == 7
    assert found.statsObj == statistics_to_structs(LONGS)
    query = StatisticsQuery(database_name="db", table_name="t", columns=("l",))
    assert rig.asked == [("get_column_statistics", query)]
    rig("get_partition_column_statistics", part_name="DS=A", **at)
    assert rig.asked == [("get_column_statistics", replace(query, partition_names=("ds=A",)))]
    rig.fake.answers["get_column_statistics"] = ()
    with pytest.raises(NoSuchObjectError, match="columnName=l"):
        rig("get_table_column_statistics", **at)


def test_statistics_that_a_snapshot_may_not_believe_are_left_out(rig: Rig) -> None:
    rig.fake.answers["get_column_statistics"] = tuple(
        ObjectStatistics(columns=LONGS, partition_name=name, is_compliant=is_compliant)
        for name, is_compliant in (("a=1", True), ("a=2", False), ("a=3", None))
    )
    request = {"dbName": "db", "tblName": "t", "colNames": ["l"]}
    of_partitions = hive.PartitionsStatsRequest(partNames=["a=1", "a=2", "a=3"], **request)
    found = rig("get_partitions_statistics_req", request=of_partitions)
    assert set(found.partStats) == {"a=1", "a=3"}
    found = rig("get_table_statistics_req", request=hive.TableStatsRequest(**request))
    assert len(found.tableStats) == 2


def test_statistics_are_deleted_in_all_forms(rig: Rig) -> None:
    rig.fake.answers["delete_column_statistics"] = True
    at = {"db_name": "DB", "tbl_name": "T", "col_name": "l", "engine": "hive"}

    def asked(partitions: Any) -> Any:
        told = {"columns": ("l",), "partition_names": partitions, "engine": "hive"}
        return [("delete_column_statistics", "db", "t", told | {"catalog": "hive"})]

    assert rig("delete_table_column_statistics", **at) is True
    assert rig.asked == asked(None)
    assert rig("delete_partition_column_statistics", part_name="DS=1", **at) is True
    assert rig.asked == asked(["ds=1"])


def test_a_table_comes_with_its_statistics(rig: Rig) -> None:
    """REPL DUMP asks so; and a snapshot that did not see the last writer gets none."""
    plain = replace(
        PARTITIONED, partition_columns=(), write_id=5,
        parameters={"transactional": "true",
                    ACCURATE: '{"BASIC_STATS":"true","COLUMN_STATS":{"l":"true"}}'},
    )  # fmt: skip
    rig.fake.answers["get_table"] = plain
    rig.fake.answers["get_column_statistics"] = (ObjectStatistics(columns=LONGS),)
    request = hive.GetTableRequest(dbName="db", tblName="p", getColumnStats=True, engine="hive")
    assert rig("get_table_req", req=request).table.colStats.statsObj[0].colName == "l"
    request.validWriteIdList = "db.p:5:9223372036854775807::"
    found = rig("get_table_req", req=request).table
    assert (found.isStatsCompliant, found.parameters) == (True, plain.parameters)
    request.validWriteIdList = "db.p:4:9223372036854775807::"
    found = rig("get_table_req", req=request).table
    assert (found.isStatsCompliant, found.parameters) == (False, {"transactional": "true"})


def test_functions_by_pattern(rig: Rig) -> None:
    rig.fake.answers["get_functions"] = (FUNCTION,)
    assert rig("get_functions", dbName="DB", pattern="F*") == ["fn"]
    assert rig.asked == [("get_functions", "db", "F*", "hive")]
    request = hive.GetFunctionsRequest(dbName="db", catalogName="hive", pattern="*")
    assert rig("get_functions_req", request=request).function_names == ["fn"]
    assert rig.asked == [("get_functions", "db", None, "hive")]
    request.returnNames = False
    assert rig("get_functions_req", request=request).functions[0].className == "org.example.Fn"


def test_names_of_materialized_views(rig: Rig) -> None:
    rig.fake.answers["get_materialized_views"] = (MATERIALIZED,)
    assert rig("get_materialized_views_for_rewriting", db_name="DB") == ["mv"]
    assert rig.asked == [("get_materialized_views", "db", "hive")]


def test_an_event_for_several_partitions_and_none_for_a_refresh(rig: Rig) -> None:
    rig.fake.answers["fire_inserts"] = (EventId(4), EventId(5))
    inserted = [
        hive.InsertEventRequestData(filesAdded=["f"], partitionVal=[value]) for value in "12"
    ]
    request = hive.FireEventRequest(
        successful=True, dbName="DB", tableName="T",
        data=hive.FireEventRequestData(insertDatas=inserted),
    )  # fmt: skip
    assert rig("fire_listener_event", rqst=request).eventIds == [4, 5]
    told = [
        InsertNotification(
            database_name="db", table_name="t", partition_values=(value,), files=("f",)
        )
        for value in "12"
    ]
    assert rig.asked == [("fire_inserts", tuple(told))]
    request.data = hive.FireEventRequestData(refreshEvent=True)
    with pytest.raises(MetaError, match="refresh"):
        rig("fire_listener_event", rqst=request)


def test_the_directory_of_a_table_that_was_never_made(rig: Rig) -> None:
    rig.fake.answers["submit_for_cleanup"] = True
    properties = {"location": "file:/wh/db.db/made", "ifPurge": "true"}
    request = hive.CompactionRequest(
        dbname="db", tablename="made", type=2, runas="hive",
        properties=properties,
    )  # fmt: skip
    assert rig("submit_for_cleanup", o1=request, o2=1, o3=7) is True
    ((verb, asked, *numbers),) = rig.asked
    assert (verb, asked.properties, numbers) == ("submit_for_cleanup", properties, [1, 7])
    for missing in ("o1", "o2", "o3"):
        given = {"o1": request, "o2": 1, "o3": 7} | {missing: None}
        with pytest.raises(MetaError, match=missing):
            rig("submit_for_cleanup", **given)


def test_every_answered_method_is_called() -> None:
    """By a test of the server or the service, by our client, or as a real Hive was."""
    texts = [path.read_text() for folder in CALLERS for path in sorted(folder.glob("*.py"))]
    named = {name for name in offered_names() if any(f'"{name}"' in text for text in texts)}
    untried = offered_names() - named - played_methods()
    assert untried <= {
        "shutdown",  # test_malformed_input
        "alter_partition_with_environment_context", "drop_partition_with_environment_context",
        "drop_partition_by_name_with_environment_context",
    }, "call it here"  # fmt: skip
