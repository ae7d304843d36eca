"""Partitions as bytes are what thrift's own encoder makes of their structs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from thrift.protocol.fastbinary import encode_binary

from hms_bridge.model.catalog import Partition, Storage
from hms_bridge.model.partition_list import PartitionList, PartitionRow
from hms_bridge.wire.convert_catalog import partition_to_struct
from hms_bridge.wire.partition_bytes import partitions_to_bytes
from hms_bridge.wire.struct_bytes import struct_pieces
from hms_bridge.wire.structs import hive
from tests.wire.test_conversions import MAPS, OPTIONAL, SECONDS, STORAGES, TEXTS

NAMES = st.sampled_from(["db", "ö\U0001f600\x00", "t" * 300])
PARTITIONS = st.builds(
    Partition,
    values=st.lists(TEXTS, max_size=3).map(tuple),
    database_name=NAMES,
    table_name=NAMES,
    catalog_name=NAMES,
    create_time=SECONDS,
    last_access_time=SECONDS,
    storage=STORAGES,
    parameters=MAPS,
    write_id=st.integers(-(2**63), 2**63 - 1),
    is_statistics_compliant=st.none() | st.booleans(),
)


def _are_as_thrift_makes_them(partitions: Sequence[Partition]) -> bool:
    structs = [partition_to_struct(partition) for partition in partitions]
    plain = hive.PartitionsResponse(partitions=structs)
    encoded = hive.PartitionsResponse(partitions=partitions_to_bytes(partitions))
    return b"".join(struct_pieces(encoded)) == encode_binary(
        plain, [type(plain), plain.thrift_spec]
    )


@given(partitions=st.lists(PARTITIONS, max_size=4))
def test_they_are_what_thrift_makes_of_the_structs(partitions: list[Partition]) -> None:
    assert _are_as_thrift_makes_them(partitions)


@given(
    storages=st.lists(STORAGES, min_size=1, max_size=3),
    places=st.lists(st.tuples(st.integers(0, 2), OPTIONAL), max_size=6),
)
def test_what_they_share_is_that_of_each(storages, places) -> None:  # type: ignore[no-untyped-def]
    """Whichever of several formats a partition has, beside others, at its own place."""
    partitions = [
        Partition(
            values=("1",), database_name="db", table_name="t",
            storage=replace(storages[number % len(storages)], location=place),
        )
        for number, place in places
    ]  # fmt: skip
    assert _are_as_thrift_makes_them(partitions)


class _Passing:
    """Rows that nobody keeps, as little as how they are stored."""

    def __len__(self) -> int:
        return 300

    def __iter__(self) -> Iterator[PartitionRow]:
        for number in range(300):
            storage = Storage(input_format=f"format{number}")
            yield PartitionRow((f"{number}",), 0, 0, storage, None, {}, 0)


def test_what_is_made_on_the_way_is_not_taken_for_what_is_gone() -> None:
    assert _are_as_thrift_makes_them(PartitionList("db", "t", _Passing()))
