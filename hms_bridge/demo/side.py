"""One side of the demo: a metastore with its warehouse, in a folder of its own."""

from __future__ import annotations

import getpass
import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from changemanager.location import FsspecResolver
from hms_bridge.clock import Clock
from hms_bridge.config.repl import ReplSettings
from hms_bridge.config.settings import ArchiveSettings, Settings
from hms_bridge.connect import LocalStore, open_local
from hms_bridge.rows.scan import plan_scan, read_scan_split
from hms_bridge.session.transaction import Client, current_snapshot
from hms_bridge.spark.sql_session import SqlSession

Row = str
"""One row with its table and ROW__ID, as JSON text, so that sides can be compared."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """A metastore and what is needed to work on it."""

    name: str
    url: str
    store: LocalStore
    sql: SqlSession

    def run(self, text: str) -> list[str]:
        """Run statements; what each one says."""
        return [result.message or "" for result in self.sql.run(text)]

    def rows(self, database: str) -> dict[str, list[Row]]:
        """All rows of all tables with their ROW__IDs, read from the files by our own reader."""
        metastore = self.store.metastore
        by_table = {}
        for name in metastore.get_tables(database):
            table = metastore.get_table(database, name)
            txns = current_snapshot(metastore)
            write_ids = metastore.get_valid_write_ids([table.full_name], txns)[0]
            columns = (*table.storage.columns, *table.partition_columns)
            splits = plan_scan(
                metastore, self.store.resolver, table, txns=txns, write_ids=write_ids
            )
            by_table[name] = sorted(
                json.dumps(row, sort_keys=True, default=str)
                for split in splits
                for batch in read_scan_split(self.store.resolver, split, columns, has_row_ids=True)
                for row in batch.to_pylist()
            )
        return by_table


def open_side(name: str, folder: Path, dumps: Path, spark: Any, clock: Clock) -> Side:
    """Make a metastore in ``folder``: SQLite, local files, archive on."""
    folder.mkdir(parents=True)
    url = f"sqlite:///{folder / 'metastore.db'}"
    settings = Settings(
        warehouse=str(folder / "warehouse"),
        archive=ArchiveSettings(root=str(folder / "cmroot")),
        repl=ReplSettings(root=str(dumps)),
    )
    store = open_local(url, settings, clock)
    client = Client(user=getpass.getuser(), host=socket.gethostname())
    session = SqlSession(
        store.metastore,
        open_spark=lambda: spark,
        resolver=FsspecResolver(),
        client=client,
        clock=clock,
        database="demo",
    )
    return Side(name=name, url=url, store=store, sql=session)


def differences(left: dict[str, list[Row]], right: dict[str, list[Row]]) -> Sequence[str]:
    """What differs between two sides, in words; nothing if they are equal."""
    lines = []
    for name in sorted({*left, *right}):
        mine, other = left.get(name), right.get(name)
        if mine is None or other is None:
            lines.append(f"table {name} is on one side only")
        elif mine != other:
            lost, extra = set(mine) - set(other), set(other) - set(mine)
            lines.append(f"table {name}: {len(lost)} rows missing, {len(extra)} too many")
    return lines
