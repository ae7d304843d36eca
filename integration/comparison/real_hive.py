"""Real Hive 4.2.0 as an engine of the comparison."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

from integration.comparison.engine import CompactorThread, Fields, Row
from integration.referees.hive42 import Hive42, table_folder
from integration.referees.postgresql import Database

CHECKSUM_SUFFIX = ".crc"  # the local file system's own


class RealHive42Engine:
    """A database of a real Hive 4.2.0, made empty when the engine is.

    `store` is the database of the metastore that the session uses: Hive's own, or ours.
    """

    def __init__(self, hive: Hive42, database: str, *, name: str = "Hive 4.2.0") -> None:
        self.name = name
        self.database = database
        self._session = hive.main
        self._store = hive.database
        self._warehouse = hive.warehouse
        self.own_names = own_names(hive.warehouse, hive.external_warehouse)
        self._first_event = next_event(self._store)
        self._session.sql(f"create database {database}")

    def sql(self, statement: str) -> list[Row]:
        return self._session.sql(statement)

    def run(self, thread: CompactorThread) -> None:
        self._session.run(thread)

    def list_files(self, table: str) -> list[str]:
        return relative_paths(table_folder(self._warehouse, f"{self.database}.{table}"))

    def queue_rows(self) -> list[Fields]:
        return queue_rows(self._store, self.database)

    def notification_rows(self) -> list[Fields]:
        return notification_rows(self._store, first_event=self._first_event)


def own_names(warehouse: Path, external_warehouse: Path) -> dict[str, str]:
    """Where an engine keeps its files, for `Engine.own_names`."""
    return {str(warehouse): "${warehouse}", str(external_warehouse): "${external}"}


def next_event(store: Database) -> int:
    """The id that the next notification will have."""
    return int(
        store.query('select coalesce(max("EVENT_ID"), 0) + 1 as n from "NOTIFICATION_LOG"')[0]["n"]
    )


def relative_paths(folder: Path) -> list[str]:
    """Every path under a folder, directories with a slash; checksum files of the local file system
    left out.
    """
    return sorted(
        f"{path.relative_to(folder)}{'/' if path.is_dir() else ''}"
        for path in folder.rglob("*")
        if path.suffix != CHECKSUM_SUFFIX
    )


def queue_rows(store: Database, database: str) -> list[Fields]:
    """Both tables of compactions in the order of their ids."""
    rows: list[dict[str, Any]] = []
    for table, prefix in (("COMPACTION_QUEUE", "CQ_"), ("COMPLETED_COMPACTIONS", "CC_")):
        found = store.query(f'select * from "{table}" where "{prefix}DATABASE" = %s', database)
        rows += [
            {"QUEUE": table} | {key.removeprefix(prefix): row[key] for key in row} for row in found
        ]
    return sorted(rows, key=lambda row: int(row["ID"]))


def notification_rows(store: Database, *, first_event: int) -> list[Fields]:
    """Rows of the log from an event on, messages decoded."""
    rows = store.query(
        'select * from "NOTIFICATION_LOG" where "EVENT_ID" >= %s order by "EVENT_ID"', first_event
    )
    return [
        row | {"MESSAGE": decoded_message(row["MESSAGE"], row["MESSAGE_FORMAT"])} for row in rows
    ]


def decoded_message(message: str, message_format: str) -> Any:
    """The message as JSON, down to the JSON that its strings hold."""
    text = (
        gzip.decompress(base64.b64decode(message)).decode()
        if message_format.startswith("gzip")
        else message
    )
    return _opened(json.loads(text))


def _opened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _opened(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_opened(inner) for inner in value]
    if isinstance(value, str) and value.startswith(("{", "[")):
        try:
            return _opened(json.loads(value))
        except json.JSONDecodeError:
            return value
    return value
