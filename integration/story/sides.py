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


def compact(side: OurSide, hive: HiveSession, *statements: str) -> None:
    """Hive asks for compactions, as in `db.t compact 'major'`; our worker does them and our cleaner
    cleans.
    """
    for statement in statements:
        hive.sql(f"alter table {statement}")
    wait_until(lambda: not unfinished(side), "compaction and clean-up")
    assert failed_compactions(side) == []


def unfinished(side: OurSide) -> list[tuple[str, str, str]]:
    """Entries of the compaction queue that are not history yet: table, partition, state."""
    rows = side.store.query('select * from "COMPACTION_QUEUE"')
    return [(row["CQ_TABLE"], row["CQ_PARTITION"] or "", row["CQ_STATE"]) for row in rows]


def failed_compactions(side: OurSide) -> list[str]:
    """Why compactions were not done."""
    rows = side.store.query("""select * from "COMPLETED_COMPACTIONS" where "CC_STATE" <> 's'""")
    return [f"{row['CC_DATABASE']}.{row['CC_TABLE']}: {row['CC_ERROR_MESSAGE']}" for row in rows]


def held_leases(side: OurSide, kind: str) -> frozenset[int]:
    """Who is at work alone, as in `repl-load`, or was killed at it: numbers of their locks."""
    rows = side.store.query(
        'select "HL_LOCK_EXT_ID" as id from "HIVE_LOCKS" where "HL_TABLE" = %s '
        """and "HL_LOCK_STATE" = 'a'""",
        kind,
    )
    return frozenset(row["id"] for row in rows)


def property_of(side: OurSide, database: str, key: str) -> str | None:
    """A property of a database, None without it."""
    rows = side.store.query(
        'select "PARAM_VALUE" from "DATABASE_PARAMS" join "DBS" using ("DB_ID") '
        'where "NAME" = %s and "PARAM_KEY" = %s',
        database,
        key,
    )
    return rows[0]["PARAM_VALUE"] if rows else None


def places(side: OurSide, dump: str) -> Counter[str]:
    """How many files of a dump are where, by `repl verify`."""
    answer = side.ok("repl", "verify", dump, "--all", "--format", "jsonl")
    return Counter(row["place"] for row in answer.json_lines)


def wait_until(is_done: Callable[[], bool], what: str, *, timeout_seconds: float = 60) -> None:
    deadline = time.monotonic() + timeout_seconds
    while not is_done():
        assert time.monotonic() < deadline, f"{what} was not done after {timeout_seconds:.0f} s"
        time.sleep(0.3)
