"""Verbs that share a transaction: all is durable before one is answered, and none feels another."""

from __future__ import annotations

import json
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, insert, select
from sqlalchemy.exc import OperationalError

from hms_bridge.backend.engine import open_database
from hms_bridge.backend.schema.txn_tables import AUX_TABLE, TXN_COMPONENTS, TXNS
from hms_bridge.config.settings import EventSettings, Settings
from hms_bridge.errors import (
    CommitUnknownError,
    MetaError,
    NoSuchTxnError,
    TxnAbortedError,
)
from hms_bridge.model.catalog import Database
from hms_bridge.model.event import NotificationEvent
from hms_bridge.model.ids import LockId, TxnId
from hms_bridge.model.lock import DataOperation, LockFilter, LockState, LockType
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import TxnState, TxnType
from hms_bridge.notification import events
from hms_bridge.repl.format.stored_message import message_json
from hms_bridge.service.metastore_service import MetastoreService
from hms_bridge.service.open import open_local_metastore
from hms_bridge.service.shared_writes import Place, Rank
from hms_bridge.service.unit_of_work import UnitOfWork
from tests.conformance import objects
from tests.conformance.objects import abort, commit, events_after, open_txn, write_id
from tests.support.crowd import Crowd
from tests.support.databases import ON_POSTGRESQL, SERVER_URL, fresh_url
from tests.support.faults import CrashError, FaultPlan

sqlite_only = pytest.mark.skipif(SERVER_URL is not None, reason="the same steps, but copied")
HERE = "tests.service.test_shared_writes"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return fresh_url(tmp_path)


@pytest.fixture
def metastore(url: str, tmp_path: Path) -> Iterator[MetastoreService]:
    opened = open_local_metastore(url, warehouse=str(tmp_path / "warehouse"))
    yield opened
    opened.close()


@pytest.fixture
def crowd(metastore: MetastoreService) -> Crowd:
    return Crowd(metastore)


def at(rank: Rank) -> Callable[[], tuple[Place, None]]:
    """The turn of a verb that is like no other."""
    return lambda: (Place(rank), None)


def engine_of(metastore: MetastoreService) -> Engine:
    return metastore._transactions.database.engine


def of_type(metastore: MetastoreService) -> list[str]:
    return [told.type for told in events_after(metastore, 0)]


def states(metastore: MetastoreService) -> dict[TxnId, TxnState]:
    """Of those that have a row: an id that was given back counts as open for a while."""
    infos = metastore.get_open_txns_info()
    return {info.id: info.state for info in infos if info.started_ms}


def message(logged: NotificationEvent) -> Any:
    return json.loads(message_json(logged))


def lock_of(metastore: MetastoreService, txn: TxnId, database: str) -> LockState:
    part = objects.component(database, "t", LockType.SHARED_WRITE, DataOperation.INSERT)
    return metastore.lock(objects.request(part, txn=txn)).state


def test_what_comes_at_the_same_time_shares_one_commit(
    metastore: MetastoreService, crowd: Crowd
) -> None:
    database = objects.new_database(metastore)
    objects.new_table(metastore, database)
    ended, writing, aborted, locking = (open_txn(metastore) for _ in range(4))
    known = metastore.get_current_event_id()
    commits: list[object] = []
    event.listen(engine_of(metastore), "commit", commits.append)
    outcomes = crowd.together(
        lambda: lock_of(metastore, locking, database),
        lambda: write_id(metastore, writing, database),
        lambda: metastore.heartbeat(writing, LockId(0)),
        lambda: open_txn(metastore),
        lambda: commit(metastore, ended),
        lambda: abort(metastore, aborted),
    )
    assert crowd.batches == [6]
    assert len(commits) == 2, "that of who held the turn, and that of all"
    newest = outcomes[3]
    assert outcomes == [LockState.ACQUIRED, 1, None, newest, None, None]
    assert states(metastore) == {
        writing: TxnState.OPEN, locking: TxnState.OPEN, newest: TxnState.OPEN,
        aborted: TxnState.ABORTED,
    }  # fmt: skip
    told = events_after(metastore, known)
    kinds = [one.type for one in told]
    assert kinds == ["ABORT_TXN", "COMMIT_TXN", "OPEN_TXN", "ALLOC_WRITE_ID_EVENT"]
    assert [one.id for one in told] == list(range(known + 1, known + 5))


def test_one_that_is_refused_undoes_itself_and_nothing_else(
    metastore: MetastoreService, crowd: Crowd
) -> None:
    def refused(unit: UnitOfWork) -> None:
        unit.connection.execute(insert(AUX_TABLE).values(MT_KEY1="refused", MT_KEY2=1))
        unit.events.append(events.txns_opened([TxnId(77)], unit.now_seconds))
        raise MetaError("not on a Sunday")

    def kept(unit: UnitOfWork) -> str:
        unit.connection.execute(insert(AUX_TABLE).values(MT_KEY1="kept", MT_KEY2=1))
        return "kept"

    txn = open_txn(metastore)
    write = metastore._transactions.write
    outcomes = crowd.together(
        lambda: write(kept, at(Rank.END)),
        lambda: write(refused, at(Rank.OPEN)),
        lambda: commit(metastore, TxnId(999_999)),
        lambda: commit(metastore, txn),
    )
    assert crowd.batches == [4]
    assert [type(one) for one in outcomes] == [str, MetaError, NoSuchTxnError, type(None)]
    read = metastore._transactions.read
    assert read(lambda c: c.scalars(select(AUX_TABLE.c.MT_KEY1)).all()) == ["kept"]
    assert of_type(metastore)[-2:] == ["OPEN_TXN", "COMMIT_TXN"]
    assert [told.id for told in events_after(metastore, 0)] == [1, 2]


def test_verbs_of_one_kind_are_done_at_once(metastore: MetastoreService, crowd: Crowd) -> None:
    database = objects.new_database(metastore)
    objects.new_table(metastore, database)
    known = metastore.get_current_event_id()
    ids = crowd.together(*[lambda: open_txn(metastore)] * 3)
    assert crowd.batches == [3]
    assert len(set(ids)) == 3
    assert states(metastore) == dict.fromkeys(ids, TxnState.OPEN)
    opened = [message(one) for one in events_after(metastore, known)]
    assert [(one["fromTxnId"], one["toTxnId"]) for one in opened] == [(i, i) for i in sorted(ids)]
    inserting, other, third = sorted(ids)
    assert write_id(metastore, inserting, database) == 1
    assert lock_of(metastore, inserting, database) is LockState.ACQUIRED
    calls = [lambda txn=txn: commit(metastore, txn) for txn in (third, inserting, other, third)]
    assert crowd.together(*calls) == [None] * 4
    assert states(metastore) == {}
    commits = [one for one in events_after(metastore, known) if one.type == "COMMIT_TXN"]
    assert [message(one)["txnid"] for one in commits] == sorted(ids)
    assert [message(one)["writeIds"] for one in commits] == [[1], [], []]
    assert metastore.show_locks() == ()


def test_write_ids_of_one_table_are_given_at_once(
    metastore: MetastoreService, crowd: Crowd
) -> None:
    database = objects.new_database(metastore)
    objects.new_table(metastore, database)
    txns = [open_txn(metastore) for _ in range(3)]
    assert write_id(metastore, txns[1], database) == 1
    known = metastore.get_current_event_id()
    asked = (txns[2], txns[1], txns[0], txns[2])
    calls = [lambda txn=txn: write_id(metastore, txn, database) for txn in asked]
    assert crowd.together(*calls) == [3, 1, 2, 3]
    assert crowd.batches == [4]
    logged = [message(one) for one in events_after(metastore, known)]
    assert [one["txnIdList"] for one in logged] == [[txns[0]], [txns[2]]]
    assert [one["writeIdList"] for one in logged] == [[2], [3]], "as who replays the log needs it"


def test_verbs_of_several_kinds_for_one_table_are_done_in_one_go(
    metastore: MetastoreService, crowd: Crowd
) -> None:
    """Taken for one kind, they fail, and the whole batch is done again, each by itself."""
    database = objects.new_database(metastore)
    objects.new_table(metastore, database)
    writing, locking = [[open_txn(metastore) for _ in range(2)] for _ in range(2)]
    assert write_id(metastore, open_txn(metastore), database) == 1
    begun: list[object] = []
    event.listen(engine_of(metastore), "begin", begun.append)
    outcomes = crowd.together(
        *(lambda txn=txn: lock_of(metastore, txn, database) for txn in locking),
        *(lambda txn=txn: write_id(metastore, txn, database) for txn in writing),
    )
    assert outcomes == [LockState.ACQUIRED, LockState.ACQUIRED, 2, 3]
    assert len(begun) == 2, "that of who held the turn, and that of all"


@ON_POSTGRESQL
def test_verbs_of_all_kinds_are_asked_for_in_one_message_and_committed_with_another(
    metastore: MetastoreService, crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hms_bridge.backend.pipeline import PipelinedConnection

    database = objects.new_database(metastore)
    objects.new_table(metastore, database)
    writing, locking, ended, older = [[open_txn(metastore) for _ in range(2)] for _ in range(4)]
    for txn in older:
        write_id(metastore, txn, database)
    sent: list[int] = []
    really = PipelinedConnection._send_all

    def send_all(raw: Any, held: Any, *, is_begun: bool) -> Any:
        sent.append(len(held))
        return really(raw, held, is_begun=is_begun)

    metastore._transactions.write(lambda unit: unit.now_ms)
    monkeypatch.setattr(PipelinedConnection, "_send_all", send_all)
    outcomes = crowd.together(
        *(lambda txn=txn: lock_of(metastore, txn, database) for txn in locking),
        *(lambda txn=txn: write_id(metastore, txn, database) for txn in writing),
        *(lambda txn=txn: commit(metastore, txn) for txn in (*ended, *older)),
        *[lambda: open_txn(metastore)] * 2,
    )
    assert outcomes[:4] == [LockState.ACQUIRED, LockState.ACQUIRED, 3, 4]
    assert outcomes[4:8] == [None] * 4
    assert len(sent) <= 4, "two, one to count how many are open, and none of who held the turn"
    assert sent[-1] == 3, "the locks, the events, the commit"


def test_commits_that_conflict_are_settled_in_the_order_of_their_locks(
    metastore: MetastoreService, crowd: Crowd
) -> None:
    """They lock what openers share: before other kinds of the batch have begun."""
    database = objects.new_database(metastore)
    objects.new_table(metastore, database)
    changing, locking = open_txn(metastore), open_txn(metastore)
    write_id(metastore, changing, database)
    part = objects.component(database, "t", LockType.SHARED_WRITE, DataOperation.UPDATE)
    metastore.lock(objects.request(part, txn=changing))
    shared = metastore._transactions._shared
    assert shared is not None
    outcomes = crowd.together(
        lambda: open_txn(metastore),
        lambda: lock_of(metastore, locking, database),
        lambda: commit(metastore, changing),
    )
    assert outcomes[1:] == [LockState.ACQUIRED, None]
    assert changing not in states(metastore)
    assert of_type(metastore)[-2:] == ["COMMIT_TXN", "OPEN_TXN"]
    is_postgresql = engine_of(metastore).dialect.name == "postgresql"
    assert bool(shared._in_turn_left) is is_postgresql


def test_a_write_id_that_is_refused_leaves_those_of_others_alone(
    metastore: MetastoreService, crowd: Crowd
) -> None:
    database = objects.new_database(metastore)
    objects.new_table(metastore, database)
    good, reading = open_txn(metastore), open_txn(metastore, TxnType.READ_ONLY)
    outcomes = crowd.together(
        lambda: write_id(metastore, good, database), lambda: write_id(metastore, reading, database)
    )
    assert outcomes[0] == 1
    assert isinstance(outcomes[1], MetaError)


KINDS = (
    (LockType.SHARED_WRITE, DataOperation.INSERT),
    (LockType.SHARED_READ, DataOperation.SELECT),
    (LockType.EXCL_WRITE, DataOperation.UPDATE),
    (LockType.EXCLUSIVE, DataOperation.NO_TXN),
)


@pytest.mark.parametrize("seed", range(12))
def test_locks_that_come_together_are_granted_as_those_that_come_one_by_one(
    metastore: MetastoreService, crowd: Crowd, seed: int
) -> None:
    dice = random.Random(seed)
    database = objects.new_database(metastore)
    kinds = [dice.choice(KINDS) for _ in range(6)]
    owners = [dice.randrange(5) for _ in kinds]

    def all_of(table: str, *, is_together: bool) -> list[object]:
        txns = [open_txn(metastore) for _ in range(5)]
        write_id(metastore, txns[0], database, table)

        def take(owner: int, kind: LockType, operation: DataOperation) -> LockId:
            part = objects.component(database, table, kind, operation)
            return metastore.lock(objects.request(part, txn=txns[owner])).lock_id

        before = take(4, *KINDS[seed % 4])
        calls = [partial(take, owner, *kind) for owner, kind in zip(owners, kinds, strict=True)]
        taken = crowd.together(*calls) if is_together else [call() for call in calls]
        assert taken == list(range(before + 1, before + 7))
        locks = metastore.show_locks(LockFilter(scope=Scope(database, table)))
        rows = [
            (one.lock_id - before, one.state, one.type, txns.index(one.txn_id),
             one.blocked_by_lock_id and one.blocked_by_lock_id - before,
             one.blocked_by_internal_id, one.internal_id)
            for one in locks
        ]  # fmt: skip
        read = metastore._transactions.read
        of_table = select(TXN_COMPONENTS).where(table == TXN_COMPONENTS.c.TC_TABLE)
        tracked = [
            (txns.index(row.TC_TXNID), row.TC_OPERATION_TYPE, row.TC_WRITEID)
            for row in read(lambda c: c.execute(of_table).all())
        ]
        return [sorted(rows), sorted(tracked, key=repr)]

    assert all_of("alone", is_together=False) == all_of("together", is_together=True)
    assert crowd.batches == [6]


@pytest.mark.parametrize("tables", [(None,), ("t", "u")], ids=["database", "several tables"])
def test_locks_of_other_scopes_that_come_together_see_each_other(
    metastore: MetastoreService, crowd: Crowd, tables: tuple[str | None, ...]
) -> None:
    """A database, or several tables in one request, are asked for beside one of the tables."""
    database = objects.new_database(metastore)
    reading, alone = open_txn(metastore), open_txn(metastore)

    def take(txn: TxnId, kind: LockType, *names: str | None) -> LockState:
        parts = [
            replace(
                objects.component(database, "t", kind, DataOperation.NO_TXN),
                scope=Scope(database, name),
            )
            for name in names
        ]
        return metastore.lock(objects.request(*parts, txn=txn)).state

    outcomes = crowd.together(
        lambda: take(reading, LockType.SHARED_READ, "t"),
        lambda: take(alone, LockType.EXCLUSIVE, *tables),
    )
    assert outcomes == [LockState.ACQUIRED, LockState.WAITING]
    assert crowd.batches == [2]


@pytest.mark.parametrize("seed", range(8))
def test_locks_of_any_scopes_that_come_together_are_granted_as_one_by_one(
    metastore: MetastoreService, crowd: Crowd, seed: int
) -> None:
    dice = random.Random(seed)
    scopes = [((None, None),), (("t", None),), (("u", None),), (("t", "p=1"),),
              (("t", None), ("u", None))]  # fmt: skip
    wanted = [(dice.randrange(4), dice.choice(scopes), dice.choice(KINDS)) for _ in range(7)]

    def all_in(database: str, *, is_together: bool) -> list[object]:
        txns = [open_txn(metastore) for _ in range(4)]

        def take(
            owner: int,
            places: Sequence[tuple[str | None, str | None]],
            kind: tuple[LockType, DataOperation],
        ) -> tuple[LockId, LockState]:
            parts = [
                replace(objects.component(database, "t", *kind), scope=Scope(database, *place))
                for place in places
            ]
            taken = metastore.lock(objects.request(*parts, txn=txns[owner]))
            return taken.lock_id, taken.state

        calls = [partial(take, *each) for each in wanted]
        answers = crowd.together(*calls) if is_together else [call() for call in calls]
        first = min(lock_id for lock_id, _ in answers)
        return [(lock_id - first, state) for lock_id, state in answers]

    alone = all_in(objects.new_database(metastore), is_together=False)
    assert all_in(objects.new_database(metastore), is_together=True) == alone


@pytest.mark.parametrize("is_aborted", [False, True])
def test_commits_that_are_no_commits_leave_those_of_others_alone(
    metastore: MetastoreService, crowd: Crowd, *, is_aborted: bool
) -> None:
    good, other, odd = (open_txn(metastore) for _ in range(3))
    if is_aborted:
        abort(metastore, odd)
    else:
        odd = TxnId(odd + 100)
    outcomes = crowd.together(
        *(lambda txn=txn: commit(metastore, txn) for txn in (good, odd, other))
    )
    assert [type(one) for one in (outcomes[0], outcomes[2])] == [type(None)] * 2
    assert isinstance(outcomes[1], TxnAbortedError if is_aborted else NoSuchTxnError)
    assert good not in states(metastore)
    assert other not in states(metastore)


def test_a_refusal_with_a_trace_leaves_it(metastore: MetastoreService, crowd: Crowd) -> None:
    """Of two that changed the same, one commits and the other is aborted: both in one batch."""
    database = objects.new_database(metastore)
    objects.new_table(metastore, database)
    both = [open_txn(metastore) for _ in range(2)]
    for txn in both:
        write_id(metastore, txn, database)
        part = objects.component(database, "t", LockType.SHARED_WRITE, DataOperation.UPDATE)
        metastore.lock(objects.request(part, txn=txn))
    outcomes = crowd.together(*(lambda txn=txn: commit(metastore, txn) for txn in both))
    assert crowd.batches == [2]
    assert [type(one) for one in outcomes] == [type(None), TxnAbortedError]
    assert states(metastore) == {both[1]: TxnState.ABORTED}
    assert of_type(metastore)[-2:] == ["COMMIT_TXN", "ABORT_TXN"]


def test_a_fault_of_one_is_its_own(metastore: MetastoreService, crowd: Crowd) -> None:
    calls = count()

    def faulty(unit: UnitOfWork) -> None:
        next(calls)
        unit.connection.execute(insert(AUX_TABLE).values(MT_KEY1="k", MT_KEY2=1))
        raise KeyError("a fault")

    write = metastore._transactions.write
    outcomes = crowd.together(lambda: write(faulty, at(Rank.END)), lambda: open_txn(metastore))
    assert isinstance(outcomes[0], KeyError)
    assert list(states(metastore)) == [outcomes[1]]
    assert next(calls) == 3, "in company, then so that it can be undone, then by itself"
    assert metastore._transactions.read(lambda c: c.execute(select(AUX_TABLE)).all()) == []


def test_a_transaction_that_the_database_gave_up_is_done_by_each_alone(
    metastore: MetastoreService, crowd: Crowd
) -> None:
    """After a deadlock MySQL has undone all, and PostgreSQL takes nothing more."""
    failures = [OperationalError("x", {}, Exception("database is locked"))]

    def unlucky(unit: UnitOfWork) -> TxnId:
        if failures:
            raise failures.pop()
        return TxnId(7)

    write = metastore._transactions.write
    outcomes = crowd.together(
        lambda: open_txn(metastore),
        lambda: write(unlucky, at(Rank.LOCK)),
        lambda: commit(metastore, TxnId(999_999)),
    )
    assert crowd.batches == [3]
    assert outcomes[1] == 7
    assert isinstance(outcomes[2], NoSuchTxnError)
    assert list(states(metastore)) == [outcomes[0]]
    assert [told.id for told in events_after(metastore, 0)] == [1]


def failing_commit(
    metastore: MetastoreService, monkeypatch: pytest.MonkeyPatch, text: str, *, is_done: bool
) -> None:
    """The second commit from now on, which is that of the batch, fails: before or after it."""
    engine = engine_of(metastore)
    do_commit, commits = engine.dialect.do_commit, count(1)

    def fail(connection: Any) -> None:
        if next(commits) != 2:
            do_commit(connection)
            return
        if is_done:
            do_commit(connection)
        else:
            connection.rollback()
        raise engine.dialect.loaded_dbapi.OperationalError(text)

    monkeypatch.setattr(engine.dialect, "do_commit", fail)


def test_a_commit_that_did_not_happen_is_tried_by_each_alone(
    metastore: MetastoreService, crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    txn = open_txn(metastore)
    failing_commit(metastore, monkeypatch, "database is locked", is_done=False)
    outcomes = crowd.together(
        lambda: commit(metastore, txn),
        lambda: open_txn(metastore),
        lambda: commit(metastore, txn + 100),
    )
    assert crowd.batches == [3]
    assert outcomes[0] is None
    assert isinstance(outcomes[2], NoSuchTxnError)
    assert states(metastore) == {outcomes[1]: TxnState.OPEN}
    assert [told.id for told in events_after(metastore, 0)] == [1, 2, 3]


def test_a_refusal_that_rests_on_what_did_not_happen_is_not_told(
    metastore: MetastoreService, crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = iter(["together", "together, so that each can be undone", "alone"])

    def puts_once(unit: UnitOfWork) -> None:
        if next(turns) == "alone":
            raise MetaError("not again")
        unit.connection.execute(insert(AUX_TABLE).values(MT_KEY1="k", MT_KEY2=1))

    def minds(unit: UnitOfWork) -> str:
        if unit.connection.execute(select(AUX_TABLE)).first() is not None:
            raise MetaError("somebody was there")
        return "alone"

    failing_commit(metastore, monkeypatch, "database is locked", is_done=False)
    write = metastore._transactions.write
    outcomes = crowd.together(
        lambda: write(puts_once, at(Rank.END)), lambda: write(minds, at(Rank.LOCK))
    )
    assert isinstance(outcomes[0], MetaError)
    assert outcomes[1] == "alone"


@pytest.mark.parametrize("is_done", [False, True])
def test_a_commit_whose_answer_is_lost_is_told_to_all_and_never_tried_again(
    metastore: MetastoreService,
    crowd: Crowd,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_done: bool,
) -> None:
    txn = open_txn(metastore)
    failing_commit(metastore, monkeypatch, "the disk does not answer", is_done=is_done)
    outcomes = crowd.together(
        lambda: open_txn(metastore), lambda: open_txn(metastore), lambda: commit(metastore, txn)
    )
    assert [type(one) for one in outcomes] == [CommitUnknownError] * 3
    assert len({id(one) for one in outcomes}) == 3, "an error has one traceback"
    seen = states(metastore)
    assert len(seen) == (2 if is_done else 1), "whatever became of it, it was done once"
    assert (txn in seen) is not is_done


@sqlite_only
def test_a_batch_dies_at_any_statement_and_each_verb_is_there_as_a_whole_or_not_at_all(
    tmp_path: Path,
) -> None:
    (tmp_path / "before").mkdir()
    prepared = open_local_metastore(
        fresh_url(tmp_path / "before"), warehouse=str(tmp_path / "warehouse")
    )
    prepared.create_database(Database(name="d"))
    objects.new_table(prepared, "d")
    txns = (open_txn(prepared), open_txn(prepared))
    prepared.close()
    steps = dies_at(tmp_path, txns, None)
    assert steps > 20
    for step in range(1, steps + 1):
        dies_at(tmp_path, txns, step)


def dies_at(folder: Path, txns: tuple[TxnId, TxnId], step: int | None) -> int:
    """How many steps there are. Everything that speaks to the database dies with the process."""
    shutil.copytree(folder / "before", folder / str(step))
    url = fresh_url(folder / str(step))
    metastore = open_local_metastore(url, warehouse=str(folder / "warehouse"))
    known = metastore.get_current_event_id()
    ended, writing = txns
    plan = FaultPlan()
    plan.crash_at = step
    listeners = {
        name: lambda *_, name=name: plan.point(name) for name in ("before_cursor_execute", "commit")
    }
    for name, listener in listeners.items():
        event.listen(engine_of(metastore), name, listener)
    outcomes = Crowd(metastore).together(
        lambda: commit(metastore, ended),
        lambda: open_txn(metastore),
        lambda: write_id(metastore, writing, "d"),
        lambda: commit(metastore, TxnId(999_999)),
    )
    for name, listener in listeners.items():
        event.remove(engine_of(metastore), name, listener)
    told = events_after(metastore, known)
    there = {
        "COMMIT_TXN": ended not in states(metastore),
        "OPEN_TXN": len(states(metastore).keys() - set(txns)) == 1,
        "ALLOC_WRITE_ID_EVENT": metastore.get_max_allocated_write_id("d", "t") == 1,
    }
    metastore.close()
    assert [one.type for one in told] == [name for name, is_there in there.items() if is_there]
    assert [one.id for one in told] == list(range(known + 1, known + 1 + len(told)))
    for is_there, outcome in zip(there.values(), outcomes, strict=False):
        assert is_there or isinstance(outcome, CrashError), "answered, but not durable"
    if step is None:
        assert [type(one) for one in outcomes] == [type(None), int, int, NoSuchTxnError]
    return plan.count


class Watching:
    """A hook inside of transactions."""

    def in_transaction(self, told: object, statements: object) -> None:
        """Nothing."""

    def before_change(self, change: object) -> None:
        """Nothing."""


@pytest.mark.parametrize("kind", ["pre_listeners", "transactional_listeners"])
def test_where_hooks_stand_inside_every_verb_has_a_transaction_of_its_own(
    url: str, tmp_path: Path, kind: str
) -> None:
    told = EventSettings(**{kind: (f"{HERE}:Watching",)})  # type: ignore[arg-type]
    metastore = open_local_metastore(
        url, settings=Settings(warehouse=str(tmp_path / "warehouse"), events=told)
    )
    assert metastore._transactions._shared is None
    commit(metastore, open_txn(metastore))
    metastore.close()


def test_who_is_asked_to_share_nothing_does_not(url: str, tmp_path: Path) -> None:
    metastore = open_local_metastore(url, warehouse=str(tmp_path), shares_turns=False)
    assert metastore._transactions._shared is None
    metastore.close()


def test_the_main_thread_shares_nothing(metastore: MetastoreService, crowd: Crowd) -> None:
    """Ctrl-C would leave the others to wait for it."""
    open_txn(metastore)
    assert crowd.batches == []


def test_a_row_that_is_held_for_long_holds_up_its_own_verb_only(
    metastore: MetastoreService, crowd: Crowd, url: str
) -> None:
    if SERVER_URL is None:
        pytest.skip("SQLite has one writer at a time")
    held = open_txn(metastore)
    other = open_database(url)
    is_opened = threading.Event()
    waits: list[float] = []

    def hold() -> None:
        with other.transaction(write=True) as connection:
            connection.execute(select(TXNS).where(held == TXNS.c.TXN_ID).with_for_update())
            assert is_opened.wait(30)

    def note_time() -> None:
        began = time.monotonic()
        open_txn(metastore)
        waits.append(time.monotonic() - began)
        is_opened.set()

    holder = threading.Thread(target=hold)
    holder.start()
    time.sleep(0.1)
    outcomes = crowd.together(note_time, lambda: commit(metastore, held))
    holder.join()
    other.close()
    assert crowd.batches == [2]
    assert outcomes == [None, None]
    assert waits[0] < 10
