"""What the plan service answers."""

from dataclasses import replace

from hms_bridge.model.catalog import Column, TableType
from tests.conformance import objects
from tests.plans.conftest import Driver, deltas


def _create(driver: Driver, name: str, *types: str, partition: str = "date") -> None:
    columns = tuple(Column(name=f"c{at}", type=kind, comment="x") for at, kind in enumerate(types))
    keys, storage = (Column(name="d", type=partition),), objects.orc_storage(columns)
    table = objects.acid_table("db", name, storage=storage, partition_columns=keys)
    driver.metastore.create_table(table)


def _create_view(driver: Driver, name: str, kind: TableType) -> None:
    table = objects.acid_table("db", name, type=kind.value, view_original_text="select 1")
    is_kept = kind is TableType.MATERIALIZED_VIEW
    driver.metastore.create_table(table if is_kept else replace(table, parameters={}))


def test_tables_of_all_kinds(driver: Driver) -> None:
    location = f"file:{driver.create_table('a')}"
    path = driver.create_table("i", transactional_properties="insert_only")
    driver.metastore.create_table(objects.acid_table("db", "p", parameters={}))
    _create_view(driver, "view", TableType.VIRTUAL_VIEW)
    _create_view(driver, "kept", TableType.MATERIALIZED_VIEW)
    assert driver.ask("namespace/list") == {"names": ["db", "default"]}
    assert set(driver.ask("namespace/get", namespace="db")["properties"]) == {"location"}
    tables = driver.ask("table/list", namespace="DB")["tables"]
    kinds = {table["name"]: table["kind"] for table in tables}
    of_tables = {"a": "acid", "i": "insert_only", "p": "other"}
    assert kinds == of_tables | {"view": "other", "kept": "acid"}
    assert driver.ask("namespace/get", namespace="no") == "NoSuchNamespace"
    assert driver.ask("table/list", namespace="no") == "NoSuchNamespace"
    assert (driver.load("no"), driver.load("no", "no")) == ("NoSuchTable", "NoSuchNamespace")
    assert driver.load("p") == {"kind": "other"}
    assert driver.load("a")["properties"].items() >= {"owner": "hive", "location": location}.items()
    with driver.transaction() as txn:
        file = path / f"delta_{txn.write_id('i'):07d}_0000001_0000" / "000000_0"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"rows")
    state = [4, round(file.stat().st_mtime * 1000)]
    entry = [f"file:{file}", 0, -1, -1, -1, -1, False, [0, 0, []], *state]
    assert driver.plan("i")["files"] == [entry]


def test_a_schema_in_sparks_words(driver: Driver) -> None:
    nested = "struct<a:array<decimal(9,2)>,m:map<string,timestamp>>"
    _create(driver, "t", "int", "char(4)", nested, "timestamp with local time zone")
    fields = driver.load()["schema"]["fields"]
    inner = [field["type"] for field in fields.pop(2)["type"]["fields"]]
    assert [field["type"] for field in fields] == ["integer", "char(4)", "timestamp", "date"]
    assert inner[0] == {"type": "array", "elementType": "decimal(9,2)", "containsNull": True}
    assert (inner[1]["keyType"], inner[1]["valueType"]) == ("string", "timestamp_ntz")
    assert fields[0]["metadata"] == {"comment": "x"}
    assert driver.plan()["row"] == (
        "struct<`c0`:int,`c1`:char(4),`c2`:struct<`a`:array<decimal(9,2)>,`m`:map<string,timestamp>"
        ">,`c3`:timestamp with local time zone>"
    )


def test_what_is_not_read_is_refused_by_name(driver: Driver) -> None:
    _create(driver, "u", "int", "uniontype<int,string>")
    body = b'{"jar":"1","namespace":"db","name":"u","timestamps":"timestamp"}'
    status, answer = driver.post("table/load", body)
    assert (status, "column c1 of db.u is uniontype" in answer["message"]) == (409, True)
    _create(driver, "binary", "int", partition="binary")
    assert driver.load("binary") == "Refused"
    driver.create_table(is_partitioned=True)
    driver.add_partition("t", "x")
    partition = driver.metastore.get_partition("db", "t", ["x"])
    text = replace(partition.storage, input_format="org.apache.hadoop.mapred.TextInputFormat")
    driver.metastore.alter_partitions("db", "t", [replace(partition, storage=text)])
    assert driver.plan() == "Refused"
    assert driver.plan(filter={"op": "false"})["files"] == []


def test_a_plan_names_deletes_partitions_and_what_is_seen(driver: Driver) -> None:
    driver.create_table(is_partitioned=True)
    for value in ("x", "y"):
        driver.add_partition("t", value)
        driver.insert("t", (1, "a"), (2, "b"), partition=f"p={value}")
    driver.delete("t", 1, partition="p=x")
    opened = driver.begin()
    opened.insert("t", [(3, "c")], "p=x")
    driver.insert("t", (4, "d"), partition="p=x")
    plan = driver.plan()
    opened.abort()
    assert (plan["high_watermark"], plan["invalid"]) == (5, [4])
    assert plan["partitions"] == [["x"], ["y"]]
    entries = [(deltas({"files": [entry]})[0], *entry[4:6]) for entry in plan["files"]]
    assert entries == [("1", 0, 0), ("5", 0, -1), ("2", 1, -1)]
    only = {"op": "=", "column": ["p"], "value": {"type": "string", "value": "y"}}
    assert deltas(driver.plan(filter=only)) == ["2"]


def test_who_may_not_ask_and_what_is_no_question(driver: Driver) -> None:
    assert driver.post("hello", b"{}", Authorization="Bearer wrong")[0] == 401
    assert driver.post("hello", b'{"jar": "2"}')[1]["error"] == "Version"
    assert driver.post("no/verb", b"{}")[0] == 404
    for body in (b"", b"[]", b"{", b"[" * 100_000, b'{"jar": 1}'):
        assert driver.post("hello", body)[0] == 400
    assert driver.post("hello", b"", **{"Content-Length": str(9 << 20)})[0] == 413
    driver.create_table()
    assert driver.plan(parallelism=0) == driver.plan(filter={"op": "="}) == "Malformed"
