"""docs/runbooks.md, typed as it stands, block by block, while both sites are written to."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import ArchiveSettings
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Database
from tests.support.databases import sqlite_file
from tests.support.documents import blocks
from tests.support.golden import CHECKOUT
from tests.support.program import command, process_environment
from tests.support.world import World

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]

PAGE = CHECKOUT / "docs" / "runbooks.md"


class Runbook:
    """Both sites, and a shell with the page's variables."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        program = folder / "bin" / "hms-bridge"
        program.write_text(f'#!/bin/sh\nexec {" ".join(command())} "$@"\n')
        program.chmod(0o755)
        self.main, self.dr = self._site("main"), self._site("dr")
        self.main.metastore.create_database(Database(name="sales"))
        self.texts = {block.info: block.text for block in blocks(PAGE)}
        self.environment = process_environment(
            {
                "PATH": f"{folder}/bin:{os.environ['PATH']}",
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
        assert done.returncode == (1 if info.endswith(" fails") else 0), (info, printed)
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
def runbook(fast_folder: Path) -> Iterator[Runbook]:
    made = Runbook(fast_folder)
    made.main.create_table("orders")
    made.main.insert("orders", (1, "tea"), (2, "salt"))
    made.types("sh begin")
    yield made
    made.main.close()
    made.dr.close()


def ids(world: World) -> list[int]:
    return [row["id"] for row in world.rows("orders")]


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
    runbook.types("sh failback-3")
    assert "replicated" in runbook.types("sh failback-4")
    runbook.assert_same()
    assert ids(runbook.main) == [1, 2, 4]


def test_every_block_of_the_page_is_typed(runbook: Runbook) -> None:
    typed = {line for line in Path(__file__).read_text().splitlines() if 'types("sh ' in line}
    for info in runbook.texts:
        assert info in ("", "sh before") or any(f'"{info}"' in line for line in typed), info
