"""Partitions with the fields that a client asked for, over thrift; the rules are Hive's
(docs/hive/metastore.md §42), and what a real Hive answered is in test_golden_replay.py."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.errors import MetaError, NoSuchObjectError
from hms_bridge.model.catalog import Column, SerDe, Skew, SortColumn, Storage, Table
from hms_bridge.server.partition_projection import projection_of
from hms_bridge.wire.structs import Struct, hive
from tests.conformance import objects
from tests.support.served_metastore import ServedMetastore, served_metastore

KEYS = {"k1": "a", "k_2": "b", "ax": "c", "a%x": "d", "Upper": "e", "numRows": "7"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedMetastore]:
    folder = tmp_path_factory.mktemp("projection")
    with served_metastore(folder) as found:
        objects.new_database(found.metastore)
        _make(found, folder)
        yield found


def _make(served: ServedMetastore, folder: Path) -> None:
    store = served.metastore
    table = Table(
        database_name="default", name="t", type="EXTERNAL_TABLE",
        partition_columns=(Column(name="p", type="string"),),
        parameters={"EXTERNAL": "TRUE"},
        storage=Storage(
            columns=(
                Column(name="id", type="int", comment="a number"), Column(name="s", type="string"),
            ),
            location=f"{folder}/t", input_format="in", output_format="out", bucket_count=4,
            serde=SerDe(name="sd", library="lib", parameters={"serialization.format": "1"}),
            bucket_columns=("id",), sort_columns=(SortColumn(name="id"),),
            parameters={"of": "storage"},
        ),
    )  # fmt: skip
    store.create_table(table)
    stored = store.get_table("default", "t").storage

    def part(value: str, **given: Any) -> Any:
        place = given.pop("location", f"{folder}/t/p={value}")
        storage = replace(stored, location=place, **given)
        return objects.partition("default", "t", value, storage=storage, parameters=KEYS)

    store.add_partitions("default", "t", [
        part("a"),
        part("b"),
        part("elsewhere", location=f"{folder}/t2/p=elsewhere"),
        part("six", bucket_count=6),
        part("skewed", skew=Skew(columns=("id",), values=(("1",),))),
    ])  # fmt: skip


def asked(
    served: ServedMetastore, *fields: str, names: tuple[str, ...] = (), **patterns: str
) -> list[Struct]:
    chosen = hive.GetPartitionsFilterSpec(filterMode=0, filters=[f"p={name}" for name in names])
    request = hive.GetPartitionsRequest(
        dbName="default", tblName="t", filterSpec=chosen,
        projectionSpec=hive.GetProjectionsSpec(fieldList=list(fields), **patterns),
    )  # fmt: skip
    found: list[Struct] = served.call("get_partitions_with_specs", request=request).partitionSpec
    return found


def set_fields(struct: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(struct).items() if value is not None}


def shared(spec: Any) -> Any:
    return spec.sharedSDPartitionSpec


def test_only_what_was_asked_for_is_there(served: ServedMetastore) -> None:
    (spec,) = asked(served, "values", "sd.location", names=("a", "b"))
    root = served.metastore.get_table("default", "t").storage.location
    assert set_fields(shared(spec).sd) == {"location": root, "compressed": False, "numBuckets": 0}
    assert [set_fields(one) for one in shared(spec).partitions] == [
        {"values": [value], "createTime": 0, "lastAccessTime": 0, "relativePath": f"/p={value}"}
        for value in "ab"
    ]
    assert (spec.dbName, spec.tableName, spec.catName, spec.rootPath) == (
        "default", "t", "hive", root,
    )  # fmt: skip


def test_without_storage_all_partitions_are_together(served: ServedMetastore) -> None:
    (spec,) = asked(served, "values", "dbName", "tableName", "catName")
    assert [one.values for one in shared(spec).partitions] == [
        ["a"], ["b"], ["elsewhere"], ["six"], ["skewed"],
    ]  # fmt: skip
    assert spec.rootPath is None
    assert {one.relativePath for one in shared(spec).partitions} == {None}


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("sd.serdeInfo.serializationLib", {"serdeInfo": {"serializationLib": "lib"}}),
        ("sd.serdeInfo", {"serdeInfo": {
            "name": "sd", "serializationLib": "lib", "parameters": {"serialization.format": "1"}}}),
        ("sd.cols.type", {"cols": [{"type": "int"}, {"type": "string"}]}),
        ("sd.cols", {"cols": [
            {"name": "id", "type": "int", "comment": "a number"},
            {"name": "s", "type": "string"}]}),
        ("sd.sortCols.col", {"sortCols": [{"col": "id", "order": 0}]}),
        ("sd.sortCols", {"sortCols": [{"col": "id", "order": 1}]}),
        ("sd.bucketCols", {"bucketCols": ["id"]}),
        ("sd.numBuckets", {"numBuckets": 4}),
        ("sd.parameters", {"parameters": {"of": "storage"}}),
        ("sd.skewedInfo", {}),
        ("privileges", None),
    ],
)  # fmt: skip
def test_fields_in_fields(
    served: ServedMetastore, field: str, expected: dict[str, Any] | None
) -> None:
    (spec,) = asked(served, field, names=("a",))
    (only,) = shared(spec).partitions
    assert set_fields(only) == {"createTime": 0, "lastAccessTime": 0}
    assert _plain(shared(spec).sd) == {"compressed": False, "numBuckets": 0} | (expected or {})


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return {name: _plain(field) for name, field in set_fields(value).items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ({}, set(KEYS)),
        ({"includeParamKeyPattern": ""}, set(KEYS)),
        ({"includeParamKeyPattern": "k%"}, {"k1", "k_2"}),
        ({"includeParamKeyPattern": "k_"}, {"k1"}),
        ({"includeParamKeyPattern": "k\\__"}, {"k_2"}),
        ({"includeParamKeyPattern": "a\\%x"}, {"a%x"}),
        ({"includeParamKeyPattern": "upper"}, set()),
        ({"includeParamKeyPattern": "umRow"}, set()),
        ({"excludeParamKeyPattern": "%k%"}, {"ax", "a%x", "Upper", "numRows"}),
        ({"includeParamKeyPattern": "k%", "excludeParamKeyPattern": "%2"}, {"k1"}),
        ({"includeParamKeyPattern": "k.*"}, set()),
    ],
)  # fmt: skip
def test_keys_of_parameters(
    served: ServedMetastore, patterns: dict[str, str], expected: set[str]
) -> None:
    (spec,) = asked(served, "parameters", names=("a",), **patterns)
    (only,) = shared(spec).partitions
    assert set(only.parameters or ()) - {"transient_lastDdlTime"} == expected
    whole = asked(served, names=("a",), **patterns)
    (only,) = shared(whole[0]).partitions
    assert set(only.parameters) - {"transient_lastDdlTime"} == expected


def test_all_fields_without_a_list(served: ServedMetastore) -> None:
    specs = asked(served)
    assert [[one.values[0] for one in shared(spec).partitions] for spec in specs[:-1]] == [
        ["a", "b"], ["six"],
    ]  # fmt: skip
    assert [shared(spec).sd.numBuckets for spec in specs[:-1]] == [4, 6]
    listed = specs[-1].partitionList.partitions
    whole = {one.values[0]: one for one in served.call(
        "get_partitions", db_name="default", tbl_name="t", max_parts=-1)}  # fmt: skip
    assert listed == [whole["elsewhere"], whole["skewed"]]
    sd = shared(specs[0]).sd
    together = hive.StorageDescriptor(**vars(sd) | {"location": f"{sd.location}/p=a"})
    assert together == whole["a"].sd


def test_a_partition_elsewhere_with_some_fields(served: ServedMetastore) -> None:
    (spec,) = asked(served, "values", "sd.location", "writeId", names=("elsewhere",))
    (only,) = spec.partitionList.partitions
    assert spec.rootPath is None
    assert _plain(only) | {"sd": None} == {
        "values": ["elsewhere"], "createTime": 0, "lastAccessTime": 0, "writeId": -1, "sd": None,
    }  # fmt: skip
    assert only.sd.location.endswith("/t2/p=elsewhere")


def test_what_is_no_field_or_pattern_is_refused(served: ServedMetastore) -> None:
    for fields in (("bogus",), ("values", "sd.bogus"), ("values.x",), ("Values",)):
        with pytest.raises(MetaError, match=r"Invalid partition fields .*spec\[") as refused:
            asked(served, *fields)
        assert fields[-1] in str(refused.value)
    with pytest.raises(MetaError) as refused:
        asked(served, *(f"{'x' * 900}{number}" for number in range(1000)))
    assert len(str(refused.value)) < 1000
    with pytest.raises(MetaError, match="ends with a backslash"):
        asked(served, "values", includeParamKeyPattern="k\\")
    with pytest.raises(NoSuchObjectError):
        served.call("get_partitions_with_specs", request=hive.GetPartitionsRequest(
            dbName="default", tblName="none", filterSpec=hive.GetPartitionsFilterSpec(),
            projectionSpec=hive.GetProjectionsSpec()))  # fmt: skip


def test_no_pattern_holds_up_the_server(served: ServedMetastore, tmp_path: Path) -> None:
    """One that goes back and tries again takes ten seconds on forty characters."""
    with served_metastore(tmp_path) as other:
        objects.new_database(other.metastore)
        _make(other, tmp_path)
        part = objects.partition("default", "t", "long", parameters={"a" * 40: "x"})
        other.metastore.add_partitions("default", "t", [part])
        began = time.process_time()
        (spec,) = asked(
            other, "parameters", names=("long",), includeParamKeyPattern="%a" * 8 + "%b"
        )
        assert time.process_time() - began < 3
        (only,) = shared(spec).partitions
        assert not only.parameters
    with pytest.raises(MetaError, match="1001 characters, of 1000 at most"):
        asked(served, "values", includeParamKeyPattern="%" * 1001)


def test_a_field_that_is_named_again_and_again_is_looked_for_once() -> None:
    began = time.process_time()
    spec = hive.GetProjectionsSpec(fieldList=["s"] * 1_000_000)
    assert projection_of(spec) == projection_of(hive.GetProjectionsSpec(fieldList=["sd"]))
    assert time.process_time() - began < 2
