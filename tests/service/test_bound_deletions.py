"""What a DROP left to be done removes what was there at the DROP, and nothing that came later."""

from __future__ import annotations

import itertools
import logging
import shutil
import uuid
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from sqlalchemy import delete

from changemanager.archive import ChangeManager
from changemanager.delete_protocol import DeleteProtocol
from changemanager.errors import DirectoryChangedError
from changemanager.manifest import ArchiveCause, ArchiveContext
from changemanager.recycle import KeptFile
from changemanager.removal import DeletionReport, Removal
from hms_bridge.backend.engine import open_database
from hms_bridge.backend.schema.archive_tables import HMSB_FILE_TASK_SEEN
from hms_bridge.config.settings import ArchiveSettings, Settings
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Database, TableType
from hms_bridge.model.target import TableName
from hms_bridge.service.archiving import Archiving
from hms_bridge.service.open import open_local_metastore
from hms_bridge.service.task_leases import CLAIM_MS
from tests.conformance.objects import DS, acid_table, partition
from tests.support.faults import CrashError
from tests.support.files_world import FILES, SOURCE, FilesWorld
from tests.support.simulated_clock import SimulatedClock

OLD, NEW = "delta_1_1/bucket_00000", "delta_9_9/bucket_00000"


@pytest.fixture(params=[False, True], ids=["plain", "archived"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> FilesWorld:
    made = FilesWorld(tmp_path)
    made.create_database(parameters=SOURCE if request.param else {})
    return made


def partitioned(world: FilesWorld) -> Path:
    """A table with a partition that has files; the partition's directory."""
    place = world.table(partition_columns=DS)
    world.metastore.add_partitions("db", "t", [partition("db", "t", "a")])
    return world.fill(place / "ds=a")


def write(place: Path) -> None:
    """As Hive and Trino do: the files first, the partition then."""
    (place / NEW).parent.mkdir(parents=True, exist_ok=True)
    (place / NEW).write_bytes(b"committed")


def dropped_by_a_dying_process(world: FilesWorld) -> Path:
    place = partitioned(world)
    with pytest.raises(CrashError):
        world.restart(die_after="DROP_PARTITION").drop_partitions("db", "t", ["ds=a"])
    assert (place / OLD).exists()
    return place


def protocol_of(world: FilesWorld) -> DeleteProtocol:
    """That of another process, such as a cleaner's."""
    return Archiving(
        settings=world.settings.archive,
        cmroot=lambda: str(world.cmroot),
        place=str,
        resolve=world.resolve,
        manifest=world.metastore.manifest,
        clock=world.clock,
        new_id=world.token,
    ).delete_protocol()


def housekeeping(world: FilesWorld) -> None:
    world.recover()


def the_partition_comes_back(world: FilesWorld) -> None:
    world.restart().add_partitions("db", "t", [partition("db", "t", "a")])


@pytest.mark.parametrize("finish", [housekeeping, the_partition_comes_back])
def test_rows_written_after_a_drop_stay(
    world: FilesWorld, finish: Callable[[FilesWorld], None]
) -> None:
    """I1: whoever carries the late DROP PARTITION out."""
    place = dropped_by_a_dying_process(world)
    write(place)
    finish(world)
    assert (place / NEW).read_bytes() == b"committed"
    assert not (place / OLD).exists()
    assert not (place / "x").exists()


def first_removal_fails(
    monkeypatch: pytest.MonkeyPatch, fail: Callable[[], NoReturn]
) -> Sequence[object]:
    """What is removed from now on; ``fail`` takes the place of the first removal."""
    remove = DeleteProtocol.remove
    calls: list[object] = []

    def removing(self: DeleteProtocol, *given: object, **named: object) -> DeletionReport:
        calls.append(given)
        if len(calls) == 1:
            fail()
        return remove(self, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(DeleteProtocol, "remove", removing)
    return calls


def test_a_partition_is_exchanged_for_one_whose_drop_is_not_carried_out_yet(
    world: FilesWorld,
) -> None:
    """What was dropped goes first, so that the place is free."""
    plain = {"type": TableType.MANAGED_TABLE.value, "parameters": {}}
    source, place = (
        world.table(name, partition_columns=DS, **plain) / "ds=a" for name in ("u", "t")
    )
    for name in ("u", "t"):
        world.metastore.add_partitions("db", name, [partition("db", name, "a")])
    world.fill(place)
    write(source)
    with pytest.raises(CrashError):
        world.restart(die_after="DROP_PARTITION").drop_partitions("db", "t", ["ds=a"])
    world.clock.advance_ms(CLAIM_MS + 1)
    tables = TableName("db", "u"), TableName("db", "t")
    (moved,) = world.restart().exchange_partitions({"ds": "a"}, *tables)
    assert moved.storage.location == f"file:{place}"
    assert (place / NEW).read_bytes() == b"committed"
    assert not (place / OLD).exists()
    assert not source.exists()


def test_rows_stay_that_come_while_a_drop_is_carried_out(
    world: FilesWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also those that make it plan anew."""
    place = partitioned(world)

    def interrupted() -> NoReturn:
        write(place)
        raise DirectoryChangedError("it changed", place.as_uri(), ())

    calls = first_removal_fails(monkeypatch, interrupted)
    with caplog.at_level(logging.WARNING):
        world.metastore.drop_partitions("db", "t", ["ds=a"])
    assert len(calls) > 1
    assert [path.name for path in place.rglob("*") if path.is_file()] == ["bucket_00000"]
    assert (place / NEW).read_bytes() == b"committed"
    assert "keeps 1 files that were not in it then" in caplog.text


def test_what_fails_for_a_moment_is_tried_again_at_once(
    world: FilesWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at the next housekeeping only: a partition that is made there again would wait for it."""
    place = partitioned(world)

    def failing() -> NoReturn:
        raise OSError("a moment without a connection")

    first_removal_fails(monkeypatch, failing)
    world.metastore.drop_partitions("db", "t", ["ds=a"])
    assert not place.exists()


def test_a_file_that_another_took_away_stops_no_drop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I13: or that a loss of power took; it went before it was in the archive."""
    world = FilesWorld(tmp_path)
    world.create_database(parameters=SOURCE)
    place = partitioned(world)
    keep = ChangeManager.keep

    def late(self: ChangeManager, *given: Any, **named: Any) -> tuple[KeptFile, ...]:
        (place / "x").unlink(missing_ok=True)
        return keep(self, *given, **named)

    monkeypatch.setattr(ChangeManager, "keep", late)
    world.metastore.drop_partitions("db", "t", ["ds=a"])
    assert not place.exists()
    assert len(world.archived()) == len(FILES) - 1


def test_a_file_that_was_written_anew_since_the_drop_stays(world: FilesWorld) -> None:
    place = dropped_by_a_dying_process(world)
    (place / OLD).write_bytes(b"another file of the same name")
    world.recover()
    assert (place / OLD).read_bytes() == b"another file of the same name"
    assert not (place / "x").exists()


def test_a_file_that_a_cleaner_archived_meanwhile_goes_with_the_drop(tmp_path: Path) -> None:
    """I1: the archive's copy is a link, whose time is that of the copy, and the cleaner stops when
    the table is another one. What stayed would be rows of the next table of that name."""
    world = FilesWorld(tmp_path)
    world.create_database(parameters=SOURCE)
    place = dropped_by_a_dying_process(world)
    victim = place / "delta_1_1"
    told: list[None] = []

    def is_dropped_before_it_is_deleted(_: Sequence[Removal]) -> Sequence[None]:
        told.append(None)
        if len(told) == 2:
            raise InterruptedError
        return [None]

    world.clock.advance_ms(60_000)
    removal = Removal(
        victim=f"file:{victim}",
        root=f"file:{place}",
        context=ArchiveContext(cause=ArchiveCause.OBSOLETE, location=f"file:{place}"),
        is_archived=True,
    )
    with pytest.raises(InterruptedError):
        protocol_of(world).remove_all([removal], require_same=is_dropped_before_it_is_deleted)
    assert victim.exists()

    world.recover()
    assert not place.exists()
    assert len(world.archived()) == len(FILES)


def test_rows_stay_whatever_step_a_late_drop_dies_at(tmp_path: Path) -> None:
    folder, before = tmp_path / "world", tmp_path / "before"
    folder.mkdir()
    world = FilesWorld(folder)
    world.create_database(parameters=SOURCE)
    place = dropped_by_a_dying_process(world)
    shutil.rmtree(place / "delta_2_2")
    (place / "x").unlink()
    world.metastore.close()
    world.clock.advance_ms(CLAIM_MS + 1)
    shutil.copytree(folder, before)
    for step in itertools.count(1):
        try:
            world.restart(crash_at=step).run_housekeeping()
        except CrashError:
            is_done = False
        else:
            is_done = True
        world.metastore.close()
        write(place)
        world.recover()
        left = [path for path in place.rglob("*") if path.is_file()]
        assert left == [place / NEW], world.faults.labels
        assert b"one" in world.archived().values()
        world.metastore.close()
        if is_done:
            break
        shutil.rmtree(folder)
        shutil.copytree(before, folder)
    assert step > 10


def test_a_deletion_that_lost_its_claim_touches_nothing_more(tmp_path: Path) -> None:
    """I9: a process stands still after any step, another one ends its work, files come anew."""
    folder, before = tmp_path / "world", tmp_path / "before"
    folder.mkdir()
    world = FilesWorld(folder)
    world.create_database(parameters=SOURCE)
    place = dropped_by_a_dying_process(world)
    world.metastore.close()
    world.clock.advance_ms(CLAIM_MS + 1)
    shutil.copytree(folder, before)
    tried = 0
    for step in itertools.count(1):
        slow = world.restart()
        is_over = stand_still_after(world, step, lambda: taken_over(world, place))
        slow.run_housekeeping()
        slow.close()
        if is_over():
            break
        tried += 1
        left = {
            str(path.relative_to(place)): path.read_bytes()
            for path in place.rglob("*")
            if path.is_file()
        }
        assert left == dict.fromkeys(FILES, b"new"), world.faults.labels
        assert set(world.archived().values()) == set(FILES.values())
        shutil.rmtree(folder)
        shutil.copytree(before, folder)
    assert tried > 5


def stand_still_after(
    world: FilesWorld, step: int, meanwhile: Callable[[], None]
) -> Callable[[], bool]:
    """The process sleeps once its so many steps are done; the answer says whether it never did."""
    point, steps = world.faults.point, itertools.count(1)
    is_over = True

    def sleeping(label: str) -> None:
        nonlocal is_over
        point(label)
        if label.startswith("after") and next(steps) == step:
            is_over = False
            world.faults.point = point  # type: ignore[method-assign]
            meanwhile()

    world.faults.point = sleeping  # type: ignore[method-assign]
    return lambda: is_over


def taken_over(world: FilesWorld, place: Path) -> None:
    """Another process does the work once the claim has run out, and a writer comes then."""
    world.clock.advance_ms(CLAIM_MS + 1)
    other = open_local_metastore(world.url, settings=world.settings, clock=world.clock)
    other.run_housekeeping()
    other.close()
    assert not place.exists()
    for path in world.fill(place).rglob("*"):
        if path.is_file():
            path.write_bytes(b"new")


def test_a_task_that_does_not_know_its_files_deletes_none(world: FilesWorld) -> None:
    """An older version did not write them down."""
    place = dropped_by_a_dying_process(world)
    engine = open_database(world.url)
    with engine.transaction(write=True) as connection:
        connection.execute(delete(HMSB_FILE_TASK_SEEN))
    engine.close()
    world.recover()
    assert (place / OLD).exists()
    world.restart().add_partitions("db", "t", [partition("db", "t", "a")])


def test_a_new_database_leaves_what_is_below_it(world: FilesWorld) -> None:
    """Tables of a dropped database whose files still lie there are not its affair."""
    place = world.table()
    world.metastore.alter_database("db", Database(name="db"))
    with pytest.raises(CrashError):
        world.restart(die_after="DROP_TABLE").drop_database("db", is_cascade=True)
    world.restart()
    world.create_database()
    assert (place / OLD).exists()
    world.metastore.create_table(acid_table("db", "t"))
    assert list(place.iterdir()) == []


class ObjectStore:
    """A table on a file system without renames, where copying a file takes ``copy_ms``; after each
    copy another process keeps house."""

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        copy_ms: int,
        *,
        is_writer_there: bool = False,
    ) -> None:
        self.clock = SimulatedClock()
        self._root = f"memory://{folder.name}-{uuid.uuid4().hex}"
        settings = Settings(warehouse=self._root, archive=ArchiveSettings(is_enabled=False))
        url = f"sqlite:///{folder}/metastore.db"
        self.mine, self.others = (
            open_local_metastore(url, settings=settings, clock=self.clock) for _ in range(2)
        )
        self._fs = MemoryFileSystem()
        copy = MemoryFileSystem.cp_file

        def slow(fs: MemoryFileSystem, old: str, new: str, **given: object) -> None:
            copy(fs, old, new, **given)
            self.clock.advance_ms(copy_ms)
            if is_writer_there and old.endswith("/b"):
                self._fs.pipe_file(f"{self._path}/t/late", b"late")
            monkeypatch.setattr(MemoryFileSystem, "cp_file", copy)
            self.others.run_housekeeping()
            monkeypatch.setattr(MemoryFileSystem, "cp_file", slow)

        self.mine.create_database(Database(name="db"))
        self.mine.create_table(acid_table("db", "t"))
        for name in "abc":
            self._fs.pipe_file(f"{self._path}/t/{name}", name.encode())
        monkeypatch.setattr(MemoryFileSystem, "cp_file", slow)

    @property
    def _path(self) -> str:
        return f"/{self._root.removeprefix('memory://')}/db.db"

    def rename(self) -> None:
        self.mine.alter_table("db", "t", replace(self.mine.get_table("db", "t"), name="t2"))

    def files(self, table: str) -> dict[str, bytes]:
        found = self._fs.find(f"{self._path}/{table}")
        return {name.rpartition("/")[2]: self._fs.cat_file(name) for name in found}

    def close(self) -> None:
        self.mine.close()
        self.others.close()


def test_a_move_that_is_taken_back_meets_what_was_written_since(tmp_path: Path) -> None:
    """The process died between the move and its commit; the table is where it was."""
    world = FilesWorld(tmp_path)
    world.create_database()
    place = world.table()
    made = world.metastore.get_table("db", "t")
    with pytest.raises(CrashError):
        world.restart(crash_label="after move").alter_table("db", "t", replace(made, name="t2"))
    write(place)
    world.recover()
    files = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
    assert files == {*FILES, NEW}
    assert not (place.parent / "t2").exists()


def test_a_move_that_is_taken_back_replaces_nothing(tmp_path: Path) -> None:
    world = FilesWorld(tmp_path)
    world.create_database()
    place = world.table()
    made = world.metastore.get_table("db", "t")
    with pytest.raises(CrashError):
        world.restart(crash_label="after move").alter_table("db", "t", replace(made, name="t2"))
    place.mkdir()
    (place / "x").write_text("written since")
    world.recover()
    assert (place / "x").read_text() == "written since"
    assert (place / OLD).read_bytes() == b"one"
    assert (place.parent / "t2" / "x").read_bytes() == b"three"


def test_what_others_wrote_for_the_new_name_is_not_taken_back(world: FilesWorld) -> None:
    """I12: an INSERT made that partition's directory when the rename had looked for it."""
    place = partitioned(world)
    renamed = replace(world.metastore.get_partition("db", "t", ["a"]), values=("b",))
    with pytest.raises(CrashError):
        world.restart(crash_label="before move").rename_partition("db", "t", ["a"], renamed)
    write(place.parent / "ds=b")
    world.recover()
    assert (place.parent / "ds=b" / NEW).read_bytes() == b"committed"
    assert {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()} == set(
        FILES
    )


ALL = {"a": b"a", "b": b"b", "c": b"c"}


def test_a_move_that_takes_longer_than_a_lease_keeps_its_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(ObjectStore(tmp_path, monkeypatch, copy_ms=CLAIM_MS * 3 // 5)) as store:
        store.rename()
        assert store.mine.get_tables("db") == ("t2",)
        assert (store.files("t"), store.files("t2")) == ({}, ALL)


def test_a_move_that_lost_its_claim_changes_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was silent for longer than a lease; the other process has put the files back."""
    with closing(ObjectStore(tmp_path, monkeypatch, copy_ms=CLAIM_MS * 2)) as store:
        with pytest.raises(MetaError, match="another process took this over"):
            store.rename()
        assert store.mine.get_tables("db") == ("t",)
        assert store.files("t") == ALL


def test_a_file_that_comes_while_others_are_copied_moves_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ObjectStore(tmp_path, monkeypatch, copy_ms=1, is_writer_there=True)
    with closing(made) as store:
        store.rename()
        assert (store.files("t"), store.files("t2")) == ({}, ALL | {"late": b"late"})
