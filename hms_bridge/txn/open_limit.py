"""How many transactions may be open (hive.max.open.txns)."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from hms_bridge.backend.fixed_sql import FixedSql
from hms_bridge.backend.schema.txn_tables import TXNS
from hms_bridge.clock import Clock, steady_ms
from hms_bridge.config.settings import TxnSettings
from hms_bridge.errors import MetaError
from hms_bridge.model.txn import TxnState

_COUNT_OPEN = FixedSql(select(func.count()).where(TXNS.c.TXN_STATE == TxnState.OPEN.value))


class OpenTxnLimit:
    """Refuses new transactions while too many are open; counts once a second at most.

    After a refusal it stays closed until fewer than nine tenths of the limit are open.
    """

    _INTERVAL_MS = 1000

    def __init__(self, settings: TxnSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._counted_at_ms: int | None = None
        self._is_full = False

    def check(self, connection: Connection) -> None:
        """Raises MetaError while too many transactions are open."""
        now = steady_ms(self._clock)
        if self._counted_at_ms is None or now - self._counted_at_ms >= self._INTERVAL_MS:
            self._counted_at_ms = now
            limit = self._settings.open_txns_max
            ((count,),) = _COUNT_OPEN.all(connection)
            self._is_full = count >= (max(1, limit * 9 // 10) if self._is_full else limit)
        if self._is_full:
            raise MetaError(
                f"{self._settings.open_txns_max} transactions are open, the most that "
                "hive.max.open.txns allows; commit or abort some, then try again"
            )
