"""An exchange of many partitions whose database is gone when all of them have been moved."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from hms_bridge.errors import BackendError, DatabaseGoneError
from hms_bridge.model.catalog import Column
from hms_bridge.model.target import TableName
from tests.conformance import objects
from tests.support.world import World

COLUMNS = (Column(name="y", type="string"), Column(name="m", type="string"))
MONTHS = [str(number) for number in range(1, 13)]


def test_the_database_is_not_waited_for_again_with_each_directory(
    fast_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else claims run out, and the last ones are put back by nobody."""
    with closing(World(fast_folder)) as world:
        for name in ("t", "u"):
            world.metastore.create_table(
                objects.acid_table("db", name, parameters={}, partition_columns=COLUMNS)
            )
        added = [objects.partition("db", "t", "2026", month) for month in MONTHS]
        world.metastore.add_partitions("db", "t", added)
        directories = world.metastore._file_work._directories
        database = world.metastore._transactions.database
        move, moved = directories.move, list[str]()

        def move_and_lose(source: str, *rest: object) -> None:
            move(source, *rest)  # type: ignore[arg-type]
            moved.append(source)
            if len(moved) == len(MONTHS):
                monkeypatch.setattr(database, "transaction", lose)

        def lose(**_: object) -> None:
            raise DatabaseGoneError("connection lost")

        monkeypatch.setattr(directories, "move", move_and_lose)
        with pytest.raises(BackendError, match=r"connection lost \(it was gone for 30 s\)"):
            world.metastore.exchange_partitions(
                {"y": "2026"}, TableName("db", "t"), TableName("db", "u")
            )
        monkeypatch.undo()
        assert sum(world.clock.slept_seconds) < 31
        there = sorted(path.name for path in world.path("t").glob("y=2026/*"))
        assert there == sorted(f"m={month}" for month in MONTHS)
        assert list(world.path("u").glob("y=2026/*")) == []
