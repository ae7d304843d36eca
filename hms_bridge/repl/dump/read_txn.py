"""The transaction under which a bootstrap dump reads."""

from __future__ import annotations

from collections.abc import Sequence

from hms_bridge.clock import Clock
from hms_bridge.errors import MetastoreError, ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.txn import AbortTxnRequest, CommitTxnRequest, OpenTxnsRequest, TxnType
from hms_bridge.session.heartbeat import Heartbeat, heartbeat_interval_seconds
from hms_bridge.session.min_history import register_reader


class ReadTxn:
    """A read-only transaction: while it is open, no cleaner takes what the snapshot reads (I3)."""

    def __init__(self, source: Metastore, clock: Clock, *, user: str, host: str) -> None:
        self._source = source
        self._clock = clock
        self._interval_ms = 1000 * heartbeat_interval_seconds(source)
        (self._id,) = source.open_txns(
            OpenTxnsRequest(user=user, host=host, type=TxnType.READ_ONLY)
        )
        self._beat_ms = clock.now_ms()
        self._heartbeat = Heartbeat(source, self._id)
        self._heartbeat.start()

    def register(self, full_table_names: Sequence[str]) -> None:
        """Keep the files of transactional tables from Hive's Cleaner too; before the snapshot."""
        register_reader(self._source, self._id, full_table_names)

    def keep_alive(self) -> None:
        """A heartbeat now and then, beside those of the thread: time may be another's."""
        if self._clock.now_ms() - self._beat_ms >= self._interval_ms:
            self.check()

    def check(self) -> None:
        """Raises ReplError if the transaction was lost: files may have gone meanwhile."""
        try:
            self._heartbeat.check()
        except MetastoreError as error:
            raise ReplError(
                f"the dump's own transaction {self._id} was lost ({error}), so files may have been "
                "cleaned while it read them; dump again"
            ) from error
        self._beat_ms = self._clock.now_ms()

    def end(self) -> None:
        """Commit it."""
        self._heartbeat.stop()
        self._source.commit_txn(CommitTxnRequest(txn_id=self._id))

    def give_up(self) -> None:
        """Abort it, if that is possible; it times out otherwise."""
        self._heartbeat.stop()
        try:
            self._source.abort_txn(AbortTxnRequest(txn_id=self._id))
        except MetastoreError:
            return
