"""The one thrift program that both metastores are asked by: Hive's bindings as PyIceberg ships
them, over the accelerated protocol. Clients are threads of a few processes, so that the program is
not what is measured.
"""

from __future__ import annotations

import functools
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from hive_metastore import ThriftHiveMetastore, ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport import TSocket, TTransport

DATABASE = "bench"
TABLE = "t"
PARTITIONED = "p"
PROCESSES_MAX = 4
OPENED_AT_ONCE = 1000
_READY_SECONDS = 3.0
_INSERT = 2
_TIMEOUT_MS = 600_000


@contextmanager
def connected(port: int) -> Iterator[Any]:
    """A client of the metastore on a port of the loopback interface."""
    socket = TSocket.TSocket("127.0.0.1", port)
    socket.setTimeout(_TIMEOUT_MS)
    transport = TTransport.TBufferedTransport(socket)
    transport.open()
    try:
        yield ThriftHiveMetastore.Client(TBinaryProtocolAccelerated(transport))
    finally:
        transport.close()


def make_tables(client: Any, folder: str) -> None:
    """A database with a table, and one that is partitioned."""
    client.create_database(ttypes.Database(name=DATABASE, locationUri=f"file:{folder}/{DATABASE}"))
    for name, keys in ((TABLE, []), (PARTITIONED, [ttypes.FieldSchema(name="ds", type="string")])):
        client.create_table(
            ttypes.Table(
                tableName=name,
                dbName=DATABASE,
                owner="bench",
                sd=_storage(f"file:{folder}/{DATABASE}/{name}"),
                partitionKeys=keys,
                parameters={"EXTERNAL": "TRUE"},
                tableType="EXTERNAL_TABLE",
            )
        )


def open_txns(client: Any, count: int = 1) -> list[int]:
    """Open transactions; a thousand at once at most."""
    opened: list[int] = []
    while len(opened) < count:
        wanted = min(OPENED_AT_ONCE, count - len(opened))
        request = ttypes.OpenTxnRequest(num_txns=wanted, user="bench", hostname="here")
        opened += client.open_txns(request).txn_ids
    return opened


def allocate(client: Any, txn_ids: Sequence[int]) -> None:
    """A write id of the table for each."""
    client.allocate_table_write_ids(
        ttypes.AllocateTableWriteIdsRequest(dbName=DATABASE, tableName=TABLE, txnIds=list(txn_ids))
    )


def lock(client: Any, txn_id: int) -> None:
    """A writer's lock of the table that other inserts share."""
    component = ttypes.LockComponent(
        type=ttypes.LockType.SHARED_WRITE,
        level=ttypes.LockLevel.TABLE,
        dbname=DATABASE,
        tablename=TABLE,
        operationType=_INSERT,
        isTransactional=True,
    )
    client.lock(
        ttypes.LockRequest(component=[component], txnid=txn_id, user="bench", hostname="here")
    )


def open_and_commit(client: Any) -> None:
    """A transaction that does nothing."""
    (txn_id,) = open_txns(client)
    client.commit_txn(ttypes.CommitTxnRequest(txnid=txn_id))


def two_empty_calls(client: Any) -> None:
    """As many calls as :func:`open_and_commit` makes, of which the server does nothing."""
    client.getName()
    client.getName()


def write_transaction(client: Any) -> None:
    """What one INSERT asks of a metastore."""
    (txn_id,) = open_txns(client)
    allocate(client, (txn_id,))
    lock(client, txn_id)
    client.commit_txn(ttypes.CommitTxnRequest(txnid=txn_id))


def add_partitions(client: Any, first: int, count: int) -> None:
    """Partitions with numbers as values, whose directories are there or are made."""
    table = client.get_table_req(ttypes.GetTableRequest(dbName=DATABASE, tblName=PARTITIONED)).table
    parts = [
        ttypes.Partition(
            values=[str(number)],
            dbName=DATABASE,
            tableName=PARTITIONED,
            sd=_storage(f"{table.sd.location}/ds={number}"),
            parameters={},
        )
        for number in range(first, first + count)
    ]
    client.add_partitions_req(
        ttypes.AddPartitionsRequest(
            dbName=DATABASE, tblName=PARTITIONED, parts=parts, ifNotExists=False, needResult=False
        )
    )


WORKS: dict[str, Callable[[Any], None]] = {
    "open+commit": open_and_commit,
    "write transaction": write_transaction,
    "two empty calls": two_empty_calls,
}


def rate(port: int, work: str, clients: int, seconds: float) -> tuple[float, int]:
    """How often a second clients did one of WORKS together, and how often in all."""
    count = max(1, int(sum(_together(_count, port, clients, (work, seconds)))))
    return count / seconds, count


def lock_seconds(port: int, txn_ids: Sequence[int], clients: int) -> float:
    """How long clients took together until each of these transactions held its lock."""
    shares = [tuple(txn_ids[place::clients]) for place in range(clients)]
    return max(_together(_lock_all, port, clients, (shares,)))


def _together(
    task: Callable[..., list[float]], port: int, clients: int, given: tuple[Any, ...]
) -> list[float]:
    """What each client of a task answers; all begin at the same time."""
    processes = min(clients, PROCESSES_MAX)
    start_at = time.time() + _READY_SECONDS
    places = [tuple(range(first, clients, processes)) for first in range(processes)]
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawned) as pool:
        asked = [pool.submit(task, port, mine, start_at, *given) for mine in places]
        return [answer for done in asked for answer in done.result()]


def _count(
    port: int, places: Sequence[int], start_at: float, work: str, seconds: float
) -> list[float]:
    return _in_threads(functools.partial(_count_one, port, start_at, WORKS[work], seconds), places)


def _count_one(
    port: int, start_at: float, work: Callable[[Any], None], seconds: float, _place: int
) -> float:
    with connected(port) as client:
        work(client)
        _wait(start_at)
        count = 0
        while time.time() < start_at + seconds:
            work(client)
            count += 1
        return count


def _lock_all(
    port: int, places: Sequence[int], start_at: float, shares: Sequence[Sequence[int]]
) -> list[float]:
    return _in_threads(functools.partial(_lock_share, port, start_at, shares), places)


def _lock_share(port: int, start_at: float, shares: Sequence[Sequence[int]], place: int) -> float:
    with connected(port) as client:
        _wait(start_at)
        for txn_id in shares[place]:
            lock(client, txn_id)
        return time.time() - start_at


def _in_threads(task: Callable[[int], float], places: Sequence[int]) -> list[float]:
    with ThreadPoolExecutor(len(places)) as threads:
        return list(threads.map(task, places))


def _wait(start_at: float) -> None:
    time.sleep(max(0.0, start_at - time.time()))


def _storage(location: str) -> Any:
    orc = "org.apache.hadoop.hive.ql.io.orc"
    return ttypes.StorageDescriptor(
        cols=[
            ttypes.FieldSchema(name="id", type="int"),
            ttypes.FieldSchema(name="name", type="string"),
        ],
        location=location,
        inputFormat=f"{orc}.OrcInputFormat",
        outputFormat=f"{orc}.OrcOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=ttypes.SerDeInfo(
            name=None,
            serializationLib=f"{orc}.OrcSerde",
            parameters={"serialization.format": "1"},
        ),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )
