"""Dumps and loads beside a real Hive 4.2: the same statements, the same events, in one run.

Hive writes a table. Both dump it, each below a root of its own, and load their own dump into a
database of their own, all in one metastore on PostgreSQL. Both are up and warm: Hive in a session,
ours in this process. How time grows with the number of events is ours alone, of events that a
client of the metastore makes, as Hive would need an hour for them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from benchmarks.report import Ratio, seconds_of
from changemanager.location import Resolver
from hms_bridge.cli.dump_options import DumpOptions
from hms_bridge.cli.origin_options import OriginOptions
from hms_bridge.cli.repl_requests import dump_request, load_request
from hms_bridge.clock import SystemClock
from hms_bridge.config.file_systems import file_systems
from hms_bridge.config.settings import ArchiveSettings, Settings
from hms_bridge.connect import LocalStore, open_local
from hms_bridge.model.catalog import Column, Database
from hms_bridge.model.txn import AllocateWriteIdsRequest, CommitTxnRequest, OpenTxnsRequest
from hms_bridge.repl.dump.repl_dump import ReplDump
from hms_bridge.repl.load.repl_load import ReplLoad
from integration.referees.hive42 import Hive42, HiveSession
from integration.referees.hive_schema import HiveSchemas
from integration.referees.ours import OurProgram
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import Workplace
from tests.conformance import objects
from tests.support.table_write import TableWrite

DATABASE = "bench"
INSERTS = int(os.environ.get("HMS_BRIDGE_BENCH_INSERTS", "100"))
EVENTS = int(os.environ.get("HMS_BRIDGE_BENCH_EVENTS", "10000"))
TABLES = 20
ACID = "stored as orc tblproperties('transactional'='true')"
WARM_UP = 3


@dataclass(frozen=True, kw_only=True)
class OurSide:
    """Our dump of ``bench`` and its load into another database of the same metastore."""

    store: LocalStore
    root: str
    into: str

    @property
    def resolve(self) -> Resolver:
        return file_systems(self.store.settings)

    def dump(self) -> int:
        """The last event."""
        dumper = ReplDump(
            self.store.metastore,
            self.resolve,
            SystemClock(),
            lambda: str(uuid4()),
            self.store.manifest,
        )
        request = dump_request(DATABASE, self.store.settings, DumpOptions(root=self.root))
        plan = dumper.plan(request)
        return int(dumper.run(plan).last_event_id or 0)

    def load(self) -> None:
        loader = ReplLoad(self.store.metastore, self.resolve)
        request = load_request(
            DATABASE,
            self.store.settings,
            root=self.root,
            target_database=self.into,
            origin=OriginOptions(is_trusted=True),
        )
        loader.run(loader.plan(request))


def beside_ratios(workplace: Workplace) -> Iterator[Ratio]:
    """Whole dumps and loads, those of INSERTS inserts, and ours of many events."""
    database = HiveSchemas(PostgreSql(workplace)).database("4.2.0", "bench")
    hive = Hive42(workplace, database)
    OurProgram(workplace, database.sqlalchemy_url).run("schema", "init")
    folder = workplace.folder("bench-dumps")
    settings = Settings(
        warehouse=f"file:{hive.warehouse}",
        archive=ArchiveSettings(root=f"file:{hive.change_manager_root}"),
    )
    store = open_local(database.sqlalchemy_url, settings)
    ours = OurSide(store=store, root=f"file:{folder}", into="our_replica")
    yield from round_ratios(ours, hive.main)
    yield from linear_ratios(ours)
    store.metastore.close()
    hive.stop()


@dataclass(frozen=True)
class _TheirSide:
    hive: HiveSession

    def dump(self) -> int:
        return int(self.hive.sql(f"repl dump {DATABASE}")[0][1])

    def load(self) -> None:
        self.hive.sql(f"repl load {DATABASE} into their_replica")


def _make_tables(hive: HiveSession) -> None:
    hive.sql(f"create database {DATABASE} with dbproperties('repl.source.for'='bench')")
    for number in range(TABLES):
        hive.sql(f"create table {DATABASE}.t{number} (id int, v string) {ACID}")
    _insert(hive, TABLES)


def _insert(hive: HiveSession, count: int) -> None:
    for number in range(count):
        hive.sql(f"insert into {DATABASE}.t{number % TABLES} values ({number}, 'v')")


def round_ratios(ours: OurSide, hive: HiveSession) -> Iterator[Ratio]:
    """What Hive writes, dumped and loaded by both."""
    theirs = _TheirSide(hive)
    _make_tables(hive)
    what = f"of {TABLES} tables, Hive 4.2 beside"
    yield _ratio(f"bootstrap dump {what}", seconds_of(ours.dump), seconds_of(theirs.dump), 1)
    yield _ratio(f"bootstrap load {what}", seconds_of(ours.load), seconds_of(theirs.load), 1)
    for count in (WARM_UP, INSERTS):
        _insert(hive, count)
        dumps = seconds_of(ours.dump), seconds_of(theirs.dump)
        loads = seconds_of(ours.load), seconds_of(theirs.load)
    what = f"of {INSERTS} inserts, Hive 4.2 beside"
    yield _ratio(f"incremental dump {what}", *dumps, 5)
    yield _ratio(f"incremental load {what}", *loads, 3)


def _ratio(what: str, ours: float, theirs: float, target: float) -> Ratio:
    return Ratio(
        what=what, ours=f"{ours:.2f} s", theirs=f"{theirs:.2f} s", ratio=theirs / ours,
        target=target,
    )  # fmt: skip


def own_side(folder: Path) -> OurSide:
    """Ours alone, on SQLite."""
    folder.mkdir()
    settings = Settings(
        warehouse=f"file:{folder}/warehouse", archive=ArchiveSettings(root=f"file:{folder}/cmroot")
    )
    store = open_local(f"sqlite:///{folder}/metastore.db", settings)
    store.metastore.create_database(
        Database(name=DATABASE, parameters={"repl.source.for": "bench"})
    )
    return OurSide(store=store, root=f"file:{folder}/dumps", into="our_replica")


def linear_ratios(ours: OurSide) -> Iterator[Ratio]:
    """Events a second of many events against those of a few."""
    make_counted(ours)
    first = dumped_and_loaded(ours, WARM_UP)
    few = dumped_and_loaded(ours, INSERTS)
    many = dumped_and_loaded(ours, EVENTS * WARM_UP // first.events)
    for name, ours_many, ours_few in (
        ("dump", many.events / many.dump_seconds, few.events / few.dump_seconds),
        ("load", many.events / many.load_seconds, few.events / few.load_seconds),
    ):
        yield Ratio(
            what=f"incremental {name}, {many.events} events against {few.events}",
            ours=f"{ours_many:.0f} events/s",
            theirs=f"{ours_few:.0f} events/s",
            ratio=ours_many / ours_few,
            target=0.8,
        )


@dataclass(frozen=True, kw_only=True)
class Replicated:
    """How many events, and what they took."""

    events: int
    dump_seconds: float
    load_seconds: float


def dumped_and_loaded(ours: OurSide, transactions: int) -> Replicated:
    """That many transactions of a row, alone in their dump."""
    ours.dump()
    ours.load()
    before = int(ours.store.metastore.get_current_event_id())
    _write_rows(ours, transactions)
    events = int(ours.store.metastore.get_current_event_id()) - before
    return Replicated(
        events=events, dump_seconds=seconds_of(ours.dump), load_seconds=seconds_of(ours.load)
    )


def make_counted(ours: OurSide) -> None:
    """The table that they write to."""
    columns = (Column(name="id", type="int"), Column(name="v", type="string"))
    ours.store.metastore.create_table(
        objects.acid_table(
            DATABASE,
            "counted",
            storage=objects.orc_storage(columns),
            parameters=objects.ACID,
        )
    )


def _write_rows(ours: OurSide, transactions: int) -> None:
    """As a writer does that tells the metastore of its files: three events a transaction."""
    metastore = ours.store.metastore
    table = metastore.get_table(DATABASE, "counted")
    for number in range(transactions):
        (txn_id,) = metastore.open_txns(OpenTxnsRequest(user="bench", host="here"))
        asked = AllocateWriteIdsRequest(
            database_name=DATABASE, table_name="counted", txn_ids=(txn_id,)
        )
        (given,) = metastore.allocate_table_write_ids(asked)
        rows = pa.record_batch({"id": pa.array([number], pa.int32()), "v": pa.array(["v"])})
        TableWrite(metastore, ours.resolve, table, txn_id, given.write_id).insert([rows])
        metastore.commit_txn(CommitTxnRequest(txn_id=txn_id))
