"""docs/runbooks.md on two sites of ours: its blocks are typed as they stand, or killed half-way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from integration.referees.cluster import OurSide
from integration.referees.hdfs import Hdfs
from integration.referees.ours import CHECKOUT
from integration.referees.site import write_site
from integration.story.page import Typist
from integration.story.sides import held_leases, property_of
from tests.support.documents import blocks

PAGE = CHECKOUT / "docs" / "runbooks.md"
_EXIT_CODES = {"fails": 1, "differs": 2}
# Of the admin's commands alone: what a killed one held is free after seconds.
_SETTINGS = {"hive.txn.timeout": "3s"}


class Runbook:
    """An admin at dr, who has the page and what its commands need to know of both sites."""

    def __init__(self, folder: Path, hdfs: Hdfs, main: OurSide, dr: OurSide) -> None:
        self.main, self.dr = main, dr
        self._typist = Typist(folder, hdfs, {})
        self._texts = {block.info: block.text for block in blocks(PAGE)}
        # The last ends the part of main, and so the story; like what begins with other troubles
        # it is typed in tests/docs.
        self._typed = {"sh before", "sh apart", "sh outage-2 fails", "sh outage-3"}
        self._typed |= {"sh restored-1", "sh restored-2 fails", "sh restored-3"}
        self._environment = {
            name: value for name, value in dr.environment.items() if name.startswith("HADOOP_")
        }
        site = write_site(folder / "etc" / "hive-site.xml", _SETTINGS)
        self._environment |= {"DUMPS": dr.places.dumps, "HMS_BRIDGE_CONFIG": str(site)}
        for name, side in (("MAIN", main), ("DR", dr)):
            self._environment |= {
                name: side.store.sqlalchemy_url,
                f"{name}_WAREHOUSE": side.places.warehouse,
                f"{name}_ARCHIVE": side.places.cmroot,
            }

    def types(self, info: str, *, without: str = "") -> str:
        """A block of the page, less an option that it says to leave out; what it prints, on both
        streams."""
        code = _EXIT_CODES.get(info.rpartition(" ")[2], 0)
        answer = self._typist.answer(self._block(info, without), self._environment, code)
        self._typed.add(info)
        return answer.out + answer.err

    def is_killed(self, info: str, is_time: Callable[[], bool], *, without: str = "") -> None:
        """Type a block, and kill what runs when it is time."""
        self._typist.kills(self._block(info, without), self._environment, is_time)

    @property
    def untyped(self) -> set[str]:
        """Blocks that nobody typed to their end."""
        return self._texts.keys() - self._typed

    @contextmanager
    def without_main(self) -> Iterator[None]:
        """Nobody reaches main's metastore."""
        admin = self.main.store.beside("postgres")
        admin.execute(f'alter database "{self.main.store.name}" with allow_connections false')
        try:
            yield
        finally:
            admin.execute(f'alter database "{self.main.store.name}" with allow_connections true')

    def _block(self, info: str, without: str) -> str:
        text = self._texts["sh before"] + self._texts[info]
        assert without in text, text
        return text.replace(without, "")


def dumping(side: OurSide) -> Callable[[], bool]:
    """It is time when another dump of this side is at work."""
    return _at_work(side, "repl-dump")


def loading(side: OurSide) -> Callable[[], bool]:
    """It is time when another load into this side is at work."""
    return _at_work(side, "repl-load")


def marked(side: OurSide, database: str, key: str) -> Callable[[], bool]:
    """It is time when the side's database has a property."""
    return lambda: bool(property_of(side, database, key))


def _at_work(side: OurSide, kind: str) -> Callable[[], bool]:
    """A lease of one that was killed counts for nothing."""
    before = held_leases(side, kind)
    return lambda: not held_leases(side, kind) <= before
