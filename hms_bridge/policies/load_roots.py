"""Where files of a replica may come from, in SQL. The methods' contracts: ``PolicyStore``."""

from __future__ import annotations

import json

from sqlalchemy import Connection, insert, select, update

from hms_bridge.backend.schema.replication_tables import HMSB_REPL_LOAD_ROOTS

_ROW = HMSB_REPL_LOAD_ROOTS.c


def get_load_roots(connection: Connection, database_name: str) -> tuple[str, ...]:
    """See PolicyStore.get_load_roots."""
    noted = connection.scalar(select(_ROW.ROOTS).where(_ROW.DB_NAME == database_name.lower()))
    return () if noted is None else tuple(json.loads(noted))


def set_load_roots(connection: Connection, database_name: str, roots: tuple[str, ...]) -> None:
    """See PolicyStore.set_load_roots."""
    name, text = database_name.lower(), json.dumps(list(roots))
    changed = connection.execute(
        update(HMSB_REPL_LOAD_ROOTS).where(_ROW.DB_NAME == name).values(ROOTS=text)
    )
    if changed.rowcount == 0:
        connection.execute(insert(HMSB_REPL_LOAD_ROOTS).values(DB_NAME=name, ROOTS=text))
