"""Of several servers on one database one keeps house; when it goes, another one does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import text, update

from changemanager.manifest import LEASE_MS
from hms_bridge.backend.schema.archive_tables import HMSB_LEASE
from hms_bridge.backend.work import Work
from hms_bridge.cli.serve_daemons import HOUSEKEEPING_LEASE, housekeeper
from hms_bridge.config.settings import TxnSettings
from hms_bridge.connect import open_local
from hms_bridge.errors import MetaError
from hms_bridge.txn import housekeeping
from tests.support.databases import SERVER_URL
from tests.support.world import World

TIMEOUT_MS = 1000
GONE = "from hms_bridge.session.holding_process import with_own_process as mark; print(mark('x'))"


class Server:
    """One of those on the world's database."""

    def __init__(self, world: World, stack: ExitStack) -> None:
        self._world = world
        store = open_local(world.url, world.settings, world.clock)
        stack.callback(store.metastore.close)
        self._running = stack.enter_context(ExitStack())
        self.keep_house = housekeeper(store, self._running)

    def keeps_house(self) -> bool:
        """Whether it does now: a writer that went silent is aborted."""
        txns = self._world.txns
        txns.housekeep()
        txns.open_one()
        self._world.clock.advance_ms(TIMEOUT_MS + 1)
        self.keep_house()
        return not any(txn.state.value == "o" for txn in txns.all().txns)

    def stop(self) -> None:
        self._running.close()


@pytest.fixture
def world(fast_folder: Path) -> Iterator[World]:
    world = World(fast_folder, txn=TxnSettings(timeout_ms=TIMEOUT_MS))
    yield world
    world.close()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_one_of_two_does_as_long_as_it_gives_signs_of_life(world: World, stack: ExitStack) -> None:
    first, second = Server(world, stack), Server(world, stack)
    for _ in range(4):
        assert first.keeps_house()
        assert not second.keeps_house()
        world.clock.advance_ms(LEASE_MS // 2)
        assert first.keeps_house()


def test_the_other_one_does_when_it_stops(world: World, stack: ExitStack) -> None:
    first, second = Server(world, stack), Server(world, stack)
    assert first.keeps_house()
    first.stop()
    assert second.keeps_house()
    assert not first.keeps_house()


def test_the_other_one_does_when_nothing_is_heard_of_it(world: World, stack: ExitStack) -> None:
    first, second = Server(world, stack), Server(world, stack)
    assert first.keeps_house()
    world.clock.advance_ms(LEASE_MS)
    assert second.keeps_house()
    assert not first.keeps_house()


def test_one_that_was_killed_here_is_followed_at_once(world: World, stack: ExitStack) -> None:
    first, second = Server(world, stack), Server(world, stack)
    assert first.keeps_house()
    killed = subprocess.run(
        [sys.executable, "-c", GONE], capture_output=True, text=True, check=True
    )
    is_it = HMSB_LEASE.c.NAME == HOUSEKEEPING_LEASE
    owner = killed.stdout.strip()
    world.execute(update(HMSB_LEASE).where(is_it).values(OWNER=owner))
    assert second.keeps_house()


def test_the_other_one_does_when_it_fails(
    world: World, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook of its own refuses, or its host does not reach what the other's does."""
    first, second = Server(world, stack), Server(world, stack)
    assert first.keeps_house()
    with monkeypatch.context() as patch:
        patch.setattr(housekeeping, "time_out_rebuild_locks", _fail)
        with pytest.raises(MetaError, match="not on this host"):
            first.keep_house()
    assert second.keeps_house()
    assert not first.keeps_house()


def _fail(_work: Work) -> int:
    raise MetaError("not on this host")


@pytest.mark.skipif(SERVER_URL is not None, reason="takes a table away")
def test_a_server_whose_database_has_gone_stops(
    world: World, stack: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(world, stack)
    assert server.keeps_house()
    world.execute(text('DROP TABLE "HMSB_LEASE"'))
    server.stop()
    assert "the lease on the housekeeping was not given back" in caplog.text
