"""Two users of one group on local files: ours dumps, a real Hive of the other one loads."""

from __future__ import annotations

import grp
import json
import os
import pwd
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_bridge.model.compaction import CompactionType
from integration.referees.hive42 import Hive42
from integration.referees.hive_schema import HiveSchemas
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import Workplace, unprivileged_user
from tests.support.repl_world import ReplWorld

STRANGER = "daemon"


@pytest.fixture
def umask() -> Iterator[None]:
    """As docs/howto/cluster.md has it for two users of one group."""
    before = os.umask(0o002)
    yield
    os.umask(before)


@pytest.fixture
def shared(workplace: Workplace) -> Path:
    """A folder for its group alone."""
    account = unprivileged_user()
    folder = workplace.folder("two-users")
    os.chown(folder, os.getuid(), pwd.getpwnam(account).pw_gid if account else os.getgid())
    folder.chmod(0o770)
    return folder


def _rows(world: ReplWorld) -> list[tuple[object, ...]]:
    return sorted((*row["row__id"], str(row["id"]), row["v"]) for row in world.rows("t"))


def _may_read(user: str, folder: Path) -> bool:
    group = pwd.getpwnam(user).pw_gid
    identity = ["setpriv", "--reuid", user, "--regid", str(group), "--clear-groups"]
    found = subprocess.run([*identity, "find", str(folder)], capture_output=True, check=False)
    return found.returncode == 0


def test_a_hive_of_the_group_loads_what_nobody_else_may_read(
    workplace: Workplace, postgresql: PostgreSql, shared: Path, umask: None
) -> None:
    world = ReplWorld(shared)
    world.create_table("t")
    world.insert("t", (1, "a"), (2, "b"))
    hive = Hive42(
        workplace,
        HiveSchemas(postgresql).database("4.2.0", "of_group"),
        name="hive-4.2.0-of-group",
        account=unprivileged_user(),
    )
    made_places = (world.repl_root, world.cmroot, world.path("t"))
    load = f"repl load src into dst with('hive.repl.rootdir'='file://{world.repl_root}')"
    try:
        for step in range(2):
            world.dump(has_checksums=False)
            hive.main.sql(load)
            loaded = hive.main.sql("select row__id, id, v from dst.t")
            rows = sorted((*json.loads(row[0]).values(), *row[1:]) for row in loaded)
            assert rows == _rows(world)
            if not step:
                world.insert("t", (3, "c"))
                world.compact("t", CompactionType.MAJOR)
    finally:
        hive.stop()
        world.close()
    group = grp.getgrgid(shared.stat().st_gid).gr_name
    for place in made_places:
        for made in (place, *place.rglob("*")):
            assert made.group() == group, made
            if made.stat().st_uid == os.getuid():  # not what Hive wrote there when it had loaded
                assert made.stat().st_mode & 0o007 == 0, made
        if os.getuid() == 0:
            assert not _may_read(STRANGER, place)
