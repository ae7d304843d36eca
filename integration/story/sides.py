"""Rows of both sides as real Hive reads them, and where a dump's files are."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from integration.referees.cluster import OurSide
from integration.referees.hive42 import HiveSession, Row

Rows = dict[str, list[Row]]


def rows_of(hive: HiveSession, database: str) -> Rows:
    """All rows of all tables, with their ROW__IDs, in one order."""
    tables = sorted(row[0] for row in hive.sql(f"show tables in {database}"))
    return {name: table_rows(hive, f"{database}.{name}") for name in tables}


def table_rows(hive: HiveSession, table: str) -> list[Row]:
    return sorted(hive.sql(f"select row__id, * from {table}"))


def load_into(hive: HiveSession, source: str, target: str, dumps: str) -> None:
    """Real Hive's REPL LOAD."""
    hive.sql(f"repl load {source} into {target} with('hive.repl.rootdir'='{dumps}')")


def compact(side: OurSide, table: str, kind: str = "major", partition: str = "") -> None:
    """Ask our server for a compaction and wait until its worker has done it."""
    chosen = ["--partition", partition] if partition else []
    side.ok("compact", table, kind, *chosen, "--wait")


def clean(side: OurSide) -> None:
    """Wait until the server's cleaner has removed what compactions replaced."""
    waiting = """select 1 from "COMPACTION_QUEUE" where "CQ_STATE" = 'r'"""
    wait_until(lambda: not side.store.query(waiting), "the cleaner")


def places(side: OurSide, dump: str) -> Counter[str]:
    """How many files of a dump are where, by `repl verify`."""
    answer = side.ok("repl", "verify", dump, "--all", "--format", "jsonl")
    return Counter(row["place"] for row in answer.json_lines)


def wait_until(is_done: Callable[[], bool], what: str, *, timeout_seconds: float = 60) -> None:
    deadline = time.monotonic() + timeout_seconds
    while not is_done():
        assert time.monotonic() < deadline, f"{what} was not done after {timeout_seconds:.0f} s"
        time.sleep(0.3)
