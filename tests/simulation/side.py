"""One metastore of the cluster: the product's service over SQLite in memory, and its ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection

from changemanager.location import Location, Resolver
from hms_bridge.backend.engine import Database
from hms_bridge.clock import Clock
from hms_bridge.config.settings import ArchiveSettings, CompactorSettings, Settings, TxnSettings
from hms_bridge.connect import LocalStore
from hms_bridge.errors import NoSuchObjectError
from hms_bridge.service.metastore_service import MetastoreService
from hms_bridge.service.open import open_local_metastore
from tests.simulation.definitions import Columns, Definition, read_definition
from tests.simulation.disk import Directory, SimulatedDisk
from tests.simulation.model import Ledger
from tests.simulation.plain_reader import Rows, View, read_rows
from tests.simulation.scheduler import Scheduler
from tests.simulation.story import Story
from tests.support.databases import memory_database, sqlite_connection

REPL_ROOT = "file:/repl"
DAY_MS = 86_400_000
HOUR_MS = 3_600_000


class WatchedDatabase:
    """A database at whose transactions an actor may be stopped or killed, but not inside."""

    def __init__(
        self, database: Database, scheduler: Scheduler, on_commit: Callable[[], None]
    ) -> None:
        self._database = database
        self._scheduler = scheduler
        self._on_commit = on_commit
        self.engine = database.engine

    @property
    def name(self) -> str:
        return self._database.name

    @property
    def is_embedded(self) -> bool:
        return self._database.is_embedded

    @property
    def is_pipelined(self) -> bool:
        return self._database.is_pipelined

    @contextmanager
    def transaction(self, *, write: bool, **ways: bool) -> Iterator[Connection]:
        kind = "commit" if write else "read"
        self._scheduler.point(kind, changes=write)
        with self._scheduler.atomic():
            with self._database.transaction(write=write, **ways) as connection:
                yield connection
            if write:
                self._on_commit()
        if write:
            self._scheduler.point("after commit")

    def give_back_kept(self) -> None:
        self._database.give_back_kept()

    def close(self) -> None:
        """Stays for the next run."""


class Side:
    """A metastore, its warehouse on the disk, its store for daemons, and what is true of both."""

    def __init__(
        self,
        name: str,
        database_name: str,
        *,
        cm_root: str,
        disk: SimulatedDisk,
        resolve: Resolver,
        clock: Clock,
        scheduler: Scheduler,
        on_commit: Callable[[Side, set[tuple[int, int]]], None],
        token: Callable[[], str],
    ) -> None:
        self.name = name
        self.database_name = database_name
        self.warehouse = f"/{name}"
        self.directory = f"{self.warehouse}/{database_name}.db"
        self.cm_root = cm_root
        self.story = Story()
        self.settings = Settings(
            warehouse=f"file:{self.warehouse}",
            # No replica is given up: whatever the clock says, what is needed must stay.
            archive=ArchiveSettings(root=cm_root, retain_ms=10 * DAY_MS, budget_ms=36_500 * DAY_MS),
            compactor=CompactorSettings(
                aborted_txn_threshold=0, delta_count_threshold=2, cleaner_interval_ms=5_000
            ),
            txn=TxnSettings(),
        )
        database = memory_database()
        with sqlite_connection(database) as raw:
            self.raw = raw
        self.ledger = Ledger(self.raw)
        self.version = 0

        def committed() -> None:
            self.version += 1
            on_commit(self, self.ledger.note())

        watched: Any = WatchedDatabase(database, scheduler, committed)

        def opened() -> MetastoreService:
            return open_local_metastore(
                "sqlite://",
                settings=self.settings,
                clock=clock,
                resolve=resolve,
                make_token=token,
                open_url=lambda _: watched,
                # Each actor stands for a program of its own: who stalls must not hold the others.
                shares_turns=False,
            )

        self.metastores = opened(), opened()
        self._clock = clock
        self._scheduler = scheduler
        self._disk = disk
        self._resolve = resolve

    def restart(self, content: bytes) -> None:
        """The database as it was; what is true is read from it anew."""
        self.raw.deserialize(content)
        self.ledger = Ledger(self.raw)
        self.ledger.note()

    @property
    def metastore(self) -> MetastoreService:
        """One of two servers on the database: each actor goes to one."""
        actor = self._scheduler.current
        return self.metastores[actor.number % 2 if actor else 0]

    @property
    def store(self) -> LocalStore:
        """The same, for daemons."""
        metastore = self.metastore
        return LocalStore(
            metastore=metastore,
            manifest=metastore.manifest,
            resolver=self._resolve,
            clock=self._clock,
            settings=self.settings,
        )

    # -- what is there, seen without the product

    def event_id(self) -> int:
        row = self.raw.execute("SELECT MAX(NEXT_EVENT_ID) FROM NOTIFICATION_SEQUENCE").fetchone()
        return int(row[0] or 1) - 1

    def is_held(self, txn_id: int) -> bool:
        """Whether a transaction is open, or the lock of a reader without one (a negative id)."""
        if txn_id < 0:
            return (0, -txn_id) in self.ledger.locks
        return txn_id in self.ledger.open

    def has_database(self) -> bool:
        return self._database_id() is not None

    def parameter(self, key: str) -> str | None:
        row = self.raw.execute(
            "SELECT PARAM_VALUE FROM DATABASE_PARAMS WHERE DB_ID = ? AND PARAM_KEY = ?",
            (self._database_id(), key),
        ).fetchone()
        return row and row[0]

    def table_ids(self) -> dict[str, int]:
        return dict(
            self.raw.execute(
                "SELECT TBL_NAME, TBL_ID FROM TBLS WHERE DB_ID = ?", (self._database_id(),)
            )
        )

    def places(self, table: str) -> dict[str, str]:
        """Partition name to path; an unpartitioned table has the partition ""."""
        partitions = dict(
            self.raw.execute(
                "SELECT P.PART_NAME, S.LOCATION FROM PARTITIONS P JOIN SDS S ON S.SD_ID = P.SD_ID"
                " JOIN TBLS T ON T.TBL_ID = P.TBL_ID WHERE T.DB_ID = ? AND T.TBL_NAME = ?",
                (self._database_id(), table),
            )
        )
        if not partitions and not self._is_partitioned(table):
            partitions = {"": self.table_location(table)}
        return {name: place.removeprefix("file:") for name, place in partitions.items()}

    def definition(self, table: str) -> Definition:
        """All that a load must bring of a table beside its rows."""
        following = self.ledger.next_write_ids.get((self.database_name, table), 1)
        return read_definition(self.raw, self.table_ids()[table], following - 1)

    def columns(self, table: str) -> Columns:
        """Of a table that is there."""
        return tuple(
            self.raw.execute(
                "SELECT C.COLUMN_NAME, C.TYPE_NAME FROM TBLS T JOIN SDS S ON S.SD_ID = T.SD_ID"
                " JOIN COLUMNS_V2 C ON C.CD_ID = S.CD_ID WHERE T.TBL_ID = ?"
                " ORDER BY C.INTEGER_IDX",
                (self.table_ids().get(table),),
            )
        )

    def has_file_task(self, path: str) -> bool:
        """Whether a directory is still to be deleted or moved."""
        query = "SELECT 1 FROM HMSB_FILE_TASK WHERE LOCATION = ?"
        return self.raw.execute(query, (f"file:{path}",)).fetchone() is not None

    def is_moving(self, path: str) -> bool:
        """Whether a rename moves this directory: it may be at its old place, or at the new one."""
        moves = self.raw.execute("SELECT LOCATION FROM HMSB_FILE_TASK WHERE KIND = 'm'")
        return any(f"file:{path}/".startswith(f"{place}/") for (place,) in moves)

    def table_location(self, table: str) -> str:
        """Raises NoSuchObjectError, as the metastore does."""
        row = self.raw.execute(
            "SELECT S.LOCATION FROM TBLS T JOIN SDS S ON S.SD_ID = T.SD_ID"
            " WHERE T.DB_ID = ? AND T.TBL_NAME = ?",
            (self._database_id(), table),
        ).fetchone()
        if row is None:
            raise NoSuchObjectError(f"no table {table}")
        return str(row[0])

    def view(self, table: str) -> View:
        return self.ledger.view(self.database_name, table)

    def rows(self, path: str, view: View) -> Rows:
        node = self._disk.find(path)
        return read_rows(node if isinstance(node, Directory) else None, view)

    def place(self, table: str, partition: str = "") -> Location:
        return self._resolve("file:" + self.places(table)[partition])

    def _database_id(self) -> int | None:
        row = self.raw.execute(
            "SELECT DB_ID FROM DBS WHERE NAME = ?", (self.database_name,)
        ).fetchone()
        return row and int(row[0])

    def _is_partitioned(self, table: str) -> bool:
        return (
            self.raw.execute(
                "SELECT 1 FROM PARTITION_KEYS K JOIN TBLS T ON T.TBL_ID = K.TBL_ID"
                " WHERE T.DB_ID = ? AND T.TBL_NAME = ?",
                (self._database_id(), table),
            ).fetchone()
            is not None
        )
