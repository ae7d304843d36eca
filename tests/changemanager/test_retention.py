"""The purge: who goes, who stays, and what happens when the world moves in between."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from changemanager.archive import ORIGINAL_LOCATION, REMAIN_IN_TRASH
from changemanager.aside import ASIDE_PREFIX
from changemanager.checksum import composite_checksum, plain_checksum
from changemanager.errors import ArchiveBusyError, ChangeManagerConfigError, ClockDoubtError
from changemanager.filesystem.volume import FileKind
from changemanager.manifest import (
    LEASE_MS,
    ArchiveEntry,
    EntryState,
    IntentState,
    Pin,
    PinKind,
)
from changemanager.plausible_time import TimeJudgement
from changemanager.purge import PurgeReport
from changemanager.recycle import RecycleKind
from changemanager.retention import (
    ArchivedItem,
    Disposition,
    PurgePlan,
    is_expired,
    plan_purge,
)
from changemanager.transfer import PART_PREFIX
from changemanager.uri import archive_name
from tests.support.archive_world import ArchiveWorld, context
from tests.support.faults import CrashError, FarVolume, FaultyVolume
from tests.support.simulated_clock import DAY_MS, START_MS

RETAIN_MS = 10 * DAY_MS
CHECKSUM = "00000200" + "0" * 16 + "a" * 32
NAME = f"bucket_00000_{CHECKSUM}"


@pytest.fixture
def world(tmp_path: Path) -> ArchiveWorld:
    return ArchiveWorld(tmp_path, retain_ms=RETAIN_MS)


def name_of(base: str, content: bytes) -> str:
    return archive_name(base, composite_checksum(io.BytesIO(content)))


def recycle(
    world: ArchiveWorld, content: bytes = b"rows", base: str = "f", *, is_purge: bool = True
) -> str:
    path = world.write(f"t/d/{base}", content)
    world.archive.recycle(
        str(path), RecycleKind.MOVE, is_purge=is_purge, root=str(world.warehouse), context=context()
    )
    path.unlink(missing_ok=True)
    return name_of(base, content)


def hives(world: ArchiveWorld, name: str, content: bytes = b"rows", at_ms: int = START_MS) -> Path:
    """A file that no manifest knows."""
    world.cmroot.mkdir(exist_ok=True)
    path = world.cmroot / name
    path.write_bytes(content)
    os.utime(path, ns=(at_ms * 1_000_000, at_ms * 1_000_000))
    return path


def purge(world: ArchiveWorld, **given: object) -> PurgeReport:
    world.purge.settle()
    return world.purge.run(world.purge.plan(**given))  # type: ignore[arg-type]


def dispositions(plan: PurgePlan) -> dict[str, Disposition]:
    return {one.item.name: one.disposition for one in plan.decisions}


# -- the plan, without any I/O


def item(name: str = NAME, **given: object) -> ArchivedItem:
    values: dict[str, object] = {
        "kind": FileKind.FILE, "size_bytes": 5, "mtime_ms": START_MS, "entry": None,
        "is_tagged": False,
    } | given  # fmt: skip
    return ArchivedItem(name=name, **values)  # type: ignore[arg-type]


def entry(at_ms: int = START_MS, state: EntryState = EntryState.ARCHIVED) -> ArchiveEntry:
    return ArchiveEntry(
        cmroot="file:/cm", name=NAME, checksum=CHECKSUM, size_bytes=5,
        state=state, archived_at_ms=at_ms,
    )  # fmt: skip


def aged(age_ms: int) -> TimeJudgement:
    return TimeJudgement(now_ms=START_MS + age_ms)


def decide(
    one: ArchivedItem,
    age_ms: int = RETAIN_MS + 1,
    *,
    held: tuple[str, ...] = (),
    overridden: frozenset[str] = frozenset(),
    has_trash: bool = True,
) -> Disposition:
    plan = plan_purge(
        [one], cmroot="file:/cm", time=aged(age_ms), retain_ms=RETAIN_MS,
        holders={one.name: held} if held else {}, overridden=overridden, has_trash=has_trash,
    )  # fmt: skip
    return plan.decisions[0].disposition


def test_as_old_as_the_retention_is_not_older() -> None:
    assert not is_expired(START_MS, aged(RETAIN_MS), RETAIN_MS)
    assert is_expired(START_MS, aged(RETAIN_MS + 1), RETAIN_MS)
    assert decide(item(), RETAIN_MS) is Disposition.YOUNG
    assert decide(item(), RETAIN_MS + 1) is Disposition.DELETE


def test_the_later_of_manifest_and_file_time_counts() -> None:
    assert decide(item(mtime_ms=None, entry=entry())) is Disposition.DELETE
    assert decide(item(mtime_ms=None, entry=entry(START_MS + 1))) is Disposition.YOUNG
    assert decide(item(mtime_ms=START_MS - 9 * DAY_MS, entry=entry())) is Disposition.DELETE
    # A restored cmroot has old file times; a Hive beside us refreshes only the file.
    assert decide(item(mtime_ms=0, entry=entry(START_MS + 1))) is Disposition.YOUNG
    assert decide(item(mtime_ms=START_MS + 1, entry=entry())) is Disposition.YOUNG


def test_an_unknown_time_is_never_touched() -> None:
    assert decide(item(mtime_ms=None)) is Disposition.NO_TIME


def test_a_time_in_the_future_is_young() -> None:
    assert decide(item(), -5) is Disposition.YOUNG


@pytest.mark.parametrize("name", ["notes.txt", "bucket_00000", CHECKSUM, ".hidden", "x_NULL"])
def test_unknown_names_stay(name: str) -> None:
    assert decide(item(name)) is Disposition.UNKNOWN


@pytest.mark.parametrize("kind", [FileKind.DIRECTORY, FileKind.LINK, FileKind.OTHER])
def test_what_is_no_file_stays(kind: FileKind) -> None:
    assert decide(item(kind=kind)) is Disposition.UNKNOWN


def test_names_without_checksum_stay_and_are_told_apart() -> None:
    assert decide(item("bucket_00000_null")) is Disposition.NO_CHECKSUM


def test_a_cut_name_goes_if_the_manifest_knows_it() -> None:
    assert decide(item("y" * 254)) is Disposition.UNKNOWN
    assert decide(item("y" * 254, entry=entry())) is Disposition.DELETE


def test_tagged_files_go_to_the_trash_or_stay() -> None:
    assert decide(item(is_tagged=True)) is Disposition.TRASH
    assert decide(item(is_tagged=True), has_trash=False) is Disposition.NO_TRASH
    assert decide(item(is_tagged=True), RETAIN_MS, has_trash=False) is Disposition.YOUNG


def test_pinned_files_stay_and_say_for_whom() -> None:
    plan = plan_purge(
        [item(), item(f"b_{CHECKSUM}")], cmroot="c", time=aged(RETAIN_MS + 1),
        retain_ms=RETAIN_MS, holders={NAME: ("dump:1", "hold:x")}, has_trash=False,
    )  # fmt: skip
    pinned, gone = plan.decisions
    assert (pinned.disposition, pinned.reason) == (
        Disposition.PINNED, "held by dump:1, hold:x",
    )  # fmt: skip
    assert gone.disposition is Disposition.DELETE
    assert plan.removals == (gone,)
    assert plan.of(Disposition.PINNED) == (pinned,)
    assert plan.freed_bytes == 5


def test_an_override_names_each_holder_and_is_recorded() -> None:
    held = ("dump:1", "hold:x")
    assert decide(item(), held=held, overridden=frozenset({"dump:1"})) is Disposition.PINNED
    plan = plan_purge(
        [item()], cmroot="c", time=aged(RETAIN_MS + 1), retain_ms=RETAIN_MS,
        holders={NAME: held}, overridden=frozenset(held), has_trash=False,
    )  # fmt: skip
    (decision,) = plan.decisions
    assert decision.disposition is Disposition.DELETE
    assert decision.reason == "expired; overridden: dump:1, hold:x"
    assert plan.overridden == set(held)


def test_rows_without_files() -> None:
    gone = {"is_present": False, "mtime_ms": None}
    assert decide(item(entry=entry(), **gone)) is Disposition.FORGET
    assert decide(item(entry=entry(), **gone), RETAIN_MS) is Disposition.YOUNG
    # Here the file went, and then the process: only the row is left to do.
    interrupted = entry(state=EntryState.PURGING)
    assert decide(item(entry=interrupted, **gone), 0) is Disposition.FORGET


def test_a_retention_of_nothing_purges_nothing() -> None:
    for retain_ms in (0, -1):
        with pytest.raises(ChangeManagerConfigError, match="would remove everything"):
            plan_purge(
                [item()], cmroot="c", time=aged(0), retain_ms=retain_ms,
                holders={}, has_trash=False,
            )  # fmt: skip


# -- with files


def test_an_archived_file_lives_exactly_its_retention(world: ArchiveWorld) -> None:
    name = recycle(world)
    world.clock.advance_ms(RETAIN_MS)
    assert purge(world).deleted == ()
    assert set(world.archived()) == {name}
    world.clock.advance_ms(1)
    report = purge(world)
    assert (report.deleted, report.freed_bytes, report.failed) == ((name,), 4, ())
    assert world.archived() == {}
    history = world.store.entries(world.archive.cmroot.uri, [name])[name]
    assert (history.state, history.archived_at_ms) == (EntryState.PURGED, START_MS + RETAIN_MS + 1)
    assert purge(world).deleted == ()


def test_archiving_the_same_content_begins_the_retention_again(world: ArchiveWorld) -> None:
    name = recycle(world)
    world.clock.advance_ms(RETAIN_MS)
    assert recycle(world) == name
    world.clock.advance_ms(RETAIN_MS)
    assert purge(world).deleted == ()
    world.clock.advance_ms(1)
    assert purge(world).deleted == (name,)


def test_files_that_hive_archived_go_by_their_time(world: ArchiveWorld) -> None:
    name = name_of("bucket_00000", b"rows")
    hives(world, name)
    world.clock.advance_ms(RETAIN_MS)
    assert purge(world).deleted == ()
    world.clock.advance_ms(1)
    assert purge(world).deleted == (name,)


def test_what_is_not_understood_is_left_and_reported(world: ArchiveWorld) -> None:
    hives(world, "notes.txt")
    hives(world, "bucket_00000_0_null")
    (world.cmroot / f"dir_{CHECKSUM}").mkdir()
    (world.cmroot / f"dir_{CHECKSUM}" / f"x_{CHECKSUM}").write_bytes(b"below")
    (world.cmroot / f"link_{CHECKSUM}").symlink_to(world.warehouse)
    os.utime(world.cmroot / f"dir_{CHECKSUM}", (0, 0))
    world.clock.advance_ms(10 * RETAIN_MS)
    plan = world.purge.plan()
    assert dispositions(plan) == {
        "notes.txt": Disposition.UNKNOWN,
        "bucket_00000_0_null": Disposition.NO_CHECKSUM,
        f"dir_{CHECKSUM}": Disposition.UNKNOWN,
        f"link_{CHECKSUM}": Disposition.UNKNOWN,
    }
    report = world.purge.run(plan)
    assert (report.deleted, report.failed) == ((), ())
    assert (world.cmroot / f"dir_{CHECKSUM}" / f"x_{CHECKSUM}").exists()
    assert world.warehouse.exists()


def test_a_name_that_ends_like_a_date_needs_proof(world: ArchiveWorld) -> None:
    good = plain_checksum(io.BytesIO(b"rows"))
    hives(world, f"bucket_00000_{good}")
    hives(world, "backup_20240101")
    world.clock.advance_ms(RETAIN_MS + 1)
    report = purge(world)
    assert report.deleted == (f"bucket_00000_{good}",)
    ((name, reason),) = report.failed
    assert (name, reason) == (
        "backup_20240101", "its content does not have the checksum of its name",
    )  # fmt: skip
    assert (world.cmroot / "backup_20240101").exists()
    assert world.store.entries(world.archive.cmroot.uri, ["backup_20240101"]) == {}


class StubbornVolume(FaultyVolume):
    """Does not delete one file, and cannot say another one's attributes."""

    def rename(self, source: str, target: str) -> None:
        if "stubborn" in source:
            raise PermissionError(13, "Permission denied", source)
        super().rename(source, target)

    def keeps_attributes(self, directory: str) -> bool:
        return True

    def attribute(self, path: str, name: str) -> bytes | None:
        if "dark" in path:
            raise OSError(5, "Input/output error", path)
        return None


def test_one_bad_file_never_stops_the_purge(tmp_path: Path) -> None:
    world = ArchiveWorld(tmp_path, volume_class=StubbornVolume, retain_ms=RETAIN_MS)
    names = [name_of(base, b"x") for base in ("a", "dark", "stubborn", "z")]
    for name in names:
        hives(world, name, b"x")
    world.clock.advance_ms(RETAIN_MS + 1)
    plan = world.purge.plan()
    report = world.purge.run(plan)
    assert report.deleted == (names[0], names[3])
    assert [name for name, _ in report.failed] == [names[2]]
    assert "Permission denied" in report.failed[0][1]
    assert dispositions(plan)[names[1]] is Disposition.UNKNOWN
    assert report.freed_bytes == 2
    # The bad one was let go again: it can still be archived, and is tried the next time.
    assert world.store.entries(world.archive.cmroot.uri) == {}
    assert [name for name, _ in purge(world).failed] == [names[2]]


def test_what_was_archived_again_after_the_plan_stays(world: ArchiveWorld) -> None:
    name = recycle(world)
    world.clock.advance_ms(RETAIN_MS + 1)
    plan = world.purge.plan()
    recycle(world)
    report = world.purge.run(plan)
    assert report.deleted == ()
    assert report.failed == (
        (name, "it was archived again, pinned, or claimed, since the plan was made"),
    )
    assert set(world.archived()) == {name}


def test_what_hive_refreshed_after_the_plan_stays(world: ArchiveWorld) -> None:
    name = recycle(world)
    world.clock.advance_ms(RETAIN_MS + 1)
    plan = world.purge.plan()
    os.utime(world.cmroot / name)
    report = world.purge.run(plan)
    assert [reason for _, reason in report.failed] == [
        "the file was written or touched since the plan was made"
    ]
    assert set(world.archived()) == {name}
    assert world.store.entries(world.archive.cmroot.uri)[name].state is EntryState.ARCHIVED


def test_what_was_pinned_after_the_plan_stays(world: ArchiveWorld) -> None:
    name = recycle(world)
    world.clock.advance_ms(RETAIN_MS + 1)
    plan = world.purge.plan()
    world.store.put_pin(
        Pin(holder="dump:1", kind=PinKind.DUMP, reason="", created_at_ms=0, names=frozenset({name}))
    )
    assert world.purge.run(plan).deleted == ()
    assert dispositions(world.purge.plan()) == {name: Disposition.PINNED}
    assert purge(world, overridden=["dump:1"]).deleted == (name,)


def test_what_an_unfinished_removal_needs_stays(world: ArchiveWorld) -> None:
    world.write("t/delta_1_1/f", b"rows")
    name = name_of("f", b"rows")
    world.faults.crash_label = "after record_archived"
    with pytest.raises(CrashError):
        world.protocol.remove(
            str(world.warehouse / "t/delta_1_1"), root=str(world.warehouse),
            context=context(), is_archived=True,
        )  # fmt: skip
    world.start()
    world.clock.advance_ms(RETAIN_MS + 1)
    assert dispositions(world.purge.plan()) == {name: Disposition.PINNED}
    (intent,) = world.store.intents([IntentState.PLANNED])
    world.protocol.abandon(intent, "over")
    assert purge(world).deleted == (name,)


def test_a_file_that_hive_purged_is_forgotten(world: ArchiveWorld) -> None:
    name = recycle(world)
    (world.cmroot / name).unlink()
    world.clock.advance_ms(RETAIN_MS)
    assert dispositions(world.purge.plan()) == {name: Disposition.YOUNG}
    world.clock.advance_ms(1)
    report = purge(world)
    assert (report.forgotten, report.freed_bytes) == ((name,), 0)
    assert world.store.entries(world.archive.cmroot.uri) == {}


def test_unfinished_copies_go_when_they_are_old(world: ArchiveWorld) -> None:
    part = hives(world, f"{PART_PREFIX}token", b"half")
    world.clock.advance_ms(RETAIN_MS)
    assert purge(world).deleted == ()
    world.clock.advance_ms(1)
    assert purge(world).deleted == (part.name,)
    assert world.store.entries(world.archive.cmroot.uri, [part.name]) == {}


def test_an_empty_and_a_missing_cmroot(world: ArchiveWorld) -> None:
    assert purge(world).plan.decisions == ()
    world.cmroot.mkdir()
    assert purge(world).plan.decisions == ()


@pytest.mark.parametrize("volume_class", [FaultyVolume, FarVolume])
def test_dropped_without_purge_means_into_the_trash(
    tmp_path: Path, volume_class: type[FaultyVolume]
) -> None:
    world = ArchiveWorld(tmp_path, has_trash=True, retain_ms=RETAIN_MS, volume_class=volume_class)
    name, other = recycle(world, is_purge=False), recycle(world, b"2", "g")
    world.clock.advance_ms(RETAIN_MS + 1)
    report = purge(world)
    assert (report.trashed, report.deleted, report.failed) == ((name,), (other,), ())
    assert world.archived() == {}
    trashed = world.trash / str(world.cmroot).strip("/") / name
    assert trashed.read_bytes() == b"rows"
    # The same content again: it is in the trash already.
    recycle(world, is_purge=False)
    world.clock.advance_ms(RETAIN_MS + 1)
    assert purge(world).trashed == (name,)
    assert trashed.read_bytes() == b"rows"


def test_the_last_drop_of_a_content_decides_how_long_it_is_in_the_trash(tmp_path: Path) -> None:
    world = ArchiveWorld(tmp_path, has_trash=True, retain_ms=RETAIN_MS)
    recycle(world, is_purge=False)
    world.clock.advance_ms(RETAIN_MS + 1)
    purge(world)
    name = recycle(world, is_purge=False)
    trashed = world.trash / str(world.cmroot).strip("/") / name
    for days, is_there in ((RETAIN_MS // DAY_MS, True), (29, True), (2, False)):
        world.clock.advance_ms(days * DAY_MS + 1)
        world.store.note_time(world.clock.now_ms())
        purge(world)
        assert trashed.exists() is is_there


def test_other_content_in_the_trash_is_not_replaced(tmp_path: Path) -> None:
    world = ArchiveWorld(tmp_path, has_trash=True, retain_ms=RETAIN_MS)
    name = recycle(world, is_purge=False)
    trashed = world.trash / str(world.cmroot).strip("/") / name
    trashed.parent.mkdir(parents=True)
    trashed.write_bytes(b"others")
    world.clock.advance_ms(RETAIN_MS + 1)
    report = purge(world)
    assert [failed for failed, _ in report.failed] == [name]
    assert trashed.read_bytes() == b"others"
    assert set(world.archived()) == {name}


def test_without_a_trash_what_was_dropped_is_kept(world: ArchiveWorld) -> None:
    name = recycle(world, is_purge=False)
    world.clock.advance_ms(RETAIN_MS + 1)
    assert dispositions(world.purge.plan()) == {name: Disposition.NO_TRASH}


def test_what_was_dropped_comes_to_an_end_with_and_without_a_trash(tmp_path: Path) -> None:
    for has_trash in (False, True):
        folder = tmp_path / str(has_trash)
        folder.mkdir()
        world = ArchiveWorld(folder, has_trash=has_trash, retain_ms=RETAIN_MS)
        name = recycle(world, is_purge=False)
        world.clock.advance_ms(RETAIN_MS + 1)
        purge(world)
        kept = (
            world.trash / str(world.cmroot).strip("/") / name if has_trash else world.cmroot / name
        )
        (kept.parent / "notes.txt").write_bytes(b"not of the archive")
        world.clock.advance_ms(30 * DAY_MS - 1)
        world.store.note_time(world.clock.now_ms())
        purge(world)
        assert kept.exists()
        world.clock.advance_ms(1)
        purge(world)
        assert not kept.exists()
        assert (kept.parent / "notes.txt").exists()


def test_hives_tag_on_a_file_without_a_row_is_seen(world: ArchiveWorld) -> None:
    volume = world.archive.cmroot.volume
    name = name_of("f", b"rows")
    path = hives(world, name)
    if not volume.keeps_attributes(str(world.cmroot)):
        pytest.skip("this mount has no extended attributes")
    volume.set_attribute(str(path), REMAIN_IN_TRASH, b"\0")
    world.clock.advance_ms(RETAIN_MS + 1)
    assert dispositions(world.purge.plan()) == {name: Disposition.NO_TRASH}


@pytest.mark.parametrize("is_hives", [False, True])
def test_dying_at_every_step_of_a_purge(tmp_path: Path, is_hives: bool) -> None:
    crash_at = 0
    while True:
        crash_at += 1
        folder = tmp_path / str(crash_at)
        folder.mkdir()
        world = ArchiveWorld(folder, has_trash=True, retain_ms=RETAIN_MS)
        if is_hives:
            for base in ("a", "b"):
                hives(world, name_of(base, b"rows"))
        else:
            recycle(world, base="a")
            recycle(world, base="b", is_purge=False)
        world.clock.advance_ms(RETAIN_MS + 1)
        world.start(crash_at)
        try:
            purge(world)
            break
        except CrashError:
            world.start()
        # What the dead one held is free in minutes; until then nobody touches it.
        purge(world)
        world.clock.advance_ms(LEASE_MS + 1)
        purge(world)
        assert world.archived() == {}
        assert world.store.entries(world.archive.cmroot.uri) == {}
        recycle(world, base="a")
        assert list(world.archived()) == [name_of("a", b"rows")]
    assert crash_at > 16
    steps = {label.split()[1] for label in world.faults.labels}
    assert steps >= {"claim_purge", "holds_purge", "rename", "remove_file", "record_purged"}


def test_dying_at_every_step_of_settling(tmp_path: Path) -> None:
    """A purge died with one file moved aside and one claimed; whoever settles it dies, too."""
    labels: set[str] = set()
    crash_at = 0
    while True:
        crash_at += 1
        folder = tmp_path / str(crash_at)
        folder.mkdir()
        world = ArchiveWorld(folder, retain_ms=RETAIN_MS)
        names = {recycle(world, base=base) for base in ("a", "b")}
        world.clock.advance_ms(RETAIN_MS + 1)
        for step in (f"after rename {name_of('a', b'rows')}", "after claim_purge"):
            world.faults.crash_label = step
            with pytest.raises(CrashError):
                world.purge.run(world.purge.plan())
            world.start()
        world.clock.advance_ms(LEASE_MS + 1)
        world.start(crash_at)
        try:
            world.purge.settle()
            break
        except CrashError:
            labels |= set(world.faults.labels)
            world.start()
        world.purge.settle()
        assert set(world.archived()) == names
        states = {one.state for one in world.store.entries(world.archive.cmroot.uri).values()}
        assert states == {EntryState.ARCHIVED}
    assert set(world.archived()) == names
    assert "before release_purge" in labels
    assert any(label.startswith("before place .cm-gone-") for label in labels)


def test_an_interrupted_purge_that_is_not_due_any_more_lets_go(tmp_path: Path) -> None:
    world = ArchiveWorld(tmp_path, retain_ms=RETAIN_MS)
    name = recycle(world)
    world.clock.advance_ms(RETAIN_MS + 1)
    world.faults.crash_label = "after claim_purge"
    with pytest.raises(CrashError):
        purge(world)
    world.config = type(world.config)(cmroot=str(world.cmroot), retain_ms=2 * RETAIN_MS)
    world.start()
    path = world.write("t/d/f", b"rows")
    with pytest.raises(ArchiveBusyError):
        world.archive.recycle(
            str(path), RecycleKind.MOVE, is_purge=True,
            root=str(world.warehouse), context=context(),
        )  # fmt: skip
    assert path.exists()
    world.clock.advance_ms(LEASE_MS + 1)
    assert purge(world).deleted == ()
    assert recycle(world) == name
    assert set(world.archived()) == {name}


class AttributedVolume(FaultyVolume):
    """Files have the attributes that it is told, whatever the mount."""

    origins: ClassVar[dict[str, str]] = {}

    def keeps_attributes(self, directory: str) -> bool:
        return True

    def attribute(self, path: str, name: str) -> bytes | None:
        found = self.origins.get(path) if name == ORIGINAL_LOCATION else None
        return found.encode() if found is not None else None


class StalledVolume(FaultyVolume):
    """Stands still before, or in the middle of, taking a file away, while others go on."""

    stalls: ClassVar[dict[str, Callable[[], None]]] = {}

    def rename(self, source: str, target: str) -> None:
        self._stall("before rename")
        super().rename(source, target)
        self._stall("after rename")

    def remove_file(self, path: str) -> None:
        self._stall("before remove")
        super().remove_file(path)

    def _stall(self, step: str) -> None:
        meanwhile = self.stalls.pop(step, None)
        if meanwhile is not None:
            meanwhile()


@pytest.mark.parametrize("step", ["before rename", "after rename", "before remove"])
@pytest.mark.parametrize("is_second_purging", [True, False])
def test_a_purge_that_stood_still_deletes_nothing_that_came_since(
    tmp_path: Path, step: str, is_second_purging: bool
) -> None:
    """I4, I5: while it stands still, another purge ends its work, and a cleaner archives the same
    content under the same name again and deletes the source: the only copy."""
    world = ArchiveWorld(tmp_path, retain_ms=RETAIN_MS, volume_class=StalledVolume)
    name = recycle(world)
    world.clock.advance_ms(RETAIN_MS + 1)
    plan = world.purge.plan()

    def others_go_on() -> None:
        world.clock.advance_ms(LEASE_MS + 1)
        if is_second_purging:
            purge(world)
        recycle(world)

    StalledVolume.stalls = {step: others_go_on}
    world.purge.run(plan)
    assert StalledVolume.stalls == {}
    assert world.archived() == {name: b"rows"}
    entry = world.store.entries(world.archive.cmroot.uri)[name]
    assert entry.state is EntryState.ARCHIVED
    assert world.purge.settle() == ()


@pytest.mark.parametrize("is_hives", [True, False])
def test_a_file_that_a_hive_archives_anew_beside_a_purge_stays(
    tmp_path: Path, is_hives: bool
) -> None:
    """Hive finds the content in the archive, touches it and deletes its own; it knows no claims
    (ReplChangeManager.recycle). From then on the file's retention counts."""
    world = ArchiveWorld(tmp_path, retain_ms=RETAIN_MS, volume_class=StalledVolume)
    name = name_of("a", b"rows") if is_hives else recycle(world)
    if is_hives:
        hives(world, name)
    world.clock.advance_ms(RETAIN_MS + 1)
    plan = world.purge.plan()
    touched = world.clock.now_ms() // 1000
    StalledVolume.stalls = {
        "before rename": lambda: os.utime(world.cmroot / name, (touched, touched))
    }
    report = world.purge.run(plan)
    assert StalledVolume.stalls == {}
    assert "touched since the plan" in str(report)
    assert world.archived() == {name: b"rows"}
    world.clock.advance_ms(RETAIN_MS - 1000)
    assert purge(world).deleted == ()
    world.clock.advance_ms(2001)
    assert purge(world).deleted == (name,)


def test_a_live_purge_is_left_alone(tmp_path: Path) -> None:
    world = ArchiveWorld(tmp_path, retain_ms=RETAIN_MS)
    name = recycle(world)
    world.clock.advance_ms(RETAIN_MS + 1)
    world.faults.crash_label = f"after rename {name}"
    with pytest.raises(CrashError):
        purge(world)
    world.start()
    (aside,) = world.archived()
    assert aside.startswith(ASIDE_PREFIX)
    assert world.purge.settle() == ()
    assert dispositions(world.purge.plan())[aside] is Disposition.UNKNOWN
    assert set(world.archived()) == {aside}
    world.clock.advance_ms(LEASE_MS + 1)
    assert world.purge.settle() == (name,)
    assert set(world.archived()) == {name}
    assert purge(world).deleted == (name,)


def test_a_file_moved_aside_that_nobody_knows_lives_its_retention(world: ArchiveWorld) -> None:
    path = hives(world, f"{ASIDE_PREFIX}{'0' * 32}-gone")
    world.clock.advance_ms(RETAIN_MS)
    purge(world)
    assert path.exists()
    world.clock.advance_ms(1)
    purge(world)
    assert not path.exists()


# -- files without a row: Hive's, and those of a cmroot that was moved


def hold(world: ArchiveWorld, database: str, table: str | None = None, **given: int) -> None:
    world.store.put_pin(
        Pin(holder=f"hold:{database}.{table}", kind=PinKind.HOLD, reason="", created_at_ms=0,
            database=database, table=table, **given)
    )  # fmt: skip


def test_a_file_of_hive_is_held_by_the_place_that_it_came_from(tmp_path: Path) -> None:
    world = ArchiveWorld(tmp_path, retain_ms=RETAIN_MS, volume_class=AttributedVolume)
    origins = {
        "a": "hdfs://ns/wh/sales.db/orders/delta_1_1/a",
        "b": "hdfs://ns/wh/sales.db/items/p=1/b",
        "c": "hdfs://ns/wh/other.db/orders/c",
        "d": "hdfs://ns/external/orders/d",
        "e": None,
    }
    names = {base: name_of(base, b"rows") for base in origins}
    for base, name in names.items():
        hives(world, name)
        if origins[base] is not None:
            AttributedVolume.origins[str(world.cmroot / name)] = str(origins[base])
    world.clock.advance_ms(RETAIN_MS + 1)
    hold(world, "sales", "orders")
    # What cannot be told may be of the table that is held.
    kept = {Disposition.PINNED: {"a", "d", "e"}, Disposition.DELETE: {"b", "c"}}
    plan = world.purge.plan()
    assert {
        disposition: {base for base in names if dispositions(plan)[names[base]] is disposition}
        for disposition in kept
    } == kept
    assert set(world.purge.run(plan).deleted) == {names["b"], names["c"]}
    overridden = world.purge.plan(overridden=["hold:sales.orders"])
    assert {one.disposition for one in overridden.decisions} == {Disposition.DELETE}


def test_a_moved_cmroot_keeps_what_a_policy_holds(world: ArchiveWorld) -> None:
    name = recycle(world)
    moved = world.folder / "cmroot2"
    world.cmroot.rename(moved)
    world.cmroot = moved
    world.config = type(world.config)(cmroot=str(moved), retain_ms=RETAIN_MS)
    world.start()
    world.clock.advance_ms(RETAIN_MS + 1)
    hold(world, "db", archived_since_ms=START_MS + 1)
    assert dispositions(world.purge.plan()) == {name: Disposition.DELETE}
    hold(world, "db", archived_since_ms=START_MS)
    assert dispositions(world.purge.plan()) == {name: Disposition.PINNED}


# -- the clock

YEAR_MS = 365 * DAY_MS


def test_a_clock_a_year_ahead_purges_nothing(world: ArchiveWorld) -> None:
    name = recycle(world)
    purge(world)
    world.clock.set_back_ms(-YEAR_MS)
    plan = world.purge.plan()
    assert re.fullmatch(
        "1 file stays that may be expired: 364 d 0 h do not count, as nothing is known to have "
        "happened from 2023-11-14 22:13 UTC to 2024-11-13 22:13 UTC: either nobody was here, or "
        "the clock is ahead",
        plan.doubt,
    )
    assert world.purge.run(plan).deleted == ()
    # Nor the next time: that a purge ran is no sign that the time is right.
    assert purge(world).deleted == ()
    assert world.purge.run(world.purge.plan(is_clock_trusted=True)).deleted == (name,)


def test_a_clock_a_year_back_does_not_make_files_older(world: ArchiveWorld) -> None:
    purge(world)
    world.clock.set_back_ms(YEAR_MS)
    name = recycle(world)
    world.clock.set_back_ms(-YEAR_MS - 60_000)
    assert purge(world).deleted == ()
    assert set(world.archived()) == {name}
    world.clock.advance_ms(RETAIN_MS)
    assert purge(world).deleted == (name,)


def test_the_clock_of_the_database_is_believed(world: ArchiveWorld) -> None:
    world.store.store_ms = START_MS
    world.clock.set_back_ms(YEAR_MS)
    name = recycle(world)
    world.clock.set_back_ms(-YEAR_MS)
    assert world.store.entries(world.archive.cmroot.uri)[name].archived_at_ms == START_MS
    world.clock.advance_ms(RETAIN_MS + 1)
    with pytest.raises(ClockDoubtError, match="10 d 0 h ahead of the database's"):
        purge(world)
    assert set(world.archived()) == {name}
    world.store.store_ms = world.clock.now_ms()
    assert purge(world).deleted == (name,)
