"""A metastore of ours over a database of its own, with warehouse, archive and clock."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Executable, insert, select
from sqlalchemy import Table as SqlTable

from changemanager.filesystem.volume import Volume
from changemanager.location import FsspecResolver, Resolver
from hms_bridge.backend.retry import run_in_transaction
from hms_bridge.backend.work import Work
from hms_bridge.catalog.built_in import install_default
from hms_bridge.config.settings import ArchiveSettings, Settings
from hms_bridge.connect import LocalStore
from hms_bridge.service.directories import Directories
from hms_bridge.service.metastore_service import MetastoreService
from hms_bridge.service.open import open_local_metastore
from tests.support.databases import fresh_url, memory_database, sqlite_connection
from tests.support.engines import MEMORY, open_again, put_back
from tests.support.simulated_clock import SimulatedClock

P = ParamSpec("P")
T = TypeVar("T")


class Installation:
    """Everything is below a folder, where ``resolve`` does not lead elsewhere, and all of it the
    metastore's own (``location_roots``). ``settings`` are fields of Settings; a metastore in memory
    (``url``) is of one process."""

    def __init__(
        self,
        folder: Path,
        *,
        warehouse: str = "warehouse",
        url: str | None = None,
        clock: Any = None,
        resolve: Resolver | None = None,
        **settings: Any,
    ) -> None:
        self.folder = folder
        self.warehouse = folder / warehouse
        self.cmroot = folder / "cmroot"
        self.url = url or fresh_url(folder)
        self.clock = clock or SimulatedClock()
        settings.setdefault("location_roots", (str(folder),))
        archive = settings.pop("archive", ArchiveSettings(root=str(self.cmroot)))
        self.settings = Settings(warehouse=str(self.warehouse), archive=archive, **settings)
        self._tokens = 0
        self.start(resolve)
        if isinstance(self.clock, SimulatedClock):
            self.clock.watch(self._watch)

    def start(
        self,
        resolve: Resolver | None = None,
        directories: Directories | None = None,
        **settings: Any,
    ) -> MetastoreService:
        """A new process on the same disk, with these settings changed: it knows what is in files
        and database."""
        self.settings = replace(self.settings, **settings)
        self.resolve = resolve or FsspecResolver()
        engine = memory_database() if self.url == MEMORY else open_again(self.url)
        with engine.transaction(write=True) as connection:
            install_default(connection, f"file:{self.warehouse}", self.clock.now_ms() // 1000)
        self.engine = engine
        self.metastore = open_local_metastore(
            self.url,
            settings=self.settings,
            clock=self.clock,
            resolve=self.resolve,
            directories=directories,
            create_schema=False,
            open_url=lambda _: engine,
        )
        self._end = weakref.finalize(self.metastore, put_back, engine)
        self.store = LocalStore(
            metastore=self.metastore,
            manifest=self.metastore.manifest,
            resolver=self.resolve,
            clock=self.clock,
            settings=self.settings,
        )
        return self.metastore

    def _watch(self) -> None:
        if self._end.alive:
            self.store.manifest.note_time(self.clock.now_ms())

    def close(self) -> None:
        self.metastore.close()
        self._end()

    @property
    def volume(self) -> Volume:
        return self.resolve(str(self.folder)).volume

    def token(self) -> str:
        self._tokens += 1
        return f"token{self._tokens:05d}"

    # -- all of it, database and files: a process ends, another one is to be started

    def save(self, copy: Path) -> None:
        """Keep it elsewhere, in place of what was kept there."""
        self.close()
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.folder, copy)

    def take(self, copy: Path) -> None:
        """Be as what was saved."""
        self.close()
        shutil.rmtree(self.folder)
        shutil.copytree(copy, self.folder)

    # -- what is in the database, as another program sees it

    def backup(self) -> bytes:
        """All of the database, as an administrator copies it."""
        with sqlite_connection(self.engine) as raw:
            return raw.serialize()

    def restore(self, backup: bytes) -> None:
        """Bring back an older copy; that of a file is for a new process."""
        if self.url == MEMORY:
            with sqlite_connection(self.engine) as raw:
                raw.deserialize(backup)
            return
        self.close()
        Path(self.url.removeprefix("sqlite:///")).write_bytes(backup)
        self.start()

    def do(
        self, function: Callable[Concatenate[Work, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What a function of a room below the service does, in a transaction of its own."""
        return run_in_transaction(
            self.engine,
            lambda connection: function(
                Work(connection, self.clock, self.settings), *args, **kwargs
            ),
            write=True,
            clock=self.clock,
        )

    def execute(self, statement: Executable) -> None:
        with self.engine.transaction(write=True) as connection:
            connection.execute(statement)

    def put(self, table: SqlTable, **values: Any) -> None:
        self.execute(insert(table).values(**values))

    def records(self, table: SqlTable) -> list[dict[str, Any]]:
        with self.engine.transaction(write=False) as connection:
            ordered = select(table).order_by(*list(table.columns)[:2])
            return [dict(row) for row in connection.execute(ordered).mappings()]
