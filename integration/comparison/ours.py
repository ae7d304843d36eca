"""hms-bridge as an engine of the comparison: our SQL, our server, our worker, our cleaner."""

from __future__ import annotations

from integration.comparison.engine import CompactorThread, Fields, Row
from integration.comparison.real_hive import (
    next_event,
    notification_rows,
    own_names,
    queue_rows,
    relative_paths,
)
from integration.referees.hive42 import table_folder
from integration.referees.ours import OurServer, OurSession


class OurEngine:
    """A database on our server, made empty when the engine is."""

    name = "hms-bridge"

    def __init__(self, server: OurServer, session: OurSession, database: str) -> None:
        self.database = database
        self._server = server
        self._session = session
        # we have no second warehouse for external tables
        self.own_names = own_names(server.warehouse, server.warehouse)
        self._first_event = next_event(server.store)
        session.sql(f"create database {database}")

    def sql(self, statement: str) -> list[Row]:
        return self._session.sql(statement)

    def run(self, thread: CompactorThread) -> None:
        if thread == "Worker":
            self._session.work()
        elif thread == "Cleaner":
            self._session.clean(self._server.database_url)
        else:
            raise ValueError(f"hms-bridge has no {thread} of its own yet")

    def list_files(self, table: str) -> list[str]:
        return relative_paths(table_folder(self._server.warehouse, f"{self.database}.{table}"))

    def queue_rows(self) -> list[Fields]:
        return queue_rows(self._server.store, self.database)

    def notification_rows(self) -> list[Fields]:
        return notification_rows(self._server.store, first_event=self._first_event)
