"""Event hooks hear of every commit at least once, in order, and cannot undo it."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import delete, update

from hms_bridge.backend.engine import open_database
from hms_bridge.backend.schema.install import install
from hms_bridge.backend.schema.notification_tables import NOTIFICATION_LOG
from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import ArchiveSettings, Settings, TxnSettings
from hms_bridge.errors import AlreadyExistsError
from hms_bridge.hooks.json_lines import JsonLines
from hms_bridge.hooks.port import EventHook, NotHeardError
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.hook import HookEvent
from hms_bridge.notification.hook_points import as_hook_event
from hms_bridge.notification.message_text import MessageFormat
from hms_bridge.service.hook_positions import StoredPositions
from hms_bridge.service.hooks import BATCH, HookDispatcher
from hms_bridge.service.open import open_local_metastore
from hms_bridge.service.unit_of_work import Transactions
from tests.conformance.objects import acid_table, commit, events_after, new_database, open_txn
from tests.support.databases import fresh_url


class Recorder:
    """Remembers what it heard."""

    def __init__(self) -> None:
        self.heard: list[HookEvent] = []

    def on_event(self, event: HookEvent) -> None:
        self.heard.append(event)


class Failing:
    """A hook with a fault."""

    def on_event(self, event: HookEvent) -> None:
        raise RuntimeError(f"no {event.type}")


def stored_events(metastore: LocalMetastore) -> tuple[HookEvent, ...]:
    return tuple(as_hook_event(event) for event in events_after(metastore, 0))


def open_with(folder: Path, *hooks: EventHook) -> LocalMetastore:
    return open_at(fresh_url(folder), folder, *hooks)


def open_at(url: str, folder: Path, *hooks: EventHook, has_archive: bool = False) -> LocalMetastore:
    return open_local_metastore(
        url,
        # A transaction that a busy machine opens late would be aborted, which is heard too.
        settings=Settings(
            warehouse=str(folder / "warehouse"),
            txn=TxnSettings(open_timeout_ms=60_000),
            archive=ArchiveSettings(is_enabled=has_archive, root=str(folder / "archive")),
        ),
        hooks=hooks,
    )


def test_hooks_hear_what_was_committed(tmp_path: Path) -> None:
    recorder = Recorder()
    metastore = open_with(tmp_path, recorder)
    name = new_database(metastore)
    metastore.create_table(acid_table(name))
    with pytest.raises(AlreadyExistsError):
        metastore.create_table(acid_table(name))
    commit(metastore, open_txn(metastore))
    stored = stored_events(metastore)
    metastore.close()
    assert tuple(recorder.heard) == stored
    assert [one.type for one in recorder.heard] == [
        "CREATE_DATABASE", "CREATE_TABLE", "OPEN_TXN", "COMMIT_TXN",
    ]  # fmt: skip


def test_a_failing_hook_undoes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder()
    metastore = open_with(tmp_path, Failing(), recorder)
    name = new_database(metastore)
    assert name in metastore.get_databases()
    metastore.close()
    assert len(recorder.heard) == 1
    assert "no CREATE_DATABASE" in caplog.text


class Away(Recorder):
    """Like a receiver that is not there."""

    def on_event(self, event: HookEvent) -> None:
        raise NotHeardError("nobody is there")


def test_what_is_not_heard_on_purpose_is_a_line_of_the_log_and_comes_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    metastore = open_with(tmp_path, Away())
    new_database(metastore)
    wait_until(lambda: "in 2 s" in caplog.text)
    metastore.close()
    assert "has not heard event 1 (CREATE_DATABASE): nobody is there; it is told again in 1 s" in (
        caplog.text
    )
    assert "Traceback" not in caplog.text


class Moody(Recorder):
    """Fails as often as it was told to, then hears."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures
        self.tried: list[int] = []

    def on_event(self, event: HookEvent) -> None:
        self.tried.append(event.id)
        if self.failures:
            self.failures -= 1
            raise ConnectionError("nobody is there")
        super().on_event(event)


def test_what_a_hook_failed_on_is_told_again_before_anything_else(tmp_path: Path) -> None:
    moody = Moody(failures=2)
    metastore = open_with(tmp_path, moody)
    for _ in range(2):
        new_database(metastore)
    stored = stored_events(metastore)
    wait_until(lambda: len(moody.heard) == len(stored))
    metastore.close()
    assert tuple(moody.heard) == stored
    assert moody.tried == [1, 1, 1, 2]


def test_a_hook_that_fails_for_days_is_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A pause that doubles each time is more than a float after a thousand of them."""
    monkeypatch.setattr("hms_bridge.service.hooks.RETRY_SECONDS_MAX", 0.0)
    caplog.set_level(logging.CRITICAL)
    moody = Moody(failures=1100)
    metastore = open_with(tmp_path, moody)
    new_database(metastore)
    wait_until(lambda: bool(moody.heard))
    metastore.close()


def test_a_hook_that_was_down_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Also with what was committed while no process told it."""
    url = fresh_url(tmp_path)
    down = Moody(failures=10_000)
    metastore = open_at(url, tmp_path, Moody(0))
    new_database(metastore)
    metastore.close()
    metastore = open_at(url, tmp_path, down)
    new_database(metastore)
    metastore.close()
    assert down.heard == []
    metastore = open_at(url, tmp_path)
    new_database(metastore)
    metastore.close()
    up = Moody(failures=0)
    metastore = open_at(url, tmp_path, up)
    metastore.close()
    assert [one.id for one in up.heard] == [2, 3]


def test_a_new_hook_hears_what_comes(tmp_path: Path) -> None:
    url = fresh_url(tmp_path)
    metastore = open_at(url, tmp_path)
    new_database(metastore)
    metastore.close()
    recorder = Recorder()
    metastore = open_at(url, tmp_path, recorder)
    new_database(metastore)
    metastore.close()
    assert [one.id for one in recorder.heard] == [2]


def test_events_of_other_processes_are_heard_and_one_of_two_tells(tmp_path: Path) -> None:
    url = fresh_url(tmp_path)
    first, second = Recorder(), Recorder()
    one, two, other = (open_at(url, tmp_path, *hooks) for hooks in ((first,), (second,), ()))
    new_database(other)
    wait_until(lambda: len(first.heard) + len(second.heard) == 1)
    one.close()
    new_database(other)
    wait_until(lambda: len(second.heard) > 0)
    two.close()
    other.close()
    assert [one.id for one in first.heard + second.heard] == [1, 2]


class Slow(Recorder):
    """Takes longer for an event than a process holds a hook."""

    def on_event(self, event: HookEvent) -> None:
        time.sleep(0.8)
        super().on_event(event)


def test_two_processes_whose_hook_is_slow_come_to_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I13: each took the hook from the other in the middle of an event, and told the first two for
    ever."""
    monkeypatch.setattr("hms_bridge.notification.hook_positions.HOLD_MS", 300)
    monkeypatch.setattr("hms_bridge.service.hooks.POLL_SECONDS", 0.02)
    url = fresh_url(tmp_path)
    slow = Slow(), Slow()
    one, other = (open_at(url, tmp_path, hook) for hook in slow)
    for _ in range(5):
        new_database(one)
    wait_until(lambda: any(event.id == 5 for hook in slow for event in hook.heard))
    one.close()
    other.close()
    for hook in slow:
        first_heard = list(dict.fromkeys(event.id for event in hook.heard))
        assert first_heard == sorted(first_heard)


@pytest.mark.parametrize("name", ["hive.repl", "hive.metastore"])
def test_events_that_were_purged_before_a_hook_heard_them_are_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    url = fresh_url(tmp_path)
    metastore = open_at(url, tmp_path, Moody(failures=10_000))
    for _ in range(5):
        new_database(metastore)
    metastore.close()
    forget_events(url, 3)
    moody = Moody(failures=0)
    open_at(url, tmp_path, moody, has_archive=name == "hive.repl").close()
    assert [one.id for one in moody.heard] == [4, 5]
    assert "was not told of 3 events, from 1 to 3: they are purged" in caplog.text
    assert f"({name}.event.db.listener.timetolive)" in caplog.text


@pytest.mark.parametrize("message", [r'{"x":"\ud800"}', "[" * 50_000], ids=["half", "deep"])
def test_a_message_of_another_writer_holds_up_no_later_event(tmp_path: Path, message: str) -> None:
    url, file = fresh_url(tmp_path), tmp_path / "events.jsonl"
    open_at(url, tmp_path, JsonLines(file)).close()
    metastore = open_at(url, tmp_path)
    for _ in range(2):
        new_database(metastore)
    metastore.close()
    put_message(url, 1, message)
    open_at(url, tmp_path, JsonLines(file)).close()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["key"] for line in lines] == ["1", "2"]
    assert lines[0]["message"] == message


def put_message(url: str, event_id: int, message: str) -> None:
    database = open_database(url)
    with database.transaction(write=True) as connection:
        log = NOTIFICATION_LOG.c
        connection.execute(
            update(NOTIFICATION_LOG)
            .where(event_id == log.EVENT_ID)
            .values(MESSAGE=message, MESSAGE_FORMAT="json-0.2")
        )
    database.close()


def test_a_log_that_was_purged_whole_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = fresh_url(tmp_path)
    metastore = open_at(url, tmp_path, Moody(failures=10_000))
    for _ in range(2):
        new_database(metastore)
    metastore.close()
    forget_events(url, 2)
    moody = Moody(failures=0)
    metastore = open_at(url, tmp_path, moody)
    wait_until(lambda: "was not told of 2 events, from 1 to 2: they are purged" in caplog.text)
    new_database(metastore)
    metastore.close()
    assert [one.id for one in moody.heard] == [3]


def test_more_events_than_are_read_at_once_are_all_told(tmp_path: Path) -> None:
    url = fresh_url(tmp_path)
    open_at(url, tmp_path, Recorder()).close()
    metastore = open_at(url, tmp_path)
    for _ in range(BATCH + 5):
        new_database(metastore)
    metastore.close()
    recorder = Recorder()
    open_at(url, tmp_path, recorder).close()
    assert [one.id for one in recorder.heard] == list(range(1, BATCH + 6))


def forget_events(url: str, last: int) -> None:
    engine = open_database(url)
    with engine.transaction(write=True) as connection:
        connection.execute(delete(NOTIFICATION_LOG).where(last >= NOTIFICATION_LOG.c.EVENT_ID))
    engine.close()


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_hook_may_write_itself(tmp_path: Path) -> None:
    class Writer(Recorder):
        def on_event(self, event: HookEvent) -> None:
            super().on_event(event)
            if event.type == "CREATE_DATABASE":
                metastore.create_table(acid_table(event.database_name or ""))
            else:
                is_heard.set()

    is_heard = threading.Event()
    writer = Writer()
    metastore = open_with(tmp_path, writer)
    new_database(metastore)
    assert is_heard.wait(30)
    metastore.close()
    assert [one.type for one in writer.heard] == ["CREATE_DATABASE", "CREATE_TABLE"]


def test_threads_are_heard_in_the_order_of_ids(tmp_path: Path) -> None:
    recorder = Recorder()
    metastore = open_with(tmp_path, recorder)

    def work() -> None:
        for _ in range(10):
            commit(metastore, open_txn(metastore))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    metastore.close()
    ids = [one.id for one in recorder.heard]
    assert ids == list(range(1, 81))


class Stuck(Recorder):
    """A hook that does not come back until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.is_free = threading.Event()

    def on_event(self, event: HookEvent) -> None:
        assert self.is_free.wait(60)
        super().on_event(event)


def test_nobody_waits_for_a_hook(tmp_path: Path) -> None:
    stuck = Stuck()
    metastore = open_with(tmp_path, stuck)
    txns = [open_txn(metastore) for _ in range(3)]  # in this thread: it would not come back
    for txn in txns:
        commit(metastore, txn)
    stored = stored_events(metastore)
    assert stuck.heard == []
    stuck.is_free.set()
    metastore.close()
    assert tuple(stuck.heard) == stored


def test_what_is_not_heard_before_the_end_is_heard_after_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = fresh_url(tmp_path)
    database = open_database(url)
    install(database)
    transactions = Transactions(
        database,
        SystemClock(),
        message_format=MessageFormat.JSON,
        hooks=HookDispatcher([], new_id=lambda: "nobody", kept_by=""),
    )
    stuck = Stuck()
    dispatcher = HookDispatcher([("x", stuck)], new_id=lambda: "one", kept_by="")
    dispatcher.start(StoredPositions(transactions))
    metastore = open_at(url, tmp_path)
    new_database(metastore)
    new_database(metastore)
    dispatcher.close(timeout_seconds=2)
    assert "event hook x is still busy at the end" in caplog.text
    stuck.is_free.set()
    wait_until(lambda: len(stuck.heard) == 1)
    recorder = Recorder()
    dispatcher = HookDispatcher([("x", recorder)], new_id=lambda: "one", kept_by="")
    dispatcher.start(StoredPositions(transactions))
    dispatcher.close()
    metastore.close()
    database.close()
    assert [one.id for one in recorder.heard] == [1, 2]
