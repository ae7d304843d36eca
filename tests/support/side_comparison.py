"""A comparison of a world with its replica, and what it tells."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from hms_bridge.repl.compare.described import CompareReport, Finding, Verdict
from hms_bridge.repl.compare.repl_compare import ReplCompare
from hms_bridge.repl.compare.table_comparison import CompareRequest, Depth
from tests.support.repl_world import ReplWorld

QUIET = (Verdict.EQUAL, Verdict.NOT_COMPARED)


def compare(
    world: ReplWorld,
    *tables: str,
    rows: bool = True,
    checksums: bool = False,
    statistics: bool = False,
    passed: Collection[str] = (),
    source: Any = None,
    target: Any = None,
) -> CompareReport:
    request = CompareRequest(
        root=str(world.repl_root),
        source_database="src",
        target_database="dst",
        tables=tables,
        depth=Depth(has_checksums=checksums, has_rows=rows, has_statistics=statistics),
        passed_kinds=frozenset(passed),
    )
    comparer = ReplCompare(
        world.resolve, world.clock, source=source or world.source, target=target or world.target
    )
    return comparer.run(request)


def told(report: CompareReport) -> list[Finding]:
    return [one for one in report.findings if one.verdict not in QUIET]


def different(report: CompareReport) -> set[tuple[str | None, str | None, str]]:
    """Where, and what."""
    return {(one.table, one.partition, one.what) for one in report.of(Verdict.DIFFERENT)}


def equal_tables(report: CompareReport) -> Sequence[str]:
    return [one.table for one in report.of(Verdict.EQUAL) if one.table is not None]


def assert_equal(world: ReplWorld, *, rows: int) -> None:
    """Closely, and without rows too."""
    world.assert_same()
    closely = compare(world, checksums=True)
    assert (told(closely), closely.exit_code, closely.compared.rows) == ([], 0, rows)
    quickly = compare(world, rows=False)
    assert (quickly.exit_code, quickly.of(Verdict.DIFFERENT)) == (0, ())
    assert quickly.compared.rows == 0
