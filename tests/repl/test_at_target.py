"""What of a dump the target has: what explains a file's absence is no loss."""

from __future__ import annotations

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.model.compaction import CompactionType
from hms_bridge.model.ids import EventId
from hms_bridge.model.target import Target
from hms_bridge.repl.at_target import (
    AtTarget,
    FoundPlace,
    Progress,
    TargetCheck,
    TargetReport,
    judge_absent,
)
from hms_bridge.repl.format.layout import DumpPaths
from hms_bridge.repl.format.reader import DumpReader
from hms_bridge.repl.format.untrusted import DumpedFile, DumpRules
from hms_bridge.repl.format.verify import NamedFile, verify_dump
from hms_bridge.repl.handover.own_part import Access, set_access
from tests.support.repl_world import ReplWorld


def check(world: ReplWorld, directory: str | None, **options) -> TargetReport:
    assert directory is not None
    reader = DumpReader(world.resolve, DumpPaths(directory), DumpRules())
    report = verify_dump(world.resolve, directory)
    return TargetCheck(world.target, world.resolve, "dst", **options).run(reader, report)


def states(report: TargetReport) -> set[AtTarget]:
    return {file.state for file in report.files}


def replica_files(world: ReplWorld, table: str) -> list:
    found = world.replica.warehouse.rglob("bucket_*")
    return sorted(path for path in found if path.is_file() and f"/{table}/" in str(path))


def test_before_and_after_a_load(busy_world: ReplWorld) -> None:
    world = busy_world
    dump = world.dump().directory
    before = check(world, dump)
    assert (states(before), before.stands_at, before.exit_code) == ({AtTarget.TO_COPY}, None, 0)
    assert before.bytes_to_copy == before.verified.size_bytes > 0
    world.load()
    after = check(world, dump)
    assert (states(after), after.exit_code, after.bytes_to_copy) == ({AtTarget.THERE}, 0, 0)
    assert str(after.stands_at) == world.last_event()


def test_an_event_that_the_target_has_not_come_to(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    world.insert("t", (10, "j"))
    dump = world.dump().directory
    assert states(check(world, dump)) == {AtTarget.TO_COPY}
    world.load()
    assert states(check(world, dump)) == {AtTarget.THERE}


def test_what_a_compaction_of_the_replica_merged(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    world.insert("t", (10, "j"))
    dump, _ = world.replicate()
    set_access(world.target, "dst", Access.WRITES)
    world.replica.compact("t", CompactionType.MAJOR)
    world.replica.clean()
    found = check(world, dump.directory)
    assert (states(found), found.exit_code) == ({AtTarget.MERGED}, 0)


def test_a_file_that_the_target_lost_or_somebody_changed(busy_world: ReplWorld) -> None:
    world = busy_world
    dump, _ = world.replicate()
    first, *_ = replica_files(world, "t")
    content = first.read_bytes()
    first.write_bytes(content[:-1] + b"?")
    other = check(world, dump.directory)
    assert (other.count(AtTarget.OTHER), other.exit_code) == (1, 2)
    assert check(world, dump.directory, is_quick=True).exit_code == 0
    first.unlink()
    lost = check(world, dump.directory)
    assert (lost.count(AtTarget.LACKING), lost.exit_code) == (1, 2)
    assert lost.lost == ()
    for path in world.warehouse.rglob("bucket_*"):
        path.unlink()
    nowhere = check(world, dump.directory)
    assert (len(nowhere.lost), nowhere.exit_code) == (1, 1)


def test_what_a_later_change_may_have_removed_is_unclear(busy_world: ReplWorld) -> None:
    world = busy_world
    dump = world.dump(is_previous_kept=True).directory
    world.load()
    world.source.drop_table("src", "t")
    world.dump(is_previous_kept=True)
    world.load()
    found = check(world, dump)
    assert (states(found), found.exit_code) == ({AtTarget.UNCLEAR, AtTarget.THERE}, 3)


def named(directory: str, event: int | None) -> NamedFile:
    file = DumpedFile(
        uri=f"/w/t/{directory}/bucket_00000",
        checksum=None,
        cmroot=None,
        sub_directory=directory,
        source_directory=directory,
    )
    event_id = None if event is None else EventId(event)
    return NamedFile(file=file, target=Target("src", "t"), event_id=event_id)


def place(*directories: str, is_transactional: bool = True) -> FoundPlace:
    return FoundPlace(
        root=FsspecResolver()("/replica/t"),
        is_transactional=is_transactional,
        sizes={f"{name}/bucket_00000": 1 for name in directories},
    )


NOW = Progress(stands_at=EventId(30), dump_ends_at=EventId(30), last_removal=EventId(20))
LATER = Progress(stands_at=EventId(31), dump_ends_at=EventId(30))
HALF = Progress(stands_at=EventId(30), dump_ends_at=EventId(30), is_whole_there=False)
INSERT = "delta_0000003_0000003_0000"


@pytest.mark.parametrize(
    ("directory", "event", "found", "progress", "state"),
    [
        (INSERT, 25, place(), NOW, AtTarget.LACKING),
        (INSERT, 15, place(), NOW, AtTarget.UNCLEAR),
        (INSERT, None, place(), NOW, AtTarget.LACKING),
        (INSERT, None, place(), HALF, AtTarget.TO_COPY),
        (INSERT, 31, place(), NOW, AtTarget.TO_COPY),
        (INSERT, 25, place(), LATER, AtTarget.UNCLEAR),
        (INSERT, 25, place("base_0000003_v0000009"), NOW, AtTarget.MERGED),
        (INSERT, 25, place("base_0000002"), NOW, AtTarget.LACKING),
        (INSERT, 25, place("delta_0000002_0000004_v0000009"), NOW, AtTarget.MERGED),
        (INSERT, 25, place("delta_0000004_0000005_v0000009"), NOW, AtTarget.LACKING),
        (INSERT, 25, place("delete_delta_0000002_0000004_v0000009"), NOW, AtTarget.LACKING),
        (INSERT, 25, place(INSERT), NOW, AtTarget.LACKING),
        ("base_0000003", 25, place("delta_0000001_0000009"), NOW, AtTarget.LACKING),
        ("", 25, place("base_0000003"), NOW, AtTarget.MERGED),
        ("", 25, place("delta_0000003_0000003"), NOW, AtTarget.LACKING),
        ("", 25, place("base_0000003", is_transactional=False), NOW, AtTarget.LACKING),
        (INSERT, 25, FoundPlace(root=None, why="no table"), NOW, AtTarget.UNCLEAR),
    ],
)  # fmt: skip
def test_why_a_file_is_absent(directory, event, found, progress, state) -> None:
    assert judge_absent(named(directory, event), found, progress).state is state
