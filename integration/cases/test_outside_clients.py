"""hmsclient, pymetastore and PyIceberg on Hive's own metastores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hive_metastore.ttypes import Database, FieldSchema, SerDeInfo, StorageDescriptor, Table
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from integration.referees.errors import StatementError
from integration.referees.java_metastore import JavaMetastore
from integration.referees.outside import thrift_client


def _make_table(metastore: JavaMetastore, database: str) -> None:
    folder = f"file:{metastore.external_warehouse}/{database}"
    storage = StorageDescriptor(
        cols=[FieldSchema("id", "int", ""), FieldSchema("v", "string", "")],
        location=f"{folder}/t",
        inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=SerDeInfo("t", "org.apache.hadoop.hive.ql.io.orc.OrcSerde", {}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )
    with thrift_client(metastore.port) as client:
        client.create_database(Database(name=database, locationUri=folder))
        client.create_table(
            Table(
                tableName="t",
                dbName=database,
                owner="u",
                createTime=0,
                lastAccessTime=0,
                retention=0,
                sd=storage,
                partitionKeys=[],
                parameters={"EXTERNAL": "TRUE"},
                tableType="EXTERNAL_TABLE",
            )
        )


def test_hmsclient_reads_a_table_of_313(
    hmsclient: Callable[..., Any], hms313: JavaMetastore
) -> None:
    _make_table(hms313, "for_hmsclient")
    with hmsclient(hms313.port) as client:
        table = client.get_table("for_hmsclient", "t")
    assert [(column.name, column.type) for column in table.sd.cols] == [
        ("id", "int"),
        ("v", "string"),
    ]


def test_pymetastore_reads_a_table_of_2310(
    pymetastore: Callable[..., Any], hive2310: JavaMetastore
) -> None:
    _make_table(hive2310, "for_pymetastore")
    assert "for_pymetastore" in pymetastore(hive2310.port, "list_databases")
    assert pymetastore(hive2310.port, "list_tables", "for_pymetastore") == ["t"]
    table = pymetastore(hive2310.port, "get_table", "for_pymetastore", "t")
    assert [column["name"] for column in table["columns"]] == ["id", "v"]


def test_pymetastore_is_refused_by_a_stock_401(
    pymetastore: Callable[..., Any], hms401: JavaMetastore
) -> None:
    with pytest.raises(StatementError, match="Invalid method name: 'get_table'"):
        pymetastore(hms401.port, "get_table", "default", "t")


def test_pyiceberg_keeps_a_table_in_313(
    pyiceberg_catalog: Callable[..., Any], hms313: JavaMetastore
) -> None:
    catalog = pyiceberg_catalog(hms313.port, hms313.external_warehouse)
    catalog.create_namespace("ice")
    schema = Schema(
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "v", StringType(), required=False),
    )
    table = catalog.create_table(
        "ice.t", schema, location=f"file://{hms313.external_warehouse}/ice/t"
    )
    table.append(pa.table({"id": [1, 2], "v": ["a", None]}))
    assert catalog.load_table("ice.t").scan().to_arrow().to_pylist() == [
        {"id": 1, "v": "a"},
        {"id": 2, "v": None},
    ]
    catalog.drop_table("ice.t")
    assert catalog.list_tables("ice") == []
