"""``make bench-cluster``: a dump of N events, ours against Hive's, on one HDFS in one run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from benchmarks.report import HEADING, Ratio, machine
from integration.referees.cluster import Cluster
from integration.referees.hdfs import Hdfs
from integration.referees.hive42 import HiveSession
from integration.referees.hive_schema import HiveSchemas
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import FAST_JAVA, temporary_workplace

EVENTS = int(os.environ.get("HMS_BRIDGE_BENCH_EVENTS", "200"))
ACID = "stored as orc tblproperties('transactional'='true')"
DATABASE = "bench"


def main() -> None:
    """Print the machine, then one line a ratio."""
    print(machine())
    print(HEADING)
    with temporary_workplace(FAST_JAVA) as workplace:
        cluster = Cluster(workplace, Hdfs(workplace), HiveSchemas(PostgreSql(workplace)))
        print(dump_ratio(cluster).line(), flush=True)


def dump_ratio(cluster: Cluster) -> Ratio:
    """Events a second of an incremental dump after the same statements on both metastores.

    Theirs is a statement in a session that is up; ours is the whole program, its start included.
    """
    side, ours, theirs = cluster.ours, cluster.hive_on_ours.main, cluster.hive.main

    def our_dump() -> int:
        return int(side.told("repl", "dump", DATABASE)["last_repl_id"])

    def our_load() -> None:
        words = ("--into", "bench_replica", "--metastore", cluster.first.uri)
        side.ok("repl", "load", DATABASE, *words)

    def their_dump() -> int:
        return int(theirs.sql(f"repl dump {DATABASE}")[0][1])

    def their_load() -> None:
        theirs.sql(f"repl load {DATABASE} into their_replica")

    ours_a_second, our_text = _rate(ours, our_dump, our_load)
    theirs_a_second, their_text = _rate(theirs, their_dump, their_load)
    return Ratio(
        what=f"incremental dump to HDFS, about {EVENTS} events",
        ours=our_text,
        theirs=their_text,
        ratio=ours_a_second / theirs_a_second,
        target=1,
    )


def _rate(
    hive: HiveSession, dump: Callable[[], int], load: Callable[[], None]
) -> tuple[float, str]:
    hive.sql(f"create database {DATABASE} with dbproperties('repl.source.for'='bench')")
    hive.sql(f"create table {DATABASE}.t (id int, v string) {ACID}")
    first = dump()
    load()
    _write(hive, 1)
    warm = dump()
    load()
    events_of_insert = warm - first
    _write(hive, max(1, EVENTS // events_of_insert))
    started = time.perf_counter()
    last = dump()
    seconds = time.perf_counter() - started
    load()
    return (last - warm) / seconds, f"{last - warm} events in {seconds:.1f} s"


def _write(hive: HiveSession, count: int) -> None:
    for number in range(count):
        hive.sql(f"insert into {DATABASE}.t values ({number}, 'v')")


if __name__ == "__main__":
    main()
