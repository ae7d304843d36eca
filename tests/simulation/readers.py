"""Readers of other kinds: with a lock and no transaction, slow ones, those of another database."""

from __future__ import annotations

import random

from hms_bridge.errors import HmsBridgeError
from hms_bridge.model.ids import LockId, TxnId
from hms_bridge.model.lock import (
    DataOperation,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
)
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import CommitTxnRequest, OpenTxnsRequest, TxnType
from hms_bridge.session.min_history import register_reader
from hms_bridge.session.transaction import current_snapshot
from tests.simulation.cluster import BASE_COLUMNS
from tests.simulation.sql_clients import SqlClients
from tests.simulation.statements import PAUSES, NotTodayError
from tests.simulation.story import ViolationError
from tests.simulation.tenants import OTHER, OTHER_TABLE

_SLOW_MS = (2_000, 20_000, 90_000, 250_000)


class Readers(SqlClients):
    """What clients read, each a method that an actor runs to its end."""

    def read_by_lock(self, dice: random.Random) -> None:
        """A SHARED_READ lock and no transaction, as other engines read. Never registered."""
        table = self._some_table(dice)
        store = self.cluster.source.metastore
        lock_id = self._lock(self.cluster.database, table, TxnId(0))
        try:
            reader, write_ids, txns = self._snapshot(self.cluster.reader_of(lock_id), table)
            for _ in range(2):
                for partition in sorted(reader.places):
                    self._read_partition(reader, partition, txns, write_ids)
                for _ in range(PAUSES):
                    self.cluster.scheduler.point("reader pauses", changes=False)
            store.unlock(lock_id)
        except (NotTodayError, HmsBridgeError, OSError):
            key = self.cluster.reader_of(lock_id)
            known = self.cluster.readers.get(key)
            if known and not known.is_unsettled and self.cluster.is_open(key):
                raise
        finally:
            self.cluster.readers.pop(self.cluster.reader_of(lock_id), None)

    def read_slowly(self, dice: random.Random) -> None:
        """Each of its operations takes long; it gives signs of life all the same."""
        actor = self.cluster.scheduler.current
        if actor is not None:
            actor.delay_ms = dice.choice(_SLOW_MS)
        self.read(dice)

    def read_other(self, dice: random.Random) -> None:
        """A long reader of another database: its rows stay, and it keeps nobody back."""
        self.cluster.work_at(self.cluster.first)
        store = self.cluster.source.metastore
        (txn_id,) = store.open_txns(OpenTxnsRequest(user="o", host="h", type=TxnType.READ_ONLY))
        try:
            self._lock(OTHER, OTHER_TABLE, txn_id)
            if dice.random() < 0.7:
                register_reader(store, txn_id, [f"{OTHER}.{OTHER_TABLE}"])
            txns = current_snapshot(store, txn_id)
            (write_ids,) = store.get_valid_write_ids([f"{OTHER}.{OTHER_TABLE}"], txns)
            for _ in range(2):
                found = self._rows_of(
                    f"/source/{OTHER}.db/{OTHER_TABLE}", BASE_COLUMNS, txns, write_ids
                )
                if found != self.cluster.other_rows and self.cluster.is_open(txn_id):
                    raise ViolationError("I2", f"a reader of {OTHER} read {found}")
                for _ in range(PAUSES):
                    self.cluster.scheduler.point("reader pauses", changes=False)
            store.commit_txn(CommitTxnRequest(txn_id=txn_id))
        except (NotTodayError, HmsBridgeError):
            if self.cluster.is_open(txn_id):
                raise

    def _lock(self, database: str, table: str, txn_id: TxnId) -> LockId:
        component = LockComponent(
            type=LockType.SHARED_READ,
            level=LockLevel.TABLE,
            scope=Scope(database, table),
            operation=DataOperation.SELECT,
            is_transactional=True,
        )
        store = self.cluster.source.metastore
        answer = store.lock(LockRequest(components=(component,), txn_id=txn_id, user="r", host="h"))
        if answer.state is not LockState.ACQUIRED:
            if not txn_id:
                store.unlock(answer.lock_id)
            raise NotTodayError("locked")
        return answer.lock_id
