"""Clients whose calls one thread makes, and a server that notes on which thread it made each."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from thrift.Thrift import TMessageType

from hms_bridge.config.settings import ServerSettings
from hms_bridge.model.txn import OpenTxnsRequest
from hms_bridge.server.crowd import STREAK
from hms_bridge.server.serve import MetastoreServer
from hms_bridge.wire.structs import hive
from tests.support.fake_metastore import FakeMetastore
from tests.support.raw_thrift import RawClient, call
from tests.support.sample_records import DATABASE
from tests.support.simulated_clock import SimulatedClock

GET_DATABASE = call("get_database", name="db")
CROWD, OWN = "thrift-crowd", "thrift-client"


def heartbeat(txn: int = 1) -> bytes:
    return call("heartbeat", ids=hive.HeartbeatRequest(txnid=txn, lockid=0))


def opening(count: int = 1, user: str = "u") -> bytes:
    return call("open_txns", rqst=hive.OpenTxnRequest(num_txns=count, user=user, hostname="h"))


class Served:
    """A server that notes on which thread each call is made, and numbers what is opened.
    ``before``: what happens in a heartbeat of a transaction with this id."""

    def __init__(self, limits: ServerSettings | None = None, clock: SimulatedClock | None = None):
        self.threads: list[str] = []
        self.before: dict[int, Callable[[], object]] = {}
        self._ids = itertools.count(1)
        self.fake = FakeMetastore(
            heartbeat=self._heartbeat, open_txns=self._open, get_database=self._get
        )
        self.server = MetastoreServer(
            0, self.fake, limits=limits or ServerSettings(), clock=clock  # type: ignore[arg-type]
        )  # fmt: skip

    def _note(self) -> None:
        self.threads.append(threading.current_thread().name)

    def _heartbeat(self, txn: int, _: int) -> None:
        self.before.get(txn, lambda: None)()
        self._note()

    def _open(self, request: OpenTxnsRequest) -> list[int]:
        self._note()
        return list(itertools.islice(self._ids, request.count))

    def _get(self, *_: object) -> object:
        self._note()
        return DATABASE

    @contextmanager
    def guest(self) -> Iterator[RawClient]:
        """A client whose next message is for the crowd's thread."""
        with RawClient(self.server.port) as client:
            self.settle(client)
            yield client

    def settle(self, client: RawClient) -> None:
        """As many calls as it takes."""
        for _ in range(STREAK):
            self.beat(client)
        assert self.beat(client) == CROWD

    def held(self, client: RawClient, txn: int = 7) -> Held:
        """A heartbeat of a client that is being made until it is to go on."""
        held = self.before[txn] = Held()
        held.begin(client, txn)
        return held

    def beat(self, client: RawClient, txn: int = 1) -> str:
        """On which thread it was answered."""
        client.send(heartbeat(txn))
        assert client.answer()[1] == TMessageType.REPLY
        return self.threads[-1]


class Held:
    """What the first heartbeat of a transaction waits for."""

    def __init__(self) -> None:
        self._begun, self._go_on = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self._begun.set()
        assert self._go_on.wait(10)

    def begin(self, client: RawClient, txn: int) -> None:
        """A heartbeat that is waiting when this returns."""
        client.send(heartbeat(txn))
        assert self._begun.wait(10)

    def go_on(self) -> None:
        """It is over, and so are those that come later."""
        self._go_on.set()


def opened(client: RawClient) -> list[int]:
    ids: list[int] = client.answer()[2].success.txn_ids
    return ids


def crowd_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(CROWD)]
