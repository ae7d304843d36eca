"""Archive, then delete: nothing lost and nothing doubled, wherever the process dies."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from changemanager.checksum import composite_checksum
from changemanager.delete_protocol import DeleteProtocol
from changemanager.errors import (
    ArchivedFileLostError,
    ArchiveUnwritableError,
    ChangeManagerConfigError,
    ChangeManagerError,
    DirectoryChangedError,
    IntentError,
    PathNotContainedError,
)
from changemanager.filesystem.volume import FileKind
from changemanager.location import ListedFile
from changemanager.manifest import EntryState, IntentState
from changemanager.removal import DeletionReport, Removal, unplanned_changes
from changemanager.uri import archive_name
from tests.support.archive_world import ArchiveWorld, context
from tests.support.faults import CrashError, FarVolume, FaultyVolume, LinklessVolume

VICTIM = {
    "_orc_acid_version": b"2",
    "bucket_00000": b"rows of bucket 0",
    "bucket_00001": b"rows of bucket 1",
    "copy_of_0": b"rows of bucket 0",
    ".bucket_00000.crc": b"crc",
    "union/bucket_00000": b"rows of another bucket 0",
    "union/empty/deep": b"",
}
VOLUMES = (FaultyVolume, LinklessVolume, FarVolume)


def name_of(path: str, content: bytes) -> str:
    return archive_name(path.rpartition("/")[2], composite_checksum(io.BytesIO(content)))


def is_hidden(path: str) -> bool:
    return any(level.startswith(".") for level in path.split("/"))


def archived_names(files: dict[str, bytes]) -> dict[str, bytes]:
    return {
        name_of(path, content): content for path, content in files.items() if not is_hidden(path)
    }


def remove(
    world: ArchiveWorld,
    victim: str = "t/delta_1_1",
    *,
    is_archived: bool = True,
    is_purge: bool = True,
) -> DeletionReport:
    return world.protocol.remove(
        str(world.warehouse / victim),
        root=str(world.warehouse),
        context=context(location=str(world.warehouse / "t")),
        is_archived=is_archived,
        is_purge=is_purge,
    )


@dataclass
class Scene:
    """One world with a victim, and what must hold in it at any moment."""

    world: ArchiveWorld
    files: dict[str, bytes]

    @classmethod
    def make(cls, folder: Path, volume_class: type[FaultyVolume], files: dict[str, bytes]) -> Scene:
        folder.mkdir()
        world = ArchiveWorld(folder, volume_class=volume_class)
        for path, content in files.items():
            world.write(f"t/delta_1_1/{path}", content)
        world.write("t/delta_2_2/bucket_00000", b"live rows")
        return cls(world, files)

    def assert_nothing_lost(self) -> None:
        """Each file that must be kept is whole, in its place or in the archive (I4)."""
        archive = self.world.archived()
        for path, content in self.files.items():
            if is_hidden(path):
                continue
            place = self.world.warehouse / "t" / "delta_1_1" / path
            is_in_place = place.exists() and place.read_bytes() == content
            assert is_in_place or archive.get(name_of(path, content)) == content, path

    def assert_over(self) -> None:
        """The victim is gone, the archive has each content once, the rows say so."""
        assert not (self.world.warehouse / "t" / "delta_1_1").exists()
        live = self.world.warehouse / "t" / "delta_2_2" / "bucket_00000"
        assert live.read_bytes() == b"live rows"
        whole = {
            name: data for name, data in self.world.archived().items() if not name.startswith(".")
        }
        expected = archived_names(self.files)
        assert whole == expected
        entries = self.world.store.entries(self.world.archive.cmroot.uri)
        assert set(entries) == set(expected)
        for entry in entries.values():
            assert entry.state is EntryState.ARCHIVED
            uris = [origin.uri for origin in entry.origins]
            assert len(uris) == len(set(uris))
        origins = {origin.uri for entry in entries.values() for origin in entry.origins}
        assert origins == {
            f"file:{self.world.warehouse}/t/delta_1_1/{path}"
            for path in self.files
            if not is_hidden(path)
        }
        (intent,) = self.world.store.intents(list(IntentState))
        assert intent.state is IntentState.DELETED


def test_a_victim_is_archived_then_deleted(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "w", FaultyVolume, VICTIM)
    report = remove(scene.world)
    scene.assert_over()
    # Two files with one content and different names are two in the archive: names are Hive's.
    assert report.archived_count == 6
    assert report.deleted_count == 7
    assert report.size_bytes == sum(map(len, VICTIM.values()))
    assert not report.is_resumed
    assert report.intent is not None
    scene.world.protocol.finish([report.intent])
    (intent,) = scene.world.store.intents(list(IntentState))
    assert intent.state is IntentState.DONE


@pytest.mark.parametrize("volume_class", VOLUMES)
@pytest.mark.parametrize("is_second_crash", [False, True])
def test_dying_at_every_step(
    tmp_path: Path, volume_class: type[FaultyVolume], is_second_crash: bool
) -> None:
    """The process dies at each of its steps in turn (and, in half the runs, again on resuming)."""
    labels: list[str] = []
    crash_at = 0
    while True:
        crash_at += 1
        scene = Scene.make(tmp_path / f"w{crash_at}", volume_class, VICTIM)
        world = scene.world
        world.start(crash_at)
        try:
            remove(world)
        except CrashError as crash:
            labels.append(str(crash))
        else:
            break
        scene.assert_nothing_lost()
        world.clock.advance_ms(1000)
        if is_second_crash:
            world.start(crash_at=1 + crash_at // 2)
            try:
                remove(world)
            except CrashError:
                scene.assert_nothing_lost()
        world.start()
        settle_or_remove(world)
        scene.assert_over()
    scene.assert_over()
    assert len(labels) > 50
    for step in ("add_intents", "reserve", "record_archived", "advance_intents", "remove_file"):
        assert any(step in label for label in labels), step


def settle_or_remove(world: ArchiveWorld) -> None:
    """What a cleaner does on its next pass: victims that are there, rows whose victims are not."""
    if (world.warehouse / "t" / "delta_1_1").exists():
        remove(world)
    for intent in world.store.intents([state for state in IntentState if state.is_open]):
        assert world.protocol.settle(intent) is not None


FILE_NAMES = st.sampled_from(["a", "b", "_v", ".crc", "s/a", "s/.h", "s/t/c"])
CONTENTS = st.sampled_from([b"", b"x", b"one content", b"another content"])


@given(
    files=st.dictionaries(FILE_NAMES, CONTENTS, max_size=5),
    crashes=st.lists(st.integers(1, 90), max_size=4),
    volume_class=st.sampled_from(VOLUMES),
)
@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_files_any_crashes(
    tmp_path_factory: pytest.TempPathFactory,
    files: dict[str, bytes],
    crashes: list[int],
    volume_class: type[FaultyVolume],
) -> None:
    folder = tmp_path_factory.mktemp("world") / "w"
    scene = Scene.make(folder, volume_class, files)
    (scene.world.warehouse / "t" / "delta_1_1").mkdir(parents=True, exist_ok=True)
    for crash_at in crashes:
        scene.world.start(crash_at)
        try:
            if (scene.world.warehouse / "t" / "delta_1_1").exists():
                remove(scene.world)
        except CrashError:
            pass
        scene.assert_nothing_lost()
    scene.world.start()
    settle_or_remove(scene.world)
    scene.assert_over()


@pytest.mark.parametrize("volume_class", VOLUMES)
def test_without_replication_files_are_deleted_by_the_same_steps(
    tmp_path: Path, volume_class: type[FaultyVolume]
) -> None:
    crash_at = 0
    while True:
        crash_at += 1
        scene = Scene.make(tmp_path / f"w{crash_at}", volume_class, VICTIM)
        world = scene.world
        world.start(crash_at)
        try:
            remove(world, is_archived=False)
            break
        except CrashError:
            world.start()
        if (world.warehouse / "t" / "delta_1_1").exists():
            remove(world, is_archived=False)
        for intent in world.store.intents([IntentState.PLANNED, IntentState.ARCHIVED]):
            assert world.protocol.settle(intent) is not None
        assert not (world.warehouse / "t" / "delta_1_1").exists()
        assert world.archived() == {}
        (intent,) = world.store.intents(list(IntentState))
        assert intent.state is IntentState.DELETED
    assert crash_at > 15


def test_a_plain_file_is_a_victim_too(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "w", FaultyVolume, {})
    scene.world.write("t/000000_0", b"original rows")
    report = remove(scene.world, "t/000000_0")
    assert report.archived_count == 1
    assert scene.world.archived() == archived_names({"000000_0": b"original rows"})
    assert not (scene.world.warehouse / "t" / "000000_0").exists()
    assert (scene.world.warehouse / "t").is_dir()


def test_what_is_not_there_leaves_no_trace(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "w", FaultyVolume, {})
    assert remove(scene.world, "t/delta_9_9").intent is None
    assert scene.world.store.intents(list(IntentState)) == ()


def test_a_plan_leaves_no_trace(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "w", FaultyVolume, VICTIM)
    world = scene.world
    victim = str(world.warehouse / "t" / "delta_1_1")
    removal = Removal(victim=victim, root=str(world.warehouse), context=context(), is_archived=True)
    plan = world.protocol.plan(removal, world.resolve(victim))
    assert plan is not None
    assert {file.archive_name for file in plan.archived_files} == set(archived_names(VICTIM))
    assert [file.path for file in plan.files if file.archive_name is None] == [".bucket_00000.crc"]
    assert not world.cmroot.exists()
    assert world.store.intents(list(IntentState)) == ()
    assert world.faults.count == 0


def crash_in(world: ArchiveWorld, label: str, *, is_archived: bool = True) -> None:
    """Run `remove` and die at the first step with this label; then a new process starts."""
    world.faults.crash_label = label
    with pytest.raises(CrashError):
        remove(world, is_archived=is_archived)
    world.start()


def test_a_file_that_came_after_the_crash_is_not_touched(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "w", FaultyVolume, VICTIM)
    crash_in(scene.world, "after record_archived")
    scene.world.write("t/delta_1_1/bucket_00007", b"new rows")
    with pytest.raises(DirectoryChangedError, match="bucket_00007 is new") as caught:
        remove(scene.world)
    assert caught.value.changes == ("bucket_00007 is new",)
    assert (scene.world.warehouse / "t/delta_1_1/bucket_00007").read_bytes() == b"new rows"
    (intent,) = scene.world.store.intents(list(IntentState))
    assert intent.state is IntentState.ABANDONED
    assert "bucket_00007" in intent.reason
    # Planned anew, it may go (whoever asks knows that it still may).
    scene.files["bucket_00007"] = b"new rows"
    assert remove(scene.world).deleted_count == 8
    assert name_of("x/bucket_00007", b"new rows") in scene.world.archived()


@pytest.mark.parametrize(
    "label", ["after add_intents", "after record_archived", "after advance_intents"]
)
@pytest.mark.parametrize("content", [b"made anew, another length", b"Rows of bucket 0"])
def test_a_file_that_was_written_anew_after_the_crash_is_not_deleted(
    tmp_path: Path, label: str, content: bytes
) -> None:
    """A table was dropped and made again between crash and resume: same names, other rows."""
    scene = Scene.make(tmp_path / "w", FaultyVolume, VICTIM)
    crash_in(scene.world, label)
    place = scene.world.warehouse / "t/delta_1_1/bucket_00000"
    place.unlink()
    place.write_bytes(content)
    with pytest.raises(DirectoryChangedError):
        remove(scene.world)
    assert place.read_bytes() == content


def test_without_archive_a_file_written_anew_is_told_by_its_time(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "w", FaultyVolume, VICTIM)
    crash_in(scene.world, "after add_intents", is_archived=False)
    place = scene.world.warehouse / "t/delta_1_1/bucket_00000"
    place.write_bytes(b"Rows of bucket 0")
    os.utime(place, (1_800_000_000, 1_800_000_000))
    with pytest.raises(DirectoryChangedError, match="was written since"):
        remove(scene.world, is_archived=False)
    assert place.exists()


def test_a_file_that_someone_else_archived_is_fine(tmp_path: Path) -> None:
    """A Hive beside us may have moved files of the same victim into the same cmroot."""
    scene = Scene.make(tmp_path / "w", FaultyVolume, VICTIM)
    crash_in(scene.world, "after add_intents")
    scene.world.cmroot.mkdir(exist_ok=True)
    for path, content in VICTIM.items():
        if not is_hidden(path):
            place = scene.world.warehouse / "t" / "delta_1_1" / path
            place.rename(scene.world.cmroot / name_of(path, content))
    remove(scene.world)
    scene.assert_over()


def test_a_file_that_someone_else_deleted_is_reported(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "w", FaultyVolume, VICTIM)
    crash_in(scene.world, "after add_intents")
    lost = scene.world.warehouse / "t/delta_1_1/bucket_00001"
    lost.unlink()
    with pytest.raises(ArchivedFileLostError, match="neither|is gone and") as caught:
        remove(scene.world)
    assert caught.value.missing == (f"file:{lost}",)
    (intent,) = scene.world.store.intents(list(IntentState))
    assert intent.state is IntentState.ABANDONED
    remove(scene.world)
    assert not (scene.world.warehouse / "t/delta_1_1").exists()


def test_an_archived_copy_that_vanished_keeps_the_source(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "w", FaultyVolume, VICTIM)
    crash_in(scene.world, "after record_archived")
    (scene.world.cmroot / name_of("bucket_00001", VICTIM["bucket_00001"])).unlink()
    # The row still says PLANNED, so the file is simply archived again.
    remove(scene.world)
    scene.assert_over()


class ForgetfulVolume(FaultyVolume):
    """Loses an archived file between archive and delete."""

    def sync_directory(self, path: str) -> None:
        if path.endswith("/cmroot"):
            (Path(path) / name_of("bucket_00001", VICTIM["bucket_00001"])).unlink(missing_ok=True)


def test_an_archived_copy_that_vanished_before_the_delete_stops_it(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "w", ForgetfulVolume, VICTIM)
    with pytest.raises(ArchivedFileLostError, match="vanished"):
        remove(scene.world)
    for path, content in VICTIM.items():
        assert (scene.world.warehouse / "t/delta_1_1" / path).read_bytes() == content


def test_an_unwritable_cmroot_leaves_the_row_to_be_taken_up(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "w", FaultyVolume, VICTIM)
    scene.world.cmroot.write_bytes(b"in the way")
    with pytest.raises(ArchiveUnwritableError):
        remove(scene.world)
    scene.assert_nothing_lost()
    scene.world.cmroot.unlink()
    scene.world.start()
    assert remove(scene.world).is_resumed
    scene.assert_over()


def test_with_the_change_manager_off_nothing_that_must_be_kept_is_deleted(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "w", FaultyVolume, VICTIM)
    world = scene.world
    off = DeleteProtocol(
        resolve=world.resolve,
        intents=world.store,
        archive=None,
        clock=world.clock,
        new_id=world.new_token,
    )
    victim = str(world.warehouse / "t" / "delta_1_1")
    with pytest.raises(ChangeManagerConfigError, match="hive.repl.cm.enabled"):
        off.remove(victim, root=str(world.warehouse), context=context(), is_archived=True)
    scene.assert_nothing_lost()
    off.remove(victim, root=str(world.warehouse), context=context(), is_archived=False)
    assert not Path(victim).exists()


def test_a_row_of_another_cmroot_waits_for_its_own(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "w", FaultyVolume, VICTIM)
    crash_in(scene.world, "after add_intents")
    moved = scene.world.folder / "cmroot2"
    scene.world.config = type(scene.world.config)(
        cmroot=str(moved), retain_ms=scene.world.config.retain_ms
    )
    scene.world.start()
    with pytest.raises(ChangeManagerConfigError, match="begun with the cmroot"):
        remove(scene.world)
    scene.assert_nothing_lost()


def test_a_database_that_became_a_source_meanwhile_is_planned_anew(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "w", FaultyVolume, VICTIM)
    crash_in(scene.world, "after add_intents", is_archived=False)
    remove(scene.world, is_archived=True)
    assert set(scene.world.archived()) == set(archived_names(VICTIM))
    states = {one.state for one in scene.world.store.intents(list(IntentState))}
    assert states == {IntentState.ABANDONED, IntentState.DELETED}


def test_two_processes_do_not_undo_each_other(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "w", FaultyVolume, VICTIM)
    crash_in(scene.world, "after add_intents")
    (stale,) = scene.world.store.intents([IntentState.PLANNED])
    remove(scene.world)
    scene.assert_over()
    with pytest.raises(IntentError, match="another process works on it"):
        scene.world.protocol.settle(stale)
    with pytest.raises(IntentError):
        scene.world.protocol.abandon(stale, "late")
    scene.assert_over()


def test_settling_leaves_a_victim_that_is_there(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "w", FaultyVolume, VICTIM)
    crash_in(scene.world, "after add_intents")
    (intent,) = scene.world.store.intents([IntentState.PLANNED])
    assert scene.world.protocol.settle(intent) is None
    scene.world.protocol.abandon(intent, "not obsolete any more")
    assert (scene.world.warehouse / "t/delta_1_1/bucket_00000").exists()


def test_links_inside_a_victim_stop_everything(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "w", FaultyVolume, VICTIM)
    (scene.world.warehouse / "t/delta_1_1/l").symlink_to("/etc/hostname")
    for is_archived in (True, False):
        with pytest.raises(PathNotContainedError):
            remove(scene.world, is_archived=is_archived)
    scene.assert_nothing_lost()


class StubbornVolume(FaultyVolume):
    """Does not delete one file."""

    def remove_file(self, path: str) -> None:
        if path.endswith("bucket_00001"):
            raise PermissionError(13, "Permission denied")
        super().remove_file(path)


def test_a_file_that_cannot_be_deleted_is_tried_again(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "w", StubbornVolume, VICTIM)
    with pytest.raises(ChangeManagerError, match="Permission denied"):
        remove(scene.world)
    (intent,) = scene.world.store.intents(list(IntentState))
    assert intent.state is IntentState.ARCHIVED
    scene.world.volume_class = FaultyVolume
    scene.world.start()
    assert remove(scene.world).is_resumed
    scene.assert_over()


def test_changes_of_a_listing() -> None:
    scene_file = ListedFile(path="a", kind=FileKind.FILE, size_bytes=3, mtime_ms=5)
    from changemanager.manifest import ArchiveIntent, IntentFile

    intent = ArchiveIntent(
        intent_id="i", victim="file:/v", cmroot=None,
        files=(IntentFile(path="a", size_bytes=3, mtime_ms=5),), context=context(),
        is_remaining_in_trash=False, state=IntentState.PLANNED, created_at_ms=0, updated_at_ms=0,
    )  # fmt: skip
    same = [scene_file, ListedFile(path="d", kind=FileKind.DIRECTORY, size_bytes=0, mtime_ms=1)]
    assert unplanned_changes(intent, same, is_time_compared=True) == ()
    assert unplanned_changes(intent, [], is_time_compared=True) == ()
    later = [ListedFile(path="a", kind=FileKind.FILE, size_bytes=3, mtime_ms=6)]
    assert unplanned_changes(intent, later, is_time_compared=False) == ()
    assert unplanned_changes(intent, later, is_time_compared=True) == ("a was written since",)
    link = [ListedFile(path="a", kind=FileKind.LINK, size_bytes=3, mtime_ms=5)]
    assert unplanned_changes(intent, link, is_time_compared=True) == ("a is new",)
