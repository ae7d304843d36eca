"""Small compactions, their cleaning, INSERT and scans: beside a real Hive 4.2, in one run.

Both are on one metastore on PostgreSQL, both are up and warm: Hive in a session, ours in this
process. Tables are written by one writer of ours for both, as Hive would need minutes for them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.cleaning import DELTAS, make_small_tables, small_work
from benchmarks.compaction import COLUMNS, some_rows
from benchmarks.report import Ratio
from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import ArchiveSettings, Settings
from hms_bridge.connect import LocalStore, open_local
from hms_bridge.model.catalog import Database
from hms_bridge.model.txn import AllocateWriteIdsRequest, CommitTxnRequest, OpenTxnsRequest
from hms_bridge.session.transaction import Client
from hms_bridge.spark.scan import read_table
from hms_bridge.spark.sql_session import SqlSession
from integration.referees.hive42 import Hive42, HiveSession
from integration.referees.hive_schema import HiveSchemas
from integration.referees.ours import OurProgram
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import Workplace
from tests.conformance import objects
from tests.support.table_write import TableWrite

OUR_TABLES, THEIR_TABLES = 60, 30
WRITERS, ROWS_A_WRITER = 4, 250_000
RUNS = 3
COMMAND_SECONDS = 2.0
MINORS_A_MINUTE = 1500.0
NARROW = "count"
"""A column of small numbers."""
CLIENT = Client(user="bench", host="here")
_ACID = "stored as orc tblproperties('transactional'='true')"


@dataclass(frozen=True, kw_only=True)
class _Pair:
    """The two, on one metastore with the databases ``ours`` and ``theirs``."""

    store: LocalStore
    hive: HiveSession
    warehouse: Path


def beside_ratios(workplace: Workplace, spark: Any) -> Iterator[Ratio]:
    """One line a comparison, as the module says."""
    database = HiveSchemas(PostgreSql(workplace)).database("4.2.0", "bench")
    hive = Hive42(workplace, database)
    program = OurProgram(workplace, database.sqlalchemy_url)
    program.run("schema", "init")
    settings = Settings(
        warehouse=f"file:{hive.warehouse}",
        archive=ArchiveSettings(root=f"file:{hive.change_manager_root}"),
    )
    store = open_local(database.sqlalchemy_url, settings)
    for name in ("ours", "theirs"):
        store.metastore.create_database(Database(name=name))
    pair = _Pair(store=store, hive=hive.main, warehouse=hive.warehouse)
    try:
        yield from _small_work(pair)
        yield _whole_command(pair, program)
        yield from _inserts_and_scans(pair, spark)
    finally:
        store.metastore.close()
        hive.stop()


def _small_work(pair: _Pair) -> Iterator[Ratio]:
    make_small_tables(pair.store, "theirs", [f"small{number}" for number in range(THEIR_TABLES)])
    compacting = _seconds(lambda: pair.hive.run("Worker")) / THEIR_TABLES
    time.sleep(2 * pair.store.settings.txn.open_timeout_ms / 1000)
    cleaning = _seconds(lambda: pair.hive.run("Cleaner")) / THEIR_TABLES
    left = list((pair.warehouse / "theirs.db").glob("small*/delta_*"))
    assert len(left) == THEIR_TABLES, left
    ours = small_work(pair.store, "ours", OUR_TABLES)
    yield Ratio(
        what=f"small minors, {DELTAS} deltas each, one worker, Hive 4.2 beside",
        ours=f"{ours.minors_a_minute:.0f}/min",
        theirs=f"{60 / compacting:.0f}/min",
        ratio=ours.minors_a_minute * compacting / 60,
        target=2,
    )
    yield Ratio(
        what=f"small minors, {DELTAS} deltas each, one worker, vs what is asked",
        ours=f"{ours.minors_a_minute:.0f}/min",
        theirs=f"{MINORS_A_MINUTE:.0f}/min",
        ratio=ours.minors_a_minute / MINORS_A_MINUTE,
        target=1,
    )
    yield Ratio(
        what=f"cleaning an entry of {DELTAS} directories, Hive 4.2 beside",
        ours=f"{ours.cleaning_ms_an_entry:.1f} ms",
        theirs=f"{cleaning * 1000:.1f} ms",
        ratio=cleaning * 1000 / ours.cleaning_ms_an_entry,
        target=2,
    )


def _whole_command(pair: _Pair, program: OurProgram) -> Ratio:
    times = []
    for number in range(RUNS):
        name = f"command{number}"
        make_small_tables(pair.store, "ours", [name])
        words = ("compact", f"ours.{name}", "minor", "--run")
        times.append(_seconds(lambda words=words: program.run(*words)))  # type: ignore[misc]
    seconds = median(times)
    return Ratio(
        what="compact --run of a small table, the whole command, vs what is asked",
        ours=f"{seconds:.2f} s",
        theirs=f"{COMMAND_SECONDS:.2f} s",
        ratio=COMMAND_SECONDS / seconds,
        target=1,
    )


def _inserts_and_scans(pair: _Pair, spark: Any) -> Iterator[Ratio]:
    make_source(pair.store)
    session = SqlSession(
        pair.store.metastore,
        open_spark=lambda: spark,
        resolver=pair.store.resolver,
        client=CLIENT,
        clock=SystemClock(),
    )
    columns = ", ".join(f"`{column.name}` {column.type}" for column in COLUMNS)
    for name in ("ours", "theirs"):
        pair.hive.sql(f"create table {name}.target ({columns}) {_ACID}")

    def ours() -> None:
        list(session.run("INSERT INTO ours.target SELECT * FROM ours.source"))

    def theirs() -> None:
        pair.hive.sql("insert into theirs.target select * from ours.source")

    rows = f"{WRITERS * ROWS_A_WRITER:,} rows"
    yield _beside(f"INSERT of {rows}, warm, Hive 4.2 beside", ours, theirs, 1)
    yield from scan_ratios(pair.store, spark, pair.warehouse.parent / "plain")


def scan_ratios(store: LocalStore, spark: Any, plain: Path) -> Iterator[Ratio]:
    """``ours.source``, and what Spark reads of the same rows in ORC of its own: of an ACID file it
    reads every column, and cannot count rows."""
    with _frame(store, spark, []) as frame:
        frame.write.orc(str(plain))
    for what, columns, text in (
        ("count", [NARROW], "count(1)"),
        ("sum of one column", [NARROW], f"sum({NARROW})"),
    ):

        def ours(columns: list[str] = columns, text: str = text) -> None:
            with _frame(store, spark, columns) as frame:
                frame.selectExpr(text).collect()

        def theirs(text: str = text) -> None:
            spark.read.orc(str(plain)).selectExpr(text).collect()

        label = f"{what} of {WRITERS * ROWS_A_WRITER:,} rows, vs Spark's own ORC"
        yield _beside(label, ours, theirs, 0.1)


def _frame(store: LocalStore, spark: Any, columns: Sequence[str]) -> AbstractContextManager[Any]:
    return read_table(
        spark, store.metastore, store.resolver, "ours.source", client=CLIENT, columns=columns
    )


def make_source(store: LocalStore) -> None:
    """``ours.source``: one delta of a file for each writer."""
    metastore = store.metastore
    metastore.create_table(
        objects.acid_table("ours", "source", storage=objects.orc_storage(COLUMNS))
    )
    (txn_id,) = metastore.open_txns(OpenTxnsRequest(user="bench", host="here"))
    asked = AllocateWriteIdsRequest(database_name="ours", table_name="source", txn_ids=(txn_id,))
    (given,) = metastore.allocate_table_write_ids(asked)
    random = np.random.default_rng(7)
    table = metastore.get_table("ours", "source")
    write = TableWrite(metastore, store.resolver, table, txn_id, given.write_id)
    write.insert(*([some_rows(random, number, ROWS_A_WRITER)] for number in range(WRITERS)))
    metastore.commit_txn(CommitTxnRequest(txn_id=txn_id))


def _beside(
    what: str, ours: Callable[[], None], theirs: Callable[[], None], target: float
) -> Ratio:
    """In turn, after one that warms up: a machine has good and bad minutes."""
    ours(), theirs()
    times = [(_seconds(ours), _seconds(theirs)) for _ in range(RUNS)]
    mine, other = (median(column) for column in zip(*times, strict=True))
    return Ratio(
        what=what, ours=f"{mine:.2f} s", theirs=f"{other:.2f} s", ratio=other / mine, target=target
    )


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
