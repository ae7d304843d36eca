"""Clients of two metastores on one database, over thrift: each writes down what it was told, so
that afterwards the database can be held to it.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hive_metastore.ttypes import (
    AbortTxnRequest,
    AllocateTableWriteIdsRequest,
    CheckLockRequest,
    CommitTxnRequest,
    CompactionInfoStruct,
    CompactionRequest,
    CompactionType,
    FieldSchema,
    FindNextCompactRequest,
    HeartbeatRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    OpenTxnRequest,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
    TxnAbortedException,
    UnlockRequest,
)

from integration.referees.outside import thrift_client

TABLES = ("t0", "t1", "t2")
INSERT, UPDATE = 2, 3
PATIENCE_SECONDS = 60
ORC = "org.apache.hadoop.hive.ql.io.orc"
WEIGHTS = {"write": 10, "lock": 3, "partition": 3, "compact": 2, "work": 2}


@dataclass
class Told:
    """What all clients were told; each list is added to by threads."""

    txns: list[int] = field(default_factory=list)
    committed: dict[int, tuple[str, int]] = field(default_factory=dict)
    ended: dict[int, str] = field(default_factory=dict)
    write_ids: list[tuple[str, int, int]] = field(default_factory=list)
    locks: list[int] = field(default_factory=list)
    compactions: list[int] = field(default_factory=list)
    queued: dict[int, str] = field(default_factory=dict)
    """Which client each entry of the queue was promised to."""
    partitions: dict[tuple[str, str], bool] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)


class MixedClient:
    """One client of one server: operations by the dice, until a moment."""

    def __init__(self, name: str, port: int, database: str, told: Told, seed: int) -> None:
        self.name = name
        self._port = port
        self._database = database
        self._told = told
        self._dice = random.Random(seed)
        self._partitions = 0

    def work(self, until: float) -> None:
        """An error of any kind ends this client, and is a finding."""
        operations: dict[str, Callable[[Any], None]] = {
            "write": self._write,
            "lock": self._lock_alone,
            "partition": self._partition,
            "compact": self._compact,
            "work": self._take_compaction,
        }
        names = list(WEIGHTS)
        with thrift_client(self._port) as client:
            while time.monotonic() < until:
                (name,) = self._dice.choices(names, [WEIGHTS[n] for n in names])
                try:
                    operations[name](client)
                except Exception as error:
                    self._told.errors.append(f"{self.name}: {name}: {error!r}")
                    return
                self._told.done[f"{self.name[:-1]} {name}"] += 1

    def _write(self, client: Any) -> None:
        table, told = self._dice.choice(TABLES), self._told
        is_update = self._dice.random() < 0.3
        count = self._dice.choice((1, 1, 2))
        opened = client.open_txns(OpenTxnRequest(num_txns=count, user="u", hostname=self.name))
        told.txns += opened.txn_ids
        for txn in opened.txn_ids:
            request = AllocateTableWriteIdsRequest(
                dbName=self._database, tableName=table, txnIds=[txn]
            )
            (pair,) = client.allocate_table_write_ids(request).txnToWriteIds
            assert pair.txnId == txn
            told.write_ids.append((table, pair.writeId, txn))
            self._lock(client, table, txn, UPDATE if is_update else INSERT)
            if self._dice.random() < 0.3:
                client.heartbeat(HeartbeatRequest(txnid=txn))
            if self._dice.random() < 0.25:
                client.abort_txn(AbortTxnRequest(txnid=txn))
                told.ended[txn] = "aborted"
                continue
            try:
                client.commit_txn(CommitTxnRequest(txnid=txn))
            except TxnAbortedException:
                assert is_update, "only an update can be in conflict"
                told.ended[txn] = "conflict"
            else:
                told.ended[txn] = "committed"
                told.committed[txn] = (table, pair.writeId)

    def _lock(self, client: Any, table: str, txn: int | None, operation: int) -> int:
        kind = LockType.SHARED_WRITE if operation == UPDATE else LockType.SHARED_READ
        component = LockComponent(
            type=kind, level=LockLevel.TABLE, dbname=self._database, tablename=table,
            operationType=operation if txn is not None else 1, isTransactional=True,
            isDynamicPartitionWrite=False,
        )  # fmt: skip
        request = LockRequest(component=[component], user="u", hostname=self.name)
        if txn is not None:
            request.txnid = txn
        answer = client.lock(request)
        self._told.locks.append(answer.lockid)
        until = time.monotonic() + PATIENCE_SECONDS
        while answer.state != LockState.ACQUIRED:
            assert time.monotonic() < until, "a lock is never granted"
            time.sleep(0.05)
            answer = client.check_lock(CheckLockRequest(lockid=answer.lockid))
        return int(answer.lockid)

    def _lock_alone(self, client: Any) -> None:
        lock = self._lock(client, self._dice.choice(TABLES), None, INSERT)
        client.heartbeat(HeartbeatRequest(lockid=lock))
        client.unlock(UnlockRequest(lockid=lock))

    def _partition(self, client: Any) -> None:
        """Made, changed, and half of them dropped again."""
        self._partitions += 1
        value = f"{self.name}-{self._partitions}"
        table = "parts"
        made = Partition(
            values=[value], dbName=self._database, tableName=table, createTime=1, lastAccessTime=1,
            sd=storage(f"file:/nowhere/{self._database}/{table}/p={value}"), parameters={"k": "1"},
        )  # fmt: skip
        client.add_partition(made)
        self._told.partitions[table, f"p={value}"] = True
        made.parameters = {"k": "2"}
        client.alter_partition(self._database, table, made)
        if self._dice.random() < 0.5:
            client.drop_partition(self._database, table, [value], False)
            self._told.partitions[table, f"p={value}"] = False

    def _compact(self, client: Any) -> None:
        answer = client.compact2(
            CompactionRequest(
                dbname=self._database,
                tablename=self._dice.choice(TABLES),
                type=CompactionType.MAJOR,
            )
        )
        if answer.accepted:
            self._told.queued[answer.id] = self.name

    def _take_compaction(self, client: Any) -> None:
        """As a worker that fails at once, so that the queue may be filled again."""
        found = client.find_next_compact2(
            FindNextCompactRequest(workerId=self.name, workerVersion="x")
        ).ci
        if found is None:
            return
        self._told.compactions.append(found.id)
        client.mark_failed(
            CompactionInfoStruct(
                id=found.id, dbname=found.dbname, tablename=found.tablename, type=found.type,
                state=found.state, workerId=self.name, errorMessage="on purpose",
            )
        )  # fmt: skip


def storage(location: str) -> StorageDescriptor:
    """Of an ORC table with one column."""
    return StorageDescriptor(
        cols=[FieldSchema(name="id", type="int", comment="")],
        location=location,
        inputFormat=f"{ORC}.OrcInputFormat",
        outputFormat=f"{ORC}.OrcOutputFormat",
        serdeInfo=SerDeInfo(serializationLib=f"{ORC}.OrcSerde", parameters={}),
        numBuckets=-1, bucketCols=[], sortCols=[], parameters={},
    )  # fmt: skip


def table_of(database: str, name: str, location: str) -> Table:
    """An ACID table, or the one with partitions, which is external."""
    is_parts = name == "parts"
    keys = [FieldSchema(name="p", type="string", comment="")] if is_parts else []
    return Table(
        dbName=database, tableName=name, owner="u", createTime=1, lastAccessTime=1,
        sd=storage(location), partitionKeys=keys,
        tableType="EXTERNAL_TABLE" if is_parts else "MANAGED_TABLE",
        parameters={"EXTERNAL": "TRUE"} if is_parts else {"transactional": "true"},
    )  # fmt: skip


def run_all(clients: list[MixedClient], seconds: float) -> None:
    """All at once, and to their end."""
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=client.work, args=(until,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
