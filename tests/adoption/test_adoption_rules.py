"""What an adoption decides from names and schemas, and what it says about what it cannot know."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from hms_bridge.acid.listing import DirectoryListing, ListedFile
from hms_bridge.adoption.plan import (
    AdoptionPlan,
    AdoptionRequest,
    RootFound,
    SchemaFound,
    plan_adoption,
)
from hms_bridge.errors import AcidFormatError
from hms_bridge.model.catalog import Column
from hms_bridge.model.ids import WriteId
from hms_bridge.model.valid_ids import ValidWriteIdList

ID = Column(name="id", type="int")
NAME = Column(name="name", type="string")


def root(
    paths: Iterable[str],
    path: str = "",
    columns: tuple[Column, ...] | None = (ID,),
    write_id: int = 1,
    raw: bool = False,
) -> RootFound:
    location = f"file:/t/{path}".rstrip("/")
    listing = DirectoryListing.build(
        location,
        files=[ListedFile(path=one, size_bytes=9) for one in paths],
        is_raw=lambda _: raw,
    )
    schema = SchemaFound(columns=columns, write_id=WriteId(write_id)) if columns else None
    return RootFound(path=path, location=location, listing=listing, schema=schema)


def plan(*roots: RootFound, strays: Iterable[str] = (), **given: Any) -> AdoptionPlan:
    values: dict[str, Any] = {
        "database_name": "d", "table_name": "t", "location": "file:/t", "owner": "ann",
    } | given  # fmt: skip
    return plan_adoption(AdoptionRequest(**values), roots, strays=tuple(strays))


def test_write_ids_and_compactions_come_from_names() -> None:
    found = plan(
        root(
            [
                "base_0000005_v0000017/bucket_00000",
                "delta_0000006_0000006_0000/bucket_00000_0",
                "delete_delta_0000007_0000008_v0000019/bucket_00000",
            ]
        )
    )
    assert found.write_ids.format() == "d.t:8:9223372036854775807::"
    assert found.visibility_txn_ids == (17, 19)
    assert found.table.is_full_acid
    assert found.table.storage.columns == (ID,)
    assert found.partitions == ()
    assert found.warnings == (
        "write ids 1 to 8 are taken as committed, because names do not mark aborted ones; give "
        "--valid-write-ids if you know them",
    )


def test_originals_alone_are_a_table_without_writes() -> None:
    found = plan(root(["000000_0", "000000_0_copy_1"]))
    assert found.write_ids.format() == "d.t:0:9223372036854775807::"
    assert found.warnings == ()


def test_partitions_are_named_as_they_were() -> None:
    delta = "delta_0000001_0000001_0000/bucket_00000_0"
    found = plan(
        root([delta], "a=sl%2Fash/b=1"),
        root(["000000_0"], "a=__HIVE_DEFAULT_PARTITION__/b=2"),
        root([], "a=empty/b=3", columns=None),
        partition_types={"b": "int"},
    )
    assert [(c.name, c.type) for c in found.table.partition_columns] == [
        ("a", "string"), ("b", "int"),
    ]  # fmt: skip
    assert [one.values for one in found.partitions] == [
        ("__HIVE_DEFAULT_PARTITION__", "2"), ("empty", "3"), ("sl/ash", "1"),
    ]  # fmt: skip
    assert found.partitions[2].storage.location == "file:/t/a=sl%2Fash/b=1"
    assert "partition column a is taken as string" in found.warnings[1]


def test_columns_are_those_of_the_newest_of_the_widest_files() -> None:
    """ALTER TABLE ADD COLUMNS leaves old files as they are; a rename leaves the number."""
    old, renamed = (ID,), (ID, Column(name="title", type="string"))
    found = plan(
        root(["delta_0000001_0000001_0000/bucket_00000"], "p=1", columns=(ID, NAME), write_id=1),
        root(["delta_0000009_0000009_0000/bucket_00000"], "p=2", columns=old, write_id=9),
        root(["delta_0000005_0000005_0000/bucket_00000"], "p=3", columns=renamed, write_id=5),
    )
    assert found.table.storage.columns == renamed
    assert {one.storage.columns for one in found.partitions} == {renamed}


def test_aborted_writes_are_compacted_away_where_they_are() -> None:
    found = plan(
        root(["delta_0000001_0000001_0000/bucket_00000"], "p=1"),
        root(["delta_0000002_0000002_0000/bucket_00000"], "p=2"),
        valid_write_ids=ValidWriteIdList.parse("d.t:3:9223372036854775807::2"),
    )
    assert found.write_ids.aborted_ids == (2,)
    assert found.partitions_with_aborts == ("p=2",)


REFUSALS: dict[str, tuple[tuple[RootFound, ...], dict[str, Any], str]] = {
    "nothing": ((root([]),), {}, "no base, delta or original file below this directory"),
    "strangers only": ((root(["part-0.parquet"]),), {}, "it is no ACID table's"),
    "no columns": (
        (root(["base_0000001/_orc_acid_version"], columns=None),), {}, "give --columns",
    ),
    "different keys": (
        (root(["000000_0"], "a=1"), root(["000000_0"], "b=1")), {}, "different keys: a and b",
    ),
    "different depths": (
        (root(["000000_0"], "a=1"), root(["000000_0"], "a=1/b=1")), {}, "different keys: a and a/b",
    ),
    "no key": ((root(["000000_0"], "=1"),), {}, "no partition directory"),
    "a type of no column": (
        (root(["000000_0"]),), {"partition_types": {"p": "int"}}, "p is no partition column",
    ),
    "no such type": (
        (root(["000000_0"], "p=1"),), {"partition_types": {"p": "itn"}}, "'itn' is no type",
    ),
    "a value of another type": (
        (root(["000000_0"], "p=one"),), {"partition_types": {"p": "int"}},
        "partition value 'one' is no int",
    ),
    "twice a column": ((root(["000000_0"]),), {"columns": (ID, ID)}, "id is there twice"),
    "a partition column among the others": (
        (root(["000000_0"], "id=1"),), {}, "column id is there twice",
    ),
    "no such bucket column": (
        (root(["000000_0"]),), {"bucket_columns": ("x",), "bucket_count": 2}, "a bucket column",
    ),
    "more buckets than told": (
        (root(["delta_0000001_0000001_0000/bucket_00003_0"]),),
        {"bucket_columns": ("id",), "bucket_count": 2},
        "bucket_00003_0 is of bucket 3, so there are more than 2 buckets",
    ),
    "a list without an end": (
        (root(["000000_0"]),), {"valid_write_ids": ValidWriteIdList.everything()},
        "is no write-id list; write it as d.t:9:9223372036854775807::3",
    ),
    "an older list": (
        (root(["base_0000007_v0000001/bucket_00000"]),),
        {"valid_write_ids": ValidWriteIdList.parse("d.t:5:9223372036854775807::")},
        "older list",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_what_does_not_fit_is_refused(name: str) -> None:
    roots, given, text = REFUSALS[name]
    with pytest.raises(AcidFormatError, match=text) as caught:
        plan(*roots, **given)
    assert str(caught.value).startswith("file:/t")


def warnings_of(*roots: RootFound, **given: Any) -> str:
    return "\n".join(plan(*roots, **given).warnings)


def test_a_list_of_another_table_is_noticed() -> None:
    ids = ValidWriteIdList.parse("old.orders:3:3:3:1")
    told = warnings_of(root(["000000_0"]), valid_write_ids=ids, is_open_aborted=True)
    assert "the write-id list is of old.orders; it is taken as that of d.t" in told
    assert "write id 3 was open; it counts as aborted now" in told


def test_a_compaction_beside_its_inputs_is_doubted() -> None:
    """If the metastore was lost while it ran, it holds a part of the rows."""
    inputs = [f"delta_000000{n}_000000{n}_0000/bucket_00000_0" for n in (1, 2)]
    told = warnings_of(root([*inputs, "base_0000002_v0000009/bucket_00000"]))
    assert "file:/t/base_0000002_v0000009 stands beside what it replaces" in told
    assert "stands beside" not in warnings_of(root(["base_0000002_v0000009/bucket_00000"]))


def test_a_table_of_loaded_files_may_have_been_insert_only() -> None:
    raw = root(["delta_0000001_0000001_0000/000000_0"], raw=True)
    assert "insert-only" in warnings_of(raw)
    mixed = ["delta_0000001_0000001_0000/000000_0", "delta_0000002_0000002_0000/bucket_00000"]
    assert "insert-only" not in warnings_of(root(mixed, raw=True))


def test_strangers_are_reported() -> None:
    names = [
        "README.txt",
        "delta_0000001_0000001_0000/notes",
        "delta_0000001_0000001_0000/bucket_0",
    ]
    told = warnings_of(root(names), strays=["z", "_hidden is none"])
    assert "none of the ACID format, left as it is: " in told
    for name in ("file:/t/README.txt", "file:/t/delta_0000001_0000001_0000/notes"):
        assert name in told
    assert "and 1 more" in told
    assert "bucket_0" not in told
