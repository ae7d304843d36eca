"""What a transaction sees that waited for its locks."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.clock import SystemClock
from hms_bridge.connect import LocalStore
from hms_bridge.errors import DmlError
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.lock import DataOperation, LockRequest, LockType
from hms_bridge.model.txn import (
    TxnState,
)
from hms_bridge.session.locked_transaction import locked_transaction
from hms_bridge.session.transaction import Client
from tests.conformance import objects
from tests.support.passing import Interrupted, Passing
from tests.support.simulated_clock import SimulatedClock
from tests.support.world import World

UPDATE = objects.component("default", "t", LockType.EXCL_WRITE, DataOperation.UPDATE)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    world = World(tmp_path, clock=SystemClock(), database="default", has_database=False)
    world.create_table()
    return world.store


class Overtaken(Passing):
    """A metastore on which another update begins right after ours, and locks first."""

    other = TxnId(0)

    def lock(self, request: LockRequest) -> object:
        self.other = objects.open_txn(self.inner)
        self.inner.lock(objects.request(UPDATE, txn=self.other))
        objects.write_id(self.inner, self.other, "default")
        return self.inner.lock(request)

    def now_ms(self) -> int:
        return 0

    def sleep_seconds(self, seconds: float) -> None:  # noqa: ARG002
        objects.commit(self.inner, self.other)


def test_an_update_that_waited_sees_the_one_it_waited_for(store: LocalStore) -> None:
    """Else both replace the same row: an update is lost, and the row is there twice."""
    world = Overtaken(store.metastore)
    client = Client(user="u", host="h")
    with locked_transaction(world, client, world, [UPDATE]) as transaction:  # type: ignore[arg-type]
        assert transaction.id < world.other
        assert transaction.txns.is_valid(world.other)
        assert transaction.txns.is_valid(transaction.id)
        assert transaction.write_ids("default.t").is_valid(WriteId(1))
        later = objects.open_txn(store.metastore)
        assert not transaction.txns.is_valid(later)


@pytest.mark.parametrize("cut_off", ["open_txns", "lock", "get_open_txns", "commit_txn"])
def test_an_interrupt_leaves_no_open_transaction(store: LocalStore, cut_off: str) -> None:
    """Also one that comes before its id is known; the one at the commit comes too late."""

    def ctrl_c() -> None:
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        client = Client(user="u", host="h")
        metastore: Any = Interrupted(store.metastore, ctrl_c, after=cut_off)
        with (
            pytest.raises(KeyboardInterrupt),
            locked_transaction(metastore, client, SystemClock(), [UPDATE]),
        ):
            pass
    finally:
        signal.signal(signal.SIGINT, before)
    states = [txn.state for txn in store.metastore.get_open_txns_info()]
    assert TxnState.OPEN not in states


def test_locks_are_awaited_no_longer_because_a_clock_is_set_back(store: LocalStore) -> None:
    holder = objects.open_txn(store.metastore)
    store.metastore.lock(objects.request(UPDATE, txn=holder))
    clock = SimulatedClock()

    def set_back() -> None:
        assert len(clock.slept_seconds) < 1000, "no end"
        clock.set_back_ms(7_200_000)

    clock.on_sleep = set_back
    client = Client(user="u", host="h", lock_wait_seconds=60)
    with (
        pytest.raises(DmlError, match="not granted in 60 s"),
        locked_transaction(store.metastore, client, clock, [UPDATE]),
    ):
        pass
