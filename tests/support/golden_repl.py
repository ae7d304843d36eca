"""The replication cycle of a real Hive: its dumps, its event log, its target after each load."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from changemanager.location import FsspecResolver, Location, parse_uri
from hms_bridge.model.event import NotificationEvent
from hms_bridge.model.ids import EventId, TxnId, WriteId
from hms_bridge.model.target import Target
from hms_bridge.model.txn import WriteEvent
from hms_bridge.repl.format.event_payload import split_files
from tests.support.golden import OWN, unpack

CYCLES = (("02", "04"), ("07", "09"), ("11", "12"), ("14", "15"), ("17", "18"), ("19", "21"))
"""Numbers of the steps that dump and that load."""
HIVE_ROOTS = ("hdfs://localhost:9280/warehouse", "hdfs://localhost:9280/cmroot")
"""Where the source of the cycle has its files."""


class GoldenRepl:
    """One copy of the cycle on disk."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._plain = FsspecResolver()

    def step(self, number: str) -> Path:
        (found,) = self.root.glob(f"steps/{number}-*")
        return found

    def dump(self, number: str) -> Path:
        """The dump directory (above `hive/`) after a step."""
        (found,) = self.step(number).glob("repl/c3Jj/*")
        return found

    def bring_dump(self, number: str, repl_root: Path) -> Path:
        """Put a dump, not loaded yet, where a load looks for the newest; older ones go."""
        above = repl_root / "c3Jj"
        shutil.rmtree(above, ignore_errors=True)
        source = self.dump(number)
        shutil.copytree(source, above / source.name, copy_function=shutil.copyfile)
        for path in [above, *above.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        return above / source.name

    def resolve(self, text: str) -> Location:
        """hdfs: is the cycle's file system, everything else is as it says."""
        parsed = parse_uri(text)
        if parsed.scheme != "hdfs":
            return self._plain(text)
        found = self._plain(f"{self.root}/final_fs{parsed.path}")
        return Location(parsed.uri, found.path, found.volume)

    @cached_property
    def events(self) -> dict[int, NotificationEvent]:
        """The source's whole log, by id."""
        return {
            row["EVENT_ID"]: NotificationEvent(
                id=EventId(row["EVENT_ID"]),
                time_seconds=row["EVENT_TIME"],
                type=row["EVENT_TYPE"],
                database_name=row["DB_NAME"],
                table_name=row["TBL_NAME"],
                message=row["MESSAGE"],
                message_format=row["MESSAGE_FORMAT"],
            )
            for path in sorted(self.root.glob("steps/*/source.meta/NOTIFICATION_LOG.new.jsonl*"))
            for row in _rows(path)
        }

    @cached_property
    def write_events(self) -> dict[TxnId, list[WriteEvent]]:
        """What each transaction of the source wrote."""
        found: dict[int, tuple[TxnId, WriteEvent]] = {}
        for path in sorted(self.root.glob("steps/*/source.meta/TXN_WRITE_NOTIFICATION_LOG.jsonl*")):
            for row in _rows(path):
                event = WriteEvent(
                    write_id=WriteId(row["WNL_WRITEID"]),
                    target=Target(
                        row["WNL_DATABASE"], row["WNL_TABLE"], row["WNL_PARTITION"] or None
                    ),
                    table_object=row["WNL_TABLE_OBJ"],
                    partition_object=row["WNL_PARTITION_OBJ"],
                    files=split_files(row["WNL_FILES"]),
                )
                found[row["WNL_ID"]] = (TxnId(row["WNL_TXNID"]), event)
        by_txn: dict[TxnId, list[WriteEvent]] = {}
        for txn_id, event in found.values():
            by_txn.setdefault(txn_id, []).append(event)
        return by_txn

    def target_files(self, number: str) -> dict[str, int]:
        """Files below the target database after a load, with their lengths; without the empty
        delta 0 that Hive leaves."""
        rows = _rows(self.step(number) / "target.files.jsonl")
        return {
            row["path"].partition("/dst.db/")[2]: row["len"]
            for row in rows
            if row.get("checksum") and "delta_0000000_0000000" not in row["path"]
        }

    def target_rows(self, number: str) -> dict[str, list[dict[str, Any]]]:
        """Rows of each table of the target after a load."""
        found: dict[str, list[dict[str, Any]]] = {}
        for row in _rows(self.step(number) / "target.rows.jsonl"):
            rows = found.setdefault(row["table"], [])
            if "row" in row:
                rows.append(row["row"])
        return found

    def target_meta(self, number: str, table: str) -> list[dict[str, Any]]:
        """Rows of a metastore table of the target after a load; none if it was empty."""
        path = self.step(number) / "target.meta" / f"{table}.jsonl"
        return list(_rows(path)) if path.exists() else []


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    text = path.read_bytes()
    if path.suffix == ".gz":
        text = gzip.decompress(text)
    for line in text.decode().splitlines():
        yield json.loads(line)


def open_cycle(folder: Path) -> GoldenRepl:
    """Unpack the cycle into a folder."""
    for name in ("cycle", "final_fs"):
        unpack(OWN / "repl" / f"{name}.tar.gz", folder)
    # TRUNCATE emptied it; the packed cycle has no empty directories.
    (folder / "final_fs" / "warehouse" / "external" / "src.db" / "t_na").mkdir()
    return GoldenRepl(folder)
