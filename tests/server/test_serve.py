"""The server's life: ports, readiness, stopping, many clients at once."""

import socket
import threading

import pytest

from hms_bridge.client.caller import CallSettings
from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.errors import ConfigError, MetastoreUnavailableError
from hms_bridge.server.serve import MetastoreServer
from tests.support.fake_metastore import FakeMetastore
from tests.support.sample_records import DATABASE, TABLE

ONCE = CallSettings(attempts=1)


def _server(port: int = 0, **answers: object) -> MetastoreServer:
    return MetastoreServer(port, FakeMetastore(**answers))  # type: ignore[arg-type]


def test_port_0_takes_a_free_one_and_readiness_is_told() -> None:
    server, ready = _server(), []
    server.start(ready.append)
    try:
        assert ready == [server.port]
        assert server.port > 0
        assert not server.wait(0)
    finally:
        server.stop()
    assert server.wait(0)


def test_a_busy_port_is_named_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} on 127.0.0.1 is in use.*another port"):
            _server(port).start()


def test_two_servers_cannot_share_a_port() -> None:
    with _server() as first, pytest.raises(ConfigError, match="in use"):
        _server(first.port).start()


@pytest.mark.parametrize("port", [-1, 70000])
def test_a_port_that_does_not_exist_is_refused(port: int) -> None:
    with pytest.raises(ConfigError, match=f"port {port}"):
        _server(port).start()


def test_an_address_of_another_machine_is_refused() -> None:
    server = MetastoreServer(0, FakeMetastore(), host="192.0.2.1")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"192\.0\.2\.1"):
        server.start()


def test_a_stopped_server_lets_its_clients_go_and_its_port() -> None:
    server = _server(get_database=DATABASE)
    server.start()
    client = ThriftMetastoreClient(f"127.0.0.1:{server.port}", ONCE)
    assert client.get_database("db") == DATABASE
    server.stop()
    with pytest.raises(MetastoreUnavailableError):
        client.get_database("db")
    again = _server(server.port, get_database=DATABASE)
    again.start()
    try:
        assert client.get_database("db") == DATABASE
    finally:
        client.close()
        again.stop()


def test_many_clients_are_answered_at_once() -> None:
    barrier = threading.Barrier(8, timeout=30)

    def meet(name: str, _: str) -> object:
        barrier.wait()  # passes only if eight calls are under way together
        return DATABASE

    failures: list[BaseException] = []
    with (
        _server(get_database=meet, get_table=TABLE) as server,
        ThriftMetastoreClient(f"127.0.0.1:{server.port}") as client,
    ):

        def work() -> None:
            try:
                assert client.get_database("db") == DATABASE
                for _ in range(20):
                    assert client.get_table("db", "t") == TABLE
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert failures == []


def test_ipv6() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    server = MetastoreServer(
        0, FakeMetastore(get_database=DATABASE), host="::1"  # type: ignore[arg-type]
    )  # fmt: skip
    with server, ThriftMetastoreClient(f"thrift://[::1]:{server.port}") as client:
        assert client.get_database("db") == DATABASE
