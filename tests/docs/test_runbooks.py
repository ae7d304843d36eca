"""docs/runbooks.md, typed as it stands, block by block, while both sites are written to."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import ArchiveSettings
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Database
from tests.support.databases import sqlite_file
from tests.support.documents import blocks
from tests.support.golden import CHECKOUT
from tests.support.program import process_environment
from tests.support.world import World

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]

PAGE = CHECKOUT / "docs" / "runbooks.md"
EXIT_CODES = {"fails": 1, "differs": 2}


class Runbook:
    """Both sites, and a shell with the page's variables."""

    def __init__(self, folder: Path, typed_program: Path) -> None:
        self.folder = folder
        self.main, self.dr = self._site("main"), self._site("dr")
        self.main.metastore.create_database(Database(name="sales"))
        self.texts = {block.info: block.text for block in blocks(PAGE)}
        self.environment = process_environment(
            {
                "PATH": f"{typed_program}:{os.environ['PATH']}",
                "DUMPS": f"{folder}/dumps",
                **{
                    key: value
                    for name, world in (("MAIN", self.main), ("DR", self.dr))
                    for key, value in {
                        name: world.url,
                        f"{name}_WAREHOUSE": str(world.warehouse),
                        f"{name}_ARCHIVE": str(world.cmroot),
                    }.items()
                },
            }
        )

    def _site(self, name: str) -> World:
        below = self.folder / name
        below.mkdir()
        return World(
            below,
            url=sqlite_file(below, "metastore.db"),
            clock=SystemClock(),
            database="sales",
            has_database=False,
            archive=ArchiveSettings(root=str(below / "cmroot")),
        )

    def types(self, info: str) -> str:
        """A block of the page; what it prints, on both streams."""
        done = subprocess.run(
            ["sh", "-e", "-c", self.texts["sh before"] + self.texts[info]],
            cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        printed = done.stdout + done.stderr
        code = EXIT_CODES.get(info.rpartition(" ")[2], 0)
        assert done.returncode == code, (info, printed)
        assert "Traceback" not in printed
        return printed

    def lose_main(self) -> None:
        self._database_of_main.rename(self.folder / "away.db")

    def find_main(self) -> None:
        (self.folder / "away.db").rename(self._database_of_main)

    @property
    def _database_of_main(self) -> Path:
        return self.folder / "main" / "metastore.db"

    def assert_same(self) -> None:
        assert self.dr.metastore.get_tables("sales") == self.main.metastore.get_tables("sales")
        for name in self.main.metastore.get_tables("sales"):
            assert self.dr.rows(name) == self.main.rows(name), name


@pytest.fixture
def runbook(fast_folder: Path, typed_program: Path) -> Iterator[Runbook]:
    made = Runbook(fast_folder, typed_program)
    made.main.create_table("orders")
    made.main.insert("orders", (1, "tea"), (2, "salt"))
    made.types("sh begin")
    made.types("sh cycle")
    made.types("sh keep")
    yield made
    made.main.close()
    made.dr.close()


def ids(world: World) -> list[int]:
    return [row["id"] for row in world.rows("orders")]


def test_a_damaged_replica_and_a_drill(runbook: Runbook) -> None:
    assert "is kept" in runbook.types("sh begin")  # typed again, as after a kill
    (file, *_) = runbook.dr.warehouse.rglob("bucket_*")
    file.unlink()
    assert "orders" in runbook.types("sh repair-1 differs")
    assert "dump with orders whole" in runbook.types("sh repair-2")
    assert ids(runbook.dr) == []
    assert "repaired" in runbook.types("sh repair-3")
    runbook.main.insert("orders", (3, "rice"))
    runbook.types("sh cycle")
    runbook.assert_same()
    assert "equal" in runbook.types("sh drill")
    assert ids(runbook.dr) == [1, 2, 3]


def test_a_planned_switch_and_home_again(runbook: Runbook) -> None:
    runbook.main.insert("orders", (3, "rice"))
    looked = runbook.types("sh switch-1")
    assert "fence the source" in looked
    assert "nothing was changed" in looked
    assert "was not fenced" in runbook.types("sh cancel")
    runbook.types("sh switch-2")
    runbook.dr.insert("orders", (4, "oats"))
    with pytest.raises(MetaError, match="is fenced"):
        runbook.main.insert("orders", (9, "nobody's"))
    # Nothing was named, so the switch is left out.
    runbook.texts["sh failback-3"] = runbook.texts["sh failback-3"].replace(
        " --discard-divergence", ""
    )
    runbook.types("sh failback-3")
    assert "equal" in runbook.types("sh failback-4")
    runbook.assert_same()
    runbook.types("sh home")
    runbook.main.insert("orders", (5, "barley"))
    assert ids(runbook.main) == [1, 2, 3, 4, 5]
    with pytest.raises(MetaError, match="is a replica"):
        runbook.dr.insert("orders", (9, "nobody's"))


def test_a_failover_and_the_way_back(runbook: Runbook) -> None:
    runbook.main.insert("orders", (3, "never replicated"))
    runbook.lose_main()
    assert "cannot be reached" in runbook.types("sh failover-1 fails")
    assert "replica takes its source's place" in runbook.types("sh failover-2")
    runbook.dr.insert("orders", (4, "oats"))
    runbook.find_main()
    assert "its old source is fenced now" in runbook.types("sh failover-4")
    with pytest.raises(MetaError, match="is fenced"):
        runbook.main.insert("orders", (9, "nobody's"))
    assert "orders: 1 commit or change" in runbook.types("sh failback-1 fails")
    assert ids(runbook.main) == [1, 2, 3]
    runbook.types("sh failback-2")
    runbook.types("sh failback-3")
    assert "replicated" in runbook.types("sh failback-4")
    runbook.assert_same()
    assert ids(runbook.main) == [1, 2, 4]


def test_a_replica_that_was_out_of_reach_for_too_long(runbook: Runbook) -> None:
    runbook.main.insert("orders", (3, "rice"))
    assert "kept until" in runbook.types("sh outage-1")
    with closing(sqlite3.connect(runbook.folder / "main" / "metastore.db")) as database, database:
        database.execute("delete from NOTIFICATION_LOG")
    assert "--allow-bootstrap" in runbook.types("sh outage-2 fails")
    assert "repaired" in runbook.types("sh outage-3")
    runbook.assert_same()


def test_mains_metastore_is_restored_from_a_backup(runbook: Runbook) -> None:
    """What it lost with that is at dr, and comes back."""
    place, backup = runbook.folder / "main" / "metastore.db", runbook.folder / "backup.db"
    _copy_database(place, backup)
    runbook.main.insert("orders", (3, "rice"))
    runbook.types("sh cycle")
    _copy_database(backup, place)
    runbook.types("sh restored-1")
    assert "restored from a backup" in runbook.types("sh restored-2 fails")
    assert "equal" in runbook.types("sh restored-3")
    assert ids(runbook.main) == [1, 2, 3]
    runbook.types("sh home")
    runbook.assert_same()


def _copy_database(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


def test_main_is_kept_beside_dr(runbook: Runbook) -> None:
    runbook.lose_main()
    runbook.types("sh failover-2")
    runbook.find_main()
    runbook.types("sh failover-4")
    assert "may be dumped again" in runbook.types("sh apart")
    runbook.main.insert("orders", (3, "main's"))
    runbook.dr.insert("orders", (4, "dr's"))
    assert (ids(runbook.main), ids(runbook.dr)) == ([1, 2, 3], [1, 2, 4])


def test_every_block_of_the_page_is_typed(runbook: Runbook) -> None:
    typed = {line for line in Path(__file__).read_text().splitlines() if 'types("sh ' in line}
    for info in runbook.texts:
        assert info == "sh before" or any(f'"{info}"' in line for line in typed), info
