"""Partitions of one table may be stored in different ways; those that are stored alike share what
is read of them, and nobody else's."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.errors import BackendError
from hms_bridge.model.catalog import Column, Partition, SerDe, Skew, SortColumn, Storage, Table
from tests.conformance import objects
from tests.support.world import World

PLAIN = Storage(
    columns=(Column(name="id", type="int"), Column(name="v", type="string")),
    input_format="in",
    output_format="out",
    serde=SerDe(name="s", library="lib", parameters={"serialization.format": "1"}),
)
FORMATS = (
    PLAIN,
    replace(PLAIN, columns=PLAIN.columns[:1]),
    replace(PLAIN, input_format="in2"),
    replace(PLAIN, output_format="out2"),
    replace(PLAIN, is_compressed=True),
    replace(PLAIN, bucket_count=4),
    replace(PLAIN, is_stored_as_subdirectories=True),
    *(
        replace(PLAIN, serde=replace(PLAIN.serde, **{name: "other"}))
        for name in ("name", "library", "description", "serializer_class", "deserializer_class")
    ),
    replace(PLAIN, serde=replace(PLAIN.serde, type=2)),
    replace(PLAIN, serde=replace(PLAIN.serde, parameters={"field.delim": ","})),
    replace(PLAIN, parameters={"p": "1"}),
    replace(PLAIN, parameters={"p": "2"}),
    replace(PLAIN, bucket_columns=("id",)),
    replace(PLAIN, sort_columns=(SortColumn(name="v", order=0),)),
    replace(PLAIN, skew=Skew(columns=("id",), values=(("1",),), locations={("1",): "file:/s"})),
    replace(PLAIN, skew=Skew(columns=("id",), values=(("2",),))),
    replace(
        PLAIN,
        serde=replace(PLAIN.serde, parameters={"serialization.format": "1", "field.delim": ","}),
    ),
    replace(PLAIN, serde=replace(PLAIN.serde, parameters={})),
)


@pytest.fixture
def world(fast_folder: Path) -> Iterator[World]:
    world = World(fast_folder)
    yield world
    world.close()


def _added(world: World, tmp_path: Path, times: int = 2, **parameters: str) -> list[Partition]:
    """Each format some times, at places that do not follow from the names."""
    world.metastore.create_table(
        Table(
            name="p",
            database_name=world.database,
            storage=objects.orc_storage(PLAIN.columns),
            partition_columns=(
                Column(name="ds", type="string"),
                Column(name="hr", type="string"),
            ),
            parameters=parameters,
        )
    )
    partitions = [
        Partition(
            values=(f"{number:03}", f"{number % 7}"),
            database_name=world.database,
            table_name="p",
            storage=replace(storage, location=f"file:{tmp_path}/at{999 - number}"),
            parameters={"number": f"{number}", "all": "alike"} if number % 3 else {},
        )
        for number, storage in enumerate(FORMATS * times)
    ]
    world.metastore.add_partitions(world.database, "p", partitions)
    return partitions


@pytest.mark.parametrize("times", [2, 10], ids=["few", "many"])
def test_each_keeps_its_own(world: World, tmp_path: Path, times: int) -> None:
    added = _added(world, tmp_path, times, EXTERNAL="TRUE")
    listed = world.metastore.get_partitions(world.database, "p")
    assert [one.values for one in listed] == [one.values for one in added]
    assert [one.storage for one in listed] == [one.storage for one in added]
    for one, other in zip(listed, added, strict=True):
        assert one.parameters.items() >= other.parameters.items()
        assert ("number" in one.parameters) == ("number" in other.parameters)
    names = [f"ds={ds}/hr={hr}" for ds, hr in (partition.values for partition in added)]
    assert world.metastore.get_partitions_by_names(world.database, "p", names) == listed


@pytest.mark.parametrize("number", [0, 13, 17, 18])
def test_of_a_full_acid_table_only_what_hive_reads(
    world: World, tmp_path: Path, number: int
) -> None:
    added = _added(world, tmp_path, transactional="true", transactional_properties="default")
    wanted = added[number].storage
    (found,) = world.metastore.get_partitions_by_filter(world.database, "p", f'ds = "{number:03}"')
    serde = SerDe(name=wanted.serde.name, library=wanted.serde.library)
    assert found.storage == replace(
        wanted, serde=serde, sort_columns=(), parameters={}, skew=Skew()
    )


def test_of_many_partitions_the_text_that_is_none_is_named(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.create_table(is_partitioned=True)
    odd = [
        objects.partition("db", "t", value, parameters={"k": text})
        for value, text in (("a", "fine"), ("b", "odd\udc80"))
    ]
    with pytest.raises(BackendError, match=r"'odd\\udc80' has bytes that are no UTF-8"):
        world.metastore.add_partitions("db", "t", odd)
    assert world.metastore.get_partitions("db", "t") == ()
    world.close()
