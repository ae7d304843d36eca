"""How results are printed: tables for people, JSON for programs."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from rich.console import Console

from changemanager.clock import span_text
from hms_bridge.cli import output
from hms_bridge.cli.output import print_record, print_rows, size_text, time_text
from hms_bridge.model.counted import counted
from tests.support.busy_metastore import BusyMetastore
from tests.support.program import Program, command, process_environment

ROW = {
    "id": 7,
    "name": "tea\nand\t\x1b[31msalt",
    "none": None,
    "price": Decimal("1.20"),
    "day": date(1582, 10, 4),
    "at": datetime(1969, 12, 31, 23, 59, 58, 250000),
    "noon": datetime(2024, 1, 1, 12, 0, 0),
    "instant": datetime(2024, 1, 1, 12, 0, 0, 500000, tzinfo=UTC),
    "bytes": b"\x00tea",
    "flag": True,
    "odd": [float("nan"), float("-inf"), 0.5],
    "map": {1: date(2024, 2, 3), "k": None},
    "struct": {"x": {"y": [Decimal("0.10")]}},
}
AS_JSON = {
    "id": 7,
    "name": "tea\nand\t\x1b[31msalt",
    "none": None,
    "price": "1.20",
    "day": "1582-10-04",
    "at": "1969-12-31 23:59:58.25",
    "noon": "2024-01-01 12:00:00",
    "instant": "2024-01-01 12:00:00.500000+00:00",
    "bytes": "AHRlYQ==",
    "flag": True,
    "odd": ["NaN", "-Infinity", 0.5],
    "map": {"1": "2024-02-03", "k": None},
    "struct": {"x": {"y": ["0.10"]}},
}


def test_json_has_every_type(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([ROW], tuple(ROW), "json")
    assert json.loads(capsys.readouterr().out) == [AS_JSON]
    print_rows(iter([ROW, ROW]), tuple(ROW), "jsonl")
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line) for line in lines] == [AS_JSON, AS_JSON]


def test_json_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([], ("a",), "json")
    assert capsys.readouterr().out == "[]\n"
    print_rows([], ("a",), "jsonl")
    assert capsys.readouterr().out == ""


def test_only_the_columns_that_were_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([{"a": 1, "b": 2}], ("b", "c"), "jsonl")
    assert json.loads(capsys.readouterr().out) == {"b": 2, "c": None}


def test_a_table_is_one_line_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing in a value ends the line or speaks to the terminal."""
    print_rows([ROW], tuple(ROW), "table", null="NULL")
    header, line = capsys.readouterr().out.splitlines()
    assert header.split() == list(ROW)
    assert r"tea\nand\t\x1b[31msalt" in line
    assert "\x1b" not in line
    assert "00 74 65 61" in line
    assert " NULL " in line
    assert '{"x": {"y": ["0.10"]}}' in line


def test_a_table_shows_columns_that_say_something(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"a": 1, "b": None, "c": "x"}, {"a": 22, "b": None, "c": None}]
    print_rows(rows, ("a", "b", "c"), "table", shown=("c", "b", "a"))
    assert capsys.readouterr().out.splitlines() == ["c   a", "x   1", "-  22"]


def test_a_long_line_is_not_cut_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([{"a": "x" * 3000}], ("a",), "table")
    assert "x" * 3000 in capsys.readouterr().out.splitlines()


def test_a_record_leaves_out_what_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    record = {
        "kind": "none", "files": 0, "reason": None, "tables": [], "text": "", "ok": False,
        "names": ["a", "b"], "events": {"x": 1, "y": 2},
    }  # fmt: skip
    print_record(record, "table")
    assert capsys.readouterr().out.splitlines() == [
        "kind    none", "files   0", "ok      false", "names   a, b", "events  x 1, y 2",
    ]  # fmt: skip
    print_record(record, "json")
    assert json.loads(capsys.readouterr().out) == record


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 * 2**40, "5.0 TiB")]
)
def test_sizes(number: int, text: str) -> None:
    assert size_text(number) == text


def test_words_and_times() -> None:
    assert counted(1, "file") == "1 file"
    assert counted(0, "entry", "entries") == "0 entries"
    assert time_text(1_500) == "1970-01-01T00:00:01.500Z"
    assert time_text(0) is None
    assert time_text(None) is None
    assert [span_text(n) for n in (1_850, 125_000, 3_600_000, 863_999_000)] == [
        "1.9 s", "2 min 5 s", "1 h 0 min", "9 d 23 h",
    ]  # fmt: skip


def test_moments_are_short_in_tables_and_whole_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"at": time_text(1_500), "said": "1970-01-01T00:00:01.500Z"}]
    print_rows(rows, ("at", "said"), "table")
    assert capsys.readouterr().out.splitlines()[1].split("  ") == [
        "1970-01-01 00:00:01Z", "1970-01-01T00:00:01.500Z",
    ]  # fmt: skip
    print_rows(rows, ("at", "said"), "jsonl")
    assert json.loads(capsys.readouterr().out) == rows[0]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """A terminal of so many columns."""

    def of(columns: int) -> None:
        monkeypatch.setattr(
            output, "_console", lambda: Console(file=sys.stdout, width=columns, highlight=False)
        )

    return of


REPLICAS = [
    {"policy": "sales", "state": "OK", "behind": None, "why": None, "id": 1},
    {"policy": "weblogs", "state": "UNKNOWN", "behind": None, "why": None, "id": 22},
]


@pytest.mark.parametrize(
    ("columns", "lines"),
    [
        (37, ["policy   state    behind  why  id", "sales    OK       -       -     1"]),
        (29, ["policy  state   behind why id", "sales   OK      -      -    1"]),
        (21, ["policy   state    id", "sales    OK        1"]),
        (19, ["policy  state   id", "sales   OK       1"]),
        (17, ["-- 1", "policy  sales", "state   OK", "id      1", "-- 2", "policy  weblogs"]),
    ],
)
def test_a_narrow_terminal_loses_what_says_nothing_before_it_turns_rows(
    terminal: Callable[[int], None],
    capsys: pytest.CaptureFixture[str],
    columns: int,
    lines: list[str],
) -> None:
    terminal(columns)
    print_rows(REPLICAS, tuple(REPLICAS[0]), "table")
    shown = capsys.readouterr().out.splitlines()
    assert [line.split() for line in shown[: len(lines)]] == [line.split() for line in lines]
    assert all(len(line) <= columns for line in shown)


def test_a_null_of_a_query_is_a_value_on_every_terminal(
    terminal: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    terminal(17)
    print_rows(REPLICAS, tuple(REPLICAS[0]), "table", null="NULL")
    assert capsys.readouterr().out.count("NULL") == 4


def test_a_list_that_is_too_long_for_a_line_has_one_for_each_part(
    terminal: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    record = {"steps": ["fence, then wait", "dump and load"], "sets": {"a": 1, "b": "x"}}
    terminal(80)
    print_record(record, "table")
    assert capsys.readouterr().out.splitlines() == [
        "steps  fence, then wait, dump and load", "sets   a 1, b x",
    ]  # fmt: skip
    terminal(30)
    print_record(record, "table")
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "steps  fence, then wait", "       dump and load", "sets   a 1, b x",
    ]  # fmt: skip
    print_record(record, "json")
    assert json.loads(capsys.readouterr().out) == record


@pytest.mark.process
@pytest.mark.parametrize(("columns", "is_table"), [(100, True), (40, False)])
def test_a_narrow_terminal_shows_rows_from_top_to_bottom(
    busy: BusyMetastore, columns: int, is_table: bool
) -> None:
    above, below = pty.openpty()
    fcntl.ioctl(below, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = process_environment({**busy.program.environment, "TERM": "xterm"})
    environment.pop("COLUMNS", None)
    done = subprocess.run(
        [*command(), "compactions", "--table", "sales.orders"], stdout=below, env=environment,
        stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=True, cwd=busy.program.folder,
    )  # fmt: skip
    assert done.stderr == b""
    os.close(below)
    shown = os.read(above, 65536).decode()
    os.close(above)
    lines = re.sub(r"\x1b\[\d*m|\r", "", shown).splitlines()
    assert lines[0].startswith("id  target") is is_table
    assert ("-- 1" in lines[0]) is not is_table
    assert "succeeded" in shown


@pytest.mark.process
def test_a_reader_that_leaves_is_no_error(busy: BusyMetastore) -> None:
    """``hms-bridge … | head -1``."""
    script = f"{' '.join(command())} cm ls --format jsonl | {sys.executable} -c 'input()'"
    done = subprocess.run(
        ["sh", "-c", script], env=process_environment(busy.program.environment),
        capture_output=True, text=True, check=False, cwd=busy.program.folder,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_streams_that_a_caller_closed(program: Program, closed: str) -> None:
    """As some schedulers do: what is opened next must not be taken for one of them."""
    program.ok("schema", "init")
    done = subprocess.run(
        ["sh", "-c", f'"$@" {closed}', "sh", *command(), "txns", "--format", "json"],
        cwd=program.folder, env=process_environment(program.environment),
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout in ("", "[]\n")
