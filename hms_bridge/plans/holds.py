"""What protects a statement's files: a read-only transaction with a lock on each of its tables."""

from __future__ import annotations

import logging
import threading

from hms_bridge.clock import Clock
from hms_bridge.errors import HmsBridgeError, NoSuchTxnError, TxnAbortedError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table
from hms_bridge.model.txn import TxnType
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.plans.table_reader import View
from hms_bridge.session.locked_transaction import acquire_locks, read_lock
from hms_bridge.session.min_history import register_reader
from hms_bridge.session.transaction import Client, current_snapshot, open_transaction

_LOG = logging.getLogger(__name__)


class Hold:
    """An open transaction. ``leases``: who needs it; ``early``: the tables that were registered
    before the statement's snapshot was taken, so that nothing of it can be gone."""

    def __init__(self, metastore: Metastore, client: Client, clock: Clock) -> None:
        """Opens the transaction. Raises what the metastore raises."""
        self._metastore = metastore
        self._clock = clock
        self._context = open_transaction(metastore, client, kind=TxnType.READ_ONLY)
        self._transaction = self._context.__enter__()
        self._tables: set[str] = set()
        self.leases: set[str] = set()
        self.early: frozenset[str] = frozenset()

    def add(self, table: Table) -> None:
        """Lock and register the table, if it is not yet. Raises DmlError, with who comes first, if
        the lock is not granted in time; what the metastore raises."""
        if table.full_name not in self._tables:
            acquire_locks(self._transaction, self._clock, [read_lock(table)])
            register_reader(self._metastore, self._transaction.id, [table.full_name])
            self._tables.add(table.full_name)

    def snapshot(self) -> ValidTxnList:
        """What a reader sees who starts now."""
        return current_snapshot(self._metastore, self._transaction.id)

    def view(self, table: Table) -> View:
        """The same, of one table."""
        txns = self.snapshot()
        return View(txns=txns, write_ids=_write_ids(self._metastore, table, txns))

    def is_lost(self) -> bool:
        """Asks the metastore whether the transaction is still open."""
        try:
            self._transaction.heartbeat.check()
        except (NoSuchTxnError, TxnAbortedError):
            return True
        return False

    def is_known_lost(self) -> bool:
        """As far as the heartbeats have heard."""
        try:
            self._transaction.heartbeat.raise_if_lost()
        except HmsBridgeError:
            return True
        return False

    def end(self) -> bool:
        """Commit: nothing is protected any more. False if the metastore did not answer."""
        try:
            self._context.__exit__(None, None, None)
        except (NoSuchTxnError, TxnAbortedError):
            _LOG.debug("transaction %d had ended before", self._transaction.id)
        except HmsBridgeError as error:
            _LOG.warning(
                "transaction %d is not ended before it times out: %s", self._transaction.id, error
            )
            return False
        return True

    def fail(self, error: BaseException) -> None:
        """Abort, because of an error that the caller raises."""
        self._context.__exit__(type(error), error, error.__traceback__)


class Statement:
    """Scans that see one snapshot. ``turn`` is held by who changes anything here."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.hold: Hold | None = None
        self.txns: ValidTxnList | None = None
        self._write_ids: dict[str, ValidWriteIdList] = {}

    def begin(self, hold: Hold, table: Table) -> None:
        """Take the snapshot with the first table, once its lock is held."""
        if self.txns is None:
            self.txns = hold.snapshot()
            hold.early = frozenset({table.full_name})

    def view(self, metastore: Metastore, table: Table) -> View:
        """What the snapshot sees of a table, whenever it is asked."""
        if self.txns is None:
            raise AssertionError("a statement has no view before it began")
        if table.full_name not in self._write_ids:
            self._write_ids[table.full_name] = _write_ids(metastore, table, self.txns)
        return View(txns=self.txns, write_ids=self._write_ids[table.full_name])


def _write_ids(metastore: Metastore, table: Table, txns: ValidTxnList) -> ValidWriteIdList:
    return metastore.get_valid_write_ids([table.full_name], txns)[0]
