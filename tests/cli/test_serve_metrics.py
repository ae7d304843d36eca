"""``serve --metrics-port``: a scrape over HTTP tells what the store was made to hold."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from changemanager.manifest import (
    ArchiveCause,
    ArchiveContext,
    ArchiveIntent,
    IntentState,
    Pin,
    PinKind,
)
from hms_bridge.connect import LocalStore
from hms_bridge.model.catalog import Database
from hms_bridge.model.event import NotificationRequest
from hms_bridge.model.ids import EventId, TxnId
from hms_bridge.model.lock import DataOperation, LockComponent, LockLevel, LockRequest, LockType
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import AbortTxnRequest, OpenTxnsRequest, TxnState, TxnType
from tests.support.busy_metastore import BusyMetastore, opened
from tests.support.intents import add_intent, advance_intent
from tests.support.openmetrics import Exposition, get, scrape
from tests.support.program import Program, Server, serving
from tests.support.raw_thrift import STOP, RawClient, call, header

pytestmark = pytest.mark.process

HOUR_MS = 3_600_000
NO_TIME_OUTS = ("--set", "metastore.txn.timeout=1d")
FAILURES = "hms_bridge_figure_failures_total"


@contextmanager
def _watched(program: Program, *words: str) -> Iterator[tuple[Server, str]]:
    """A server, and where its metrics are."""
    with serving(program, "--port", "0", *NO_TIME_OUTS, *words) as server:
        server.wait_until_ready()
        (line,) = [line for line in server.lines if line.startswith("metrics at ")]
        yield server, line.removeprefix("metrics at ")


def _open(store: LocalStore, **more: object) -> TxnId:
    request = OpenTxnsRequest(user="ann", host="here", **more)  # type: ignore[arg-type]
    return store.metastore.open_txns(request)[0]


def _aborted_write(store: LocalStore) -> None:
    """Housekeeping forgets an aborted transaction that wrote nothing."""
    txn_id = _open(store)
    component = LockComponent(
        type=LockType.SHARED_WRITE,
        level=LockLevel.TABLE,
        scope=Scope("sales", "orders"),
        operation=DataOperation.INSERT,
        is_transactional=True,
    )
    store.metastore.lock(
        LockRequest(components=(component,), txn_id=txn_id, user="ann", host="here")
    )
    store.metastore.abort_txn(AbortTxnRequest(txn_id=txn_id))


def _intents(store: LocalStore, created_ms: int) -> None:
    """Two open ones, the older one made at a time, and three that were given up."""
    for number in range(5):
        intent = ArchiveIntent(
            intent_id=f"i{number}",
            victim=f"file:/nowhere/{number}",
            cmroot=None,
            files=(),
            context=ArchiveContext(cause=ArchiveCause.REQUEST),
            is_remaining_in_trash=False,
            state=IntentState.PLANNED,
            created_at_ms=created_ms + number,
            updated_at_ms=created_ms + number,
        )
        add_intent(store.manifest, intent)
        if number >= 2:
            advance_intent(
                store.manifest, f"i{number}", IntentState.PLANNED, IntentState.ABANDONED, created_ms
            )


def _work(store: LocalStore, intents_since_ms: int) -> None:
    _open(store, type=TxnType.REPL_CREATED, repl_policy="p", repl_source_txn_ids=(TxnId(7),))
    _aborted_write(store)
    _intents(store, intents_since_ms)
    store.manifest.put_pin(
        Pin(holder="hold:me", kind=PinKind.HOLD, reason="test", created_at_ms=1, names=frozenset())
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_every_figure_is_what_the_store_holds(busy: BusyMetastore) -> None:
    intents_since_ms = _now_ms() - HOUR_MS
    with opened(busy.program) as store:
        _work(store, intents_since_ms)
        txns = store.metastore.get_open_txns_info()
        locks = store.metastore.show_locks()
        queue = store.metastore.show_compactions()
        newest = store.metastore.get_current_event_id()
        events = store.metastore.get_next_notification(
            NotificationRequest(last_event_id=EventId(0), max_events=None)
        )
        kept = store.manifest.entries(store.archive().cmroot.uri).values()
        pins = store.manifest.pins()
    assert txns[-1].state is TxnState.ABORTED
    with _watched(busy.program, "--metrics-port", "0") as (_, url):
        # Housekeeping forgets the aborted one that wrote nothing.
        _until(url, lambda found: found.one("hms_bridge_aborted_transactions") == 1)
        before = _now_ms()
        found = scrape(url)
        after = _now_ms()

    def is_age(name: str, since_ms: int, *labels: str) -> bool:
        seconds = found.one(name, *labels)
        return before - since_ms <= seconds * 1000 + 1 and seconds * 1000 - 1 <= after - since_ms

    own = [t for t in txns if t.state is TxnState.OPEN and t.type is not TxnType.REPL_CREATED]
    replayed = [t for t in txns if t.type is TxnType.REPL_CREATED]
    assert (len(own), len(replayed)) == (2, 1)
    assert found.of("hms_bridge_open_transactions") == {("own",): 2, ("replayed",): 1}
    oldest_age = "hms_bridge_oldest_open_transaction_age_seconds"
    assert is_age(oldest_age, min(txn.started_ms for txn in own), "own")
    assert is_age(oldest_age, replayed[0].started_ms, "replayed")
    assert found.one("hms_bridge_aborted_transactions") == 1
    assert len(locks) == 2
    assert found.of("hms_bridge_locks") == {("acquired",): 1, ("waiting",): 1}
    assert found.of("hms_bridge_compactions") == {
        ("initiated",): 1, ("working",): 0, ("ready for cleaning",): 1,
    }  # fmt: skip
    (initiated,) = [entry for entry in queue if entry.state.word == "initiated"]
    assert initiated.enqueued_ms is not None
    assert is_age("hms_bridge_oldest_initiated_compaction_age_seconds", initiated.enqueued_ms)
    assert found.one("hms_bridge_newest_event_id") == newest == events[-1].id
    assert found.one("hms_bridge_event_log_events") == len(events) > 1
    assert is_age("hms_bridge_oldest_event_age_seconds", events[0].time_seconds * 1000)
    assert found.one("hms_bridge_archive_files") == len(kept) > 1
    assert found.one("hms_bridge_archive_bytes") == sum(entry.size_bytes for entry in kept) > 0
    due_ms = min(entry.archived_at_ms for entry in kept) + 10 * 24 * HOUR_MS
    assert found.one("hms_bridge_archive_purge_due_timestamp_seconds") == due_ms / 1000
    assert found.one("hms_bridge_archive_pins") == len(pins) >= 2
    assert found.of("hms_bridge_archive_intents") == {("open",): 2, ("abandoned",): 3}
    assert is_age("hms_bridge_archive_oldest_open_intent_age_seconds", intents_since_ms)
    assert set(found.of(FAILURES).values()) == {0}


def _until(url: str, is_so: Callable[[Exposition], bool]) -> Exposition:
    deadline = time.monotonic() + 60
    while not is_so(found := scrape(url)):
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
    return found


def test_a_figure_that_fails_is_missing_and_counted(program: Program) -> None:
    """And what the server does meanwhile is told by the next scrape."""
    with _watched(program, "--metrics-port", "0") as (server, url):
        assert scrape(url).of(FAILURES).keys() == {
            ("transactions",), ("locks",), ("compactions",), ("events",), ("archive",), ("clock",),
            ("calls",),
        }  # fmt: skip
        with closing(sqlite3.connect(program.folder / "metastore.db", timeout=60)) as database:
            database.execute("ALTER TABLE COMPACTION_QUEUE RENAME TO ELSEWHERE")
            database.commit()
            found = _until(url, lambda found: found.one(FAILURES, "compactions") >= 2)
            assert found.of("hms_bridge_compactions") == {}
            assert found.of("hms_bridge_locks") == {("acquired",): 0, ("waiting",): 0}
            assert found.one("hms_bridge_event_log_events") == 0
            assert found.one(FAILURES, "locks") == 0
            database.execute("ALTER TABLE ELSEWHERE RENAME TO COMPACTION_QUEUE")
            database.commit()
        with opened(program) as store:
            store.metastore.create_database(Database(name="one"))
        found = _until(url, lambda found: found.one("hms_bridge_newest_event_id") == 1)
        assert found.one("hms_bridge_compactions", "initiated") == 0
        assert found.one("hms_bridge_event_log_events") == 1
        assert server.stop() == 0


def test_calls_of_clients_are_told_by_method_and_outcome(program: Program) -> None:
    with _watched(program, "--metrics-port", "0") as (server, url):
        series = "hms_bridge_call_duration_seconds"
        assert scrape(url).of(f"{series}_count") == {}
        port = int(server.wait_until_ready().rpartition(":")[2])
        with closing(RawClient(port)) as client:
            for message in (
                call("get_database", name="default"),
                call("get_database", name="default"),
                call("get_database", name="nowhere"),
                header("made_up_one") + STOP,
                header("made_up_two") + STOP,
            ):
                client.send(message)
                client.answer()
        found = scrape(url)
        assert found.of(f"{series}_count") == {
            ("get_database", "ok"): 2, ("get_database", "refused"): 1, ("unknown", "refused"): 2,
        }  # fmt: skip
        ends = {key[2]: n for key, n in found.of(f"{series}_bucket").items() if key[1] == "ok"}
        assert list(ends.values()) == sorted(ends.values())
        assert (len(ends), ends["+Inf"], ends["30.0"]) == (13, 2, 2)
        assert 0 <= found.one(f"{series}_sum", "get_database", "ok") < 60
        assert server.stop() == 0


def test_a_port_of_the_settings_and_no_archive(program: Program) -> None:
    words = ("--set", "hms.bridge.metrics.port=0", "--set", "hive.repl.cm.enabled=false")
    with _watched(program, *words) as (server, url):
        assert url.startswith("http://127.0.0.1:")
        assert get(url.replace("/metrics", "/"))[0] == 404
        found = scrape(url)
        assert found.of("hms_bridge_archive_files") == {}
        assert ("archive",) not in found.of(FAILURES)
        assert server.stop() == 0


def test_without_a_port_there_are_none_and_a_bad_one_is_named(program: Program) -> None:
    with serving(program, "--port", "0") as server:
        server.wait_until_ready()
        assert not [line for line in server.lines if "metrics" in line]
        assert server.stop() == 0
    answer = program.start(
        "serve", "--port", "0", "--metrics-port", "1", "--set", "hms.bridge.metrics.host=192.0.2.1"
    )
    assert (answer.exit_code, "192.0.2.1" in answer.err) == (1, True)
    assert "Traceback" not in answer.err
    answer = program.run("serve", "--set", "hms.bridge.metrics.port=soon")
    assert (answer.exit_code, "hms.bridge.metrics.port is 'soon'" in answer.err) == (1, True)
