"""A metastore with everything around it, and the verbs of those who use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from changemanager.location import Location
from cleaner.daemon import Cleaner, make_cleaner
from cleaner.plan import CleaningState
from hms_bridge.compaction.executor import always
from hms_bridge.compaction.kernel import BucketKernel, LocalExecutor
from hms_bridge.compaction.worker import Worker, WorkerIdentity
from hms_bridge.model.catalog import Column, Database, Table
from hms_bridge.model.compaction import (
    Compaction,
    CompactionRequest,
    CompactionState,
    CompactionType,
    ShowCompactionsRequest,
)
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import DataOperation
from hms_bridge.model.target import Target
from hms_bridge.model.txn import AbortTxnRequest, CommitTxnRequest, OpenTxnsRequest, TxnType
from hms_bridge.txn import resources
from tests.conformance import objects
from tests.support.installation import Installation
from tests.support.open_write import OpenWrite
from tests.support.table_rows import acid_rows
from tests.support.txns import Txns

COLUMNS = (Column(name="id", type="int"), Column(name="v", type="string"))
PARTITION_COLUMNS = (Column(name="p", type="string"),)
WHO = WorkerIdentity(worker_id="host-1", version="test", user="worker", host="host")


class World(Installation):
    """An installation with a database, whose ``parameters`` these are. A replica has none before
    a load makes it."""

    def __init__(
        self,
        folder: Path,
        *,
        database: str = "db",
        has_database: bool = True,
        parameters: dict[str, str] | None = None,
        **given: Any,
    ) -> None:
        super().__init__(folder, **given)
        self.database = database
        if has_database:
            self.metastore.create_database(Database(name=database, parameters=parameters or {}))

    # -- tables and their places

    def create_table(
        self,
        name: str = "t",
        *,
        is_partitioned: bool = False,
        **parameters: str,
    ) -> Path:
        """A full-ACID table, unless parameters tell otherwise; its directory."""
        self.metastore.create_table(
            objects.acid_table(
                self.database,
                name,
                storage=objects.orc_storage(COLUMNS),
                partition_columns=PARTITION_COLUMNS if is_partitioned else (),
                parameters={**objects.ACID, **parameters},
            )
        )
        return self.path(name)

    def drop_as_hive(self, table: str) -> None:
        """A Hive beside us drops it: it forgets who writes, and ends nobody."""
        self.do(lambda work: resources.forget_table(work.connection, self.database, table))
        self.metastore.drop_table(self.database, table)

    def add_partition(self, table: str, value: str) -> str:
        """The partition's name."""
        storage = objects.orc_storage(self.describe(table).storage.columns)
        added = objects.partition(self.database, table, value, storage=storage)
        self.metastore.add_partitions(self.database, table, [added])
        return f"p={value}"

    def describe(self, name: str = "t") -> Table:
        return self.metastore.get_table(self.database, name)

    def root(self, table: str = "t", partition: str = "") -> Location:
        return self.resolve(str(self.describe(table).storage.location)).child(partition)

    def path(self, table: str = "t", partition: str = "") -> Path:
        return Path(self.root(table, partition).path)

    def names(self, table: str = "t", partition: str = "") -> set[str]:
        """What is in the directory."""
        path = self.path(table, partition)
        return {one.name for one in path.iterdir()} if path.is_dir() else set()

    def archived(self) -> dict[str, bytes]:
        """Files of the archive."""
        if not self.cmroot.is_dir():
            return {}
        return {path.name: path.read_bytes() for path in sorted(self.cmroot.iterdir())}

    # -- transactions and rows

    @property
    def txns(self) -> Txns:
        """The metastore's verbs of transactions, locks and compactions, each by itself."""
        return Txns(self)

    def open(self, kind: TxnType = TxnType.DEFAULT, user: str = "someone") -> TxnId:
        request = OpenTxnsRequest(user=user, host="some-host", type=kind)
        (txn_id,) = self.metastore.open_txns(request)
        return txn_id

    def commit(self, txn_id: TxnId, kind: TxnType | None = None) -> None:
        self.metastore.commit_txn(CommitTxnRequest(txn_id=txn_id, type=kind))

    def abort(self, txn_id: TxnId, kind: TxnType | None = None) -> None:
        self.metastore.abort_txn(AbortTxnRequest(txn_id=txn_id, type=kind))

    def begin(self) -> OpenWrite:
        """A transaction that writes."""
        return OpenWrite(self)

    @contextmanager
    def transaction(self) -> Iterator[OpenWrite]:
        """A transaction that commits at the end of the block."""
        opened = self.begin()
        yield opened
        opened.commit()

    def insert(self, table: str, *rows: tuple[Any, ...], partition: str = "") -> None:
        with self.transaction() as txn:
            txn.lock(table)
            txn.insert(table, rows, partition)

    def delete(self, table: str, *ids: int, partition: str = "") -> None:
        with self.transaction() as txn:
            txn.lock(table, DataOperation.DELETE)
            txn.delete(table, ids, partition)

    def update(self, table: str, row: tuple[Any, ...], partition: str = "") -> None:
        with self.transaction() as txn:
            txn.lock(table, DataOperation.UPDATE)
            txn.delete(table, [row[0]], partition)
            txn.insert(table, [row], partition, statement=1)

    def rows(self, table: str = "t") -> list[dict[str, Any]]:
        """With ``row__id``, ordered by column ``id``."""
        found = acid_rows(self.metastore, self.resolve, self.database, table)
        return sorted(found, key=lambda row: (row["id"], row["row__id"]))

    # -- compaction and cleaning

    def request_compaction(
        self,
        table: str = "t",
        kind: CompactionType = CompactionType.MAJOR,
        partition: str | None = None,
        pool_name: str | None = None,
    ) -> None:
        target = Target(self.database, table, partition)
        answer = self.metastore.compact(
            CompactionRequest(target=target, type=kind, pool_name=pool_name)
        )
        assert answer.is_accepted, answer

    def worker(
        self, metastore: Any = None, executor: Any = None, who: WorkerIdentity = WHO
    ) -> Worker:
        local = LocalExecutor(kernel=BucketKernel(resolver=self.resolve))
        return Worker(metastore or self.metastore, always(executor or local), self.resolve, who)

    def compact(
        self,
        table: str = "t",
        kind: CompactionType = CompactionType.MAJOR,
        partition: str | None = None,
    ) -> Compaction:
        self.request_compaction(table, kind, partition)
        outcome = self.worker().run_once()
        assert outcome is not None and outcome.state == "compacted", outcome
        return outcome.entry

    def cleaner(self) -> Cleaner:
        """A cleaner that knows nothing of earlier ones."""
        return make_cleaner(self.store)

    def clean(self) -> int:
        """A cleaner's pass, after everyone who could still read what is obsolete; how many files
        it archived."""
        self.clock.advance_ms(10_000)
        outcomes = self.cleaner().run_once()
        assert {one.state for one in outcomes} <= {CleaningState.CLEANED}, outcomes
        return sum(one.archived_count for one in outcomes)

    def entry(self, wanted: Compaction) -> Compaction:
        """The queue entry or history entry as it is now."""
        found = self.metastore.show_compactions(ShowCompactionsRequest(id=wanted.id))
        return next(one for one in found if one.id == wanted.id)

    def state(self, wanted: Compaction | None = None) -> CompactionState:
        """Of an entry, or of the newest one."""
        if wanted is None:
            return self.metastore.show_compactions()[0].state
        return self.entry(wanted).state


def world_to_compact(world: World) -> World:
    """The same with a table of three writes, the last of which deletes."""
    world.create_table()
    for number in range(2):
        world.insert("t", *((number * 10 + n, f"v{n}") for n in range(3)))
    world.delete("t", 1, 11)
    return world
