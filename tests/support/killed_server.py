"""A metastore whose process is killed in the middle of a call, and started again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event

from hms_bridge.config.settings import CompactorSettings
from hms_bridge.errors import HmsBridgeError
from hms_bridge.server.answers import Answer
from hms_bridge.server.serve import answers_of
from hms_bridge.service.task_leases import CLAIM_MS
from hms_bridge.wire.methods import method
from hms_bridge.wire.structs import Struct
from tests.support.faults import CrashError, FaultPlan, faulty
from tests.support.golden_wire import RecordedCall, request_of
from tests.support.installation import Installation
from tests.support.recorded_places import RECORDED_ROOTS, RecordedPlaces


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


def hives(rows: dict[str, list[str]]) -> dict[str, list[str]]:
    """Those of Hive's tables, without tables of our own."""
    return {table: held for table, held in rows.items() if not table.startswith("HMSB_")}


@dataclass(frozen=True)
class State:
    """All that another program finds: rows by table, files by path, directories."""

    rows: dict[str, list[str]]
    files: dict[str, bytes]
    directories: frozenset[str]

    @property
    def hives(self) -> dict[str, list[str]]:
        return hives(self.rows)

    @property
    def file_work(self) -> list[str]:
        """What is left to do with files."""
        return self.rows["HMSB_FILE_TASK"]


class KilledServer:
    """A metastore whose process is killed, and started again on the same database and files."""

    def __init__(self, folder: Path) -> None:
        self._faults = FaultPlan()
        self._resolve = RecordedPlaces(folder / "site")
        beside = CompactorSettings(has_hive_workers=True)  # as the recorded metastores had
        self._world = Installation(
            folder / "site",
            compactor=beside,
            location_roots=(str(folder / "site"), *RECORDED_ROOTS),
            deletion_roots=RECORDED_ROOTS,
        )
        self._saved = folder / "saved"
        self._world.close()
        self._answers = self._start()

    def _start(self) -> dict[str, Answer]:
        self._faults.begin()
        self._world.start(resolve=faulty(self._resolve, self._faults))
        config = {"hive.metastore.warehouse.dir": str(self._world.warehouse)}
        return answers_of(self._world.metastore, config)

    def call(self, name: str, /, **arguments: Any) -> Any:
        """What a method answers."""
        return self._answers[name](method(name).arguments(**arguments))

    def ask(self, call: RecordedCall, dies_at: int | None = None) -> int:
        """How many commits it took. Raises CrashError if it was killed."""
        with commits(dies_at) as counted, suppress(HmsBridgeError):  # Hive refused many, too
            self._answers[call.method](request_of(call))
        return counted.count

    def steps(self, name: str, request: Struct, dies_at: int | None = None) -> list[str]:
        """What a call did, in order: statements, commits, and what changes files, of which each is
        two steps. Raises CrashError if it was killed before one of them; then nothing more is done,
        not even what a failure is cleaned up with."""
        self._faults.begin(dies_at)
        with _watched(self._faults), suppress(HmsBridgeError):
            self._answers[name](request)
        return self._faults.labels

    def restart(self) -> None:
        self._world.close()
        self._answers = self._start()

    def pass_time(self, ms: int = 1) -> None:
        """So that a sign of life changes something, or leases of the dead run out."""
        self._world.clock.advance_ms(ms)

    def go_on(self) -> None:
        """What a server does after a while, without anybody asking."""
        self._world.clock.advance_ms(CLAIM_MS + 1)
        self._world.metastore._file_work.resume()
        self._world.clock.set_back_ms(CLAIM_MS + 1)

    def rows(self) -> dict[str, list[str]]:
        """All that another program finds in the database."""
        with closing(sqlite3.connect(self._world.url.removeprefix("sqlite:///"))) as database:
            tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            return {
                table: sorted(map(repr, database.execute(f'SELECT * FROM "{table}"')))
                for (table,) in tables.fetchall()
            }

    def state(self) -> State:
        files: dict[str, bytes] = {}
        directories: list[str] = []
        for path in self._world.folder.rglob("*"):
            if path.is_dir():
                directories.append(str(path))
            elif path.parent != self._world.folder:  # where the database is
                files[str(path)] = path.read_bytes()
        return State(self.rows(), files, frozenset(directories))

    def save(self) -> None:
        """The database and all files."""
        self._world.save(self._saved)
        self._answers = self._start()

    def restore(self) -> None:
        self._world.take(self._saved)
        self._answers = self._start()

    def close(self) -> None:
        self._world.close()


@contextmanager
def _watched(faults: FaultPlan) -> Iterator[None]:
    """Statements and commits of all databases are steps."""

    def on_statement(_connection: Connection, _cursor: object, text: str, *_: object) -> None:
        faults.point(f"statement {text[:40]}")

    def on_commit(_connection: Connection) -> None:
        faults.point(COMMIT)

    event.listen(Engine, "before_cursor_execute", on_statement)
    event.listen(Engine, "commit", on_commit)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", on_statement)
        event.remove(Engine, "commit", on_commit)


COMMIT = "commit"
