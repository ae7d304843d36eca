"""Staged files become directories: whole or not at all, on file systems with and without rename."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from changemanager.filesystem.volume import FileKind, Volume
from changemanager.location import FsspecResolver, list_tree
from hms_bridge.acid.names import DirectoryName
from hms_bridge.directories.publication import Publication
from hms_bridge.directories.written import EventFile, WrittenDirectory
from hms_bridge.errors import AcidFormatError, TxnAbortedError
from hms_bridge.model.catalog import (
    ORC_SERDE,
    Column,
)
from hms_bridge.model.ids import WriteId
from hms_bridge.model.lock import DataOperation
from hms_bridge.model.statistics_state import ACCURATE
from tests.conformance.objects import acid_table, orc_storage, partition
from tests.support.passing import Passing
from tests.support.world import PARTITION_COLUMNS, World

NAME = DirectoryName.delta(WriteId(1), WriteId(1), 0)


class Publishing(World):
    """A table, and a transaction that publishes in it."""

    def __init__(self, folder: Path, root: str, *, is_partitioned: bool) -> None:
        own = root.replace("memory:/", "memory://")  # as a setting has it
        super().__init__(
            folder, warehouse="wh", database="default", has_database=False, location_roots=(own,)
        )
        columns = (Column(name="a", type="int"),)
        self.metastore.create_table(
            acid_table(
                "default",
                partition_columns=PARTITION_COLUMNS if is_partitioned else (),
                storage=orc_storage(columns, location=root, parameters={"k": "v"}),
            )
        )
        self.table = self.describe()
        writer = self.begin()
        assert writer.write_id("t") == 1
        self.txn = writer.id
        self.publication = Publication(
            self.metastore, self.resolve, self.table, self.txn, WriteId(1)
        )

    @property
    def volume(self) -> Volume:
        return self.resolve(self.publication.staging).volume

    def staged(self, partition: str, bucket: int, number: int = 0) -> EventFile:
        path = f"{self.publication.staging}/insert_{number}/{bucket}_{partition or 'none'}"
        place = self.resolve(path)
        self.volume.make_working_directory(place.parent.path)
        self.volume.write_new(place.path, [b"rows"])
        return EventFile(
            partition=partition, path=path, bucket_id=bucket, row_count=1, size_bytes=4
        )

    def publish(self, *files: EventFile, name: DirectoryName = NAME) -> None:
        try:
            self.publication.publish(
                [WrittenDirectory(name=name, files=files)], DataOperation.INSERT
            )
        finally:
            self.publication.discard_staging()

    def tree(self) -> set[str]:
        root = self.resolve(self.table.storage.location or "")
        return {file.path for file in list_tree(root) if file.kind is FileKind.FILE}


@pytest.fixture(params=["file", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Of a table, on a file system that renames in one step, and on one that does not."""
    place = f"{request.param}:{tmp_path}/wh/t"
    yield place
    location = FsspecResolver()(place)
    if location.status() is not None:
        location.volume.remove_tree(location.path)


def test_files_of_many_tasks_become_one_directory(tmp_path: Path, root: str) -> None:
    world = Publishing(tmp_path, root, is_partitioned=False)
    world.publish(world.staged("", 0), world.staged("", 1, number=1))
    name = NAME.format()
    assert world.tree() == {
        f"{name}/bucket_00000_0", f"{name}/bucket_00001_0", f"{name}/_orc_acid_version",
    }  # fmt: skip
    (event,) = world.metastore.get_write_events(world.txn)
    assert len(event.files) == 2


def test_files_of_delete_events_name_no_attempt(tmp_path: Path, root: str) -> None:
    """Else Trino and Hive 3 show deleted rows."""
    world = Publishing(tmp_path, root, is_partitioned=False)
    name = DirectoryName.delete_delta(WriteId(1), WriteId(1), 0)
    world.publish(world.staged("", 0), world.staged("", 1, number=1), name=name)
    assert world.tree() == {
        f"{name.format()}/{file}" for file in ("bucket_00000", "bucket_00001", "_orc_acid_version")
    }
    (event,) = world.metastore.get_write_events(world.txn)
    assert [file.rpartition("/")[2].partition("#")[0] for file in event.files] == [
        "bucket_00000", "bucket_00001"
    ]  # fmt: skip


def test_partitions_are_made_and_told(tmp_path: Path, root: str) -> None:
    world = Publishing(tmp_path, root, is_partitioned=True)
    world.publish(world.staged("p=1", 0), world.staged("p=2", 0))
    assert {path.partition("/")[0] for path in world.tree()} == {"p=1", "p=2"}
    assert f"p=1/{NAME.format()}/bucket_00000_0" in world.tree()
    assert world.metastore.get_partition_names("default", "t") == ("p=1", "p=2")
    for made in world.metastore.get_partitions("default", "t"):
        assert made.storage == replace(world.table.storage, location=made.storage.location)
        assert made.storage.serde.library == ORC_SERDE


def test_two_files_of_one_bucket_are_refused_and_leave_nothing(tmp_path: Path, root: str) -> None:
    world = Publishing(tmp_path, root, is_partitioned=True)
    with pytest.raises(AcidFormatError, match="two tasks wrote one bucket"):
        world.publish(world.staged("p=1", 0), world.staged("p=1", 0, number=1))
    assert world.tree() == set()


def test_a_directory_is_published_once(tmp_path: Path, root: str) -> None:
    world = Publishing(tmp_path, root, is_partitioned=False)
    world.publish(world.staged("", 0))
    before = world.tree()
    with pytest.raises(AcidFormatError, match="there already"):
        world.publish(world.staged("", 3))
    assert world.tree() == before


TRUSTED = {ACCURATE: '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}', "numRows": "2"}


def test_a_write_takes_trust_from_statistics_of_its_table(tmp_path: Path, root: str) -> None:
    """Hive answers count(*) from them; it knows of rows of others only by this."""
    world = Publishing(tmp_path, root, is_partitioned=False)
    _trust(world)
    world.publish(world.staged("", 0))
    after = world.metastore.get_table("default", "t")
    assert ACCURATE not in after.parameters
    assert after.write_id == 1


def test_a_write_takes_trust_from_statistics_of_its_partitions(tmp_path: Path, root: str) -> None:
    world = Publishing(tmp_path, root, is_partitioned=True)
    world.metastore.add_partitions(
        "default", "t",
        [
            partition(
                "default", "t", value, parameters=TRUSTED,
                storage=replace(world.table.storage, location=None),
            )
            for value in "12"
        ],
    )  # fmt: skip
    world.publish(world.staged("p=1", 0))
    written, other = world.metastore.get_partitions("default", "t")
    assert ACCURATE not in written.parameters
    assert written.write_id == 1
    assert other.parameters[ACCURATE] == TRUSTED[ACCURATE]


def _trust(world: Publishing) -> None:
    """As Hive leaves it after an INSERT of its own."""
    told = replace(world.table, parameters={**world.table.parameters, **TRUSTED}, write_id=1)
    world.metastore.alter_table(
        "default", "t", told, environment={"DO_NOT_UPDATE_STATS": "true"},
        valid_write_ids="default.t:1:9223372036854775807::",
    )  # fmt: skip
    assert ACCURATE in world.metastore.get_table("default", "t").parameters


@pytest.mark.parametrize("beat", [1, 2])
def test_a_writer_that_was_given_up_for_lost_leaves_nothing(
    tmp_path: Path, root: str, beat: int
) -> None:
    """I7: its abort may be cleaned up by then, and nothing would hide what comes later."""
    world = Publishing(tmp_path, root, is_partitioned=False)

    class Late(Passing):
        beats = 0

        def heartbeat(self, *arguments: Any) -> None:
            self.beats += 1
            if self.beats == beat:
                world.metastore.abort_txns([world.txn])
            world.metastore.heartbeat(*arguments)

    late = Late(world.metastore)
    world.publication = Publication(late, world.resolve, world.table, world.txn, WriteId(1))
    with pytest.raises(TxnAbortedError):
        world.publish(world.staged("", 0), world.staged("", 1, number=1))
    assert world.tree() == set()
