"""`repl lag`: what a monitor is told, and with which exit code."""

from __future__ import annotations

import time
from typing import Any

from tests.support.busy_metastore import BusyMetastore
from tests.support.program import Answer

REPLICA = "sqlite:///dr/metastore.db"


def lag(busy: BusyMetastore, *words: str, databases: tuple[str, ...] = ("sales",)) -> Answer:
    return busy.program.run(
        "repl", "lag", *databases, "--metastore", REPLICA, "--source", busy.program.url, *words
    )


def row(answer: Answer) -> dict[str, Any]:
    (found,) = [json for json in answer.json_lines if json["database"] == "sales"]
    return found


def test_before_the_first_load_nobody_knows(busy: BusyMetastore) -> None:
    answer = lag(busy, "--format", "jsonl")
    assert answer.exit_code == 3
    assert (row(answer)["state"], row(answer)["rpo_seconds"]) == ("UNKNOWN", None)
    assert row(answer)["why"] == "nothing was loaded yet"


def test_what_other_databases_do_is_no_lag(busy: BusyMetastore) -> None:
    busy.program.ok("repl", "load", "sales", *busy.replica)
    busy.program.ok("sql", "-e", "CREATE DATABASE another")
    answer = lag(busy, "--format", "jsonl")
    found = row(answer)
    assert (answer.exit_code, found["state"]) == (0, "OK")
    assert (found["commits_behind"], found["changes_behind"], found["rpo_seconds"]) == (0, 0, 0)
    assert found["last_loaded"] is not None


def test_what_is_late_is_a_warning_and_then_an_alarm(busy: BusyMetastore) -> None:
    busy.program.ok("repl", "load", "sales", *busy.replica)
    busy.program.ok("sql", "-e", "CREATE TABLE sales.more (a INT)")
    time.sleep(1.1)  # events tell whole seconds
    found = row(lag(busy, "--format", "jsonl", "--bytes"))
    assert (found["state"], found["bytes_to_copy"]) == ("OK", 0)
    assert found["changes_behind"] >= 1
    assert found["rpo_seconds"] >= 1
    for words, code, state in (
        (("--warn", "0s"), 1, "WARNING"),
        (("--warn", "0s", "--critical", "0s"), 2, "CRITICAL"),
        (("--headroom", "100d"), 2, "CRITICAL"),
    ):
        answer = lag(busy, *words, "--format", "jsonl")
        assert (answer.exit_code, row(answer)["state"]) == (code, state)
    assert row(answer)["headroom_limit"] == "event log"
    assert "by the event log" in row(answer)["why"]


def test_a_person_sees_a_table(busy: BusyMetastore) -> None:
    busy.program.ok("repl", "load", "sales", *busy.replica)
    answer = lag(busy, databases=("sales", "absent"))
    head, first, second = answer.table
    assert head[0].startswith("database")
    assert "nothing" in " ".join(first)
    assert "UNKNOWN" in " ".join(second)
    assert answer.exit_code == 3


def test_a_source_that_is_not_there_is_unknown_and_no_warning(busy: BusyMetastore) -> None:
    answer = busy.program.run(
        "repl", "lag", "sales", "--metastore", REPLICA, "--source", "thrift://127.0.0.1:1",
        "--format", "jsonl",
    )  # fmt: skip
    assert answer.exit_code == 3
    assert "127.0.0.1" in row(answer)["why"]


def test_limits_that_make_no_sense(busy: BusyMetastore) -> None:
    for words, why in (
        (("--warn", "5h", "--critical", "1h"), "--critical is less than --warn"),
        (("--warn", "5"), "--warn takes a number and a unit"),
        (("--headroom", "soon"), "is no duration"),
    ):
        answer = lag(busy, *words)
        assert answer.exit_code != 0
        assert why in answer.err
