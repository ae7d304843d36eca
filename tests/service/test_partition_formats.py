"""Partitions of one table may be stored in different ways; those that are stored alike share what
is read of them, and nobody else's."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

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
)


@pytest.fixture
def world(fast_folder: Path) -> Iterator[World]:
    world = World(fast_folder)
    yield world
    world.close()


def _added(world: World, tmp_path: Path, **parameters: str) -> list[Partition]:
    """Each format twice, at places that do not follow from the names."""
    world.metastore.create_table(
        Table(
            name="p",
            database_name=world.database,
            storage=objects.orc_storage(PLAIN.columns),
            partition_columns=(Column(name="ds", type="string"),),
            parameters=parameters,
        )
    )
    partitions = [
        Partition(
            values=(f"{number:02}",),
            database_name=world.database,
            table_name="p",
            storage=replace(storage, location=f"file:{tmp_path}/at{99 - number}"),
        )
        for number, storage in enumerate(FORMATS * 2)
    ]
    world.metastore.add_partitions(world.database, "p", partitions)
    return partitions


def test_each_keeps_its_own(world: World, tmp_path: Path) -> None:
    added = _added(world, tmp_path, EXTERNAL="TRUE")
    listed = world.metastore.get_partitions(world.database, "p")
    assert [one.values for one in listed] == [one.values for one in added]
    assert [one.storage for one in listed] == [one.storage for one in added]
    names = [f"ds={partition.values[0]}" for partition in added]
    assert world.metastore.get_partitions_by_names(world.database, "p", names) == listed


@pytest.mark.parametrize("number", [0, 13, 17, 18])
def test_of_a_full_acid_table_only_what_hive_reads(
    world: World, tmp_path: Path, number: int
) -> None:
    added = _added(world, tmp_path, transactional="true", transactional_properties="default")
    wanted = added[number].storage
    (found,) = world.metastore.get_partitions_by_filter(world.database, "p", f'ds = "{number:02}"')
    serde = SerDe(name=wanted.serde.name, library=wanted.serde.library)
    assert found.storage == replace(
        wanted, serde=serde, sort_columns=(), parameters={}, skew=Skew()
    )
