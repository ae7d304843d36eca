"""What of tables and partitions a client asks for: as a real Hive 4.2 answered the same calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hms_bridge.errors import InvalidOperationError, MetaError
from hms_bridge.wire.structs import Struct, hive
from tests.support.odd_calls import DATABASE, TABLE, make, partition, table
from tests.support.served_metastore import ServedMetastore, served_metastore

OF = {"catName": "hive", "dbName": DATABASE, "tblName": TABLE}
NAMED = {"db_name": DATABASE, "tbl_name": TABLE}
ALWAYS = {
    "createTime": 0, "lastAccessTime": 0, "retention": 0, "rewriteEnabled": False, "writeId": 0,
    "id": 0, "tableType": "MANAGED_TABLE", "ownerType": 1,
}  # fmt: skip
"""What Java sends of a table that it knows nothing of."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedMetastore]:
    with served_metastore(tmp_path_factory.mktemp("narrowed")) as served:
        make(served.call)
        parameters = {"EXTERNAL": "TRUE", "aa": "1"}
        served.call("create_table", tbl=table("narrow", parameters=parameters))
        part = partition("7", "1", parameters={"aa": "1", "bb": "2"})
        served.call("add_partition", new_part=part)
        yield served


def _tables(served: ServedMetastore, **spec: Any) -> Struct:
    request = hive.GetTablesRequest(
        dbName=DATABASE, tblNames=["narrow"], projectionSpec=hive.GetProjectionsSpec(**spec)
    )
    (found,) = served.call("get_table_objects_by_name_req", req=request).tables
    struct: Struct = found
    return struct


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (["tableName"], {"tableName": "narrow"}),
        (["dbName", "tableName"], {"dbName": DATABASE, "tableName": "narrow"}),
        (["owner", "owner"], {"owner": "ann"}),
        (["tableType"], {"tableType": "EXTERNAL_TABLE"}),
    ],
)
def test_fields_of_tables(
    served: ServedMetastore, fields: list[str], expected: dict[str, Any]
) -> None:
    assert _tables(served, fieldList=fields) == hive.Table(**{**ALWAYS, **expected})


def test_fields_of_the_storage_of_tables(served: ServedMetastore) -> None:
    lib = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
    empty = {"compressed": False, "skewedInfo": hive.SkewedInfo(), "storedAsSubDirectories": False}
    asked = _tables(served, fieldList=["sd.serdeInfo.serializationLib", "dbName"])
    serde = hive.SerDeInfo(serializationLib=lib)
    assert asked.sd == hive.StorageDescriptor(numBuckets=1, serdeInfo=serde, **empty)
    asked = _tables(served, fieldList=["sd.numBuckets", "sd.serdeInfo.name"])
    storage = hive.StorageDescriptor(numBuckets=-1, serdeInfo=hive.SerDeInfo(), **empty)
    assert asked == hive.Table(sd=storage, **ALWAYS)


def test_who_asks_for_a_list_gets_whole_tables(served: ServedMetastore) -> None:
    whole = _tables(served, fieldList=[])
    assert whole.owner == "ann"
    assert whole.parameters["aa"] == "1"
    for fields in (["tableName", "parameters"], ["sd.cols.name"], ["partitionKeys.type"]):
        assert _tables(served, fieldList=fields) == whole


def test_what_no_table_has_is_refused(served: ServedMetastore) -> None:
    for field in ("nope", "", "sd", "catName", "temporary", "privileges"):
        with pytest.raises(MetaError, match="Invalid table fields in the projection spec"):
            _tables(served, fieldList=["tableName", field])
    with pytest.raises(InvalidOperationError, match="not supported"):
        _tables(served, includeParamKeyPattern="a%")


def _partitions(served: ServedMetastore, **wish: Any) -> Iterator[Struct]:
    """That of values 7 and 1, in all forms that narrow."""
    by_names = hive.GetPartitionsByNamesRequest(**NAMED, names=["ds=7/hr=1"], **wish)
    by_values = hive.GetPartitionsPsWithAuthRequest(
        **OF, partVals=["7", ""], maxParts=-1, userName="u", **wish
    )
    by_filter = hive.GetPartitionsByFilterRequest(**OF, filter='ds = "7"', maxParts=-1, **wish)
    whole = hive.PartitionsRequest(**OF, maxParts=-1, **wish)
    by_text = hive.PartitionsByExprRequest(**OF, expr=b'ds = "7"', maxParts=-1, **wish)
    yield from served.call("get_partitions_by_names_req", req=by_names).partitions
    yield from served.call("get_partitions_ps_with_auth_req", req=by_values).partitions
    yield from served.call("get_partitions_by_filter_req", req=by_filter)
    yield served.call("get_partitions_req", req=whole).partitions[-1]
    yield from served.call("get_partitions_by_expr", req=by_text).partitions
    (spec,) = served.call("get_partitions_spec_by_expr", req=by_text).partitionsSpec
    yield from spec.partitionList.partitions


def test_keys_of_parameters_of_partitions(served: ServedMetastore) -> None:
    for part in _partitions(served, includeParamKeyPattern="a%"):
        assert part.parameters == {"aa": "1"}
        assert [column.name for column in part.sd.cols] == ["c"]
    for part in _partitions(served, excludeParamKeyPattern="a%"):
        assert part.parameters.keys() >= {"bb", "transient_lastDdlTime"}
        assert "aa" not in part.parameters


def test_partitions_without_their_columns(served: ServedMetastore) -> None:
    for part in _partitions(served, skipColumnSchemaForPartition=True):
        assert part.sd.cols == []
        assert part.parameters["aa"] == "1"


def test_statistics_come_with_partitions(served: ServedMetastore) -> None:
    numbers = hive.LongColumnStatsData(lowValue=1, highValue=2, numNulls=0, numDVs=2)
    data = hive.ColumnStatisticsData(longStats=numbers)
    column = hive.ColumnStatisticsObj(colName="c", colType="int", statsData=data)
    described = hive.ColumnStatisticsDesc(
        isTblLevel=False, dbName=DATABASE, tableName=TABLE, partName="ds=7/hr=1"
    )
    statistics = hive.ColumnStatistics(statsDesc=described, statsObj=[column], engine="hive")
    request = hive.SetPartitionsStatsRequest(colStats=[statistics], engine="hive")
    assert served.call("set_aggr_stats_for", request=request)

    def asked(**wish: Any) -> list[Struct]:
        names = ["ds=7/hr=1", "ds=1/hr=1"]
        request = hive.GetPartitionsByNamesRequest(**NAMED, names=names, **wish)
        partitions = served.call("get_partitions_by_names_req", req=request).partitions
        return [part.colStats for part in sorted(partitions, key=lambda part: part.values)]

    assert asked() == [None, None]
    for engine in ({}, {"engine": "hive"}):
        without, with_them = asked(get_col_stats=True, **engine)
        assert without is None
        assert with_them.statsObj == [column]
        assert (with_them.engine, with_them.statsDesc.partName) == ("hive", "ds=7/hr=1")
    assert asked(get_col_stats=True, engine="impala") == [None, None]


def test_an_altered_partition_was_made_when_the_client_says(served: ServedMetastore) -> None:
    def stored() -> Any:
        return served.call("get_partition", **NAMED, part_vals=["7", "1"])

    part = stored()
    made = part.createTime
    part.createTime = 0
    served.call("alter_partition", **NAMED, new_part=part)
    assert stored().createTime == made
    part.createTime, part.lastAccessTime = 5, 6
    served.call("alter_partitions", **NAMED, new_parts=[part])
    assert (stored().createTime, stored().lastAccessTime) == (5, 6)
