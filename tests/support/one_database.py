"""Servers of one database, as the service has them, each asked by a client of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, text

from hms_bridge.service.open import open_local_metastore

T = TypeVar("T")


class Side:
    """A server of the database, whose verbs come from a client's thread."""

    def __init__(self, url: str, warehouse: Path) -> None:
        self.metastore = open_local_metastore(url, warehouse=str(warehouse))
        self._client = ThreadPoolExecutor(1)

    def __call__(self, verb: Callable[..., T], *given: Any, **named: Any) -> T:
        return self._client.submit(verb, self.metastore, *given, **named).result()

    def close(self) -> None:
        self._client.shutdown()
        self.metastore.close()


def is_waited_for(connection: Connection) -> bool:
    """Whether somebody waits for a row that another transaction has changed; of
    PostgreSQL."""
    waiting = "select count(*) from pg_locks where not granted and locktype = 'transactionid'"
    return bool(connection.scalar(text(waiting)))
