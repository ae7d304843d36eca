"""By what the cleaner knows that a table is still the same: of several at once as of each alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from changemanager.manifest import ArchiveCause, ArchiveContext
from hms_bridge.archive import file_tasks
from hms_bridge.archive.file_tasks import FileTask, FileTaskKind
from hms_bridge.model.catalog import Database
from hms_bridge.model.properties import SOURCE_FOR
from hms_bridge.model.target import Target
from hms_bridge.model.target_mark import TargetMark
from tests.conformance import objects
from tests.support.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Of ``db.b`` a move is under way; of ``c``, of the one in another database."""
    world = World(tmp_path)
    world.metastore.create_database(Database(name="other", parameters={SOURCE_FOR: "p"}))
    for name in "abc":
        world.create_table(name)
    world.create_table("p", is_partitioned=True)
    for value in "12":
        world.add_partition("p", value)
    objects.new_table(world.metastore, "other", "c")
    world.do(file_tasks.add, [_move("db", "b"), _move("other", "c")])
    return world


def _move(database: str, table: str) -> FileTask:
    location = f"file:/somewhere/{table}"
    context = ArchiveContext(
        cause=ArchiveCause.DROP_TABLE, location=location, database=database, table=table
    )
    return FileTask(
        id=f"{database}.{table}",
        kind=FileTaskKind.MOVE,
        location=location,
        target=f"{location}.new",
        root="file:/somewhere",
        context=context,
        created_at_ms=0,
    )


def test_of_several_as_of_each_alone(world: World) -> None:
    targets = [
        Target("db", "c"),
        Target("DB", "A"),
        Target("db", "missing"),
        Target("db", "b"),
        Target("other", "c"),
        Target("db", "p"),
        Target("db", "p", "p=2"),
        Target("db", "p", "p=3"),
        Target("db", "a"),
    ]
    marks = world.metastore.target_marks(targets)
    assert marks == tuple(world.metastore.target_marks([target])[0] for target in targets)
    c, a, missing, b, other, p, part, no_part, same = marks
    assert missing is None and no_part is None and same == a
    for name, mark in (("a", a), ("b", b), ("c", c), ("p", p)):
        assert isinstance(mark, TargetMark)
        table = world.describe(name)
        assert (mark.table_id, mark.location) == (table.id, table.storage.location)
        assert bool(mark.moves) is (name == "b")
        assert not mark.is_replication_source
    assert other is not None and other.is_replication_source and other.moves
    assert p is not None and part is not None and part.table_id == p.table_id
    assert part.location.endswith("/p=2")
