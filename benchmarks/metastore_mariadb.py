"""``make bench-metastore-mariadb``: the program of ``make bench-metastore``, on one MariaDB.

Both servers keep their tables in it, and its commits wait for the disk. Hive 4.0.1 logs no events
there, either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.metastore import (
    COUNT,
    GET_TABLE,
    LITTLE,
    RATES,
    READABLE_LOG,
    lock_ratio,
    make_tables,
    partition_ratio,
    rate_ratio,
    read_ratios,
)
from benchmarks.metastore_scale import PARTITION_READS, TXN_READS
from benchmarks.report import HEADING, Ratio, machine
from integration.referees.hive_schema import scripts_of
from integration.referees.java_metastore import JavaMetastore, flavour_401
from integration.referees.mariadb import MariaDb
from integration.referees.ours import OurServer
from integration.referees.processes import FAST_JAVA, Workplace, temporary_workplace

TARGET = 1.0


def main() -> None:
    """Print the machine, then one line a ratio."""
    print(machine())
    with temporary_workplace(FAST_JAVA) as workplace:
        mariadb = MariaDb(workplace, is_durable=True)
        print(f"{mariadb.version}, Hive 4.0.1")
        print(HEADING)
        for ratio in mariadb_ratios(workplace, mariadb):
            print(ratio.line(), flush=True)


def mariadb_ratios(workplace: Workplace, mariadb: MariaDb) -> Iterator[Ratio]:
    """All ratios, of two servers that are made for them."""
    ours = OurServer(workplace, mariadb.database("ours").sqlalchemy_url)
    hives = mariadb.database("theirs")
    for script in scripts_of("4.0.1", hives.db_type):
        mariadb.run_script(hives, script)
    theirs = JavaMetastore(workplace, flavour_401(), database=hives, settings=READABLE_LOG)
    make_tables(workplace, ours, theirs)
    for work, clients, _ in RATES:
        ratio, _ = rate_ratio(ours, theirs, work, clients, TARGET)
        yield ratio
    yield partition_ratio(ours, theirs)
    yield from read_ratios(ours, theirs, "", (GET_TABLE, *PARTITION_READS), LITTLE)
    ratio, _ = lock_ratio(ours, theirs, TARGET)
    yield ratio
    # Without the last: Hive as it is shipped has no events to read.
    state, reads = f", {COUNT} transactions and locks", TXN_READS[:-1]
    yield from read_ratios(ours, theirs, state, reads, replace(LITTLE, txns=COUNT))
    for server in (ours, theirs):
        server.stop()


if __name__ == "__main__":
    main()
