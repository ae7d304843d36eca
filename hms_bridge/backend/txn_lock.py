"""The lock that openers of transactions share, and that conflicting commits hold alone."""

from __future__ import annotations

from sqlalchemy import Connection, select

from hms_bridge.backend.dialect import is_mysql, is_postgresql
from hms_bridge.backend.fixed_sql import send
from hms_bridge.backend.schema.txn_tables import TXN_LOCK_TBL


def lock_txns(connection: Connection, *, is_exclusive: bool) -> None:
    """Hold TXN_LOCK_TBL until the transaction ends: openers shared, conflicting commits alone.

    What is read after it must see everything that was committed before it, hence READ COMMITTED.
    """
    if is_postgresql(connection):
        mode = "EXCLUSIVE" if is_exclusive else "SHARE"
        send(connection, f'LOCK TABLE "{TXN_LOCK_TBL.name}" IN {mode} MODE')
    elif is_mysql(connection):
        connection.execute(select(TXN_LOCK_TBL).with_for_update(read=not is_exclusive)).all()
