"""What the plan service answers, over HTTP."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from hms_bridge.model.catalog import Column
from tests.conformance import objects
from tests.plans.driver import Driver, deltas

PARQUET = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
COLUMNS = (
    Column(name="id", type="int", comment="which"),
    Column(name="c", type="char(4)"),
    Column(name="n", type="struct<a:array<decimal(9,2)>,m:map<string,timestamp>>"),
    Column(name="l", type="timestamp with local time zone"),
)


def test_namespaces_and_tables(driver: Driver) -> None:
    driver.create_table("a")
    driver.create_table("i", transactional_properties="insert_only")
    driver.metastore.create_table(objects.acid_table("db", "p", parameters={}))
    assert driver.ask("hello", spark="4.3.0") == {"server": "1"}
    assert driver.ask("namespace/list") == {"names": ["db", "default"]}
    assert set(driver.ask("namespace/get", namespace="db")["properties"]) >= {"location"}
    assert driver.ask("table/list", namespace="DB")["tables"] == [
        {"name": "a", "kind": "acid"},
        {"name": "i", "kind": "insert_only"},
        {"name": "p", "kind": "other"},
    ]
    assert driver.ask("namespace/get", namespace="no") == "NoSuchNamespace"
    assert driver.ask("table/list", namespace="no") == "NoSuchNamespace"
    load = {"timestamps": "timestamp", "name": "no"}
    assert driver.ask("table/load", namespace="db", **load) == "NoSuchTable"
    assert driver.ask("table/load", namespace="no", **load) == "NoSuchNamespace"
    assert driver.ask("table/load", namespace="db", **load | {"name": "p"}) == {"kind": "other"}


def test_a_schema_in_sparks_words(driver: Driver) -> None:
    storage = objects.orc_storage(COLUMNS)
    partitioned = (Column(name="d", type="date"),)
    driver.metastore.create_table(
        objects.acid_table("db", "t", storage=storage, partition_columns=partitioned)
    )
    loaded = driver.ask("table/load", namespace="db", name="t", timestamps="timestamp_ntz")
    kinds = {field["name"]: field["type"] for field in loaded["schema"]["fields"]}
    nested = {field["name"]: field["type"] for field in kinds.pop("n")["fields"]}
    assert kinds == {"id": "integer", "c": "char(4)", "l": "timestamp", "d": "date"}
    assert nested["a"]["elementType"] == "decimal(9,2)"
    assert (nested["m"]["keyType"], nested["m"]["valueType"]) == ("string", "timestamp_ntz")
    assert loaded["schema"]["fields"][0]["metadata"] == {"comment": "which"}
    assert loaded["partition_columns"] == ["d"]
    assert driver.plan()["row"] == (
        "struct<`id`:int,`c`:char(4),`n`:struct<`a`:array<decimal(9,2)>,`m`:map<string,timestamp>>"
        ",`l`:timestamp with local time zone>"
    )


@pytest.mark.parametrize(
    ("kind", "message"),
    [("uniontype<int,string>", "Spark has no uniontype"), ("void", "no Hive type")],
)
def test_a_type_that_spark_lacks_is_refused_by_name(
    driver: Driver, kind: str, message: str
) -> None:
    storage = objects.orc_storage((Column(name="odd", type=kind),))
    driver.metastore.create_table(objects.acid_table("db", "t", storage=storage))
    body = b'{"jar":"1","namespace":"db","name":"t","timestamps":"timestamp"}'
    status, answer = driver.post("table/load", body)
    assert (status, answer["error"]) == (409, "Refused")
    assert "column odd of db.t" in answer["message"]
    assert message in answer["message"]


def test_only_orc_is_read(driver: Driver) -> None:
    driver.create_table(is_partitioned=True)
    driver.add_partition("t", "x")
    partition = driver.metastore.get_partition("db", "t", ["x"])
    changed = replace(partition, storage=replace(partition.storage, input_format=PARQUET))
    driver.metastore.alter_partitions("db", "t", [changed])
    assert driver.plan() == "Refused"
    assert driver.plan(filter={"op": "false"})["files"] == []


def test_insert_only_tables_have_raw_files(driver: Driver) -> None:
    path = driver.create_table(transactional_properties="insert_only")
    with driver.transaction() as txn:
        write_id = txn.write_id("t")
        (path / f"delta_{write_id:07d}_{write_id:07d}_0000").mkdir(parents=True)
        (path / f"delta_{write_id:07d}_{write_id:07d}_0000" / "000000_0").write_bytes(b"rows")
    ((name, *entry),) = driver.plan()["files"]
    assert name == f"file:{path}/delta_0000001_0000001_0000/000000_0"
    assert entry == [0, -1, -1, -1, -1, False, [0, 0, []]]


def test_a_plan_names_deletes_partitions_and_what_is_seen(driver: Driver) -> None:
    driver.create_table(is_partitioned=True)
    for value in ("x", "y"):
        driver.add_partition("t", value)
        driver.insert("t", (1, "a"), (2, "b"), partition=f"p={value}")
    driver.delete("t", 1, partition="p=x")
    opened = driver.begin()
    opened.insert("t", [(3, "c")], "p=x")
    driver.insert("t", (4, "d"), partition="p=x")
    plan = driver.plan(split_bytes=1)
    opened.abort()
    assert (plan["high_watermark"], plan["invalid"]) == (5, [4])
    assert plan["partitions"] == [["x"], ["y"]]
    assert [entry[1:3] for entry in plan["files"]][:1] == [[0, -1]] or plan["files"][0][2] > 0
    hit = {(entry[0].split("/")[-2][:13], entry[4], entry[5]) for entry in plan["files"]}
    assert hit == {("delta_0000001", 0, 0), ("delta_0000005", 0, -1), ("delta_0000002", 1, -1)}
    assert [[name.split("/")[-2] for name in names] for names in plan["deletes"]] == [
        ["delete_delta_0000003_0000003_0000"]
    ]
    only = {"op": "=", "column": ["p"], "value": {"type": "string", "value": "y"}}
    assert deltas(driver.plan(filter=only)) == ["delta_0000002_0000002_0000"]


def test_who_may_not_ask_and_what_is_no_question(driver: Driver) -> None:
    assert driver.post("hello", b"{}", token="wrong")[0] == 401
    assert driver.post("hello", b'{"jar": "2"}')[1]["error"] == "Version"
    assert driver.post("no/verb", b"{}")[0] == 404
    for body in (b"", b"[]", b"{", b"[" * 100_000, b'{"jar": 1}'):
        assert driver.post("hello", body)[0] == 400
    driver.http.putrequest("POST", "/v1/hello")
    driver.http.putheader("Authorization", f"Bearer {driver.endpoint.token}")
    driver.http.putheader("Content-Length", str(9 << 20))
    driver.http.endheaders()
    assert driver.http.getresponse().status == 413
    driver.http.close()
    driver.create_table()
    assert driver.plan(parallelism=0) == "Malformed"
    assert driver.plan(filter={"op": "="}) == "Malformed"


def test_a_question_must_come_in_time(driver: Driver) -> None:
    host, _, port = driver.endpoint.url.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), 30) as slow:
        slow.sendall(b"POST /v1/hello HTTP/1.1\r\n")
        assert slow.recv(1) == b""
    assert driver.ask("hello")["server"] == "1"
