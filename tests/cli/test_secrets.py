"""Secrets stay where they are: out of errors, logs, what hooks pass on, and command lines."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.cli.ending import JsonEnding, TextEnding
from hms_bridge.cli.logs import JsonFormatter, TextFormatter
from hms_bridge.config.reading import settings_from
from hms_bridge.connect import open_local
from hms_bridge.metastore import Metastore
from hms_bridge.model.event import NotificationRequest
from hms_bridge.model.ids import EventId
from hms_bridge.repl.format.stored_message import message_json
from tests.conformance.objects import acid_table
from tests.support.crowd import wait_until
from tests.support.program import Program

SECRET = "s3cret"
URLS = {
    "a user of a server": f"thrift://u:{SECRET}@h:9083",
    "no port": f"thrift://u:{SECRET}@h:x",
    "a parameter": f"oracle://h/db?password={SECRET}",
    "a parameter of a scheme that is none": f"foo://h/db?user=u&password={SECRET}",
    "no scheme": f"u:{SECRET}@h/db",
    "no host": f"postgresql://u:{SECRET}@",
    "nobody there": f"postgresql://127.0.0.1:1/m?user=u&password={SECRET}&connect_timeout=1",
    "a file that is not there": f"sqlite:///no.db?password={SECRET}",
}


@pytest.mark.parametrize("url", URLS.values(), ids=URLS)
def test_no_error_has_a_password(url: str, tmp_path: Path) -> None:
    program = Program(tmp_path, settings={"hms.bridge.database.start.wait": "0s"})
    for words in (
        ("txns", "--metastore", url),
        ("schema", "info", "--database", url),
        ("repl", "lag", "x", "--source", url),
        ("serve", "--port", "0", "--database", url if "sqlite" not in url else "u:s3cret@h"),
    ):
        answer = program.run(*words)
        assert answer.exit_code != 0, words
        assert SECRET not in answer.err + answer.out, (words, answer.err)


@pytest.mark.process
def test_no_traceback_has_a_password(tmp_path: Path) -> None:
    answer = Program(tmp_path).start("--verbose", "txns", "--metastore", URLS["no port"])
    assert "Traceback" in answer.err
    assert SECRET not in answer.err


def test_a_password_in_any_error_is_masked_on_the_way_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whoever raises it: an error of a driver has the URL as it was given."""
    for ending in (TextEnding(is_verbose=False), JsonEnding(is_verbose=False)):
        with pytest.raises(SystemExit):
            ending.run(lambda: int(f"thrift://u:{SECRET}@h"))
    shown = capsys.readouterr().err
    assert SECRET not in shown
    assert shown.count("thrift://u:***@h") == 2


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_no_line_of_the_log_has_a_password(formatter: logging.Formatter) -> None:
    try:
        raise ValueError(f"thrift://u:{SECRET}@h")
    except ValueError:
        fields = {
            "name": "n",
            "levelname": "INFO",
            "msg": "over %s",
            "args": (URLS["a parameter"],),
        }
        record = logging.makeLogRecord({**fields, "exc_info": sys.exc_info()})
    line = formatter.format(record)
    assert SECRET not in line
    assert "thrift://u:***@h" in line


def _make_table(metastore: Metastore, parameters: Mapping[str, str]) -> None:
    table = acid_table("default")
    metastore.create_table(replace(table, parameters={**table.parameters, **parameters}))


def test_hooks_pass_on_no_secret_of_a_table_and_the_log_has_it(tmp_path: Path) -> None:
    """What a dump takes from the log is whole (I11)."""
    lines = tmp_path / "events.jsonl"
    settings = settings_from(
        {
            "hive.metastore.warehouse.dir": str(tmp_path / "warehouse"),
            "hms.bridge.event.hooks": "json-lines",
            "hms.bridge.hooks.json.lines.file": str(lines),
        }
    )
    secrets = {"hive.sql.dbcp.password": SECRET, "fs.s3a.secret.key": SECRET,
               "hive.sql.jdbc.url": f"jdbc:mysql://u:{SECRET}@h/d", "plain": "kept"}  # fmt: skip
    with closing(open_local(f"sqlite:///{tmp_path}/m.db", settings).metastore) as metastore:
        _make_table(metastore, secrets)
        wait_until(lambda: lines.exists() and "CREATE_TABLE" in lines.read_text())
        events = metastore.get_next_notification(NotificationRequest(last_event_id=EventId(0)))
    text = lines.read_text()
    assert SECRET not in text
    message = next(m for m in map(json.loads, text.splitlines()) if m["type"] == "CREATE_TABLE")
    assert '"plain":"kept"' in message["message"]["tableObjJson"].replace(" ", "")
    assert any(SECRET in message_json(event) for event in events)


def test_the_program_of_a_hook_gets_no_secret_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "environment"
    monkeypatch.setenv("HMS_BRIDGE_METASTORE", f"postgresql://u:{SECRET}@h/d")
    monkeypatch.setenv("SOMETHING_PLAIN", SECRET)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("HMS_BRIDGE_HOOK_ROOM", "ops")
    monkeypatch.setenv("LC_TIME", "C")
    given = {"hms.bridge.hooks.command": f"sh -c 'env > {seen}'"}
    program = Program(tmp_path, {**given, "hms.bridge.event.hooks": "command"})
    url = ("--metastore", f"sqlite:///{tmp_path}/m.db")
    program.ok("schema", "init", *url)
    program.ok("hooks", "test", "command", *url)
    text = seen.read_text()
    assert SECRET not in text
    for line in ("HMS_BRIDGE_HOOK_ROOM=ops", "LC_TIME=C", "HMS_BRIDGE_EVENT_TYPE=TEST", "PATH="):
        assert line in text


def test_a_url_may_stand_in_a_file(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.ok("schema", "init")
    file = tmp_path / "url"
    file.write_text(f"{program.url}\n")
    assert program.run("txns", "--metastore", f"@{file}", "--format", "json").json == []
    other = tmp_path / "other"
    for text in ("", f"{program.url}\n{program.url}\n"):
        other.write_text(text)
        refused = program.run("txns", "--metastore", f"@{other}")
        assert (refused.exit_code, "no URL in one line" in refused.err) == (1, True)
    refused = program.run("txns", "--metastore", f"@{tmp_path}/none")
    assert refused.exit_code == 1
    assert "cannot read a URL from" in refused.err
