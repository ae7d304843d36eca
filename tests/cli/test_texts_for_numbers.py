"""A SQLite file in which somebody has written a text into a column of numbers."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.support.program import Program

ENTRY = "INSERT INTO COMPACTION_QUEUE (CQ_ID, CQ_DATABASE, CQ_TABLE, CQ_STATE, CQ_TYPE, {}) VALUES"


@pytest.mark.parametrize("words", [("compactions",), ("cleaner", "run")])
@pytest.mark.parametrize("column", ["CQ_START", "CQ_ENQUEUE_TIME", "CQ_NEXT_TXN_ID"])
def test_who_reads_it_says_where_it_stands_and_what_to_do(
    tmp_path: Path, words: tuple[str, ...], column: str
) -> None:
    program = Program(tmp_path)
    assert program.run("schema", "init").exit_code == 0
    with sqlite3.connect(tmp_path / "metastore.db") as database:
        rows = "(7, 'd', 't', 'r', 'a', 'soon'), (8, 'd', 'u', 'r', 'a', 'later')"
        database.execute(f"{ENTRY.format(column)} {rows}")
    database.close()
    answer = program.run(*words)
    assert answer.exit_code == 1
    assert f"COMPACTION_QUEUE.{column} is no number in row 7: 'soon', and in 1 more" in answer.err
    assert f"UPDATE COMPACTION_QUEUE SET {column} = NUMBER WHERE rowid = 7" in answer.err
    assert "hms-bridge schema validate" in answer.err
