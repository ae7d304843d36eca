"""Small compactions, their cleaning, INSERT, scans and loads: beside a real Hive 4.2, in one run.

Both are on one metastore on PostgreSQL, both are up and warm: Hive in a session, ours in this
process. Tables are written by one writer of ours for both, as Hive would need minutes for them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.cleaning import DELTAS, archived_files, make_small_tables, small_work
from benchmarks.compaction import COLUMNS
from benchmarks.replication_beside import OurSide, round_ratios
from benchmarks.report import Ratio, beside, seconds_of
from benchmarks.scans import ROWS_A_WRITER, WRITERS, make_source, scan_ratios, sql_session
from hms_bridge.config.settings import ArchiveSettings, Settings
from hms_bridge.connect import LocalStore, open_local
from hms_bridge.model.catalog import Database
from integration.referees.hive42 import Hive42, HiveSession
from integration.referees.hive_schema import HiveSchemas
from integration.referees.ours import OurProgram
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import Workplace

OUR_TABLES, THEIR_TABLES = 60, 30
RUNS = 3
COMMAND_SECONDS = 2.0
MINORS_A_MINUTE = 1500.0
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
    store.metastore.create_database(
        Database(name="archived", parameters={"repl.source.for": "bench"})
    )
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
    compacting = seconds_of(lambda: pair.hive.run("Worker")) / THEIR_TABLES
    time.sleep(2 * pair.store.settings.txn.open_timeout_ms / 1000)
    cleaning = seconds_of(lambda: pair.hive.run("Cleaner")) / THEIR_TABLES
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
    # A Hive's cleaner has no archive to compare with: on a local disk it fails with it.
    archived = small_work(pair.store, "archived", OUR_TABLES)
    assert archived_files(pair.store) >= OUR_TABLES * DELTAS
    yield Ratio(
        what="the same, each file archived and verified, vs Hive 4.2 without an archive",
        ours=f"{archived.cleaning_ms_an_entry:.1f} ms",
        theirs=f"{cleaning * 1000:.1f} ms",
        ratio=cleaning * 1000 / archived.cleaning_ms_an_entry,
        target=1,
    )


def _whole_command(pair: _Pair, program: OurProgram) -> Ratio:
    times = []
    for number in range(RUNS):
        name = f"command{number}"
        make_small_tables(pair.store, "ours", [name])
        words = ("compact", f"ours.{name}", "minor", "--run")
        times.append(seconds_of(lambda words=words: program.run(*words)))  # type: ignore[misc]
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
    session = sql_session(pair.store, spark)
    columns = ", ".join(f"`{column.name}` {column.type}" for column in COLUMNS)
    for name in ("ours", "theirs"):
        pair.hive.sql(f"create table {name}.target ({columns}) {_ACID}")

    def ours() -> None:
        list(session.run("INSERT INTO ours.target SELECT * FROM ours.source"))

    def theirs() -> None:
        pair.hive.sql("insert into theirs.target select * from ours.source")

    rows = f"{WRITERS * ROWS_A_WRITER:,} rows"
    yield beside(f"INSERT of {rows}, warm, Hive 4.2 beside", ours, theirs, 1)
    yield from scan_ratios(pair.store, spark, pair.warehouse.parent / "plain", pair.hive.sql)
    yield from round_ratios(
        OurSide(
            store=pair.store, root=f"file:{pair.warehouse.parent / 'dumps'}", into="our_replica"
        ),
        pair.hive,
    )
