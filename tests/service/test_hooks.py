"""Event hooks hear of every commit, in order, and cannot undo it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hms_bridge.config.settings import Settings, TxnSettings
from hms_bridge.errors import AlreadyExistsError, ConfigError
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.event import NotificationEvent
from hms_bridge.model.ids import EventId
from hms_bridge.service.hooks import HookDispatcher, load_hooks
from hms_bridge.service.open import open_local_metastore
from tests.conformance.objects import acid_table, commit, events_after, new_database, open_txn
from tests.support.databases import fresh_url


class Recorder:
    """Remembers what it heard."""

    def __init__(self) -> None:
        self.heard: list[NotificationEvent] = []

    def on_event(self, event: NotificationEvent) -> None:
        self.heard.append(event)


class Failing:
    """A hook with a fault."""

    def on_event(self, event: NotificationEvent) -> None:
        raise RuntimeError(f"no {event.type}")


def make_recorder() -> Recorder:
    return Recorder()


RECORDER = Recorder()
NO_HOOK = object()


def open_with(folder: Path, *hooks: object) -> LocalMetastore:
    return open_local_metastore(
        fresh_url(folder),
        # A transaction that a busy machine opens late would be aborted, which is heard too.
        settings=Settings(
            warehouse=str(folder / "warehouse"), txn=TxnSettings(open_timeout_ms=60_000)
        ),
        hooks=hooks,  # type: ignore[arg-type]
    )


def event(number: int) -> NotificationEvent:
    return NotificationEvent(id=EventId(number), time_seconds=1, type="X", message="{}")


def test_hooks_hear_what_was_committed(tmp_path: Path) -> None:
    recorder = Recorder()
    metastore = open_with(tmp_path, recorder)
    name = new_database(metastore)
    metastore.create_table(acid_table(name))
    with pytest.raises(AlreadyExistsError):
        metastore.create_table(acid_table(name))
    commit(metastore, open_txn(metastore))
    stored = events_after(metastore, 0)
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


def test_a_hook_may_write_itself(tmp_path: Path) -> None:
    class Writer(Recorder):
        def on_event(self, event: NotificationEvent) -> None:
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


def test_an_event_waits_for_those_before_it() -> None:
    recorder = Recorder()
    dispatcher = HookDispatcher([recorder])
    first, second, third = (dispatcher.announce((event(n),)) for n in (1, 2, 3))
    dispatcher.settle(second, is_committed=True)
    dispatcher.close()
    assert recorder.heard == []
    dispatcher.settle(first, is_committed=False)
    dispatcher.close()
    assert [one.id for one in recorder.heard] == [2]
    dispatcher.settle(third, is_committed=True)
    dispatcher.close()
    assert [one.id for one in recorder.heard] == [2, 3]


class Stuck(Recorder):
    """A hook that does not come back until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.is_free = threading.Event()

    def on_event(self, event: NotificationEvent) -> None:
        assert self.is_free.wait(60)
        super().on_event(event)


def test_nobody_waits_for_a_hook(tmp_path: Path) -> None:
    stuck = Stuck()
    metastore = open_with(tmp_path, stuck)
    txns = [open_txn(metastore) for _ in range(3)]  # in this thread: it would not come back
    for txn in txns:
        commit(metastore, txn)
    stored = events_after(metastore, 0)
    assert stuck.heard == []
    stuck.is_free.set()
    metastore.close()
    assert tuple(stuck.heard) == stored


def test_what_a_slow_hook_does_not_hear_is_told(caplog: pytest.LogCaptureFixture) -> None:
    stuck = Stuck()
    dispatcher = HookDispatcher([stuck], waiting_max=2)

    def tell(number: int) -> None:
        dispatcher.settle(dispatcher.announce((event(number),)), is_committed=True)

    for number in range(1, 6):
        tell(number)
    assert "2 events wait for them; those from event 3 on are not told" in caplog.text
    stuck.is_free.set()
    dispatcher.close()
    assert "not told of 3 events, from 3 to 5; read them with get_next_not" in caplog.text
    tell(6)
    dispatcher.close()
    assert [one.id for one in stuck.heard] == [1, 2, 6]


def test_what_is_not_heard_before_the_end_is_told(caplog: pytest.LogCaptureFixture) -> None:
    stuck = Stuck()
    dispatcher = HookDispatcher([stuck])
    dispatcher.settle(dispatcher.announce((event(7), event(8))), is_committed=True)
    dispatcher.close(timeout_seconds=0.05)
    assert "did not hear of 2 events before the end, from 7 to 8" in caplog.text
    stuck.is_free.set()
    dispatcher.close()


def test_hooks_are_loaded_by_name() -> None:
    here = "tests.service.test_hooks"
    assert isinstance(load_hooks([f"{here}:Recorder"])[0], Recorder)
    assert isinstance(load_hooks([f"{here}:make_recorder"])[0], Recorder)
    assert isinstance(load_hooks([f"{here}:RECORDER"])[0].heard, list)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "name", ["nowhere", "no.such.module:x", "tests.service.test_hooks:nothing",
             "tests.service.test_hooks:NO_HOOK"],
)  # fmt: skip
def test_what_is_no_hook_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="event hook"):
        load_hooks([name])
