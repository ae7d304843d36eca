"""What verbs once left behind that failed at some call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.backend.schema.archive_tables import HMSB_FILE_TASK, HMSB_LEASE
from hms_bridge.errors import BackendError, CommitUnknownError, MetaError
from hms_bridge.model.catalog import Database
from hms_bridge.model.compaction import CompactionState
from hms_bridge.service.task_leases import CLAIM_MS
from tests.conformance import objects
from tests.failures.failing import Verb
from tests.failures.scene import Scene
from tests.support.engines import MEMORY
from tests.support.world import World, world_to_compact


class FailingWorld(World):
    """On a disk and a database that fail on demand; a source of replication."""

    def __init__(self, scene: Scene) -> None:
        self.storage, self.statements = scene.storage, scene.database
        super().__init__(
            scene.folder,
            url=MEMORY,
            resolve=scene.resolve,
            parameters={"repl.source.for": "policy"},
        )


@pytest.fixture
def world(fast_folder: Path) -> Iterator[FailingWorld]:
    scene = Scene(fast_folder)
    world = FailingWorld(scene)
    with scene.watched(world):
        yield world


def renaming_of_a_table(world: World) -> Verb:
    world.create_table("t")
    world.insert("t", (1, "a"))
    renamed = replace(world.describe("t"), name="t2")
    return lambda: world.metastore.alter_table("db", "t", renamed)


def renaming_of_a_partition(world: World) -> Verb:
    world.create_table("t", is_partitioned=True)
    world.insert("t", (1, "a"), partition=world.add_partition("t", "a"))
    renamed = replace(world.metastore.get_partition("db", "t", ["a"]), values=("c",))
    return lambda: world.metastore.rename_partition("db", "t", ["a"], renamed)


FINISHED = 'DELETE FROM "HMSB_FILE_TASK"'
RENAMES = [renaming_of_a_table, renaming_of_a_partition]


@pytest.mark.parametrize("prepare", RENAMES)
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_rename_that_is_interrupted_while_it_moves_is_undone(
    world: FailingWorld,
    monkeypatch: pytest.MonkeyPatch,
    prepare: Callable[[World], Verb],
    error: type[BaseException],
) -> None:
    """Or that fails with what no driver should raise: else readers find no rows for ten minutes."""
    rename = prepare(world)
    directories = world.metastore._file_work._directories
    move = directories.move

    def move_and_end(*arguments: Any) -> None:
        move(*arguments)
        raise error

    monkeypatch.setattr(directories, "move", move_and_end)
    with pytest.raises(error):
        rename()
    assert [row["id"] for row in world.rows("t")] == [1]
    assert (world.records(HMSB_FILE_TASK), world.records(HMSB_LEASE)) == ([], [])


@pytest.mark.parametrize("prepare", RENAMES)
def test_a_rename_that_was_committed_is_not_undone(
    world: FailingWorld, prepare: Callable[[World], Verb]
) -> None:
    """The connection is lost with the answer to its commit: I1."""
    rename = prepare(world)
    with (
        world.statements.failing(at="after commit", since=FINISHED),
        pytest.raises(CommitUnknownError),
    ):
        rename()
    (name,) = world.metastore.get_tables("db")
    assert [row["id"] for row in world.rows(name)] == [1]
    assert (world.records(HMSB_FILE_TASK), world.records(HMSB_LEASE)) == ([], [])


@pytest.mark.parametrize("prepare", RENAMES)
def test_a_rename_that_was_not_committed_is_undone_without_the_database(
    world: FailingWorld, prepare: Callable[[World], Verb]
) -> None:
    """Nobody waits ten minutes for the rows."""
    rename = prepare(world)
    world.statements.is_commit_in_doubt = False
    with (
        world.statements.failing(at="before commit", since=FINISHED, way="lasting"),
        pytest.raises(BackendError),
    ):
        rename()
    assert [row["id"] for row in world.rows("t")] == [1]


@pytest.mark.parametrize("prepare", RENAMES)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_in_doubt_is_not_undone_before_somebody_can_ask(
    world: FailingWorld, prepare: Callable[[World], Verb], when: str
) -> None:
    rename = prepare(world)
    world.statements.is_commit_in_doubt = True
    with (
        world.statements.failing(at=f"{when} commit", since=FINISHED, way="lasting"),
        pytest.raises(CommitUnknownError),
    ):
        rename()
    world.clock.advance_ms(CLAIM_MS + 1)
    world.metastore.run_housekeeping()
    (name,) = world.metastore.get_tables("db")
    assert [row["id"] for row in world.rows(name)] == [1]
    assert world.records(HMSB_FILE_TASK) == []


@pytest.mark.parametrize("prepare", RENAMES)
@pytest.mark.parametrize("statement", ['INTO "HMSB_ARCHIVED_FILE', 'INTO "NOTIFICATION_LOG'])
def test_a_rename_that_the_database_broke_off_may_be_tried_at_once(
    world: FailingWorld, prepare: Callable[[World], Verb], statement: str
) -> None:
    """Nothing goes on with it, so nobody waits for the end of its claim."""
    rename = prepare(world)
    with world.statements.failing(at="", since=statement), pytest.raises(BackendError):
        rename()
    assert (world.records(HMSB_FILE_TASK), world.records(HMSB_LEASE)) == ([], [])
    rename()


def test_a_drop_that_was_committed_does_not_fail_afterwards(world: FailingWorld) -> None:
    """For want of a database to claim its file work in: that is done later."""
    world.create_table("t")
    world.insert("t", (1, "a"))
    place = world.path("t")
    with world.statements.failing(at="", since='UPDATE "HMSB_FILE_TASK"', way="lasting"):
        world.metastore.drop_table("db", "t")
    assert world.metastore.get_tables("db") == ()
    assert (place.is_dir(), len(world.records(HMSB_FILE_TASK))) == (True, 1)
    world.metastore.run_housekeeping()
    assert (place.is_dir(), world.records(HMSB_FILE_TASK)) == (False, [])


def test_a_deletion_that_cannot_be_recorded_is_given_back(world: FailingWorld) -> None:
    """Else whoever makes a table there would wait for ten minutes."""
    world.create_table("t")
    world.insert("t", (1, "a"))
    with world.statements.failing(at="", since=FINISHED):
        world.metastore.drop_table("db", "t")
    assert [task["CLAIMED_BY"] for task in world.records(HMSB_FILE_TASK)] == [None]
    world.create_table("t")
    assert world.records(HMSB_FILE_TASK) == []


def test_a_move_that_failed_may_be_tried_at_once(world: FailingWorld) -> None:
    """Whoever puts the directory back ends the lease of who has begun."""
    rename = renaming_of_a_table(world)
    place = world.path("t")
    with (
        world.storage.failing(at=f"before rename {place}", way="lasting"),
        pytest.raises(MetaError, match="cannot be moved"),
    ):
        rename()
    assert len(world.records(HMSB_FILE_TASK)) == 1
    rename()
    assert [row["id"] for row in world.rows("t2")] == [1]
    assert (world.records(HMSB_FILE_TASK), world.records(HMSB_LEASE)) == ([], [])


@pytest.mark.parametrize("when", ["before", "after"])
def test_directories_of_partitions_go_again_if_one_cannot_be_made(
    world: FailingWorld, when: str
) -> None:
    world.create_table("p", is_partitioned=True)
    place = world.path("p")
    call = "make_working_directory" if when == "before" else "sync_directory"
    where = place / "p=b" if when == "before" else place
    added = [objects.partition("db", "p", value) for value in ("a", "b")]
    with (
        world.storage.failing(at=f"{when} {call} {where}"),
        pytest.raises(MetaError, match="unable to create"),
    ):
        world.metastore.add_partitions("db", "p", added)
    assert list(place.iterdir()) == []
    world.metastore.add_partitions("db", "p", added)


def test_a_directory_that_cannot_be_synced_goes_again(world: FailingWorld) -> None:
    with (
        world.storage.failing(at=f"sync_directory {world.warehouse / 'db.db'}"),
        pytest.raises(MetaError, match="unable to create"),
    ):
        world.create_table("t")
    assert world.metastore.get_tables("db") == ()
    assert not (world.warehouse / "db.db" / "t").exists()


def test_what_stays_of_a_dropped_database_is_logged(
    world: FailingWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.metastore.create_database(Database(name="other"))
    place = world.warehouse / "other.db"
    with world.storage.failing(at=f"remove_empty_directory {place}"):
        world.metastore.drop_database("other")
    assert place.is_dir()
    assert f"file:{place} stays" in caplog.text


def test_what_a_worker_could_not_read_is_said_without_a_stack(world: FailingWorld) -> None:
    world_to_compact(world)
    world.request_compaction()
    deletes = world.path("t") / "delete_delta_0000003_0000003_0000" / "bucket_00000"
    with world.storage.failing(at=f"before read {deletes}", since="before close"):
        outcome = world.worker().run_once()
    assert outcome is not None
    assert outcome.state == "failed"
    assert str(deletes) in outcome.message
    assert "Traceback" not in outcome.message


@pytest.mark.parametrize("statement", ['FROM "TBLS"', 'INTO "TXNS"'])
def test_an_entry_whose_compaction_cannot_begin_is_given_up(
    world: FailingWorld, statement: str
) -> None:
    """Its worker lives on, so nobody would give it back for a day."""
    world_to_compact(world)
    world.request_compaction()
    with (
        world.statements.failing(at="", since=statement),
        pytest.raises(BackendError),
    ):
        world.worker().run_once()
    assert world.state() is CompactionState.FAILED
    world.compact("t")


def test_what_a_failed_compaction_wrote_goes_also_if_the_database_fails(
    world: FailingWorld,
) -> None:
    world_to_compact(world)
    world.request_compaction()
    with world.statements.failing(
        at="", since='UPDATE "COMPACTION_QUEUE" SET "CQ_HADOOP', way="lasting"
    ):
        outcome = world.worker().run_once()
    assert outcome is not None
    assert outcome.state == "failed"
