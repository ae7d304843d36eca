"""Calls about partitions and their statistics."""

from __future__ import annotations

from hms_bridge.wire.structs import Struct, hive
from integration.recorded.objects import DATABASE, Asked, T, context

_OF_T = {"db_name": DATABASE, "tbl_name": T}


def partitions(ask: Asked) -> None:
    ask("add_partitions", new_parts=[ask.partition(str(value)) for value in range(1, 7)])
    _appended(ask)
    _specified(ask)
    _altered(ask)
    _listed(ask)
    _dropped(ask)


def _appended(ask: Asked) -> None:
    by_values = "append_partition_with_environment_context"
    by_name = "append_partition_by_name_with_environment_context"
    for values, given in ((["11"], context(k="v")), (["11"], None), (["1", "2"], None), ([], None)):
        ask(by_values, **_OF_T, part_vals=values, environment_context=given)
    elsewhere = {"db_name": DATABASE, "tbl_name": "nope"}
    ask(by_values, **elsewhere, part_vals=["1"], environment_context=None)
    for name in ("ds=12", "ds=12", "nope=1", ""):
        ask(by_name, **_OF_T, part_name=name, environment_context=None)
    ask(by_name, **elsewhere, part_name="ds=1", environment_context=None)
    for fields in (
        {"partVals": ["13"]}, {"name": "ds=14"}, {"partVals": ["13"]}, {},
        {"partVals": ["15"], "tableName": "nope"}, {"partVals": ["15"], "dbName": "nope"},
    ):  # fmt: skip
        request = hive.AppendPartitionsRequest(**{"dbName": DATABASE, "tableName": T, **fields})
        ask("append_partition_req", appendPartitionsReq=request)


def _specified(ask: Asked) -> None:
    def listed(*values: str, table: str = T) -> Struct:
        return hive.PartitionSpec(
            dbName=DATABASE, tableName=table, rootPath="", catName="hive",
            partitionList=hive.PartitionListComposingSpec(
                partitions=[ask.partition(value, table) for value in values]
            ),
        )  # fmt: skip

    shared = hive.PartitionSpec(
        dbName=DATABASE, tableName=T, rootPath=f"file:{ask.external}/{T}", catName="hive",
        sharedSDPartitionSpec=hive.PartitionSpecWithSharedSD(
            partitions=[
                hive.PartitionWithoutSD(
                    values=[value], relativePath=f"/ds={value}", parameters={"v": value}
                ) for value in ("23", "24")
            ],
            sd=ask.partition("23").sd,
        ),
    )  # fmt: skip
    shared.sharedSDPartitionSpec.sd.location = shared.rootPath
    for specs in ([listed("21", "22")], [shared], [listed("25", "21")], [listed("26", "26")],
                  [listed("27", table="nope")], []):  # fmt: skip
        ask("add_partitions_pspec", new_parts=specs)
    ask("get_partition_names", **_OF_T, max_parts=-1)


def _altered(ask: Asked) -> None:
    name = "alter_partitions_with_environment_context"
    stored = ask("get_partitions_by_names", **_OF_T, names=["ds=1", "ds=2"])
    for partition in stored:
        partition.parameters |= {"v": "altered"}
    ask(name, **_OF_T, new_parts=stored, environment_context=context(DO_NOT_UPDATE_STATS="true"))
    ask(name, **_OF_T, new_parts=stored[:1], environment_context=None)
    ask("get_partitions_by_names", **_OF_T, names=["ds=1", "ds=2"])
    ask(name, **_OF_T, new_parts=[ask.partition("nope")], environment_context=None)
    ask(
        name, db_name=DATABASE, tbl_name="nope", new_parts=[ask.partition("1", "nope")],
        environment_context=None,
    )  # fmt: skip
    ask(name, **_OF_T, new_parts=[], environment_context=None)


def _listed(ask: Asked) -> None:
    for fields in (
        {}, {"maxParts": 2}, {"maxParts": 0}, {"tblName": "nope"}, {"dbName": "nope"},
        {"catName": None},
    ):  # fmt: skip
        request = hive.PartitionsRequest(
            **{"catName": "hive", "dbName": DATABASE, "tblName": T, **fields}
        )
        ask("fetch_partition_names_req", partitionReq=request)
    for filtered, most in (
        ('ds > "21"', -1), ('ds = "1" or ds = "2"', 1), ("", -1), ('ds like "2%"', -1),
        ("c = 1", -1), ("ds >", -1),
    ):  # fmt: skip
        request = hive.GetPartitionsByFilterRequest(
            catName="hive", dbName=DATABASE, tblName=T, filter=filtered, maxParts=most
        )
        ask("get_partitions_by_filter_req", req=request)
    missing = hive.GetPartitionsByFilterRequest(
        catName="hive", dbName=DATABASE, tblName="nope", filter='ds = "1"', maxParts=-1
    )
    ask("get_partitions_by_filter_req", req=missing)


def _dropped(ask: Asked) -> None:
    by_values = "drop_partition_with_environment_context"
    by_name = "drop_partition_by_name_with_environment_context"
    for values in (["11"], ["11"], ["1", "2"]):
        ask(by_values, **_OF_T, part_vals=values, deleteData=True, environment_context=context())
    for name in ("ds=12", "ds=12", "nope=1"):
        ask(by_name, **_OF_T, part_name=name, deleteData=False, environment_context=None)
    elsewhere = {"db_name": DATABASE, "tbl_name": "nope", "environment_context": None}
    ask(by_values, **elsewhere, part_vals=["1"], deleteData=True)
    ask(by_name, **elsewhere, part_name="ds=1", deleteData=True)
    for fields in (
        {"partVals": ["13"]}, {"partName": "ds=14", "environmentContext": context(k="v")},
        {"partVals": ["13"]}, {}, {"partVals": ["1"], "tblName": "nope"},
    ):  # fmt: skip
        request = hive.DropPartitionRequest(
            **{"catName": "hive", "dbName": DATABASE, "tblName": T, "deleteData": True, **fields}
        )
        ask("drop_partition_req", dropPartitionReq=request)
    ask("get_partition_names", **_OF_T, max_parts=-1)


def statistics(ask: Asked) -> None:
    def of(partition: str | None, high: int = 2, column: str = "c", table: str = T) -> Struct:
        counts = hive.LongColumnStatsData(lowValue=1, highValue=high, numNulls=0, numDVs=2)
        found = hive.ColumnStatisticsObj(
            colName=column, colType="int", statsData=hive.ColumnStatisticsData(longStats=counts)
        )
        return hive.ColumnStatistics(
            statsDesc=hive.ColumnStatisticsDesc(
                isTblLevel=partition is None, dbName=DATABASE, tableName=table,
                partName=partition, catName="hive",
            ), statsObj=[found], engine="hive",
        )  # fmt: skip

    def get(*names: str) -> None:
        request = hive.PartitionsStatsRequest(
            dbName=DATABASE, tblName=T, colNames=["c"], partNames=list(names), engine="hive"
        )
        ask("get_partitions_statistics_req", request=request)

    def delete(**fields: object) -> None:
        request = hive.DeleteColumnStatisticsRequest(
            **{"cat_name": "hive", "db_name": DATABASE, "tbl_name": T, "engine": "hive", **fields}
        )
        ask("delete_column_statistics_req", req=request)

    for given in (
        [of("ds=1")], [of("ds=2", 9)], [of("ds=1", 5)], [of("ds=nope")],
        [of("ds=1", column="nope")], [of("ds=1", table="nope")],
    ):  # fmt: skip
        request = hive.SetPartitionsStatsRequest(colStats=given, engine="hive")
        ask("update_partition_column_statistics_req", req=request)
    get("ds=1", "ds=2")
    for table in (T, "nope"):
        ask("update_table_column_statistics_req", req=hive.SetPartitionsStatsRequest(
            colStats=[of(None, table=table)], engine="hive"
        ))  # fmt: skip
    delete(part_names=["ds=1"], col_names=["c"])
    delete(part_names=["ds=nope"], col_names=["c"])
    delete(part_names=["ds=2"])
    get("ds=1", "ds=2")
    delete(tableLevel=True)
    delete(tbl_name="nope", tableLevel=True)
