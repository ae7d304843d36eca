"""The hooks that come with the program: what they send, and that a failure is no hearing."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import signal
import socket
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.config.reading import settings_from
from hms_bridge.config.settings import Settings
from hms_bridge.errors import ConfigError
from hms_bridge.hooks.command import CommandError
from hms_bridge.hooks.json_lines import JsonLinesError
from hms_bridge.hooks.loading import SHIPPED, HookKind, load_hook
from hms_bridge.hooks.webhook import WebhookError, signature
from hms_bridge.model.hook import HookEvent
from hms_bridge.model.ids import EventId
from hms_bridge.notification.message_text import MessageFormat, write_text
from tests.support.crowd import wait_until

SECRET = "0123456789abcdef"
EVENT = HookEvent(
    id=EventId(17), point_id=4, time_seconds=1_700_000_000, type="ACID_WRITE",
    database_name="sales", table_name="größe; rm -rf $HOME", message='{"txnid":5}',
)  # fmt: skip
TOLD = {
    "key": "17.4", "event_id": 17, "point_id": 4, "time_seconds": 1_700_000_000,
    "type": "ACID_WRITE", "catalog": "hive", "database": "sales",
    "table": "größe; rm -rf $HOME", "message": {"txnid": 5},
}  # fmt: skip


def hook(name: str, **given: str) -> Any:
    keys = {f"hms.bridge.hooks.{key.replace('_', '.')}": text for key, text in given.items()}
    return load_hook(name, HookKind.EVENT, settings_from(keys))


def test_a_json_line_is_on_the_disk_before_it_counts_as_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, synced = tmp_path / "events.jsonl", []
    monkeypatch.setattr(os, "fsync", lambda _: synced.append(file.read_bytes()))
    hook("json-lines", json_lines_file=str(file)).on_event(EVENT)
    assert synced == [file.read_bytes()]
    assert json.loads(synced[0]) == TOLD


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_none_works_without_its_settings(name: str) -> None:
    with pytest.raises(ConfigError, match=f"hook {name}: name its"):
        load_hook(name, HookKind.EVENT, Settings())


def test_a_new_file_of_json_lines_is_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    before = os.umask(0)
    try:
        hook("json-lines", json_lines_file=str(file)).on_event(EVENT)
        assert file.stat().st_mode & 0o777 == 0o600
        file.chmod(0o640)  # a log shipper of the group
        hook("json-lines", json_lines_file=str(file)).on_event(EVENT)
        assert file.stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)


def test_json_lines_come_one_after_the_other_also_after_half_a_line(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    lines = hook("json-lines", json_lines_file=str(file))
    lines.on_event(EVENT)
    zipped = write_text({"db": "x"}, MessageFormat.ZIPPED_JSON)
    other = replace(EVENT, message=zipped, message_format=MessageFormat.ZIPPED_JSON.value)
    lines.on_event(other)
    assert [json.loads(line) for line in file.read_text().splitlines()] == [
        TOLD, TOLD | {"message": {"db": "x"}},
    ]  # fmt: skip
    file.write_bytes(file.read_bytes()[:-7])
    lines.on_event(EVENT)
    assert json.loads(file.read_text().splitlines()[2]) == TOLD
    file.rename(tmp_path / "old")
    lines.on_event(EVENT)
    assert json.loads(file.read_text()) == TOLD


_DEEP = "[" * 50_000 + "]" * 50_000
_LONG_NUMBER = "9" * 5000
_HALF = r'{"table":"\ud800"}'
_TORN = "H4sIAAAAAAAA"


@pytest.mark.parametrize(
    ("message", "as_text"),
    [
        (_HALF, _HALF),
        (_DEEP, _DEEP),
        (_LONG_NUMBER, _LONG_NUMBER),
        ('{"x":NaN}', '{"x":NaN}'),
        ('{"x":1e999}', '{"x":1e999}'),
        ("no JSON", "no JSON"),
        ("half \ud800", r"half \ud800"),
    ],
    ids=["half a character", "deep", "long number", "NaN", "infinite", "words", "half a text"],
)
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_message_that_not_every_reader_of_json_takes_is_passed_on_as_text(
    tmp_path: Path, message: str, as_text: str, *, is_packed: bool
) -> None:
    stored = replace(EVENT, message=message)
    if is_packed:
        packed = gzip.compress(message.encode(errors="backslashreplace"))
        zipped = base64.b64encode(packed).decode()
        stored = replace(EVENT, message=zipped, message_format="gzip(json-2.0)")
    assert _line_of(stored, tmp_path) == TOLD | {"message": as_text}


def test_a_message_that_cannot_be_unpacked_is_passed_on_as_stored(tmp_path: Path) -> None:
    for stored in (_TORN, "no base64", base64.b64encode(gzip.compress(b"\xff")).decode()):
        event = replace(EVENT, message=stored, message_format="gzip(json-2.0)")
        assert _line_of(event, tmp_path) == TOLD | {"message": stored}


def _line_of(event: HookEvent, folder: Path) -> Any:
    """As a strict reader takes it."""
    file = folder / "events.jsonl"
    hook("json-lines", json_lines_file=str(file)).on_event(event)
    line = file.read_bytes().splitlines()[-1].decode()
    assert not re.search(r"(?<!\\)\\u[dD][89a-fA-F]", line), "half a character"
    return json.loads(line, parse_constant=pytest.fail)


def test_a_line_that_cannot_be_written_is_not_heard(tmp_path: Path) -> None:
    why = r"/no/events cannot be written: No such .*hooks\.json\.lines\.file"
    with pytest.raises(JsonLinesError, match=why):
        hook("json-lines", json_lines_file=str(tmp_path / "no" / "events")).on_event(EVENT)


def test_a_relative_file_is_told_with_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(JsonLinesError, match=f"{tmp_path}/no/events cannot be written"):
        hook("json-lines", json_lines_file="no/events").on_event(EVENT)


def test_a_command_gets_the_event_on_its_standard_input(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho "$#-$1-$HMS_BRIDGE_EVENT_KEY" > seen; cat >> seen\n')
    program.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        hook("command", command=f"{program} 'a b'").on_event(EVENT)
    first, told, rest = (tmp_path / "seen").read_text().split("\n")
    assert (first, rest) == ("1-a b-17.4", ""), "a whole line, as read of a shell wants it"
    assert json.loads(told) == TOLD


def test_a_command_that_fails_or_hangs_has_not_heard() -> None:
    with pytest.raises(CommandError, match="sh ended with 3: no disk"):
        hook("command", command="sh -c 'echo no disk >&2; exit 3'").on_event(EVENT)
    with pytest.raises(CommandError, match="did not end within 0.2 s; it was killed"):
        hook("command", command="sleep 60", timeout="200ms").on_event(EVENT)
    with pytest.raises(CommandError, match=r"^sh ended with 4$"):
        hook("command", command="sh -c 'exit 4'").on_event(EVENT)
    with pytest.raises(CommandError, match=r"/no/such/program cannot be run: No .*hooks\.command"):
        hook("command", command="/no/such/program").on_event(EVENT)
    with pytest.raises(ConfigError, match="look at its quotes"):
        hook("command", command="sh 'x")


def test_a_command_has_heard_when_it_ends_whatever_it_leaves_behind(tmp_path: Path) -> None:
    left = tmp_path / "left"
    began = time.monotonic()
    for how in ("", " 0<&-", " 2>&-"):
        program = f"sh -c 'sleep 30{how} & echo $! >> {left}; exit 0'"
        hook("command", command=program, timeout="20s").on_event(EVENT)
    assert time.monotonic() - began < 10
    numbers = [int(line) for line in left.read_text().splitlines()]
    for number in numbers:
        os.kill(number, signal.SIGKILL)  # raises if it is not there any more
    assert len(numbers) == 3


@pytest.mark.parametrize(
    "start",
    ["env -i {} &", "{} &", "setsid {} &", "setsid sh -c 'setsid {} & exit 0'"],
    ids=["no environment", "child", "session of its own", "orphan in another session"],
)
def test_nothing_is_left_of_a_command_that_is_killed(tmp_path: Path, start: str) -> None:
    left, started, program = tmp_path / "left", tmp_path / "started", tmp_path / "program"
    started.write_text(f"#!/bin/sh\necho $$ > {left}\nexec sleep 60\n")
    program.write_text(f"#!/bin/sh\n{start.format(started)}\nsleep 60\ntrue\n")
    for file in (started, program):
        file.chmod(0o755)
    with pytest.raises(CommandError, match="did not end within 1 s; it was killed"):
        hook("command", command=str(program), timeout="1s").on_event(EVENT)
    number = int(left.read_text())
    wait_until(lambda: not _is_running(number))


def test_a_command_that_is_killed_takes_nothing_else_with_it(tmp_path: Path) -> None:
    left = tmp_path / "left"
    quick = f"sh -c 'setsid sleep 60 & echo $! > {left}'"
    hook("command", command=quick).on_event(EVENT)
    with pytest.raises(CommandError, match="it was killed"):
        hook("command", command="sleep 60", timeout="200ms").on_event(EVENT)
    number = int(left.read_text())
    time.sleep(0.2)  # as a kill takes effect once the other has a processor
    assert _is_running(number), "of the same event, but of a run that ended"
    os.kill(number, signal.SIGKILL)


def _is_running(number: int) -> bool:
    """A killed orphan may stay as a zombie where nobody waits for it."""
    try:
        return ") Z " not in Path(f"/proc/{number}/stat").read_text()
    except FileNotFoundError:
        return False


def test_a_command_may_say_more_than_there_is_memory_for() -> None:
    size_bytes = 64 * 2**20
    said = f"import sys; sys.stderr.write('x' * {size_bytes} + 'the end'); sys.exit(3)"
    tracemalloc.start()
    try:
        with pytest.raises(CommandError, match="ended with 3: x+the end$"):
            hook("command", command=f'{sys.executable} -c "{said}"').on_event(EVENT)
        assert tracemalloc.get_traced_memory()[1] < size_bytes / 8
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("program", ["exec 0<&-; exit 0", "exit 0", "exec 2>&-; exit 0", "cat"])
def test_a_command_hears_a_long_event_as_far_as_it_likes(program: str) -> None:
    long = replace(EVENT, message=json.dumps("x" * 5_000_000))
    hook("command", command=f"sh -c '{program}'", timeout="20s").on_event(long)


class Request:
    """What a receiver got."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self.target = handler.path
        self.headers = handler.headers
        self.body = handler.rfile.read(int(handler.headers["Content-Length"]))


@contextmanager
def receiver(status: int, location: str = "") -> Iterator[tuple[str, list[Request]]]:
    """An HTTP server on this machine, and what it got."""
    got: list[Request] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(Request(self))
            self.send_response(status)
            self.send_header("Location", location)
            self.end_headers()
            self.wfile.write(b"said so")

        def log_message(self, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_webhook_posts_the_event_signed() -> None:
    with receiver(204) as (url, got):
        hook("webhook", webhook_url=f"{url}/in?x=1", webhook_secret=SECRET).on_event(EVENT)
    (request,) = got
    assert request.target == "/in?x=1"
    assert json.loads(request.body) == TOLD
    assert request.headers["X-Hms-Bridge-Key"] == "17.4"
    time_seconds = int(request.headers["X-Hms-Bridge-Time"])
    sent = request.headers["X-Hms-Bridge-Signature"]
    assert sent == signature(SECRET, time_seconds, request.body)
    assert sent != signature(SECRET, time_seconds + 1, request.body)
    assert sent != signature(SECRET, time_seconds, request.body + b" ")


def test_a_signature_is_what_others_compute() -> None:
    """printf '17.body' | openssl dgst -sha256 -hmac 0123456789abcdef"""
    assert signature(SECRET, 17, b"body") == (
        "sha256=ab74a58e375890cd5744c83bb5f27bbc4a8a8ff53f61f918dd7695f905945e18"
    )


@pytest.mark.parametrize("status", [300, 302, 307, 404, 500])
def test_a_webhook_follows_nobody_and_other_answers_are_failures(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiver(200) as (other, elsewhere), receiver(status, other) as (url, got):
        monkeypatch.setenv("http_proxy", other)
        monkeypatch.setenv("HTTP_PROXY", other)
        with pytest.raises(WebhookError, match=f"answered {status} .*: said so"):
            hook("webhook", webhook_url=url, webhook_secret=SECRET).on_event(EVENT)
    assert (len(got), elsewhere) == (1, [])


def test_a_receiver_that_is_not_there_has_not_heard() -> None:
    with receiver(200) as (url, _):
        pass
    why = rf"^{url} did not take it: .*refused; .*hms\.bridge\.hooks\.webhook\.url"
    with pytest.raises(WebhookError, match=why):
        hook("webhook", webhook_url=f"{url}/a-secret", webhook_secret=SECRET).on_event(EVENT)


def test_a_receiver_that_speaks_no_http_has_not_heard() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        answered = threading.Thread(target=_hang_up, args=(server,))
        answered.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(WebhookError, match=f"^{url} did not take it: "):
            hook("webhook", webhook_url=url, webhook_secret=SECRET).on_event(EVENT)
        answered.join()


def _hang_up(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.sendall(b"+OK not the web\r\n")
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):  # else the end of the connection looks like a broken one
            pass


@pytest.mark.parametrize(
    ("start", "again"),
    [
        (b"HTTP/1.1 2", b"0"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 204 OK\r\n", b"a: b\r\n"),
        (b"HTTP/1.1 500 No\r\n\r\n", b"why"),
    ],
)
def test_a_receiver_that_answers_bit_by_bit_is_given_up_in_time(start: bytes, again: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        answering = threading.Thread(target=_trickle, args=(server, start, again))
        answering.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(WebhookError, match=f"^{url} did not take it: timed out"):
            hook("webhook", webhook_url=url, webhook_secret=SECRET, timeout="500ms").on_event(EVENT)
        assert time.monotonic() - began < 3
        answering.join()


def _trickle(server: socket.socket, start: bytes, again: bytes) -> None:
    """Until the other side has enough, or for 10 seconds."""
    connection, _ = server.accept()
    with connection, suppress(OSError):
        connection.sendall(start)
        for _ in range(50):
            connection.sendall(again)
            time.sleep(0.2)


@pytest.mark.parametrize(
    "url", ["ftp://h/x", "h:80", "http://", "https://user@h/", "http://h:x/", "http://h/#x"]
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"hms\.bridge\.hooks\.webhook\.url"):
        hook("webhook", webhook_url=url, webhook_secret=SECRET)


@pytest.mark.parametrize("secret", ["", "short", "${env:HMS_BRIDGE_NO_SUCH_SECRET}"])
def test_a_webhook_without_a_secret_is_refused_and_none_is_shown(secret: str) -> None:
    with pytest.raises(ConfigError, match=r"hms\.bridge\.hooks\.webhook\.secret"):
        hook("webhook", webhook_url="http://h/", webhook_secret=secret)
    assert SECRET not in repr(settings_from({"hms.bridge.hooks.webhook.secret": SECRET}))
