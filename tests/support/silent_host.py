"""Run in a network of its own (``unshare --net``): what becomes of calls and connections when
packets are no longer answered, as after a loss of power. Prints one line of JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hms_bridge.client.caller import CallSettings
from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.errors import MetastoreUnavailableError
from hms_bridge.server import serve
from hms_bridge.server.serve import MetastoreServer
from tests.support.fake_metastore import FakeMetastore
from tests.support.sample_records import DATABASE

SILENT_SECONDS = 3


def main() -> None:
    """Cut the network under two calls, and under one that comes then."""
    serve.SILENT_SECONDS = SILENT_SECONDS
    _network("up")
    release = threading.Event()

    def slow(*_: object, **__: object) -> Any:
        release.wait(4 * SILENT_SECONDS)
        return DATABASE

    with MetastoreServer(0, FakeMetastore(get_database=slow, get_current_event_id=1)) as server:
        threading.Timer(1.5 * SILENT_SECONDS, release.set).start()
        with _client(server.port) as living:
            assert living.get_database("db") == DATABASE
        release.clear()
        client = _client(server.port)
        with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
            for thread in (first, second):  # each has a connection of its own
                thread.submit(client.get_current_event_id).result()
            waited = first.submit(_timed, lambda: client.get_database("db"))
            time.sleep(SILENT_SECONDS / 6)  # it has been sent, and was confirmed
            _network("down")
            sent = second.submit(_timed, lambda: client.create_database(DATABASE))
            repeated = second.submit(_timed, client.get_current_event_id)
            found = {
                "living": "answered",
                "waited": waited.result(),
                "sent": sent.result(),
                "repeated": repeated.result(),
            }
        release.set()
        found["threads"] = _connections_left()
        _network("up")
    sys.stdout.write(json.dumps(found))


def _client(port: int) -> ThriftMetastoreClient:
    settings = CallSettings(
        silent_seconds=SILENT_SECONDS,
        connect_timeout_seconds=1,
        call_timeout_seconds=15,
        attempts=2,
    )
    return ThriftMetastoreClient(f"127.0.0.1:{port}", settings)


def _timed(work: Callable[[], object]) -> tuple[float, str]:
    started = time.monotonic()
    try:
        work()
    except MetastoreUnavailableError as error:
        return time.monotonic() - started, str(error)
    return time.monotonic() - started, "answered"


def _connections_left() -> int:
    """After a while: of the server's threads that serve a client."""
    deadline = time.monotonic() + 30
    while (left := _serving()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return left


def _serving() -> int:
    return sum(thread.name == "thrift-client" for thread in threading.enumerate())


def _network(state: str) -> None:
    subprocess.run(["ip", "link", "set", "lo", state], check=True)


if __name__ == "__main__":
    main()
