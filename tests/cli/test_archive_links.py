"""An archive that an administrator moved to another disk, with a link in its place: what
'repl dump' takes, every other verb takes."""

from __future__ import annotations

import shutil

import pytest

from tests.support.busy_metastore import BusyMetastore

OLD = ("--set", "hive.repl.cm.retain=1ms")


@pytest.fixture
def moved(busy: BusyMetastore) -> BusyMetastore:
    there = busy.program.folder / "other disk"
    shutil.move(busy.program.cmroot, there)
    busy.program.cmroot.symlink_to(there)
    return busy


def test_what_is_in_it_is_listed_kept_and_purged(moved: BusyMetastore) -> None:
    program = moved.program
    names = {row["name"] for row in program.ok("cm", "ls", "--format", "json").json}
    assert len(names) == 11
    assert {row["state"] for row in program.ok("cm", "pins", "--format", "json").json} == {
        "waiting",
        None,
    }
    program.ok("cm", "fsck", "--content")
    program.ok("repl", "dump", "sales", "--dry-run")
    holders = [row["holder"] for row in program.ok("cm", "pins", "--format", "json").json]
    program.ok("cm", "release", *holders)
    purged = program.ok("cm", "purge", *OLD, "--format", "json").json
    assert {row["what"] for row in purged} == {"deleted"}
    assert program.cmroot.is_symlink()
    assert not {path.name for path in program.cmroot.iterdir()} & names


def test_a_cleaner_archives_into_it(moved: BusyMetastore) -> None:
    """I4: where it did not, what was compacted would stay for ever."""
    there = moved.program.folder / "other disk"
    before = {path.name for path in there.iterdir()}
    moved.program.ok("cleaner", "run")
    assert {path.name for path in there.iterdir()} > before


@pytest.mark.parametrize("verb", [("cm", "ls"), ("cm", "purge"), ("repl", "dump", "sales")])
def test_a_disk_that_is_not_mounted_is_no_empty_archive(
    moved: BusyMetastore, verb: tuple[str, ...]
) -> None:
    (moved.program.folder / "other disk").rename(moved.program.folder / "elsewhere")
    answer = moved.program.run(*verb)
    assert answer.exit_code == 1
    assert f"file:{moved.program.cmroot} " in answer.err
    assert "is a link that leads nowhere" in answer.err
