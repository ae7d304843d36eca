"""A list of partitions is the sequence of its records."""

from dataclasses import replace

from hms_bridge.model.partition_list import PartitionList, lists_of
from tests.support.sample_records import PARTITION

OTHER = replace(PARTITION, values=("2",), storage=replace(PARTITION.storage, location=None))


def _listed() -> PartitionList:
    lists = lists_of([PARTITION, OTHER])
    rows = [row for one in lists for row in one.rows]
    first = lists[0]
    return PartitionList(first.database_name, first.table_name, rows, first.catalog_name)


def test_it_is_the_sequence_of_its_records() -> None:
    listed = _listed()
    assert [*listed] == [PARTITION, OTHER]
    assert (len(listed), listed[1], listed[-2]) == (2, OTHER, PARTITION)
    assert listed[:1] == (PARTITION,)
    assert OTHER in listed
    assert repr(listed) == repr((PARTITION, OTHER))


def test_it_equals_any_sequence_of_the_same() -> None:
    listed = _listed()
    assert listed == (PARTITION, OTHER)
    assert listed == _listed()
    assert PartitionList("db", "t", []) == ()
    assert listed != (PARTITION,)
    assert listed != 2


def test_a_list_stays_one() -> None:
    listed = _listed()
    assert lists_of(listed) == [listed]
    assert lists_of(listed)[0] is listed
