"""A dump that lost something on its way is refused before the replica is touched, or loaded whole.

Each text of a dump of ours is lost, cut, emptied and changed in turn (I11); the manifest is read
by coreutils too, which had no part in it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.errors import DumpIncompleteError, NoSuchObjectError, ReplError
from hms_bridge.repl.format.manifest import DumpManifest, FinishMark
from hms_bridge.repl.format.verify import verify_dump


@pytest.fixture
def world(empty_world):
    empty_world.create_table("t")
    empty_world.insert("t", (1, "a"), (2, "b"))
    empty_world.create_table("part", is_partitioned=True)
    empty_world.add_partition("part", "1")
    empty_world.insert("part", (1, "x"), partition="p=1")
    return empty_world


def hive(report) -> Path:
    return Path(report.directory.removeprefix("file:")) / "hive"


def texts(place: Path) -> list[Path]:
    return sorted(path for path in place.rglob("*") if path.is_file())


def damages(content: bytes):
    yield None
    yield content + b"\n"
    if content:
        yield b""
        yield content[:-1]
        yield content[: content.rfind(b"\n", 0, -1) + 1] or b"x"


def untouched(world, place: Path, before: str | None) -> None:
    """The load is refused, and so is verify; the target stands where it stood."""
    with pytest.raises(ReplError) as caught:
        world.load()
    assert str(place) in str(caught.value), caught.value
    if before is None:
        with pytest.raises(NoSuchObjectError):
            world.target.get_database("dst")
    else:
        assert world.last_event() == before


def every_damage_is_noticed(world, place: Path, before: str | None) -> int:
    count = 0
    for path in texts(place):
        content = path.read_bytes()
        if path.name == "_finished_dump":
            continue
        for damaged in damages(content):
            if damaged is None:
                path.unlink()
            else:
                path.write_bytes(damaged)
            untouched(world, place, before)
            with pytest.raises(ReplError):
                verify_dump(FsspecResolver(), str(place.parent))
            path.write_bytes(content)
            count += 1
    return count


def test_a_bootstrap_dump_that_lost_anything_is_refused(world):
    place = hive(world.dump())
    assert every_damage_is_noticed(world, place, None) > 20
    world.load()
    world.assert_same()


def test_an_incremental_dump_that_lost_anything_is_refused(world):
    world.replicate()
    world.insert("t", (3, "c"))
    place = hive(world.dump())
    assert every_damage_is_noticed(world, place, world.last_event()) > 25
    world.load()
    world.assert_same()


def test_a_table_lost_in_a_copy_of_a_bootstrap_is_noticed(world):
    place = hive(world.dump())
    for folder in ("metadata", "data"):
        shutil.rmtree(place / folder / "src" / "t")
    untouched(world, place, None)


def test_a_table_of_another_dump_is_noticed(world):
    """Two dumps copied to one directory."""
    place = hive(world.dump())
    for folder in ("metadata", "data"):
        shutil.copytree(place / folder / "src" / "t", place / folder / "src" / "u")
    untouched(world, place, None)


def test_what_is_changed_after_the_plan_is_noticed(world):
    place = hive(world.dump())
    loader = world.loader()
    plan = loader.plan(world.load_request)
    (place / "data" / "src" / "t" / "_files").write_text("")
    with pytest.raises(ReplError, match="cut or changed"):
        loader.run(plan)


def test_an_empty_finish_marker_does_not_hide_the_manifest(world):
    """Markers are made anew by hand, and by tools that copy names only."""
    place = hive(world.dump())
    (place / "_finished_dump").write_text("")
    (place / "data" / "src" / "t" / "_files").write_text("")
    untouched(world, place, None)


@pytest.mark.parametrize("text", ["x", "{}", '{"manifest":"x","timeMs":1}', '{"manifest":null}'])
def test_a_damaged_finish_marker_is_refused(world, text):
    place = hive(world.dump())
    (place / "_finished_dump").write_text(text)
    untouched(world, place, None)


def test_coreutils_checks_a_manifest(world):
    world.replicate()
    world.insert("t", (3, "c"))
    place = hive(world.dump())
    command = ["sha256sum", "--check", "--strict", "--quiet", "_hms_bridge_manifest"]
    assert subprocess.run(command, cwd=place, check=False).returncode == 0
    told = DumpManifest.parse((place / "_hms_bridge_manifest").read_text(), "m")
    rest = {"_finished_dump", "_hms_bridge_manifest"}
    assert {str(one.relative_to(place)) for one in texts(place)} - rest == set(told.digests)
    lists = [one for one in texts(place) if one.name == "_files"]
    assert told.reference_count == sum(len(one.read_text().splitlines()) for one in lists) == 1


@pytest.mark.parametrize(
    "text", ["", "# hms-bridge dump manifest 1\n", "# hms-bridge dump manifest 2\n# 0 texts, 0\n"]
)
def test_what_is_no_manifest_is_refused(text):
    with pytest.raises(ReplError, match="no manifest"):
        DumpManifest.parse(text, "m")


def test_dumps_copied_without_their_times_keep_their_order(world):
    """The newest is the one that was finished last, not the one that was copied last."""
    world.dump()
    world.load()
    world.insert("t", (3, "c"))
    newer = hive(world.dump(is_previous_kept=True))
    for path in texts(world.repl_root):
        os.utime(path, (1, 1) if path.is_relative_to(newer) else (2_000_000_000, 2_000_000_000))
    world.load()
    world.assert_same()
    assert world.replica.rows("t")[-1]["id"] == 3


def test_a_clock_that_steps_back_does_not_change_the_order(world):
    world.dump()
    world.load()
    world.insert("t", (3, "c"))
    world.clock.set_back_ms(400 * 86_400_000)
    world.dump(is_previous_kept=True)
    world.load()
    world.assert_same()


def test_a_mark_of_hive_says_nothing():
    assert FinishMark.parse("", "m") == FinishMark()
    mark = FinishMark(manifest_digest="0" * 64, time_ms=7)
    assert FinishMark.parse(mark.format(), "m") == mark


def test_a_manifest_lost_with_its_marker_kept_is_noticed(world):
    place = hive(world.dump())
    (place / "_hms_bridge_manifest").unlink()
    with pytest.raises(DumpIncompleteError, match="which the dump had when it was finished"):
        world.load()


@pytest.mark.parametrize("value", ["a\u2028b", "a\u0085b", "a\u2029b", "a\x0bb\x1cc"])
def test_names_with_characters_that_end_a_line_elsewhere(world, value):
    """Unicode has more ends of lines than a text file; Hive escapes those below U+0020 only."""
    world.add_partition("part", value)
    name = next(name for name in world.source.get_partition_names("src", "part") if name != "p=1")
    world.insert("part", (7, "y"), partition=name)
    world.replicate()
    world.assert_same()
