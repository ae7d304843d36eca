"""A partition is added to the table that was looked at for it, never to one of the same name that
another process has made meanwhile: there are two metastores on one database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.errors import MetaError, NoSuchObjectError
from hms_bridge.model.catalog import Partition
from hms_bridge.model.event import EventType
from hms_bridge.service.file_statistics import FileCount
from hms_bridge.service.warehouse_files import WarehouseFiles
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


PLAIN = {"parameters": {}}
"""No transactional table: its files are counted, and deleted at once."""


def plain(pair: Pair) -> Partition:
    make_again(pair, **PLAIN)()
    pair.one.add_partitions(pair.database, "p", [partition(pair.database, "p", "x")])
    (added,) = pair.one.get_partitions(pair.database, "p")
    write_rows(added)
    return added


def write_rows(at: Partition) -> None:
    (Path((at.storage.location or "").removeprefix("file:")) / "data").write_bytes(b"rows")


def with_rows_again(pair: Pair) -> Callable[[], None]:
    """The other one makes another table of the name, with a partition that has rows."""

    def act() -> None:
        make_again(pair, **PLAIN)()
        pair.other.add_partitions(pair.database, "p", [partition(pair.database, "p", "x")])

    return act


def test_files_of_a_dropped_table_are_not_counted_for_another_one(pair: Pair) -> None:
    old = plain(pair)
    pair.meanwhile("FROM PARTITION_PARAMS", with_rows_again(pair))
    with pytest.raises(MetaError, match=r"ds=x of .*\.p was changed .* try again"):
        pair.one.alter_partitions(pair.database, "p", [replace(old, parameters={"a": "b"})])
    (now,) = pair.one.get_partitions(pair.database, "p")
    assert "a" not in now.parameters


def test_files_of_another_place_are_not_counted_for_a_partition_that_was_moved(
    pair: Pair, tmp_path: Path
) -> None:
    old = plain(pair)
    elsewhere = replace(old.storage, location=f"file:{tmp_path}/warehouse/elsewhere")

    def move() -> None:
        pair.other.alter_partitions(pair.database, "p", [replace(old, storage=elsewhere)])

    pair.meanwhile("FROM PARTITION_PARAMS", move)
    unplaced = replace(old.storage, location=None)
    with pytest.raises(MetaError, match=r"ds=x of .*\.p was changed .* try again"):
        pair.one.alter_partitions(
            pair.database, "p", [replace(old, storage=unplaced, parameters={"a": "b"})]
        )


def test_a_partition_of_a_dropped_table_is_not_renamed_in_another_one(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked and counted is of the dropped one."""
    old = plain(pair)
    again = with_rows_again(pair)
    monkeypatch.setattr(pair.one._file_work, "settle", lambda *_: again())
    with pytest.raises(MetaError, match=r"ds=x of .*\.p was changed .* try again"):
        pair.one.rename_partition(pair.database, "p", ["x"], replace(old, values=("y",)))
    assert pair.one.get_partition_names(pair.database, "p") == ("ds=x",)


def test_nor_is_one_renamed_whose_directory_stays(pair: Pair, tmp_path: Path) -> None:
    old = plain(pair)
    pair.meanwhile("FROM PARTITION_PARAMS", with_rows_again(pair))
    elsewhere = replace(old.storage, location=f"file:{tmp_path}/warehouse/elsewhere")
    wanted = replace(old, values=("y",), storage=elsewhere)
    with pytest.raises(MetaError, match=r"ds=x of .*\.p was changed .* try again"):
        pair.one.rename_partition(pair.database, "p", ["x"], wanted)
    assert pair.one.get_partition_names(pair.database, "p") == ("ds=x",)


def test_a_table_made_again_is_not_noted_as_empty(pair: Pair) -> None:
    """A query would be answered from its statistics: no rows."""
    plain(pair)
    pair.meanwhile("FROM PARTITION_PARAMS", with_rows_again(pair))
    with pytest.raises(MetaError, match=r"\.p was changed .* try again"):
        pair.one.truncate_table(pair.database, "p")


def test_a_partition_that_comes_while_others_are_emptied_keeps_its_statistics(pair: Pair) -> None:
    """Its rows are there; as one of the emptied it would be known to have none."""
    plain(pair)
    known = {"numFiles": "1", "totalSize": "4", "numFilesErasureCoded": "0", "numRows": "7"}

    def come() -> None:
        other = partition(pair.database, "p", "y", parameters=known)
        pair.other.add_partitions(pair.database, "p", [other])

    pair.meanwhile("FROM PARTITION_PARAMS", come)
    pair.one.truncate_table(pair.database, "p")
    emptied, came = pair.one.get_partitions(pair.database, "p")
    assert "COLUMN_STATS_ACCURATE" in emptied.parameters
    assert came.parameters["numRows"] == "7"


def test_files_of_a_dropped_table_are_not_counted_for_one_made_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queries are planned, and some answered, by what is noted of a table's files."""
    unpartitioned = {**PLAIN, "partition_columns": ()}
    make_again(pair, **unpartitioned)()
    old = pair.one.get_table(pair.database, "p")
    again, count = make_again(pair, **unpartitioned), WarehouseFiles.count

    def count_before(files: WarehouseFiles, location: str | None) -> FileCount | None:
        counted = count(files, location)
        monkeypatch.undo()
        again()
        return counted

    monkeypatch.setattr(WarehouseFiles, "count", count_before)
    with pytest.raises(MetaError, match=r"\.p was changed .* its files were counted; try again"):
        pair.one.alter_table(pair.database, "p", replace(old, parameters={"a": "b"}))
    assert "a" not in pair.one.get_table(pair.database, "p").parameters
