"""Who holds locks in a database for so long that others gave up waiting for them."""

from __future__ import annotations

from sqlalchemy import Connection, text

from hms_bridge.backend.dialect import is_postgresql

_POSTGRESQL = text("""
    SELECT pid, usename, coalesce(host(client_addr), 'its own host'), coalesce(state, ''),
        floor(extract(epoch FROM clock_timestamp() - xact_start)), left(query, 80)
    FROM pg_stat_activity AS holder
    WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND wait_event_type IS DISTINCT FROM 'Lock'
        AND xact_start <= clock_timestamp() - make_interval(secs => :seconds)
        AND EXISTS (
            SELECT FROM pg_locks WHERE pg_locks.pid = holder.pid AND granted
            AND mode <> 'AccessShareLock' AND locktype IN ('relation', 'transactionid', 'tuple'))
    ORDER BY xact_start LIMIT 3
""")
_MYSQL = text("""
    SELECT process.ID, process.USER, process.HOST, process.COMMAND,
        TIMESTAMPDIFF(SECOND, trx_started, NOW()), COALESCE(LEFT(process.INFO, 80), '')
    FROM information_schema.INNODB_TRX
    JOIN information_schema.PROCESSLIST AS process ON process.ID = trx_mysql_thread_id
    WHERE trx_state <> 'LOCK WAIT' AND process.ID <> CONNECTION_ID()
        AND process.DB = DATABASE() AND trx_started <= NOW() - INTERVAL :seconds SECOND
    ORDER BY trx_started LIMIT 3
""")
WHERE_TO_LOOK = "look at pg_stat_activity (PostgreSQL) or SHOW FULL PROCESSLIST (MariaDB, MySQL)"


def lock_holders(connection: Connection, seconds: float) -> str:
    """The oldest transactions that have held a lock for so long; empty where the database shows
    none. Not for SQLite, which has one writer. Raises SQLAlchemyError."""
    statement = _POSTGRESQL if is_postgresql(connection) else _MYSQL
    rows = connection.execute(statement, {"seconds": int(seconds)}).all()
    return "; ".join(
        f"process {number} of {user} on {host} ({state}) holds locks for {held_seconds} s"
        + (f": {query}" if query else "")
        for number, user, host, state, held_seconds, query in rows
    )
