"""What no Hive can be asked in the same words: ours against what is asked, a limit, or itself."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.archive import archive_ratios
from benchmarks.cleaning import DELTAS, small_work
from benchmarks.replication_beside import WARM_UP, dumped_and_loaded, make_counted, own_side
from benchmarks.report import Limit, Ratio, seconds_of
from benchmarks.scans import make_source, scan_ratios, split_ratio
from changemanager.location import FsspecResolver
from hms_bridge.compaction.kernel import BucketKernel
from hms_bridge.compaction.shared_job import SharedJobs
from hms_bridge.config.settings import ArchiveSettings, Settings
from hms_bridge.connect import LocalStore, open_local
from hms_bridge.model.catalog import Database

TABLES = 60
FILES_IN_A_DELTA = 2
"""With `_orc_acid_version`."""
WORKERS = 16
"""Of one server; what they have at the same time is one Spark job."""
MINORS_A_MINUTE = 1500.0
TRANSACTIONS = 1000


def own_ratios(folder: Path, spark: Any, *, has_hive: bool) -> Iterator[Ratio | Limit]:
    """Archiving, what only Spark is given, large files, loads; scans only where no Hive is asked
    the same in this run."""
    yield from archive_ratios(folder)
    yield from load_ratios(folder)
    store = _opened(folder / "own")
    yield from _work_ratios(store, spark, folder)
    yield split_ratio(store, spark)
    if not has_hive:
        make_source(store)
        yield from scan_ratios(store, spark, folder / "plain")
    store.metastore.close()


def _opened(folder: Path) -> LocalStore:
    folder.mkdir()
    settings = Settings(
        warehouse=f"file:{folder}/warehouse", archive=ArchiveSettings(root=f"file:{folder}/cmroot")
    )
    store = open_local(f"sqlite:///{folder}/metastore.db", settings)
    for name, parameters in (
        ("ours", {}),
        ("archived", {"repl.source.for": "bench"}),
        ("warm_up", {}),
        ("by_spark", {}),
    ):
        store.metastore.create_database(Database(name=name, parameters=parameters))
    return store


def _work_ratios(store: LocalStore, spark: Any, folder: Path) -> Iterator[Ratio | Limit]:
    from hms_bridge.spark.compaction_job import SparkExecutor

    archived = small_work(store, "archived", TABLES)
    linked = _linked_seconds(folder, TABLES * DELTAS * FILES_IN_A_DELTA) / TABLES
    yield Limit(
        what=f"cleaning an entry of {DELTAS} directories, each file archived, vs a link and a sync",
        ours=f"{archived.cleaning_ms_an_entry:.1f} ms",
        bare=f"{linked * 1000:.1f} ms",
        reached=linked * 1000 / archived.cleaning_ms_an_entry,
    )
    executor = SparkExecutor(spark=spark, kernel=BucketKernel(resolver=FsspecResolver()))
    shared = SharedJobs(job=executor)
    small_work(store, "warm_up", 2 * TABLES, shared, workers=WORKERS)
    by_spark = small_work(store, "by_spark", 2 * TABLES, shared, workers=WORKERS)
    yield Ratio(
        what=f"minors of what Spark is given, {WORKERS} workers, vs what is asked",
        ours=f"{by_spark.minors_a_minute:.0f}/min",
        theirs=f"{MINORS_A_MINUTE:.0f}/min",
        ratio=by_spark.minors_a_minute / MINORS_A_MINUTE,
        target=1,
    )


def _linked_seconds(folder: Path, count: int) -> float:
    """Files get a second name, which is on the disk: the least that keeps what is deleted."""
    before, after = folder / "before", folder / "after"
    before.mkdir()
    after.mkdir()
    files = [before / f"file{number}" for number in range(count)]
    for number, file in enumerate(files):
        file.write_text(f"{number}" * 100)

    def link() -> None:
        for file in files:
            (after / file.name).hardlink_to(file)
            for place in (after / file.name, after):
                descriptor = os.open(place, os.O_RDONLY)
                os.fsync(descriptor)
                os.close(descriptor)

    return seconds_of(link)


def load_ratios(folder: Path) -> Iterator[Ratio | Limit]:
    """Many small transactions of one dump, each three events; beside as many bare commits."""
    ours = own_side(folder / "events")
    make_counted(ours)
    dumped_and_loaded(ours, WARM_UP)
    few, many = dumped_and_loaded(ours, TRANSACTIONS // 10), dumped_and_loaded(ours, TRANSACTIONS)
    ours.store.metastore.close()
    rate = many.events / many.load_seconds
    bare = many.events / seconds_of(lambda: _bare_commits(folder / "bare.db"))
    what = f"load of {TRANSACTIONS:,} transactions of a row"
    yield Limit(
        what=f"{what}, vs as many bare SQLite commits of three rows",
        ours=f"{rate:.0f} events/s",
        bare=f"{bare:.0f} events/s",
        reached=rate / bare,
    )
    few_rate = few.events / few.load_seconds
    yield Ratio(
        what=f"{what}, vs of a tenth of them",
        ours=f"{rate:.0f} events/s",
        theirs=f"{few_rate:.0f} events/s",
        ratio=rate / few_rate,
        target=0.8,
    )


def _bare_commits(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, a TEXT)")
    for _ in range(TRANSACTIONS):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO t (a) VALUES (?)", [("x" * 300,)] * 3)
        connection.execute("COMMIT")
    connection.close()
