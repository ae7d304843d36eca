"""Who works longer than hive.txn.timeout stays alive, whatever that is."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import TxnSettings
from hms_bridge.connect import LocalStore
from hms_bridge.metastore import LocalMetastore
from hms_bridge.repl.dump.read_txn import open_read_txn
from hms_bridge.repl.dump.snapshot_wait import WaitRules
from hms_bridge.server.serve import MetastoreServer
from hms_bridge.session.heartbeat import Heartbeat, heartbeat_interval_seconds
from hms_bridge.session.transaction import Client, open_transaction
from tests.support.repl_world import ReplWorld
from tests.support.world import World

TIMEOUT = TxnSettings(timeout_ms=1800)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return World(tmp_path, clock=SystemClock(), txn=TIMEOUT).store


@contextmanager
def housekeeping(metastore: LocalMetastore) -> Iterator[None]:
    """Time-outs in short intervals, as a server has them in long ones."""
    stopping = threading.Event()

    def run() -> None:
        while not stopping.wait(0.1):
            metastore.run_housekeeping()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


@pytest.mark.parametrize(
    ("timeout_ms", "seconds"), [(300_000, 60), (40_000, 40 / 3), (900, 0.3), (7_200_000, 60)]
)
def test_three_beats_in_a_timeout_and_one_in_a_minute(timeout_ms: int, seconds: float) -> None:
    class Told:
        def get_txn_timeout_ms(self) -> int:
            return timeout_ms

    assert heartbeat_interval_seconds(Told()) == pytest.approx(seconds)  # type: ignore[arg-type]


def test_a_transaction_outlives_a_short_timeout(store: LocalStore) -> None:
    client = Client(user="u", host="h")
    with (
        housekeeping(store.metastore),
        open_transaction(store.metastore, client),
    ):
        time.sleep(4)


def test_a_dump_s_transaction_outlives_a_short_timeout_without_being_asked(
    store: LocalStore,
) -> None:
    with (
        housekeeping(store.metastore),
        open_read_txn(store.metastore, SystemClock(), user="u", host="h"),
    ):
        time.sleep(4)


def test_a_bootstrap_that_waits_for_writers_longer_than_the_timeout_goes_on(
    tmp_path: Path,
) -> None:
    world = ReplWorld(tmp_path, clock=SystemClock(), txn=TIMEOUT)
    world.create_table("t")
    writer = world.begin()
    beats = Heartbeat(world.source, writer.id, heartbeat_interval_seconds(world.source))
    beats.start()
    writer.lock("t")

    def end() -> None:
        beats.stop()
        writer.commit()

    ending = threading.Timer(4, end)
    with housekeeping(world.source):
        ending.start()
        dumper = world.dumper()
        wait = WaitRules(timeout_seconds=10, poll_seconds=4.4)
        report = dumper.run(dumper.plan(world.dump_request(wait=wait)))
        ending.join()
    assert list(report.tables) == ["t"]
    world.close()


def test_a_client_asks_the_server_after_which_time_it_is_dead(store: LocalStore) -> None:
    for config, expected in (
        ({"hive.txn.timeout": "40s"}, 40_000),
        ({"hive.txn.timeout": "40"}, 40_000),
        ({"hive.txn.timeout": "900ms"}, 900),
        ({}, 300_000),
        ({"hive.txn.timeout": "soon"}, 300_000),
    ):
        server = MetastoreServer(0, store.metastore, config=config)
        server.start()
        try:
            with ThriftMetastoreClient(f"thrift://127.0.0.1:{server.port}") as client:
                assert client.get_txn_timeout_ms() == expected
        finally:
            server.stop()


def test_a_server_of_ours_is_known_to_heed_fences(store: LocalStore) -> None:
    with (
        MetastoreServer(0, store.metastore) as server,
        ThriftMetastoreClient(f"thrift://127.0.0.1:{server.port}") as client,
    ):
        assert client.heeds_fences()
