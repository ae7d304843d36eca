"""Whoever is killed in the middle of a call has done all of it, or nothing (I2).

A database holds what was committed and nothing else, so a kill matters only by the commits that it
comes before. What a real Hive was asked is asked here, in its order: each method that was recorded
is killed in the states that its recording went through.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, event

from hms_bridge.errors import HmsBridgeError
from hms_bridge.server.answers import Answer
from hms_bridge.server.serve import answers_of, offered_names
from tests.support.faults import CrashError
from tests.support.golden_wire import RecordedCall, recorded_calls, request_of
from tests.support.installation import Installation

pytestmark = pytest.mark.golden

_FILES = "what is removed is archived first, each step of which is a row of HMSB_ tables"
GOES_ON = {
    "drop_database": _FILES,
    "drop_partition": _FILES,
    "drop_table": _FILES,
}
"""Methods with more than one transaction, and why: all that Hive's tables say is in the first."""


@dataclass
class Commits:
    """Those that change something: how many there were, and before which one the process dies."""

    count: int = 0
    dies_at: int | None = None

    def on_begin(self, connection: Connection) -> None:
        connection.info[_CHANGES] = _changes(connection)

    def on_commit(self, connection: Connection) -> None:
        if _changes(connection) == connection.info[_CHANGES]:
            return
        if self.count + 1 == self.dies_at:
            raise CrashError(f"before commit {self.dies_at}")
        self.count += 1


_CHANGES = "changes at its begin"


def _changes(connection: Connection) -> int:
    """Rows that it has changed since it was opened."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver.total_changes


@contextmanager
def commits(dies_at: int | None = None) -> Iterator[Commits]:
    """Of whatever is written meanwhile."""
    counted = Commits(dies_at=dies_at)
    event.listen(Engine, "begin", counted.on_begin)
    event.listen(Engine, "commit", counted.on_commit)
    try:
        yield counted
    finally:
        event.remove(Engine, "begin", counted.on_begin)
        event.remove(Engine, "commit", counted.on_commit)


class KilledServer:
    """A metastore whose process is killed, and started again on the same database."""

    def __init__(self, folder: Path) -> None:
        self._world = Installation(folder / "site")
        self._saved = folder / "saved"
        self._answers = self._start()

    def _start(self) -> dict[str, Answer]:
        config = {"hive.metastore.warehouse.dir": str(self._world.warehouse)}
        return answers_of(self._world.metastore, config)

    def ask(self, call: RecordedCall, dies_at: int | None = None) -> int:
        """How many commits it took. Raises CrashError if it was killed."""
        with commits(dies_at) as counted, suppress(HmsBridgeError):  # Hive refused many, too
            self._answers[call.method](request_of(call))
        return counted.count

    def restart(self) -> None:
        self._world.close()
        self._world.start()
        self._answers = self._start()

    def rows(self) -> dict[str, list[str]]:
        """All that another program finds in the database."""
        with closing(sqlite3.connect(self._world.url.removeprefix("sqlite:///"))) as database:
            tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            return {
                table: sorted(map(repr, database.execute(f'SELECT * FROM "{table}"')))
                for (table,) in tables.fetchall()
            }

    def save(self) -> None:
        """The database and all files."""
        self._world.close()
        shutil.rmtree(self._saved, ignore_errors=True)
        shutil.copytree(self._world.folder, self._saved)
        self.restart()

    def restore(self) -> None:
        self._world.close()
        shutil.rmtree(self._world.folder)
        shutil.copytree(self._saved, self._world.folder)
        self.restart()

    def close(self) -> None:
        self._world.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[KilledServer]:
    made = KilledServer(tmp_path)
    yield made
    made.close()


def answered_calls() -> Iterator[RecordedCall]:
    for call in recorded_calls():
        if call.method in offered_names() and call.request:
            yield call


def test_a_call_that_is_killed_is_done_as_a_whole_or_not_at_all(server: KilledServer) -> None:
    killed: set[str] = set()
    goes_on: set[str] = set()
    for call in answered_calls():
        before = server.rows()
        try:
            server.ask(call, dies_at=1)
        except CrashError:
            killed.add(call.method)
            server.restart()
            assert server.rows() == before, f"{call}: something is left of it"
            server.save()
            if server.ask(call) > 1:
                goes_on.add(call.method)
                whole = hives(server.rows())
                server.restore()
                with pytest.raises(CrashError):
                    server.ask(call, dies_at=2)
                server.restart()
                assert hives(server.rows()) == whole, f"{call}: it was answered by halves"
    assert len(killed) > 60
    assert goes_on == GOES_ON.keys()


def hives(rows: dict[str, list[str]]) -> dict[str, list[str]]:
    """Without tables of our own."""
    return {table: held for table, held in rows.items() if not table.startswith("HMSB_")}
