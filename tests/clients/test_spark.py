"""PySpark with its built-in Hive 2.3 client, as it is, before our server.

It runs as a program of its own, because a JVM has one Hive client.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.served_metastore import ServedMetastore, served_metastore

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

PROGRAM = Path(__file__).parents[1] / "support" / "spark_statements.py"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedMetastore]:
    with served_metastore(tmp_path_factory.mktemp("spark")) as served:
        yield served


@pytest.fixture(scope="module")
def answers(
    served: ServedMetastore, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    run = subprocess.run(
        [sys.executable, str(PROGRAM), served.uri, str(served.warehouse)],
        cwd=tmp_path_factory.mktemp("spark-run"), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-4000:]
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]


ROWS: dict[str, list[Any]] = {
    "SELECT * FROM shop.plain ORDER BY id": [[1, "one"], [2, "zwei"], [3, None]],
    "SELECT id, v, ds FROM shop.parts WHERE ds > '2024-01-01' ORDER BY id": [
        [2, "y", "2024-01-02"], [3, "z", "2024-01-02"], [4, "w", "2024-01-03"]],
    "SELECT id, p FROM shop.serde ORDER BY id": [[10, 1], [11, 1]],
    "SELECT * FROM shop.seen ORDER BY id": [[2], [3]],
    "DESCRIBE shop.plain": [
        ["id", "int", None], ["name", "string", None], ["extra", "double", None]],
    "SHOW TABLES IN shop": [
        ["shop", "parts", False], ["shop", "renamed", False], ["shop", "seen", False],
        ["shop", "serde", False]],
}  # fmt: skip
REPEATED = {
    "SHOW PARTITIONS shop.parts": [
        [["ds=2024-01-01"], ["ds=2024-01-02"], ["ds=2024-01-03"]],
        [["ds=2024-01-01"], ["ds=2024-01-03"], ["ds=a%2Fb%3Dc"]],
    ],
    "SELECT count(*) FROM shop.renamed": [[[3]], [[0]]],
    "SHOW DATABASES": [[["default"], ["shop"]], [["default"]]],
}


def test_every_statement_succeeds_but_reading_a_dropped_table(
    answers: list[dict[str, Any]],
) -> None:
    failed = {one["sql"]: one["error"] for one in answers if "error" in one}
    assert set(failed) == {"SELECT * FROM shop.renamed"}
    assert "TABLE_OR_VIEW_NOT_FOUND" in failed["SELECT * FROM shop.renamed"]
    assert len(answers) > 30


@pytest.mark.parametrize("statement", ROWS)
def test_rows(answers: list[dict[str, Any]], statement: str) -> None:
    assert [one["rows"] for one in answers if one["sql"] == statement] == [ROWS[statement]]


@pytest.mark.parametrize("statement", REPEATED)
def test_rows_before_and_after(answers: list[dict[str, Any]], statement: str) -> None:
    assert [one["rows"] for one in answers if one["sql"] == statement] == REPEATED[statement]


def test_nothing_is_left(answers: list[dict[str, Any]], served: ServedMetastore) -> None:
    assert answers
    assert served.metastore.get_databases() == ("default",)
    assert served.metastore.show_locks() == ()
    assert not (served.warehouse / "shop.db").exists()
