"""One port, one page; nobody who connects can hold it up."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from hms_bridge.errors import ConfigError
from hms_bridge.metrics.collector import Figure, FigureCollector
from hms_bridge.metrics.endpoint import MetricsEndpoint, listen_for_scrapes
from hms_bridge.metrics.store_metrics import PINS
from tests.support.openmetrics import get, scrape


@contextmanager
def _served(
    host: str = "127.0.0.1", port: int = 0, seconds: float = 10
) -> Iterator[MetricsEndpoint]:
    collector = FigureCollector([Figure("pins", lambda: [PINS.at(3)])], timeout_ms=5_000)
    listener = listen_for_scrapes(host, port)
    endpoint = MetricsEndpoint(collector, host=host, listener=listener, request_seconds_max=seconds)
    endpoint.start()
    try:
        yield endpoint
    finally:
        endpoint.stop()


def _port(endpoint: MetricsEndpoint) -> int:
    return int(endpoint.url.removesuffix("/metrics").rpartition(":")[2])


def test_the_page_and_no_other() -> None:
    with _served() as endpoint:
        assert scrape(endpoint.url).one("hms_bridge_archive_pins") == 3
        status, _, text = get(endpoint.url.removesuffix("metrics"))
        assert (status, "metrics are at /metrics" in text) == (404, True)


def test_a_stopped_one_gives_its_port_back() -> None:
    with _served() as endpoint:
        port = _port(endpoint)
    with pytest.raises(OSError, match="refused"):
        get(endpoint.url)
    with _served(port=port) as again:
        assert scrape(again.url).one("hms_bridge_archive_pins") == 3


@pytest.mark.parametrize(("host", "port"), [("192.0.2.1", 0), ("127.0.0.1", 70_000)])
def test_an_address_that_cannot_be_used_is_refused_by_name(host: str, port: int) -> None:
    with pytest.raises(ConfigError, match=f"metrics cannot be served on {host} port {port}"):
        listen_for_scrapes(host, port)


def test_a_busy_port_is_refused() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        pytest.raises(ConfigError, match="name another port"),
        _served(port=other.getsockname()[1]),
    ):
        pass


def test_ipv6() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with _served(host="::1") as endpoint:
        assert endpoint.url.startswith("http://[::1]:")
        assert scrape(endpoint.url).one("hms_bridge_archive_pins") == 3


def test_silent_clients_take_no_thread_beyond_a_bound() -> None:
    """Those for whom there is no room are sent away; when one leaves, there is room again."""
    with _served() as endpoint, ExitStack() as stack:
        silent = [
            stack.enter_context(socket.create_connection(("127.0.0.1", _port(endpoint)), 60))
            for _ in range(8)
        ]
        late = stack.enter_context(socket.create_connection(("127.0.0.1", _port(endpoint)), 60))
        assert late.recv(1) == b""
        silent[0].close()
        deadline = time.monotonic() + 60
        while True:
            try:
                found = scrape(endpoint.url)
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        assert found.one("hms_bridge_archive_pins") == 3


def test_clients_whose_requests_trickle_in_keep_no_thread() -> None:
    """A byte now and then is no silence; the request as a whole has a time."""
    with _served(seconds=2) as endpoint, ExitStack() as stack:
        slow = [
            stack.enter_context(socket.create_connection(("127.0.0.1", _port(endpoint)), 60))
            for _ in range(8)
        ]
        deadline = time.monotonic() + 20
        is_answered = False
        while not is_answered and time.monotonic() < deadline:
            for client in slow:
                with suppress(OSError):  # it was sent away
                    client.send(b"G")
            time.sleep(0.1)
            with suppress(OSError):
                is_answered = scrape(endpoint.url).one("hms_bridge_archive_pins") == 3
        assert is_answered
