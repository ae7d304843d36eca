"""Connections that never finish a first message lock nobody out, however many there are, and
whether they come again or not."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from hms_bridge.client.caller import CallSettings
from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.config.settings import ServerSettings
from hms_bridge.errors import MetastoreUnavailableError
from hms_bridge.server.door import host_of
from hms_bridge.server.serve import MetastoreServer
from tests.support.fake_metastore import FakeMetastore
from tests.support.golden import CHECKOUT
from tests.support.program import Program, process_environment, serving
from tests.support.raw_thrift import RawClient, call
from tests.support.sample_records import DATABASE
from tests.support.simulated_clock import SimulatedClock

GET_DATABASE = call("get_database", name="default")
PROMPT_SECONDS = 20
"""On a busy machine; an idle connection kept its place for 60 seconds."""


@contextmanager
def idle_crowd(port: int, count: int, size: int) -> Iterator[None]:
    words = [sys.executable, "-m", "tests.support.idle_crowd", str(port), str(count), str(size)]
    process = subprocess.Popen(
        words, cwd=CHECKOUT, env=process_environment(), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def ask_often(port: int, kept: RawClient) -> None:
    """By a connection that was there before, and by new ones."""
    for _ in range(20):
        began = time.monotonic()
        with RawClient(port) as client:
            for asking in (client, kept):
                asking.send(GET_DATABASE)
                assert asking.answer()[2].success.name
        assert time.monotonic() - began < PROMPT_SECONDS


@pytest.mark.process
@pytest.mark.parametrize("size", [0, 3])
def test_a_thousand_that_send_no_call_lock_nobody_out(
    size: int, caplog: pytest.LogCaptureFixture
) -> None:
    """They come again as soon as they are closed."""
    fake = FakeMetastore(get_database=DATABASE)
    with (
        MetastoreServer(0, fake) as server,  # type: ignore[arg-type]
        RawClient(server.port) as kept,
    ):
        kept.send(GET_DATABASE)
        kept.answer()
        with idle_crowd(server.port, 1_000, size):
            ask_often(server.port, kept)
        lines = [record.getMessage() for record in caplog.records]
        assert any("sent no whole call" in line for line in lines)
        assert len(lines) < 10, "it is said now and then, not for each"


@pytest.mark.process
def test_nor_do_they_where_several_processes_answer(tmp_path: Path) -> None:
    with serving(Program(tmp_path), "--port", "0", "--processes", "2") as server:
        port = int(server.wait_until_ready().rpartition(":")[2])
        with RawClient(port) as kept:
            kept.send(GET_DATABASE)
            kept.answer()
            with idle_crowd(port, 1_010, 3):
                ask_often(port, kept)
        assert any("sent no whole call" in line for line in server.lines)
        assert server.stop() == 0


@pytest.mark.parametrize(
    ("address", "host"),
    [
        (("10.0.0.1", 5000), "10.0.0.1"),
        (("::ffff:10.0.0.1", 5000, 0, 0), "10.0.0.1"),
        (("::1", 5000, 0, 0), "::1"),
        (("2001:db8::1:2", 5000, 0, 0), "2001:db8::/64"),
        (("fe80::7%eth0", 5000, 0, 2), "fe80::/64"),
        ("", "an unknown host"),
    ],
)
def test_a_host_is_an_address_or_a_network_of_ipv6(address: object, host: str) -> None:
    assert host_of(address) == host


def served(client: RawClient) -> None:
    client.send(GET_DATABASE)
    assert client.answer()[2].success.name == "db"
    time.sleep(0.3)  # until the server is through with it


def test_the_oldest_without_a_call_goes_and_nobody_who_made_one() -> None:
    fake = FakeMetastore(get_database=DATABASE)
    clock = SimulatedClock()
    limits = ServerSettings(connections_max=3)
    with (
        MetastoreServer(0, fake, limits=limits, clock=clock) as server,  # type: ignore[arg-type]
        RawClient(server.port) as first,
        RawClient(server.port) as silent,
        RawClient(server.port) as half,
    ):
        served(first)
        half.send(GET_DATABASE[:3])
        with RawClient(server.port) as second:
            served(second)
            assert silent.is_closed()
            with RawClient(server.port) as third:
                served(third)
                assert half.is_closed()
                with RawClient(server.port) as fourth:
                    assert "3 connections are open" in fourth.refusal()
                for client in (first, second, third):
                    served(client)


def test_a_refused_client_says_why() -> None:
    fake = FakeMetastore(get_database=DATABASE)
    limits = ServerSettings(connections_max=1)
    with (
        MetastoreServer(0, fake, limits=limits) as server,  # type: ignore[arg-type]
        RawClient(server.port) as only,
    ):
        served(only)
        settings = CallSettings(attempts=2, user="bob", retry_delay_seconds=0)
        with (
            ThriftMetastoreClient(f"127.0.0.1:{server.port}", settings) as client,
            pytest.raises(MetastoreUnavailableError, match="metastore.server.max.threads"),
        ):
            client.get_database("db")


def test_a_host_with_more_than_its_part_makes_room_for_others() -> None:
    """Its clients have all that nobody else wants: they may be many behind one gateway."""
    fake = FakeMetastore(get_database=DATABASE)
    clock = SimulatedClock()
    limits = ServerSettings(connections_max=4, host_connections_max=2)
    with (
        MetastoreServer(0, fake, limits=limits, clock=clock) as server,  # type: ignore[arg-type]
        ExitStack() as stack,
    ):
        clients = [stack.enter_context(RawClient(server.port)) for _ in range(4)]
        for client in clients:
            served(client)
            clock.advance_ms(2_000)
        with RawClient(server.port) as another:
            assert "4 of them from 127.0.0.1" in another.refusal()
        for host in ("127.0.0.2", "127.0.0.3"):
            served(stack.enter_context(RawClient(server.port, host)))
        assert [client.is_closed() for client in clients[:2]] == [True, True]
        with RawClient(server.port, "127.0.0.4") as too_many:
            assert "4 connections are open" in too_many.refusal()
        for client in clients[2:]:
            served(client)
