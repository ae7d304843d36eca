"""How many connections a database allows its user, which processes of one server divide."""

from __future__ import annotations

from typing import Any

_POSTGRESQL = """
    SELECT min(most) FROM (
        SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user AND NOT rolsuper
        UNION ALL
        SELECT datconnlimit FROM pg_database WHERE datname = current_database()
        UNION ALL
        SELECT current_setting('max_connections')::int
             - current_setting('superuser_reserved_connections')::int
    ) AS limits (most) WHERE most >= 0
"""
_MYSQL = "SELECT IF(@@max_user_connections = 0, @@max_connections, @@max_user_connections)"


def connections_allowed(dialect: str, connection: Any) -> int | None:
    """By a connection of the driver; None where there is no limit. Other users of the database may
    have some of them. Raises what the driver raises."""
    if dialect == "sqlite":
        return None
    cursor = connection.cursor()
    try:
        cursor.execute(_POSTGRESQL if dialect == "postgresql" else _MYSQL)
        ((most,),) = cursor.fetchall()
    finally:
        cursor.close()
        connection.rollback()
    return int(most)
