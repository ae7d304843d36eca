"""The log tells every deed with its ids, and a program can read it."""

from __future__ import annotations

import json
import logging
import signal
import time
from pathlib import Path

import pytest

from changemanager.journal import log_deed
from hms_bridge.cli.logs import LOG_FORMATS, JsonFormatter, TextFormatter, logs
from tests.support.busy_metastore import BusyMetastore
from tests.support.program import Program, serving


def deeds(text: str) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [line for line in lines if "deed" in line]


def test_the_cleaner_tells_each_file_that_it_archives_and_each_directory_that_it_deletes(
    busy: BusyMetastore,
) -> None:
    answer = busy.program.ok("cleaner", "run", "--log-format", "json", "--format", "jsonl")
    told = deeds(answer.err)
    archived = [one for one in told if one["deed"] == "archived"]
    deleted = [one for one in told if one["deed"] == "deleted"]
    cleaned = [one for one in told if one["deed"] == "cleaned"]
    rows = [row for row in answer.json_lines if row["state"] == "cleaned"]
    assert rows
    assert len(cleaned) == len(rows)
    assert len(archived) == sum(row["archived"] for row in rows) > 0
    assert len(deleted) == sum(row["directories"] for row in rows) > 0
    for one in deleted:
        assert one["cause"] in ("obsolete", "aborted")
        assert str(one["path"]).startswith("file:")
        assert not Path(str(one["path"]).removeprefix("file:")).exists()
        assert isinstance(one["bytes"], int)
        assert one["database"] and one["table"] and one["entry"] and one["removal"]
        assert {"time", "level", "logger", "message"} <= one.keys()
    for one in archived:
        assert (Path(str(one["cmroot"]).removeprefix("file:")) / str(one["name"])).is_file()


def test_a_purge_tells_each_file(busy: BusyMetastore) -> None:
    busy.program.ok("cleaner", "run")
    for pin in busy.program.ok("cm", "pins", "--format", "json").json:
        busy.program.start("cm", "release", pin["holder"])
    time.sleep(1.1)
    answer = busy.program.ok(
        "cm", "purge", "--set", "hive.repl.cm.retain=1s", "--log-format", "json",
        "--format", "json",
    )  # fmt: skip
    told = [one for one in deeds(answer.err) if one["deed"] == "purged"]
    assert [one["name"] for one in told] == [row["name"] for row in answer.json] != []
    assert all(one["bytes"] and one["reason"] for one in told)


def test_the_level_decides_what_is_told(busy: BusyMetastore) -> None:
    answer = busy.program.ok("cleaner", "run", "--log-level", "warning", "--log-format", "json")
    assert deeds(answer.err) == []


def test_text_for_people_has_the_same_facts(busy: BusyMetastore) -> None:
    lines = busy.program.ok("cleaner", "run").err.splitlines()
    assert any(" deleted path=file:" in line and " cause=obsolete" in line for line in lines)


@pytest.mark.process
def test_a_server_s_json_log_has_nothing_else_in_it(program: Program) -> None:
    with serving(program, "--port", "0", "--cleaner", "--log-format", "json") as server:
        address = server.wait_until_ready()
        program.ok("sql", "--metastore", address, "-e", "CREATE DATABASE one")
        program.ok("sql", "--metastore", address, "-e", "CREATE TABLE one.t (id INT)")
        program.ok("sql", "--metastore", address, "-e", "DROP TABLE one.t")
        assert server.stop(signal.SIGTERM) == 0
    lines = [json.loads(line) for line in server.lines]
    first, second = (str(line["message"]) for line in lines[:2])
    assert first.startswith("warehouse ")
    assert second.startswith("serving thrift://")
    told = {line["deed"]: line for line in lines if "deed" in line}
    assert told["table dropped"]["table"] == "t"
    assert told["table dropped"]["event"]
    assert told["deleted"]["cause"] == "drop_table"
    assert str(told["deleted"]["path"]).endswith("/one.db/t")


@pytest.mark.parametrize("log_format", LOG_FORMATS)
def test_a_name_with_line_ends_does_not_look_like_a_record(
    log_format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "a\n2026-01-01 INFO cleaner: deleted\r\x85\u2028\x1b[2J"
    with logs("info", log_format):
        log_deed(logging.getLogger("cleaner"), "deleted", names=[name])
        logging.getLogger("hms_bridge").warning("connection closed: %s", name)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)
    if log_format == "json":
        assert json.loads(lines[0])["names"] == [name]


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_half_a_character_is_told_as_what_can_be_written(formatter: logging.Formatter) -> None:
    fields = {"name": "cleaner", "levelno": logging.INFO, "levelname": "INFO", "msg": "a\udcff"}
    line = formatter.format(logging.makeLogRecord(fields))
    assert line.encode().decode().isprintable()


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "exit_code", "message"),
    [
        (("--database", "sqlite:///no/such.db"), 1, "error: cannot open /"),
        (("--host", "192.0.2.1", "--insecure"), 1, "error: cannot listen on 192.0.2.1"),
        (("--port", "70000"), 2, "error: Invalid value for '--port'"),
        (("--verbose", "--database", "sqlite:///no/such.db"), 1, "error: cannot open /"),
    ],
)
def test_the_last_line_of_a_json_log_is_json_too(
    program: Program, words: tuple[str, ...], exit_code: int, message: str
) -> None:
    answer = program.start("serve", "--port", "0", *words, "--log-format", "json")
    lines = [json.loads(line) for line in answer.err.splitlines()]
    assert answer.exit_code == exit_code
    assert lines[-1]["message"].startswith(message)
    assert lines[-1]["level"] == "error"
    assert ("Traceback" in str(lines[-1].get("error"))) is ("--verbose" in words)
