"""Threads with connections of their own on one database."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Event
from time import monotonic, sleep
from typing import Any

import pytest
from sqlalchemy import Connection, event, insert, literal, select

from hms_bridge.backend.schema.notification_tables import NOTIFICATION_SEQUENCE
from hms_bridge.backend.schema.txn_tables import (
    COMPACTION_QUEUE,
    MIN_HISTORY_LEVEL,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
    WRITE_SET,
)
from hms_bridge.backend.sequences import next_compaction_id
from hms_bridge.backend.txn_lock import lock_txns
from hms_bridge.backend.work import Work
from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import TxnSettings
from hms_bridge.errors import TxnAbortedError
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import DataOperation, LockState, LockType
from hms_bridge.model.txn import OpenTxnsRequest, TxnState
from hms_bridge.txn import open_txns
from hms_bridge.txn.abort import abort_txns
from tests.support.databases import SERVER_URL
from tests.support.txns import Txns, component
from tests.support.world import World

THREADS = 4


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Real time, and the database's own where it has one."""
    world = World(tmp_path, clock=SystemClock())
    yield world
    world.close()


def _together(*verbs: Callable[[], Any]) -> list[Any]:
    start = Barrier(len(verbs))

    def run(verb: Callable[[], Any]) -> Any:
        start.wait(timeout=30)
        return verb()

    with ThreadPoolExecutor(len(verbs)) as pool:
        return list(pool.map(run, verbs))


def test_no_entry_is_claimed_twice(txns: Txns) -> None:
    count = 24
    for number in range(count):
        txns.compact(f"t{number}")

    def work(worker: str) -> list[int]:
        claimed = []
        while (found := txns.claim(worker)) is not None:
            assert found.worker_id == worker
            claimed.append(int(found.id))
        return claimed

    found = _together(*(lambda n=n: work(f"w{n}") for n in range(THREADS)))
    assert sorted(one for ids in found for one in ids) == list(range(1, count + 1))


def test_one_request_of_many_is_queued(world: World, txns: Txns) -> None:
    world.create_table(is_partitioned=True)
    answers = _together(*(txns.compact for _ in range(THREADS)))
    assert [one.is_accepted for one in answers].count(True) == 1


@pytest.mark.skipif(not SERVER_URL, reason="SQLite has one writer at a time")
def test_an_entry_that_a_hive_has_not_committed_yet_is_seen(world: World, txns: Txns) -> None:
    """It has let the mutex go by then (CompactFunction), but not the counter."""
    world.create_table()
    columns = {"CQ_DATABASE": world.database, "CQ_TABLE": "t", "CQ_STATE": "i", "CQ_TYPE": "i"}
    with ThreadPoolExecutor(1) as pool:
        with world.engine.transaction(write=True) as hive:
            hive.execute(insert(COMPACTION_QUEUE).values(CQ_ID=next_compaction_id(hive), **columns))
            asked = pool.submit(txns.compact)
            sleep(0.5)
            assert not asked.done()
        assert not asked.result(timeout=30).is_accepted
    assert len(world.records(COMPACTION_QUEUE)) == 1


def test_write_ids_have_no_gaps_and_no_doubles(txns: Txns) -> None:
    ids = txns.open(THREADS * 5)

    def work(mine: list[int]) -> list[int]:
        return [write_id for txn_id in mine for write_id in txns.allocate(txn_id)]

    found = _together(*(lambda n=n: work(ids[n::THREADS]) for n in range(THREADS)))
    assert all(ids == sorted(ids) for ids in found)
    assert sorted(one for given in found for one in given) == list(range(1, len(ids) + 1))


def test_first_write_ids_of_new_tables(txns: Txns) -> None:
    """The counter has no row yet, so there is nothing to lock."""
    ids = txns.open(THREADS)
    for table in ("a", "b", "c"):
        found = _together(*(lambda t=t, n=table: txns.allocate(t, table=n) for t in ids))
        assert sorted(found) == [[1], [2], [3], [4]]


def test_transaction_ids_are_never_shared(txns: Txns) -> None:
    found = _together(*(lambda: [txns.open_one() for _ in range(8)] for _ in range(THREADS)))
    ids = [one for some in found for one in some]
    assert len(set(ids)) == THREADS * 8


def test_only_one_of_two_updates_commits(txns: Txns) -> None:
    for _ in range(5):
        rivals = [txns.write(DataOperation.UPDATE)[0] for _ in range(THREADS)]

        def commit(txn_id: int) -> bool:
            try:
                txns.commit(txn_id)
            except TxnAbortedError:
                return False
            return True

        assert _together(*(lambda t=t: commit(t) for t in rivals)).count(True) == 1


def test_one_exclusive_lock_at_a_time(txns: Txns) -> None:
    exclusive = component(LockType.EXCLUSIVE, DataOperation.NO_TXN)
    for _ in range(5):
        answers = _together(*(lambda: txns.lock(0, exclusive) for _ in range(THREADS)))
        states = {one.lock_id: one.state for one in answers}
        assert len(states) == THREADS
        assert [states[one] for one in sorted(states)] == [
            LockState.ACQUIRED,
            *[LockState.WAITING] * (THREADS - 1),
        ]
        for lock_id in states:
            txns.unlock(lock_id)


def test_commit_against_abort(world: World, txns: Txns) -> None:
    for _ in range(8):
        txn_id, write_id = txns.write()

        def commit(one: int = txn_id) -> bool:
            try:
                txns.commit(one)
            except TxnAbortedError:
                return False
            return True

        def abort(one: int = txn_id) -> bool:
            return bool(world.do(abort_txns, [TxnId(one)]).aborted)

        committed, aborted = _together(commit, abort)
        assert committed is not aborted
        assert txns.valid().is_valid(write_id) is committed
        states = {txn.id: txn.state for txn in txns.all().txns}
        assert (states.get(txn_id) is TxnState.ABORTED) is aborted


@pytest.mark.skipif(SERVER_URL is None, reason="SQLite has one writer at a time")
class TestOpenersInFlight:
    """An opener has its id, but has not committed yet."""

    def _open(self, world: World, connection: Connection) -> int:
        request = OpenTxnsRequest(user="u", host="h")
        (txn_id,) = open_txns.open_txns(Work(connection, world.clock, world.settings), request).ids
        return txn_id

    def test_they_count_as_open(self, world: World, txns: Txns) -> None:
        with world.engine.transaction(write=True) as connection:
            unseen = self._open(world, connection)
            later = txns.open_one()
            assert later > unseen
            assert unseen not in {row["TXN_ID"] for row in world.records(TXNS)}
            assert {unseen, later} <= {txn.id for txn in txns.all().txns}
            assert not txns.snapshot().is_valid(unseen)
        assert {unseen, later} <= {txn.id for txn in txns.all().txns}

    def test_one_that_stalls_before_its_id_hides_no_other(self, world: World, txns: Txns) -> None:
        """Its row is as old as its id: an earlier id may still appear until that row is old."""
        world.start(txn=TxnSettings(open_timeout_ms=3000))
        timeout_seconds = 3.0
        started, has_drawn = Event(), Event()

        @event.listens_for(world.engine.engine, "before_cursor_execute")
        def stall(connection: Connection, _cursor: object, statement: str, *_: object) -> None:
            if re.search('INSERT INTO ["`]TXNS["`]', statement) and connection is stalled:
                started.set()
                assert has_drawn.wait(30)

        with ThreadPoolExecutor(1) as pool:
            with world.engine.transaction(write=True) as connection:
                with world.engine.transaction(write=True) as stalled:
                    began = monotonic()
                    late = pool.submit(self._open, world, stalled)
                    assert started.wait(30)
                    sleep(0.6 * timeout_seconds)
                    unseen = self._open(world, connection)
                    drawn = monotonic()
                    has_drawn.set()
                    later = late.result(30)
                assert later > unseen
                sleep(max(0.0, began + 1.1 * timeout_seconds - monotonic()))
                listed = {txn.id for txn in txns.all().txns}
                watermark = world.metastore.min_open_txn_watermark()
            assert monotonic() - drawn < timeout_seconds, "too busy to tell anything"
        assert {unseen, later} <= listed
        assert watermark <= unseen

    def test_who_waited_for_the_lock_is_not_late(self, world: World, txns: Txns) -> None:
        """It had no id yet that others could count as dead."""
        world.start(txn=TxnSettings(open_timeout_ms=400))

        def open_one() -> int:
            with world.engine.transaction(write=True) as connection:
                return self._open(world, connection)

        with ThreadPoolExecutor(1) as pool:
            with world.engine.transaction(write=True) as held:
                lock_txns(held, is_exclusive=True)
                held.execute(select(literal(1)))
                late = pool.submit(open_one)
                sleep(0.8)
            txn_id = late.result(30)
        assert [row["TXN_ID"] for row in world.records(TXNS)][1:] == [txn_id]
        assert [row["MHL_TXNID"] for row in world.records(MIN_HISTORY_LEVEL)] == [txn_id]

    @pytest.mark.parametrize("is_compaction", [True, False])
    def test_conflicting_commits_wait_for_them(
        self, world: World, txns: Txns, is_compaction: bool
    ) -> None:
        if is_compaction:
            txns.compact()
            mine = txns.start_compaction(1)
            txns.mark_compacted(mine)
            committing = mine.txn_id
        else:
            committing, _ = txns.write(DataOperation.UPDATE)
        with ThreadPoolExecutor(1) as pool:
            with world.engine.transaction(write=True) as connection:
                unseen = self._open(world, connection)
                commit = pool.submit(txns.commit, committing)
                with pytest.raises(TimeoutError):
                    commit.result(timeout=0.4)
            commit.result(timeout=30)
        (row,) = world.records(COMPACTION_QUEUE if is_compaction else WRITE_SET)
        assert row["CQ_NEXT_TXN_ID" if is_compaction else "WS_COMMIT_ID"] >= unseen


def test_readers_see_whole_states_while_others_write(txns: Txns) -> None:
    """A snapshot never shows a later commit without an earlier one of the same writer."""

    def write() -> list[tuple[int, int]]:
        pairs = []
        for _ in range(10):
            txn_id, write_id = txns.write()
            txns.commit(txn_id)
            pairs.append((txn_id, write_id))
        return pairs

    def read() -> list[Any]:
        return [(txns.snapshot(), txns.valid()) for _ in range(15)]

    *written, seen = _together(write, write, read)
    for snapshot, write_ids in seen:
        for pairs in written:
            in_snapshot = [snapshot.is_valid(txn_id) for txn_id, _ in pairs]
            assert in_snapshot == sorted(in_snapshot, reverse=True)
            in_list = [write_ids.is_valid(write_id) for _, write_id in pairs]
            assert in_list == sorted(in_list, reverse=True)


@pytest.mark.skipif(not SERVER_URL, reason="SQLite has one writer at a time")
@pytest.mark.parametrize("verb", ["drop", "rename"])
def test_a_write_id_that_is_given_while_a_table_goes_goes_with_it(world: World, verb: str) -> None:
    """Else the table that is made again there could give no write id of that number, nor any after
    it; and the one of another name would take for committed what was written under it."""
    world.create_table()
    txns = world.txns
    held = txns.open(3)
    for txn in held[:2]:
        assert txns.allocate(txn)
    given, _ = _before_either_ends(world, lambda: txns.allocate(held[2]), lambda: _go(world, verb))
    assert given == [3]
    left = {(row["T2W_TABLE"], row["T2W_WRITEID"]) for row in world.records(TXN_TO_WRITE_ID)}
    if verb == "drop":
        assert left == set()
        world.create_table()
        # Above those of the writers that outlived the table.
        assert [txns.allocate(txns.open_one()) for _ in range(4)] == [[4], [5], [6], [7]]
    else:
        assert left == {("u", 1), ("u", 2), ("u", 3)}


def _before_either_ends(world: World, *verbs: Callable[[], object]) -> list[object]:
    """What each gives; it begins before those before it have come to their ends."""
    with ThreadPoolExecutor(len(verbs)) as pool:
        # Who logs an event waits for this row, with all that he did before.
        with world.engine.transaction(write=True) as connection:
            connection.execute(select(NOTIFICATION_SEQUENCE).with_for_update())
            doing = []
            for verb in verbs:
                doing.append(pool.submit(verb))
                sleep(0.5)
        return [done.result(60) for done in doing]


def _go(world: World, verb: str) -> None:
    if verb == "drop":
        world.metastore.drop_table(world.database, "t", is_data_deleted=False)
        return
    # Its files stay where they are: who moves them looks for writers, too.
    table = world.describe()
    place = replace(table.storage, location=f"file:{world.warehouse}/elsewhere")
    world.metastore.alter_table(world.database, "t", replace(table, name="u", storage=place))


@pytest.mark.skipif(not SERVER_URL, reason="SQLite has one writer at a time")
@pytest.mark.parametrize("is_renamed_first", [False, True])
def test_a_write_that_is_aborted_while_its_table_is_renamed_stays_known(
    world: World, *, is_renamed_first: bool
) -> None:
    """Under the new name: else it is forgotten with the old one, and what it wrote shows."""
    world.create_table()
    txns = world.txns
    (txn_id,) = txns.open(1)
    assert txns.allocate(txn_id) == [1]
    verbs: list[Callable[[], object]] = [lambda: txns.abort(txn_id), lambda: _go(world, "rename")]
    _before_either_ends(world, *reversed(verbs) if is_renamed_first else verbs)
    known = [(row["TC_TABLE"], row["TC_WRITEID"]) for row in world.records(TXN_COMPONENTS)]
    assert known == [("u", 1)]


@pytest.mark.skipif(not SERVER_URL, reason="SQLite has one writer at a time")
@pytest.mark.parametrize("is_renamed_first", [False, True])
def test_of_two_updates_one_commits_while_their_table_is_renamed(
    world: World, *, is_renamed_first: bool
) -> None:
    """What the first one changed is noted down under the new name, where the second one looks."""
    world.create_table()
    txns = world.txns
    first, second = (txns.write(DataOperation.UPDATE)[0] for _ in range(2))
    verbs: list[Callable[[], object]] = [lambda: txns.commit(first), lambda: _go(world, "rename")]
    _before_either_ends(world, *reversed(verbs) if is_renamed_first else verbs)
    assert {row["WS_TABLE"] for row in world.records(WRITE_SET)} == {"u"}
    with pytest.raises(TxnAbortedError):
        txns.commit(second)
