"""`cm fsck`: manifest and archive are compared both ways, and no repair loses anything."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path

import pytest

from changemanager.aside import aside_name
from changemanager.checksum import composite_checksum, plain_checksum
from changemanager.fsck import FindingKind, Fsck
from changemanager.manifest import LEASE_MS, EntryState, Pin, PinKind
from changemanager.recycle import RecycleKind
from changemanager.retention import Disposition
from changemanager.uri import archive_name
from tests.support.archive_manifest import InMemoryManifest
from tests.support.archive_world import ArchiveWorld, context
from tests.support.faults import CrashError
from tests.support.simulated_clock import DAY_MS, START_MS

RETAIN_MS = 10 * DAY_MS


@pytest.fixture
def world(tmp_path: Path) -> ArchiveWorld:
    return ArchiveWorld(tmp_path, retain_ms=RETAIN_MS)


def name_of(base: str, content: bytes = b"rows") -> str:
    return archive_name(base, composite_checksum(io.BytesIO(content)))


def recycle(world: ArchiveWorld, base: str, content: bytes = b"rows") -> str:
    path = world.write(f"db.db/t/d/{base}", content)
    world.archive.recycle(
        str(path), RecycleKind.MOVE, is_purge=True, root=str(world.warehouse), context=context()
    )
    path.unlink(missing_ok=True)
    return name_of(base, content)


def fsck(world: ArchiveWorld) -> Fsck:
    return Fsck(world.archive, world.manifest, world.clock)


def kinds(world: ArchiveWorld, **given: bool) -> dict[str, FindingKind]:
    return {one.name: one.kind for one in fsck(world).plan(**given)}


def repaired(world: ArchiveWorld) -> set[str]:
    files = world.archived()
    job = fsck(world)
    mended = {one.name for one in job.repair(job.plan())}
    assert set(world.archived().values()) >= set(files.values())
    return mended


def entry(world: ArchiveWorld, name: str):  # type: ignore[no-untyped-def]
    return world.store.entries(world.archive.cmroot.uri, [name]).get(name)


def test_what_agrees_is_not_mentioned(world: ArchiveWorld) -> None:
    recycle(world, "a")
    assert kinds(world, is_content_read=True) == {}
    assert world.faults.count > 0
    count = world.faults.count
    fsck(world).plan()
    assert world.faults.count == count  # a look changes nothing


def test_a_lost_manifest_is_rebuilt(world: ArchiveWorld) -> None:
    name, other = recycle(world, "a"), recycle(world, "b", b"2")
    before = entry(world, name)
    world.store = InMemoryManifest()
    world.start()
    assert kinds(world) == {name: FindingKind.NO_ROW, other: FindingKind.NO_ROW}
    assert repaired(world) == {name, other}
    rebuilt = entry(world, name)
    assert replace(rebuilt, origins=()) == replace(before, origins=())
    if world.archive.cmroot.volume.keeps_attributes(str(world.cmroot)):
        (origin,) = rebuilt.origins
        assert (origin.uri, origin.directory) == (before.origins[0].uri, "d")
        assert (origin.context.database, origin.context.table) == ("db", "t")
    assert kinds(world) == {}
    # Its retention goes on as it was.
    world.clock.advance_ms(RETAIN_MS)
    assert world.purge.plan().removals == ()
    world.clock.advance_ms(1)
    assert {one.disposition for one in world.purge.plan().removals} == {Disposition.DELETE}


def test_a_moved_archive_takes_its_rows_along(world: ArchiveWorld) -> None:
    name, left = recycle(world, "a"), recycle(world, "b")
    before, old_root = entry(world, name), world.archive.cmroot.uri
    moved = world.folder / "cmroot2"
    moved.mkdir()
    (world.cmroot / name).rename(moved / name)
    # A file that is in both places belongs to both.
    (moved / left).write_bytes(b"rows")
    world.config = type(world.config)(cmroot=str(moved), retain_ms=RETAIN_MS)
    world.start()
    assert kinds(world) == {name: FindingKind.MOVED, left: FindingKind.NO_ROW}
    world.cmroot = moved
    assert repaired(world) == {name, left}
    assert entry(world, name) == replace(before, cmroot=world.archive.cmroot.uri)
    assert set(world.store.entries(old_root)) == {left}


def test_a_row_without_a_file_is_history(world: ArchiveWorld) -> None:
    name, held = recycle(world, "a"), recycle(world, "b")
    for one in (name, held):
        (world.cmroot / one).unlink()
    world.store.put_pin(
        Pin(holder="dump:1", kind=PinKind.DUMP, reason="", created_at_ms=0, names=frozenset({held}))
    )
    found = {one.name: one for one in fsck(world).plan()}
    assert {one.kind for one in found.values()} == {FindingKind.NO_FILE}
    assert found[held].detail == "still needed by dump:1"
    assert repaired(world) == {name, held}
    assert entry(world, name).state is EntryState.PURGED
    recycle(world, "a")
    assert kinds(world) == {}


@pytest.mark.parametrize("label", ["after reserve", "before record_archived"])
def test_an_archiving_that_died(tmp_path: Path, label: str) -> None:
    world = ArchiveWorld(tmp_path, retain_ms=RETAIN_MS)
    world.faults.crash_label = label
    with pytest.raises(CrashError):
        recycle(world, "a")
    world.start()
    name = name_of("a")
    is_there = label == "before record_archived"
    expected = FindingKind.HALF if is_there else FindingKind.WITHDRAWN
    assert kinds(world) == {name: expected}
    assert repaired(world) == {name}
    assert (entry(world, name) is None) is not is_there
    assert kinds(world) == {}


def test_what_is_being_archived_or_purged_is_left_alone(world: ArchiveWorld) -> None:
    victim = world.write("t/delta_1_1/f", b"rows")
    world.faults.crash_label = "before record_archived"
    with pytest.raises(CrashError):
        world.protocol.remove(
            str(victim.parent), root=str(world.warehouse), context=context(), is_archived=True
        )
    world.start()
    assert kinds(world) == {}
    name = recycle(world, "a")
    world.store.claim_purge(
        world.archive.cmroot.uri, name, seen_archived_at_ms=START_MS, overridden_holders=(),
        owner="one", now_ms=START_MS,
    )  # fmt: skip
    assert kinds(world) == {}
    world.clock.advance_ms(LEASE_MS + 1)
    assert kinds(world) == {name: FindingKind.INTERRUPTED}
    assert repaired(world) == {name}
    assert entry(world, name).state is EntryState.ARCHIVED


def test_a_file_moved_aside_is_put_back(world: ArchiveWorld) -> None:
    name = recycle(world, "a")
    aside = aside_name(name, "dead")
    (world.cmroot / name).rename(world.cmroot / aside)
    assert kinds(world) == {aside: FindingKind.INTERRUPTED}
    job = fsck(world)
    job.repair(job.plan())
    assert set(world.archived()) == {name}
    assert entry(world, name).state is EntryState.ARCHIVED
    assert kinds(world) == {}


def test_damage_and_strangers_are_for_people(world: ArchiveWorld) -> None:
    short, changed = recycle(world, "a", b"12"), recycle(world, "b", b"12")
    (world.cmroot / short).write_bytes(b"1")
    (world.cmroot / changed).write_bytes(b"21")
    os.utime(world.cmroot / changed, (START_MS / 1000, START_MS / 1000))
    weak = f"backup_{plain_checksum(io.BytesIO(b'other'))}"
    for name in (weak, "notes.txt", "x_null"):
        (world.cmroot / name).write_bytes(b"rows")
    (world.cmroot / "directory").mkdir()
    expected = {
        short: FindingKind.DAMAGED, weak: FindingKind.DAMAGED, "notes.txt": FindingKind.UNKNOWN,
        "x_null": FindingKind.UNKNOWN, "directory": FindingKind.UNKNOWN,
    }  # fmt: skip
    assert kinds(world) == expected
    assert kinds(world, is_content_read=True) == expected | {changed: FindingKind.DAMAGED}
    job = fsck(world)
    assert job.repair(job.plan(is_content_read=True)) == ()


def test_times_in_the_future_begin_now(world: ArchiveWorld) -> None:
    year_ms = 365 * DAY_MS
    world.clock.set_back_ms(-year_ms)
    name = recycle(world, "a")
    world.clock.set_back_ms(year_ms)
    assert kinds(world) == {name: FindingKind.FUTURE}
    assert repaired(world) == {name}
    assert entry(world, name).archived_at_ms == START_MS
    assert (world.cmroot / name).stat().st_mtime_ns // 1_000_000 == START_MS


def test_a_clock_that_is_behind_shortens_no_retention(world: ArchiveWorld) -> None:
    name = recycle(world, "a")
    world.store.note_time(START_MS)
    world.clock.advance_ms(-365 * DAY_MS)
    assert kinds(world) == {name: FindingKind.UNKNOWN}
    assert repaired(world) == set()


def test_what_changed_since_the_plan_stays(world: ArchiveWorld) -> None:
    """I10."""
    name = recycle(world, "a")
    (world.cmroot / name).unlink()
    job = fsck(world)
    plan = job.plan()
    world.clock.advance_ms(1)
    recycle(world, "a")
    assert job.repair(plan) == ()
    assert entry(world, name).state is EntryState.ARCHIVED
