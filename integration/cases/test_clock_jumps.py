"""Host and database start with a wrong clock, as after a flat battery: the daemons of `serve
--cleaner` take nothing that a dump waits for, whoever writes meanwhile, and say what to do.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from hive_metastore import ttypes

from changemanager.location import FsspecResolver
from changemanager.uri import archive_name
from hms_bridge.clock import SystemClock
from integration.referees import debian
from integration.referees.ours import PROGRAM, OurProgram, OurServer, environment_of_ours
from integration.referees.outside import thrift_client
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import Workplace
from tests.support.databases import sqlite_file
from tests.support.repl_world import ReplWorld

SETTINGS = {"hive.repl.cm.interval": "1s", "hive.compactor.cleaner.run.interval": "1s"}
DAY_MS = 86_400_000
STAY = "files stay that may be expired"
TURNS = [("postgresql", "-1h"), ("sqlite", "+365d")]


class RealClock(SystemClock):
    """The time of the machine, which nobody moves."""

    def advance_ms(self, milliseconds: int) -> None:
        del milliseconds


@dataclass
class Place:
    """A source with a dump that waits, whose files are in the archive alone."""

    workplace: Workplace
    url: str
    folder: Path
    restart_database: Callable[[str], None]

    def settings(self) -> dict[str, str]:
        return {
            **SETTINGS,
            "hive.repl.cmrootdir": str(self.folder / "cmroot"),
            "hive.repl.rootdir": str(self.folder / "repl"),
        }

    def archived(self) -> set[str]:
        return {file.name for file in (self.folder / "cmroot").iterdir()}

    def serve(self, shift: str) -> OurServer:
        return OurServer(
            self.workplace,
            self.url,
            warehouse=self.folder / "source",
            settings=self.settings(),
            environment=debian.other_time(shift),
            arguments=("--cleaner",),
        )

    def words(self, *words: str) -> list[str]:
        given = [word for pair in self.settings().items() for word in ("--set", "=".join(pair))]
        return [*words, "--metastore", self.url, *given]

    def holders(self) -> list[str]:
        pins = self.run("+0", "cm", "pins", "--format", "json").stdout
        return [pin["holder"] for pin in json.loads(pins)]

    def run(self, shift: str, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*PROGRAM, *self.words(*words)],
            env={**environment_of_ours(), **debian.other_time(shift)},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(params=["postgresql", "sqlite"])
def place(request: pytest.FixtureRequest, workplace: Workplace, tmp_path: Path) -> Iterator[Place]:
    own: PostgreSql | None = None
    url = sqlite_file(tmp_path, "source.db3")
    if request.param == "postgresql":
        own = PostgreSql(workplace, is_durable=True)
        url = own.database("clock").sqlalchemy_url
        OurProgram(workplace, url).verb("schema", "init", "--database", url)
    world = ReplWorld(tmp_path, clock=RealClock(), source_url=url)
    world.create_table()
    world.insert("t", (1, "a"))
    world.replicate()
    world.insert("t", (2, "b"))
    world.dump()
    world.metastore.drop_table("src", "t")
    world.metastore.run_housekeeping()
    assert any(name.startswith("bucket_") for name in world.archived())
    world.close()

    def restart_database(shift: str) -> None:
        if own is not None:
            own.stop()
            own.start_again(debian.other_time(shift))

    yield Place(workplace, url, tmp_path, restart_database)
    if own is not None:
        own.stop()


def until(is_so: Callable[[], bool]) -> None:
    """Waits for what a daemon does every second."""
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_daemons_that_start_ahead_take_nothing(place: Place) -> None:
    before, shift = place.archived(), "+40d"
    place.restart_database(shift)
    server = place.serve(shift)
    until(lambda: server.count_in_log(STAY) > 0)
    with thrift_client(server.port) as client:
        client.create_database(ttypes.Database(name="later"))
    seen = server.count_in_log(STAY)
    until(lambda: server.count_in_log(STAY) > seen + 1)
    assert place.archived() == before
    assert server.count_in_log("is given up") == 0
    dry = place.run(shift, "cm", "purge", "--dry-run")
    assert (dry.returncode, dry.stderr.count("'hms-bridge cm clock --trust'")) == (0, 1)
    assert place.run(shift, "cm", "clock").returncode == 1
    # An administrator who says that the clock is right takes the consequences.
    trusted = place.run(shift, "cm", "clock", "--trust")
    assert trusted.returncode == 0, trusted.stderr
    until(lambda: not any(name.startswith("bucket_") for name in place.archived()))
    server.stop()


@pytest.mark.parametrize(("place", "shift"), TURNS, indirect=["place"])
def test_a_clock_that_comes_back_leaves_all_as_it_was(place: Place, shift: str) -> None:
    before = place.archived()
    place.restart_database(shift)
    place.run(shift, "cm", "purge")
    assert place.archived() == before
    place.restart_database("+0")
    purged = place.run("+0", "cm", "purge")
    assert (purged.returncode, place.archived()) == (0, before), purged.stderr
    assert place.run("+0", "cm", "clock").returncode == 0


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_two_purges_at_once_both_end_well(place: Place) -> None:
    cmroot = FsspecResolver()(str(place.folder / "cmroot"))
    old_ms = time.time_ns() // 1_000_000 - 11 * DAY_MS
    for number in range(60):
        file = cmroot.child("written")
        file.volume.write_new(file.path, [b"rows %d" % number])
        file.volume.set_mtime(file.path, old_ms)
        name = archive_name(f"old_{number:05}", file.checksum(), 255)
        file.volume.rename(file.path, cmroot.child(name).path)
    place.run("+0", "cm", "release", *place.holders())
    with ThreadPoolExecutor() as pool:
        purges = list(pool.map(lambda _: place.run("+0", "cm", "purge"), range(2)))
    assert [purge.returncode for purge in purges] == [0, 0], [one.stderr for one in purges]
    assert not any(name.startswith("old_") for name in place.archived())
