"""``make bench-metastore``: this metastore and a real Hive 4.0.1, asked by one program in one run.

Both keep their tables in one PostgreSQL, whose commits wait for the disk. A machine has good and
bad minutes, which are a third apart: so both are asked in short turns, one after the other, and a
ratio of rates is the median of those of each turn, beside the medians of both. Beside each stands
how much of a processor its server took.
Hive 4.0.1 as it is shipped logs no events, which this metastore does in every transaction. A
warehouse that is replicated needs them, so rates stand beside a Hive that logs them, too.
What no server can pass is measured, too: clients of PostgreSQL itself, which insert and commit a
row for each call, or send the statements of our own verbs; and calls of which our server does
nothing, which take what the program and the protocol take.
HMS_BRIDGE_BENCH_SECONDS (2) is how long a turn takes, HMS_BRIDGE_BENCH_TURNS (7) how many there
are, HMS_BRIDGE_BENCH_COUNT (10000) how many transactions and locks are there at once,
HMS_BRIDGE_BENCH_EVENTS (1000000) how many events, HMS_BRIDGE_BENCH_PARTITIONS (100000) how many
partitions.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator, Sequence

from hive_metastore import ttypes

from benchmarks import metastore_program as program
from benchmarks.metastore_limits import Limits
from benchmarks.metastore_scale import (
    PARTITION_READS,
    TXN_READS,
    Asked,
    Sizes,
    linear_ratios,
    medians,
    write_events,
    write_partitions,
)
from benchmarks.own_statements import own_statements
from benchmarks.report import HEADING, Limit, Ratio, machine
from integration.referees.hive_schema import HiveSchemas
from integration.referees.java_metastore import JavaMetastore, flavour_42, flavour_401
from integration.referees.ours import OurServer
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import FAST_JAVA, Workplace, temporary_workplace

SECONDS = float(os.environ.get("HMS_BRIDGE_BENCH_SECONDS", "2"))
TURNS = int(os.environ.get("HMS_BRIDGE_BENCH_TURNS", "7"))
COUNT = int(os.environ.get("HMS_BRIDGE_BENCH_COUNT", "10000"))
EVENTS = int(os.environ.get("HMS_BRIDGE_BENCH_EVENTS", "1000000"))
PARTITIONS = int(os.environ.get("HMS_BRIDGE_BENCH_PARTITIONS", "100000"))
LOCK_TURNS = 5
READS = 45
FEW_READS = 5
LITTLE = Sizes(partitions=1000, txns=1000, events=10_000)
MUCH = Sizes(partitions=PARTITIONS, txns=COUNT, events=EVENTS)
LOCKING_CLIENTS = 8
RATES = (
    ("open+commit", 1, 2.5),
    ("open+commit", 8, 2.5),
    ("open+commit", 32, 4.0),
    ("write transaction", 1, 2.5),
    ("write transaction", 8, 2.5),
    ("write transaction", 32, 4.0),
)
"""What, by how many clients, and how many times faster it is to be."""

READABLE_LOG = {"hive.metastore.event.db.notification.api.auth": "false"}
"""Else only a configured proxy user may read the log of events."""

Server = OurServer | JavaMetastore
GET_TABLE = Asked(
    what="get_table_req",
    read=lambda client, _: client.get_table_req(
        ttypes.GetTableRequest(dbName=program.DATABASE, tblName=program.TABLE)
    ),
    count=lambda _: 1,
    of=lambda _: 1,
)


def main() -> None:
    """Print the machine, then one line a ratio."""
    print(machine())
    with temporary_workplace(FAST_JAVA) as workplace:
        postgresql = PostgreSql(workplace, is_durable=True)
        print(f"PostgreSQL {postgresql.version}, Hive 4.0.1")
        print(HEADING)
        for ratio in metastore_ratios(workplace, postgresql):
            print(ratio.line(), flush=True)


def metastore_ratios(workplace: Workplace, postgresql: PostgreSql) -> Iterator[Ratio | Limit]:
    """All ratios, of two servers that are made for them."""
    own = postgresql.database("ours")
    schemas = HiveSchemas(postgresql)
    hives = schemas.database("4.0.1", "theirs")
    ours = OurServer(workplace, own.sqlalchemy_url, store=own)
    theirs = JavaMetastore(workplace, flavour_401(), database=hives, settings=READABLE_LOG)
    make_tables(workplace, ours, theirs)
    limits = Limits(
        postgresql,
        own,
        own_statements(own, ours.warehouse),
        port=ours.port,
        folder=workplace.folder("limits"),
        turns=TURNS,
        seconds=SECONDS,
    )
    for work, clients, target in RATES:
        ratio, rate = rate_ratio(ours, theirs, work, clients, target)
        yield ratio
        if work == "open+commit":
            yield from limits.of_open_and_commit(clients, rate)
    yield from logging_ratios(workplace, schemas, ours)
    yield partition_ratio(ours, theirs)
    yield from read_ratios(ours, theirs, "", (GET_TABLE, *PARTITION_READS), LITTLE)
    for database in (own, hives):
        write_events(database, MUCH.events)
    little = _small_server(workplace, postgresql)
    sizes = (ours.port, MUCH), (little.port, LITTLE)
    ratio, seconds = lock_ratio(ours, theirs, 10.0)
    yield ratio
    yield limits.of_locks(COUNT, LOCKING_CLIENTS, seconds)
    yield from read_ratios(ours, theirs, f", {COUNT} transactions and locks", TXN_READS, MUCH)
    # Before transactions that nobody keeps alive are timed out.
    yield from linear_ratios(*sizes, TXN_READS)
    yield _memory_ratio(ours, theirs, "")
    for database in (own, hives):
        write_partitions(database, MUCH.partitions - LITTLE.partitions)
    yield from read_ratios(ours, theirs, "", PARTITION_READS, MUCH, FEW_READS)
    yield _memory_ratio(ours, theirs, f" with {MUCH.partitions} partitions in an answer")
    yield from linear_ratios(*sizes, PARTITION_READS)
    for server in (ours, theirs, little):
        server.stop()


def make_tables(workplace: Workplace, *servers: Server) -> None:
    """What the program works on, of each."""
    for number, server in enumerate(servers):
        with program.connected(server.port) as client:
            program.make_tables(client, str(workplace.folder(f"tables-{number}")))


def _memory_ratio(ours: Server, theirs: Server, state: str) -> Ratio:
    memory = [server.memory_peak_mib for server in (ours, theirs)]
    return _ratio(f"memory of the server at its peak{state}", memory, "MiB", 1.0)


def logging_ratios(workplace: Workplace, schemas: HiveSchemas, ours: Server) -> Iterator[Ratio]:
    """Rates beside a Hive with its notification listener, which no registry has for 4.0.1."""
    flavour = flavour_42()
    database = schemas.database(flavour.version, "logging")
    logging = JavaMetastore(workplace, flavour, database=database)
    make_tables(workplace, logging)
    for work, clients, target in RATES:
        beside = f", Hive {flavour.version} with its event log"
        ratio, _ = rate_ratio(ours, logging, work, clients, target, beside)
        yield ratio
    logging.stop()


def rate_ratio(
    ours: Server, theirs: Server, work: str, clients: int, target: float, beside: str = ""
) -> tuple[Ratio, float]:
    """With our rate; `beside` says which Hive it is, if not the one of all other lines."""
    rates: dict[int, list[float]] = {ours.port: [], theirs.port: []}
    costs: dict[int, list[float]] = {ours.port: [], theirs.port: []}
    for _ in range(TURNS):
        for server in (ours, theirs):
            before = server.cpu_seconds
            found, count = program.rate(server.port, work, clients, SECONDS)
            rates[server.port].append(found)
            costs[server.port].append((server.cpu_seconds - before) / count)
    texts = [
        f"{statistics.median(rates[server.port]):.0f}/s "
        f"({statistics.median(costs[server.port]) * 1000:.2f} ms of processor)"
        for server in (ours, theirs)
    ]
    pairs = zip(rates[ours.port], rates[theirs.port], strict=True)
    ratio = Ratio(
        what=f"{work}, {clients} client{'s' * (clients > 1)}{beside}",
        ours=texts[0],
        theirs=texts[1],
        ratio=statistics.median(own / other for own, other in pairs),
        target=target,
    )
    return ratio, statistics.median(rates[ours.port])


def partition_ratio(ours: Server, theirs: Server) -> Ratio:
    """Of what both add to an empty table."""
    seconds: list[float] = []
    for server in (ours, theirs):
        with program.connected(server.port) as client:
            program.add_partitions(client, 1_000_000, 10)
            started = time.perf_counter()
            program.add_partitions(client, 0, LITTLE.partitions)
            seconds.append(time.perf_counter() - started)
    return _ratio(f"add_partitions of {LITTLE.partitions}", seconds, "s", 5.0)


def _hold_open(server: Server, count: int) -> list[int]:
    """Transactions with a write id each, which stay open."""
    with program.connected(server.port) as client:
        opened = program.open_txns(client, count)
        for first in range(0, count, program.OPENED_AT_ONCE):
            program.allocate(client, opened[first : first + program.OPENED_AT_ONCE])
    return opened


def lock_ratio(ours: Server, theirs: Server, target: float) -> tuple[Ratio, float]:
    """Of COUNT transactions, which keep their locks; with our seconds."""
    seconds = [0.0, 0.0]
    held = [_hold_open(server, COUNT) for server in (ours, theirs)]
    for turn in range(LOCK_TURNS):
        for at, (server, txn_ids) in enumerate(zip((ours, theirs), held, strict=True)):
            some = txn_ids[turn::LOCK_TURNS]
            seconds[at] += program.lock_seconds(server.port, some, LOCKING_CLIENTS)
    what = f"{COUNT} locks on one table, {LOCKING_CLIENTS} clients"
    return _ratio(what, seconds, "s", target), seconds[0]


def read_ratios(
    ours: Server,
    theirs: Server,
    state: str,
    reads: Sequence[Asked],
    sizes: Sizes,
    calls: int = READS,
) -> Iterator[Ratio]:
    """Medians of calls that are made one after the other, in turns."""
    with program.connected(ours.port) as own, program.connected(theirs.port) as other:
        for asked in reads:
            times = medians([(own, sizes), (other, sizes)], asked.read, calls)
            count, all_of_them = asked.count(sizes), asked.of(sizes)
            what = f"{asked.what} of {count}" + f" of {all_of_them}" * (count != all_of_them)
            yield _ratio(what + state, times, "ms", 1.0)


def _small_server(workplace: Workplace, postgresql: PostgreSql) -> OurServer:
    """A server of ours with little, beside that with much."""
    database = postgresql.database("little")
    little = OurServer(workplace, database.sqlalchemy_url, store=database)
    make_tables(workplace, little)
    with program.connected(little.port) as client:
        program.add_partitions(client, 0, LITTLE.partitions)
    write_events(database, LITTLE.events)
    held = _hold_open(little, LITTLE.txns)
    program.lock_seconds(little.port, held, LOCKING_CLIENTS)
    return little


def _ratio(what: str, both: Sequence[float], unit: str, target: float) -> Ratio:
    """Of ours and theirs, where the smaller is the better."""
    ours, theirs = both
    return Ratio(
        what=what,
        ours=f"{ours:.1f} {unit}",
        theirs=f"{theirs:.1f} {unit}",
        ratio=theirs / ours,
        target=target,
    )


if __name__ == "__main__":
    main()
