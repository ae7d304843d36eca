"""Locks and commits that come together leave what they leave one by one, in as many statements as
few of them take."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest
from sqlalchemy import Table, event, select

from hms_bridge.backend.schema.txn_tables import (
    COMPLETED_TXN_COMPONENTS,
    HIVE_LOCKS,
    MIN_HISTORY_LEVEL,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
    WRITE_SET,
)
from hms_bridge.errors import MetastoreError
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import DataOperation, LockState, LockType
from hms_bridge.model.txn import TxnType
from hms_bridge.repl.format.stored_message import message_json
from hms_bridge.service.metastore_service import MetastoreService
from hms_bridge.service.open import open_local_metastore
from tests.conformance import objects
from tests.conformance.objects import abort, commit, events_after, open_txn, write_id
from tests.support.crowd import Crowd
from tests.support.databases import ON_A_SERVER, fresh_url

TABLES: dict[Table, str] = {
    TXNS: "TXN_ID",
    TXN_COMPONENTS: "TC_TXNID",
    COMPLETED_TXN_COMPONENTS: "CTC_TXNID",
    HIVE_LOCKS: "HL_TXNID",
    MIN_HISTORY_LEVEL: "MHL_TXNID",
    WRITE_SET: "WS_TXNID",
    TXN_TO_WRITE_ID: "T2W_TXNID",
}
"""What transactions leave, and the column that names them."""
OF_THE_MOMENT = ("TXN_STARTED", "TXN_LAST_HEARTBEAT", "HL_ACQUIRED_AT", "CTC_TIMESTAMP",
                 "HL_LOCK_EXT_ID", "MHL_MIN_OPEN_TXNID", "WS_COMMIT_ID")  # fmt: skip

Written: TypeAlias = tuple[str, str | None, DataOperation]
"""Table, partition, and what is done to its rows."""


@pytest.fixture
def metastore(tmp_path: Path) -> Iterator[MetastoreService]:
    opened = open_local_metastore(fresh_url(tmp_path), warehouse=str(tmp_path / "warehouse"))
    yield opened
    opened.close()


@pytest.fixture
def crowd(metastore: MetastoreService) -> Crowd:
    return Crowd(metastore)


def new_database(metastore: MetastoreService) -> str:
    made = objects.new_database(metastore)
    for name in ("t", "u"):
        objects.new_table(metastore, made, name, partition_columns=objects.DS)
    return made


def left(
    metastore: MetastoreService, database: str, txns: Sequence[TxnId], after: int
) -> list[object]:
    """All that these transactions left in the tables and the log, as if they were 0, 1, 2 …"""

    def rows_of(table: Table, key: str) -> list[str]:
        wanted = select(table).where(table.c[key].in_(txns))
        rows = metastore._transactions.read(lambda c: c.execute(wanted).mappings().all())
        plain = [{**row, key: txns.index(row[key])} for row in rows]
        texts = [repr([row[name] for name in row if name not in OF_THE_MOMENT]) for row in plain]
        return sorted(text.replace(database, "db") for text in texts)

    logged = [(one.type, json.loads(message_json(one))) for one in events_after(metastore, after)]
    events = [(kind, txns.index(said["txnid"]), said.get("writeIds")) for kind, said in logged]
    return [*(rows_of(table, key) for table, key in TABLES.items()), sorted(events)]


def take(metastore: MetastoreService, database: str, txn: TxnId, written: Written) -> LockState:
    name, partition, operation = written
    part = objects.component(database, name, LockType.SHARED_WRITE, operation, partition)
    return metastore.lock(objects.request(part, txn=txn)).state


def kind_or_answer(outcome: object) -> object:
    return type(outcome) if isinstance(outcome, Exception) else outcome


def outcomes_of(calls: Sequence[Callable[[], object]]) -> list[object]:
    """As those of a crowd."""
    outcomes: list[object] = []
    for call in calls:
        try:
            outcomes.append(call())
        except MetastoreError as error:
            outcomes.append(error)
    return outcomes


WRITES: tuple[tuple[Written, ...], ...] = (
    (),
    (("t", None, DataOperation.INSERT),),
    (("t", "ds=1", DataOperation.INSERT), ("t", "ds=2", DataOperation.INSERT)),
    (("t", None, DataOperation.INSERT), ("u", None, DataOperation.INSERT)),
    (("u", "ds=1", DataOperation.UPDATE),),
    (("u", "ds=1", DataOperation.DELETE), ("t", None, DataOperation.INSERT)),
)


@pytest.mark.parametrize("seed", range(12))
def test_commits_that_come_together_leave_what_they_leave_one_by_one(
    metastore: MetastoreService, crowd: Crowd, seed: int
) -> None:
    """Of every three crowds one is plain; in others some change rows, only read, or come twice. Of
    most one has ended before."""
    dice = random.Random(seed)
    is_plain, has_twins = seed % 3 == 0, seed % 3 == 1
    writes = [dice.choice(WRITES[:4] if is_plain else WRITES) for _ in range(6)]
    is_reader = [not (is_plain or written) and dice.random() < 0.5 for written in writes]
    order = dice.sample(range(6), 6) + [0] * has_twins

    def all_of(*, is_together: bool) -> list[object]:
        database = new_database(metastore)
        txns = [open_txn(metastore, TxnType(TxnType.READ_ONLY * reads)) for reads in is_reader]
        for txn, written in zip(txns, writes, strict=True):
            for name in sorted({name for name, _, _ in written}):
                write_id(metastore, txn, database, name)
            for part in written:
                assert take(metastore, database, txn, part) is LockState.ACQUIRED
        if seed % 4:
            (commit, abort, abort)[seed % 4 - 1](metastore, txns[1])
        before = metastore.get_current_event_id()
        # A batch has an order of its own.
        if is_together:
            order.sort(key=lambda place: f"{txns[place]}")
        calls = [partial(commit, metastore, txns[place]) for place in order]
        outcomes = crowd.together(*calls) if is_together else outcomes_of(calls)
        answers = sorted(
            (place, repr(kind_or_answer(outcome)))
            for place, outcome in zip(order, outcomes, strict=True)
        )
        return [answers, *left(metastore, database, txns, before)]

    assert all_of(is_together=True) == all_of(is_together=False)
    assert crowd.batches == [len(order)]


@pytest.mark.parametrize("seed", range(6))
def test_locks_of_several_that_come_together_leave_what_they_leave_one_by_one(
    metastore: MetastoreService, crowd: Crowd, seed: int
) -> None:
    dice = random.Random(seed)
    wanted: list[Written] = [
        (
            "t",
            dice.choice((None, "ds=1")),
            dice.choice((DataOperation.INSERT, DataOperation.UPDATE)),
        )
        for _ in range(5)
    ]
    has_write_id = [dice.random() < 0.7 for _ in wanted]
    ends_before = seed % 3 == 2

    def all_of(*, is_together: bool) -> list[object]:
        database = new_database(metastore)
        txns = [open_txn(metastore) for _ in wanted]
        for txn, has in zip(txns, has_write_id, strict=True):
            if has:
                write_id(metastore, txn, database)
        before = metastore.get_current_event_id()
        if ends_before:
            commit(metastore, txns[2])
        calls = [
            partial(take, metastore, database, txn, part)
            for txn, part in zip(txns, wanted, strict=True)
        ]
        outcomes = crowd.together(*calls) if is_together else outcomes_of(calls)
        answers = [kind_or_answer(outcome) for outcome in outcomes]
        assert answers.count(LockState.ACQUIRED) == 5 - ends_before
        return [answers, *left(metastore, database, txns, before)]

    assert all_of(is_together=False) == all_of(is_together=True)
    assert crowd.batches == [5]


@ON_A_SERVER
def test_many_take_as_many_statements_as_a_few(metastore: MetastoreService, crowd: Crowd) -> None:
    database = new_database(metastore)
    engine = metastore._transactions.database.engine
    statements: list[str] = []

    def note(_conn: object, _cursor: object, statement: str, *_others: object) -> None:
        statements.append(statement)

    def counts_of(size: int) -> list[int]:
        txns = [open_txn(metastore) for _ in range(size)]
        for txn in txns:
            write_id(metastore, txn, database)
        locks = [
            partial(take, metastore, database, txn, ("t", None, DataOperation.INSERT))
            for txn in txns
        ]
        commits = [partial(commit, metastore, txn) for txn in txns]
        counts = []
        for calls in (locks, commits):
            statements.clear()
            crowd.together(*calls)
            counts.append(len(statements))
        return counts

    counts_of(2)  # what is looked at once
    event.listen(engine, "before_cursor_execute", note)
    try:
        assert counts_of(8) == counts_of(3)
        assert sum(counts_of(8)) < 30
    finally:
        event.remove(engine, "before_cursor_execute", note)
