"""A partition is added to the table that was looked at for it, never to one of the same name that
another process has made meanwhile: there are two metastores on one database."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hms_bridge.errors import MetaError, NoSuchObjectError
from hms_bridge.model.event import EventType
from tests.conformance.objects import DS, DS_HR, events_after, new_table, orc_storage, partition
from tests.service.test_objects_of_one_moment import Pair, pair

__all__ = ["pair"]

LOOKED = "FROM PARTITIONS"
"""The last statement of the look; what is made on files comes after it."""


def make_again(pair: Pair, **given: object) -> Callable[[], None]:
    """The other one drops the partitioned table and makes another of its name."""

    def act() -> None:
        pair.other.drop_table(pair.database, "p", is_data_deleted=True)
        new_table(pair.other, pair.database, "p", **{"partition_columns": DS, **given})

    return act


@pytest.mark.parametrize("is_if_not_exists", [False, True])
def test_it_is_not_added_to_a_table_that_lies_elsewhere(
    pair: Pair, tmp_path: Path, *, is_if_not_exists: bool
) -> None:
    """Else it would lie where the dropped table was, whose directory is deleted."""
    elsewhere = str(tmp_path / "warehouse" / "elsewhere")
    old = Path(pair.one.get_table(pair.database, "p").storage.location.removeprefix("file:"))
    pair.meanwhile(LOOKED, make_again(pair, storage=orc_storage(location=elsewhere)))

    with pytest.raises(MetaError, match=r"\.p was dropped and made again .* try again"):
        pair.one.add_partitions(
            pair.database,
            "p",
            [partition(pair.database, "p", "x")],
            is_if_not_exists=is_if_not_exists,
        )

    assert pair.one.get_partition_names(pair.database, "p") == ()
    assert not (old / "ds=x").exists()
    pair.one.add_partitions(pair.database, "p", [partition(pair.database, "p", "x")])
    (added,) = pair.one.get_partitions(pair.database, "p")
    assert added.storage.location == f"file:{elsewhere}/ds=x"


def test_it_is_not_added_to_a_table_of_other_keys(pair: Pair) -> None:
    """Nor is anything said of it: it would have a value for one key of two."""
    first = pair.one.get_current_event_id()
    pair.meanwhile(LOOKED, make_again(pair, partition_columns=DS_HR))

    with pytest.raises(MetaError, match="was dropped and made again"):
        pair.one.add_partitions(pair.database, "p", [partition(pair.database, "p", "x")])

    assert pair.one.get_partition_names(pair.database, "p") == ()
    said = [event.type for event in events_after(pair.one, first)]
    assert said == [EventType.DROP_TABLE, EventType.CREATE_TABLE]


def test_it_is_not_added_to_a_table_that_is_gone(pair: Pair) -> None:
    pair.meanwhile(LOOKED, lambda: pair.other.drop_table(pair.database, "p", is_data_deleted=False))
    with pytest.raises(NoSuchObjectError):
        pair.one.add_partitions(pair.database, "p", [partition(pair.database, "p", "x")])
