"""``hms-bridge hooks``: what is there, whether it works, how far it is, and telling it again."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.config.settings import EventSettings, HookSettings, Settings
from hms_bridge.connect import connected_locally
from hms_bridge.model.catalog import Database
from tests.support.openmetrics import scrape
from tests.support.program import Program, serving

HOOK = """
class Guard:
    def before_change(self, change):
        raise KeyError("as always")

class Audit:
    def in_transaction(self, events, statements):
        raise AssertionError("never called by a test of it")

class Quiet:
    def on_event(self, event):
        assert event.type == "TEST" or event.id
"""

FAULTY = [
    ("class Hook(:", r": its module cannot be imported: SyntaxError: .*my_faulty\.py, line 1\)$"),
    ("\nHook = nothing", r": its module cannot be imported: NameError: .*my_faulty\.py:2\)"),
    (
        "class Hook:\n    def __init__(self):\n        {}['url']",
        r" cannot be made: KeyError: 'url' \(.*my_faulty\.py:3\)",
    ),
]


@pytest.fixture(autouse=True)
def module(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    (program.folder / "my_hooks.py").write_text(HOOK)
    monkeypatch.syspath_prepend(str(program.folder))


def with_hooks(program: Program, **more: str) -> Program:
    settings = {
        "hive.metastore.pre.event.listeners": "my_hooks.Guard",
        "hive.metastore.transactional.event.listeners": "my_hooks.Audit",
        "hive.metastore.event.listeners": "json-lines",
        "hms.bridge.hooks.json.lines.file": str(program.folder / "events.jsonl"),
        **more,
    }
    return replace(program, settings=settings)


def make_databases(program: Program, *names: str) -> None:
    """By a process that tells its hooks before it ends."""
    settings = Settings(
        warehouse=str(program.warehouse),
        events=EventSettings(listeners=("json-lines",)),
        hooks=HookSettings(json_lines_file=str(program.folder / "events.jsonl")),
    )
    with connected_locally(program.url, settings) as store:
        for name in names:
            store.metastore.create_database(Database(name=name))


def keys(program: Program) -> list[str]:
    lines = (program.folder / "events.jsonl").read_text().splitlines()
    return [json.loads(line)["key"] for line in lines]


def test_list_shows_the_hooks_of_the_settings_and_those_of_the_database(program: Program) -> None:
    make_databases(program, "a", "b")
    named = with_hooks(program)
    rows = named.ok("hooks", "list", "--format", "json").json
    assert [(row["hook"], row["kind"], row["heard"], row["behind"]) for row in rows] == [
        ("my_hooks.Guard", "pre", None, None),
        ("my_hooks.Audit", "transactional", None, None),
        ("json-lines", "event", "2", 0),
    ]
    (row,) = program.ok("hooks", "list", "--format", "jsonl").json_lines
    assert (row["hook"], row["kind"], row["told"]) == (
        "json-lines", "not in these settings", False,
    )  # fmt: skip
    table = named.ok("hooks", "list").out.splitlines()
    assert table[0].split() == ["hook", "kind", "heard", "behind", "told"]


def test_list_tells_which_hook_no_server_could_start_with(program: Program) -> None:
    named = with_hooks(program, **{"hive.metastore.event.listeners": "my_hooks.Guard"})
    answer = named.run("hooks", "list", "--format", "json")
    assert answer.exit_code == 1
    assert "no server can start with my_hooks.Guard" in answer.err
    problems = [row["problem"] for row in answer.json if row["problem"]]
    assert problems == ["event hook 'my_hooks.Guard': it has no method on_event, which is called"]


@pytest.mark.parametrize(("code", "problem"), FAULTY)
def test_a_faulty_hook_is_named_and_the_others_are_listed(
    program: Program, code: str, problem: str
) -> None:
    (program.folder / "my_faulty.py").write_text(code)
    sys.modules.pop("my_faulty", None)
    named = with_hooks(program, **{"hive.metastore.event.listeners": "json-lines,my_faulty.Hook"})
    answer = named.run("hooks", "list", "--format", "json")
    assert "no server can start with my_hooks" not in answer.err
    assert "no server can start with my_faulty.Hook" in answer.err
    found = {row["hook"]: row["problem"] for row in answer.json}
    assert found["json-lines"] is None
    assert re.search(f"event hook 'my_faulty.Hook'{problem}", found["my_faulty.Hook"])


def test_test_calls_a_hook_and_changes_nothing(program: Program) -> None:
    named = with_hooks(program)
    answer = named.ok("hooks", "test", "json-lines", "--format", "json")
    assert answer.json == [
        {"hook": "json-lines", "kind": "event", "outcome": "heard", "message": None}
    ]
    (line,) = (program.folder / "events.jsonl").read_text().splitlines()
    told = json.loads(line)
    assert (told["type"], told["message"]) == ("TEST", {"newest": "0"})
    assert named.ok("hooks", "lag", "--format", "json").json == []
    failed = named.run("hooks", "test", "my_hooks.Guard", "--format", "json")
    assert failed.exit_code == 1
    assert failed.json[0]["outcome"] == "failed"
    assert re.fullmatch(r"KeyError: 'as always' \(.*/my_hooks\.py:\d+\)", failed.json[0]["message"])
    assert named.ok("hooks", "test", "my_hooks.Audit", "--format", "json").json[0]["outcome"] == (
        "loaded"
    )
    assert program.ok("hooks", "test", "my_hooks.Quiet", "--format", "json").json[0]["kind"] == (
        "event"
    )
    nothing = program.run("hooks", "test", "my_hooks.Nothing")
    assert nothing.exit_code == 1
    assert "my_hooks has no 'Nothing'; it was read from /" in nothing.err


def test_a_test_has_a_key_that_no_event_has(program: Program) -> None:
    """A receiver that remembers keys passed over the newest event, which it had not heard yet."""
    make_databases(program, "a", "b")
    named = with_hooks(program)
    heard = set(keys(program))
    for _ in range(2):
        named.ok("hooks", "test", "json-lines")
    first, second = keys(program)[-2:]
    assert first != second
    assert not {first, second} & heard
    assert max(float(first), float(second)) < 1, "nor may it look like one that is still to come"


def test_replay_tells_a_hook_again_and_never_moves_it_on(program: Program) -> None:
    make_databases(program, "a", "b", "c")
    assert keys(program) == ["1", "2", "3"]
    answer = program.ok("hooks", "replay", "json-lines", "--from", "2", "--dry-run")
    assert "would tell json-lines again from event 2 on; it has heard 3" in answer.err
    assert program.ok("hooks", "lag", "--format", "json").json[0]["behind"] == 0
    answer = program.ok("hooks", "replay", "json-lines", "--from", "2")
    assert "told again from event 2 on: 2 to hear" in answer.err
    (row,) = program.ok("hooks", "lag", "--format", "json").json
    assert (row["heard"], row["newest"], row["behind"], row["told"]) == ("1", "3", 2, False)
    make_databases(program, "d")
    assert keys(program) == ["1", "2", "3", "2", "3", "4"]
    ahead = program.run("hooks", "replay", "json-lines", "--from", "9")
    assert ahead.exit_code == 1
    assert "from one of 1 to 4 on, not from 9" in ahead.err
    unknown = program.run("hooks", "replay", "webhook", "--from", "1")
    assert unknown.exit_code == 1
    assert "no hook 'webhook' has a position here, only: json-lines" in unknown.err


def test_skip_passes_over_the_one_event_that_is_next(program: Program) -> None:
    make_databases(program, "a", "b", "c")
    program.ok("hooks", "replay", "json-lines", "--from", "2")
    other = program.run("hooks", "skip", "json-lines", "--event", "3", "--dry-run")
    assert other.exit_code == 1
    assert "what it hears next, and can pass over, is 2 (CREATE_DATABASE), not 3" in other.err
    planned = program.ok("hooks", "skip", "json-lines", "--event", "2", "--dry-run")
    assert "json-lines would pass over 2 (CREATE_DATABASE b); nothing was changed" in planned.err
    done = program.ok("hooks", "skip", "json-lines", "--event", "2")
    assert "json-lines passes over 2 (CREATE_DATABASE b): 1 to hear" in done.err
    make_databases(program, "d")
    assert keys(program) == ["1", "2", "3", "3", "4"]


def test_forget_ends_the_wait_for_a_hook(program: Program) -> None:
    make_databases(program, "a")
    assert "would forget json-lines" in program.ok("hooks", "forget", "json-lines", "--dry-run").err
    assert len(program.ok("hooks", "lag", "--format", "json").json) == 1
    assert "forgot json-lines" in program.ok("hooks", "forget", "json-lines").err
    assert program.ok("hooks", "lag", "--format", "json").json == []


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.process
def test_a_server_takes_a_replay_and_tells_its_lag(program: Program) -> None:
    named = with_hooks(
        program,
        **{
            "hive.metastore.pre.event.listeners": "",
            "hive.metastore.transactional.event.listeners": "",
        },
    )
    with serving(named, "--port", "0", "--metrics-port", "0") as server:
        with ThriftMetastoreClient(server.wait_until_ready()) as client:
            for name in ("a", "b", "c"):
                client.create_database(Database(name=name))
        file = Path(program.folder / "events.jsonl")
        wait_until(lambda: file.exists() and keys(program) == ["1", "2", "3"])
        refused = named.run("hooks", "forget", "json-lines")
        assert "a server tells json-lines now" in refused.err
        named.ok("hooks", "replay", "json-lines", "--from", "2")
        wait_until(lambda: keys(program) == ["1", "2", "3", "2", "3"])
        file.unlink()
        file.mkdir()  # which no line can be appended to
        with ThriftMetastoreClient(server.wait_until_ready()) as client:
            client.create_database(Database(name="d"))
            client.create_database(Database(name="e"))
        wait_until(lambda: any("has not heard event 4" in line for line in server.lines))
        named.ok("hooks", "skip", "json-lines", "--event", "4")
        wait_until(lambda: any("has not heard event 5" in line for line in server.lines))
        file.rmdir()
        wait_until(lambda: file.exists() and keys(program) == ["5"])
        (line,) = [line for line in server.lines if line.startswith("metrics at ")]
        url = line.removeprefix("metrics at ")
        wait_until(lambda: scrape(url).one("hms_bridge_hook_behind_events", "json-lines") == 0)
        assert scrape(url).one("hms_bridge_hook_told", "json-lines") == 1
