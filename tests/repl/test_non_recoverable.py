"""Hive's mark of a failure that no further try ends: who leaves it, what it stops, what ends it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hms_bridge.errors import EventGapError, IncompatibleError, ReplError, SourceFileMissingError
from hms_bridge.model.properties import INCOMPATIBLE, LAST_EVENT
from hms_bridge.repl.dump.discard import DiscardRequest, ReplDiscard
from hms_bridge.repl.dump.plan import DumpKind
from hms_bridge.repl.target_objects import with_parameters
from tests.support.passing import Purged
from tests.support.repl_world import LEASE, ReplWorld


def marks(world: ReplWorld) -> list[Path]:
    return sorted(world.repl_root.glob("*/*/_non_recoverable"))


def dump(world: ReplWorld, **changes):
    dumper, request = world.dumper(), world.dump_request(**changes)
    world.clock.advance_ms(1000)
    with dumper.marking(request):
        return dumper.run(dumper.plan(request))


def load(world: ReplWorld):
    loader = world.loader()
    with loader.marking(world.load_request):
        return loader.run(loader.plan(world.load_request))


def discard(world: ReplWorld) -> None:
    request = DiscardRequest(root=str(world.repl_root), database_name="src", lease=LEASE)
    work = ReplDiscard(world.source, world.resolve, world.clock, world.token, world.source.manifest)
    work.run(work.plan(request))


EVERYTHING = 10**9
"""An event up to which a log is purged."""


def fail_to_dump(world: ReplWorld) -> None:
    world.insert("t", (7, "lost"))
    dumper, request = world.dumper(Purged(world.source, EVERYTHING)), world.dump_request()
    with pytest.raises(EventGapError), dumper.marking(request):
        dumper.plan(request)


def test_lost_events_are_marked_and_stop_dump_and_load(world):
    world.replicate()
    fail_to_dump(world)
    (mark,) = marks(world)
    assert mark.read_text().startswith("40006: events ")
    assert {path.name for path in mark.parent.iterdir()} == {"_non_recoverable", "hive"}
    for verb in (dump, load):
        with pytest.raises(
            ReplError, match=r"_non_recoverable marks .*\(40006: events .*--discard"
        ):
            verb(world)
    assert marks(world) == [mark]


@pytest.mark.parametrize("way", ["by hand", "discard", "bootstrap"])
def test_the_mark_goes_by_hand_with_its_dump_or_with_a_bootstrap(world, way):
    world.replicate()
    fail_to_dump(world)
    if way == "by hand":
        marks(world)[0].unlink()
    elif way == "discard":
        discard(world)
    if way != "bootstrap":
        assert dump(world).kind is DumpKind.INCREMENTAL
        load(world)
        world.assert_same()
        return
    assert dump(world, is_bootstrap_forced=True).kind is DumpKind.BOOTSTRAP
    assert marks(world) == []
    world.target.drop_database("dst", is_cascade=True)
    load(world)
    world.assert_same()


def test_a_mark_of_a_hive_on_local_disks_goes_with_its_dump(world):
    """Hadoop writes a checksum beside it. What the refusal says to type is what ends the dump."""
    world.replicate()
    world.insert("t", (7, "new"))
    dump(world)
    (directory,) = world.repl_root.glob("*/*")
    (directory / "_non_recoverable").write_text("40007: Load path not valid")
    (directory / "._non_recoverable.crc").write_bytes(b"crc")
    end = f"hms-bridge repl dump src --root file:{world.repl_root} --discard {directory.name}"
    with pytest.raises(ReplError, match=re.escape(f"'{end}'")):
        load(world)
    discard(world)
    assert not directory.exists()
    assert dump(world).kind is DumpKind.INCREMENTAL
    load(world)
    world.assert_same()


def test_a_replica_that_cannot_follow_marks_the_dump(world):
    world.replicate()
    world.insert("t", (2, "b"))
    dump(world)
    replica = world.target.get_database("dst")
    world.target.alter_database("dst", with_parameters(replica, {INCOMPATIBLE: "true"}))
    with pytest.raises(IncompatibleError):
        load(world)
    (mark,) = marks(world)
    assert mark.read_text().startswith("40018: database dst is marked")
    assert (mark.parent / "hive" / "_finished_dump").exists()
    with pytest.raises(ReplError, match="40018"):
        dump(world)


def test_a_dump_that_another_replica_has_loaded_is_not_marked(world):
    world.replicate()
    before = world.target.get_database("dst")
    world.insert("t", (2, "b"))
    world.replicate()
    world.insert("t", (3, "c"))
    dump(world)
    load(world)
    behind = with_parameters(
        world.target.get_database("dst"), {LAST_EVENT: before.parameters[LAST_EVENT]}
    )
    world.target.alter_database("dst", behind)
    with pytest.raises(EventGapError):
        load(world)
    assert marks(world) == []


def test_what_another_try_may_end_and_a_plan_leave_no_mark(world):
    """A lost file may be brought back: Hive's 20016 is none of these, either."""
    world.replicate()
    world.insert("t", (2, "b"))
    directory = str(dump(world).directory)
    lists = Path(directory.removeprefix("file:")).rglob("_files")
    (listed,) = [path for path in lists if path.read_text()]
    Path(listed.read_text().partition("#")[0].removeprefix("file:")).unlink()
    with pytest.raises(SourceFileMissingError):
        load(world)
    discard(world)
    with pytest.raises(EventGapError):
        world.dumper(Purged(world.source, EVERYTHING)).plan(world.dump_request())
    assert marks(world) == []
