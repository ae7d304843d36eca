"""What a transaction sees that waited for its locks."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import Settings
from hms_bridge.connect import LocalStore, install_schema, open_local
from hms_bridge.model.catalog import ORC_INPUT_FORMAT, ORC_OUTPUT_FORMAT, Column, Storage, Table
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.lock import DataOperation, LockComponent, LockLevel, LockRequest, LockType
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import (
    AllocateWriteIdsRequest,
    CommitTxnRequest,
    OpenTxnsRequest,
    TxnState,
)
from hms_bridge.rows.transaction import Client, open_transaction
from tests.support.databases import fresh_url

UPDATE = LockComponent(
    type=LockType.EXCL_WRITE,
    level=LockLevel.TABLE,
    scope=Scope("default", "t"),
    operation=DataOperation.UPDATE,
    is_transactional=True,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    settings = Settings(warehouse=str(tmp_path / "warehouse"))
    url = fresh_url(tmp_path)
    install_schema(url, settings)
    opened = open_local(url, settings)
    storage = Storage(
        columns=(Column(name="id", type="int"),),
        input_format=ORC_INPUT_FORMAT,
        output_format=ORC_OUTPUT_FORMAT,
    )
    opened.metastore.create_table(
        Table(
            name="t",
            database_name="default",
            storage=storage,
            parameters={"transactional": "true"},
        )
    )
    yield opened
    opened.metastore.close()


class Overtaken:
    """A metastore on which another update begins right after ours, and locks first."""

    def __init__(self, store: LocalStore) -> None:
        self._metastore = store.metastore
        self.other = TxnId(0)

    def __getattr__(self, name: str) -> object:
        return getattr(self._metastore, name)

    def lock(self, request: LockRequest) -> object:
        (self.other,) = self._metastore.open_txns(OpenTxnsRequest(user="u", host="h"))
        self._metastore.lock(
            LockRequest(components=(UPDATE,), txn_id=self.other, user="u", host="h")
        )
        self._metastore.allocate_table_write_ids(
            AllocateWriteIdsRequest(database_name="default", table_name="t", txn_ids=(self.other,))
        )
        return self._metastore.lock(request)

    def now_ms(self) -> int:
        return 0

    def sleep_seconds(self, seconds: float) -> None:  # noqa: ARG002
        self._metastore.commit_txn(CommitTxnRequest(txn_id=self.other))


def test_an_update_that_waited_sees_the_one_it_waited_for(store: LocalStore) -> None:
    """Else both replace the same row: an update is lost, and the row is there twice."""
    world = Overtaken(store)
    client = Client(user="u", host="h")
    with open_transaction(world, client, world, [UPDATE]) as transaction:  # type: ignore[arg-type]
        assert transaction.id < world.other
        assert transaction.txns.is_valid(world.other)
        assert transaction.txns.is_valid(transaction.id)
        assert transaction.write_ids("default.t").is_valid(WriteId(1))
        (later,) = store.metastore.open_txns(OpenTxnsRequest(user="u", host="h"))
        assert not transaction.txns.is_valid(later)


@pytest.mark.parametrize("cut_off", ["open_txns", "lock", "get_open_txns", "commit_txn"])
def test_an_interrupt_leaves_no_open_transaction(store: LocalStore, cut_off: str) -> None:
    """Also one that comes before its id is known; the one at the commit comes too late."""

    class Interrupted:
        def __getattr__(self, name: str) -> Any:
            method = getattr(store.metastore, name)
            if name != cut_off:
                return method

            def call(*arguments: Any) -> Any:
                answer = method(*arguments)
                signal.raise_signal(signal.SIGINT)
                return answer

            return call

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        client = Client(user="u", host="h")
        metastore: Any = Interrupted()
        with (
            pytest.raises(KeyboardInterrupt),
            open_transaction(metastore, client, SystemClock(), [UPDATE]),
        ):
            pass
    finally:
        signal.signal(signal.SIGINT, before)
    states = [txn.state for txn in store.metastore.get_open_txns_info()]
    assert TxnState.OPEN not in states
