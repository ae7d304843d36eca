"""Transactions, write ids and locks in any order, against a model that fits on a page.

The model knows what must hold, not how: who is committed, in which order locks were asked for,
which write ids belong to whom.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
)

from hms_bridge.backend.schema.txn_tables import TXNS
from hms_bridge.errors import MetastoreError, TxnAbortedError
from hms_bridge.model.ids import WriteId
from hms_bridge.model.lock import DataOperation, LockState, LockType
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import TxnType
from hms_bridge.txn.lock_rules import LockTarget, blocks
from tests.support.databases import SERVER_URL
from tests.support.engines import MEMORY
from tests.support.txns import component
from tests.support.world import World

TABLES = ("t", "u")
PARTITIONS = (None, "p=1", "p=2")
WRITES = (DataOperation.INSERT, DataOperation.UPDATE, DataOperation.DELETE)
CHANGES = (DataOperation.UPDATE, DataOperation.DELETE)


@dataclass
class ModelLock:
    owner: int
    target: LockTarget
    is_acquired: bool = False


@dataclass
class ModelTxn:
    kind: TxnType
    state: str = "o"
    began: int = 0
    ended: int = 0
    changes: set[tuple[str, str | None]] = field(default_factory=set)
    kept: list[LockTarget] = field(default_factory=list)


def _same_place(one: tuple[str, str | None], other: tuple[str, str | None]) -> bool:
    return one[0] == other[0] and (one[1] is None or other[1] is None or one[1] == other[1])


class TxnMachine(RuleBasedStateMachine):
    txns = Bundle("txns")

    @initialize()
    def begin(self) -> None:
        self.stack = ExitStack()
        folder = self.stack.enter_context(TemporaryDirectory())
        self.world = World(Path(folder), url=None if SERVER_URL else MEMORY)
        self.stack.callback(self.world.close)
        self.model: dict[int, ModelTxn] = {}
        self.locks: dict[int, ModelLock] = {}
        self.writes: dict[tuple[str, int], int] = {}
        self.step = 0

    def teardown(self) -> None:
        if hasattr(self, "stack"):
            self.stack.close()

    def _tick(self) -> int:
        self.step += 1
        return self.step

    # what happens

    @rule(target=txns, count=st.integers(1, 3), is_reader=st.booleans())
    def open(self, count: int, is_reader: bool):  # type: ignore[no-untyped-def]
        kind = TxnType.READ_ONLY if is_reader else TxnType.DEFAULT
        ids = self.world.txns.open(count, kind)
        assert ids == sorted(ids)
        assert not set(ids) & set(self.model)
        began = self._tick()
        self.model.update({one: ModelTxn(kind, began=began) for one in ids})
        return multiple(*ids)

    @rule(txn=txns, table=st.sampled_from(TABLES))
    def allocate(self, txn: int, table: str) -> None:
        model = self.model[txn]
        if model.state != "o" or model.kind is TxnType.READ_ONLY:
            self._refused(lambda: self.world.txns.allocate(txn, table=table))
            return
        (write_id,) = self.world.txns.allocate(txn, table=table)
        known = [
            write for (name, write), owner in self.writes.items() if (name, owner) == (table, txn)
        ]
        given = [write for name, write in self.writes if name == table]
        assert write_id == (known[0] if known else len(given) + 1)
        self.writes[table, write_id] = txn

    @rule(
        txn=txns,
        kind=st.sampled_from(LockType),
        table=st.sampled_from(TABLES),
        partition=st.sampled_from(PARTITIONS),
        operation=st.sampled_from(WRITES),
    )
    def lock(
        self,
        txn: int,
        kind: LockType,
        table: str,
        partition: str | None,
        operation: DataOperation,
    ) -> None:
        model = self.model[txn]
        one = component(kind, operation, table=table, partition=partition)
        if model.state != "o":
            self._refused(lambda: self.world.txns.lock(txn, one))
            return
        answer = self.world.txns.lock(txn, one)
        assert all(answer.lock_id > other for other in self.locks)
        target = LockTarget(kind, Scope("db", table, partition))
        self.locks[answer.lock_id] = ModelLock(txn, target)
        if operation in CHANGES:
            model.changes.add((table, partition))
        self._expect(answer.lock_id, answer.state)

    @rule(data=st.data())
    def check_lock(self, data: st.DataObject) -> None:
        if self.locks:
            lock_id = data.draw(st.sampled_from(sorted(self.locks)))
            self._expect(lock_id, self.world.txns.check(lock_id))

    @rule(data=st.data())
    def unlock(self, data: st.DataObject) -> None:
        if not self.locks:
            return
        lock_id = data.draw(st.sampled_from(sorted(self.locks)))
        if self.locks[lock_id].is_acquired:
            self._refused(lambda: self.world.txns.unlock(lock_id))
        else:
            self.world.txns.unlock(lock_id)
            del self.locks[lock_id]

    @rule(txn=txns, is_trusting=st.booleans())
    def commit(self, txn: int, is_trusting: bool) -> None:
        model = self.model[txn]
        if model.state == "c":
            if not self._is_forgotten(txn):
                assert self.world.txns.commit(txn) == ()
            return
        if model.state == "a":
            self._refused(lambda: self.world.txns.commit(txn))
            return
        is_refused = self._conflicts(txn, is_trusting=is_trusting)
        try:
            self.world.txns.commit(txn, is_exclusive_write_enabled=is_trusting)
        except TxnAbortedError:
            assert is_refused
            self._end(txn, "a")
            return
        assert not is_refused
        self._end(txn, "c")

    @rule(txn=txns)
    def abort(self, txn: int) -> None:
        if self.model[txn].state == "c":
            self._refused(lambda: self.world.txns.abort(txn))
            return
        if self._is_forgotten(txn):
            self._refused(lambda: self.world.txns.abort(txn))
            return
        was_open = self.model[txn].state == "o"
        is_logged = was_open and self.model[txn].kind is not TxnType.READ_ONLY
        assert bool(self.world.txns.abort(txn)) is is_logged
        if was_open:
            self._end(txn, "a")

    @rule(milliseconds=st.sampled_from([1, 500, 1001]))
    def wait(self, milliseconds: int) -> None:
        self.world.clock.advance_ms(milliseconds)

    @rule()
    def housekeep(self) -> None:
        self.world.txns.housekeep()

    # what must hold

    @invariant()
    def open_and_aborted_are_as_they_are(self) -> None:
        if not hasattr(self, "world"):
            return
        found = self.world.txns.all()
        states = {txn.id: txn.state.value for txn in found.txns}
        writers = {
            one: model for one, model in self.model.items() if model.kind is not TxnType.READ_ONLY
        }
        assert {one for one, model in writers.items() if model.state == "o"} == {
            one for one, state in states.items() if state == "o"
        }
        # Aborted ones may be forgotten once nothing of them is left; all others never.
        aborted = {one for one, state in states.items() if state == "a"}
        assert aborted <= {one for one, model in writers.items() if model.state == "a"}
        with_writes = {owner for owner in self.writes.values() if self.model[owner].state == "a"}
        assert with_writes <= aborted
        assert found.high_watermark == max([0, *self.model])

    @invariant()
    def write_ids_are_visible_exactly_if_committed(self) -> None:
        if not hasattr(self, "world"):
            return
        for table in TABLES:
            found = self.world.txns.valid(f"db.{table}")
            for (name, write_id), owner in self.writes.items():
                if name == table:
                    is_committed = self.model[owner].state == "c"
                    assert found.is_valid(WriteId(write_id)) is is_committed, (table, write_id)

    @invariant()
    def nothing_that_excludes_each_other_is_held(self) -> None:
        held = [one for one in getattr(self, "locks", {}).values() if one.is_acquired]
        for one in held:
            for other in held:
                both_ways = blocks(one.target, other.target) and blocks(other.target, one.target)
                assert one.owner == other.owner or not both_ways

    # how the model decides

    def _expect(self, lock_id: int, state: LockState) -> None:
        mine = self.locks[lock_id]
        if mine.is_acquired:
            assert state is LockState.ACQUIRED
            return
        earlier = [
            other
            for other_id, other in self.locks.items()
            if other_id < lock_id and other.owner != mine.owner
        ]
        is_blocked = any(blocks(other.target, mine.target) for other in earlier)
        assert (state is LockState.WAITING) is is_blocked
        if not is_blocked:
            mine.is_acquired = True

    def _conflicts(self, txn: int, *, is_trusting: bool) -> bool:
        model = self.model[txn]
        kept = [
            one.target
            for one in self.locks.values()
            if one.owner == txn
            and one.is_acquired
            and one.target.type in (LockType.EXCL_WRITE, LockType.EXCLUSIVE)
        ]

        def is_kept(place: tuple[str, str | None]) -> bool:
            return any(
                target.scope.table == place[0] and target.scope.partition in (None, place[1])
                for target in kept
            )

        if model.kind is TxnType.READ_ONLY:
            return False
        if is_trusting and all(is_kept(place) for place in model.changes):
            return False
        return any(
            other.state == "c"
            and other.kind is not TxnType.READ_ONLY
            and other.ended > model.began
            and _same_place(mine, theirs)
            for other in self.model.values()
            for mine in model.changes
            for theirs in other.changes
        )

    def _end(self, txn: int, state: str) -> None:
        self.model[txn].state = state
        self.model[txn].ended = self._tick()
        self.locks = {one: lock for one, lock in self.locks.items() if lock.owner != txn}

    def _is_forgotten(self, txn: int) -> bool:
        """Ended, and housekeeping found nothing left of it: refused as unknown."""
        return self.model[txn].state != "o" and all(
            row["TXN_ID"] != txn for row in self.world.records(TXNS)
        )

    def _refused(self, verb) -> None:  # type: ignore[no-untyped-def]
        try:
            verb()
        except MetastoreError as error:
            assert str(error)
            return
        raise AssertionError("was not refused")


TxnMachine.TestCase.settings = settings(
    max_examples=5 if SERVER_URL else 25, stateful_step_count=30, deadline=None
)
TestTxnMachine = TxnMachine.TestCase
