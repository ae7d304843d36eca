"""Connections of the client: addresses, reconnecting, retries, other generations."""

import os
import resource
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from thrift.Thrift import TApplicationException

from hms_bridge.client.addresses import Address, parse_addresses
from hms_bridge.client.caller import CallSettings
from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.errors import (
    ConfigError,
    MetaError,
    MetastoreUnavailableError,
    NoSuchCompactionError,
    NoSuchObjectError,
)
from hms_bridge.model.event import NotificationRequest
from hms_bridge.model.ids import EventId
from hms_bridge.server.serve import MetastoreServer
from hms_bridge.wire.convert_catalog import table_to_struct
from hms_bridge.wire.messages import KINDS, ApplicationError, MessageStream
from hms_bridge.wire.methods import method
from hms_bridge.wire.structs import Struct, hive
from tests.support.fake_metastore import FakeMetastore
from tests.support.sample_records import COMPACTION, DATABASE, PARTITION, TABLE
from tests.support.simulated_clock import SimulatedClock

Step = Callable[[MessageStream, str, int, Struct], bool]


class OddServer:
    """Answers each call by the next of its steps; a step says whether the connection goes on."""

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)
        self.seen: list[str] = []
        self.connections = 0
        self.hung_up = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            stream = MessageStream(client, message_size_bytes=10**6, container_length=10**6)
            try:
                while self._one(stream):
                    pass
            except Exception:
                pass  # the client left
            stream.close()
            self.hung_up.set()

    def _one(self, stream: MessageStream) -> bool:
        name, _, sequence = stream.read_header()
        arguments = method(name).arguments()
        stream.read_struct(arguments)
        self.seen.append(name)
        return self._steps.pop(0)(stream, name, sequence, arguments)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def __enter__(self) -> "OddServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def hang_up(stream: MessageStream, name: str, sequence: int, _: Struct) -> bool:
    return False


def unknown(stream: MessageStream, name: str, sequence: int, _: Struct) -> bool:
    body = ApplicationError(
        message=f"Invalid method name: '{name}'", type=TApplicationException.UNKNOWN_METHOD
    )
    stream.send(stream.encode(name, KINDS.EXCEPTION, sequence, body))
    return True


def answer(**fields: Any) -> Step:
    def step(stream: MessageStream, name: str, sequence: int, _: Struct) -> bool:
        result: Any = method(name).result
        stream.send(stream.encode(name, KINDS.REPLY, sequence, result(**fields)))
        return True

    return step


def rubbish(stream: MessageStream, name: str, sequence: int, _: Struct) -> bool:
    stream.send((b"HTTP/1.1 400 Bad Request\r\n\r\n",))
    return True


@contextmanager
def dialogue(
    *steps: Step, clock: SimulatedClock | None = None, **settings: Any
) -> Iterator[tuple[OddServer, ThriftMetastoreClient]]:
    with OddServer(*steps) as server:
        client = ThriftMetastoreClient(
            f"thrift://127.0.0.1:{server.port}", CallSettings(**settings), clock or SimulatedClock()
        )
        with client:
            yield server, client


def test_reads_are_repeated_on_a_new_connection() -> None:
    clock = SimulatedClock()
    found = hive.CurrentNotificationEventId(eventId=5)
    with dialogue(hang_up, hang_up, answer(success=found), clock=clock) as (server, client):
        assert client.get_current_event_id() == 5
        assert server.seen == ["get_current_notificationEventId"] * 3
        assert server.connections == 3
    assert clock.slept_seconds == [0.5, 1.0]


def test_changes_are_not_repeated_once_sent() -> None:
    with dialogue(hang_up, answer()) as (server, client):
        with pytest.raises(MetastoreUnavailableError, match="whether it took effect is unknown"):
            client.create_database(DATABASE)
        assert server.seen == ["create_database"]


def test_nobody_there_is_told_with_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    clock = SimulatedClock()
    client = ThriftMetastoreClient(f"127.0.0.1:{port}", None, clock)
    with pytest.raises(MetastoreUnavailableError, match=f"no metastore answers at.*{port}.*check"):
        client.create_database(DATABASE)  # never sent, so it was tried again
    assert len(clock.slept_seconds) == 2


def test_another_address_is_taken_when_the_first_is_dead() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        dead = closed.getsockname()[1]
    fake: Any = FakeMetastore(get_database=DATABASE)
    with MetastoreServer(0, fake) as server:
        both = f"thrift://127.0.0.1:{dead},thrift://127.0.0.1:{server.port}"
        with ThriftMetastoreClient(both) as client:
            assert client.get_database("db") == DATABASE


def test_an_idle_connection_that_was_closed_is_replaced_before_a_change() -> None:
    def bye(stream: MessageStream, name: str, sequence: int, _: Struct) -> bool:
        answer()(stream, name, sequence, _)
        return False

    with dialogue(bye, answer()) as (server, client):
        client.create_database(DATABASE)
        server.hung_up.wait(10)
        client.create_database(DATABASE)
        assert server.seen == ["create_database"] * 2


@contextmanager
def many_files_are_open() -> Iterator[None]:
    """Whatever is opened meanwhile has a descriptor above 1023."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2048)), hard))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        descriptor = 0
        while descriptor < 1023:
            descriptor = os.open(os.devnull, os.O_RDONLY)
            stack.callback(os.close, descriptor)
        yield


def test_a_connection_of_a_process_with_many_open_files_is_used_again() -> None:
    with many_files_are_open(), dialogue(answer(), answer()) as (server, client):
        client.create_database(DATABASE)
        client.create_database(DATABASE)
        assert server.connections == 1


def test_get_table_takes_the_form_that_the_metastore_has() -> None:
    table = table_to_struct(TABLE)
    # Hive before get_table_req, or behind a proxy that lacks it
    with dialogue(unknown, answer(success=table), answer(success=table)) as (server, client):
        assert client.get_table("db", "t") == TABLE
        assert client.get_table("db", "t") == TABLE
        assert server.seen == ["get_table_req", "get_table", "get_table"]
    # Hive 4.0.1 and later has no get_table
    with dialogue(answer(success=hive.GetTableResult(table=table))) as (server, client):
        assert client.get_table("db", "t") == TABLE
        assert server.seen == ["get_table_req"]


def test_a_metastore_without_any_form_is_told() -> None:
    with (
        dialogue(unknown, unknown) as (_, client),
        pytest.raises(MetaError, match="has no method"),
    ):
        client.get_table("db", "t")


def test_create_table_tells_capabilities() -> None:
    seen: list[Struct] = []

    def note(stream: MessageStream, name: str, sequence: int, arguments: Struct) -> bool:
        seen.append(arguments)
        return answer()(stream, name, sequence, arguments)

    with dialogue(note) as (_, client):
        client.create_table(TABLE)
    assert "HIVEFULLACIDWRITE" in seen[0].request.processorCapabilities
    assert seen[0].request.processorIdentifier


def test_the_user_is_introduced_first() -> None:
    found = answer(success=hive.CurrentNotificationEventId(eventId=1))
    with dialogue(answer(success=["bob"]), found, user="bob") as (server, client):
        assert client.get_current_event_id() == 1
        assert server.seen == ["set_ugi", "get_current_notificationEventId"]


def test_an_answer_that_is_none_is_told() -> None:
    with (
        dialogue(rubbish, attempts=1) as (_, client),
        pytest.raises(MetaError, match="cannot be read.*HTTP"),
    ):
        client.get_current_event_id()
    with dialogue(answer()) as (_, client), pytest.raises(MetaError, match="without a result"):
        client.get_current_event_id()


def test_a_slow_answer_is_given_up() -> None:
    release = threading.Event()

    def sleep(stream: MessageStream, name: str, sequence: int, _: Struct) -> bool:
        release.wait(10)
        return False

    with dialogue(sleep, attempts=1, call_timeout_seconds=0.1) as (_, client):
        with pytest.raises(MetastoreUnavailableError, match="got no answer"):
            client.get_current_event_id()
        release.set()


def test_hive_answers_of_missing_things_are_understood() -> None:
    # As Hive 4.0.1 answers for tables that do not exist.
    gone = answer(o2=hive.NoSuchObjectException(message="hive.db.t table not found"))
    with dialogue(answer(success=[]), gone) as (_, client), pytest.raises(NoSuchObjectError):
        client.get_partition_names("db", "t")
    invalid = answer(o1=hive.InvalidObjectException(message="hive.db.t does not exist"))
    with dialogue(invalid, gone) as (_, client), pytest.raises(NoSuchObjectError):
        client.add_partitions("db", "t", [PARTITION])


def test_a_worker_that_lost_its_entry_is_told_so_by_hive_too() -> None:
    thrown = hive.MetaException(
        message="The update count was 0 which is not the expected. Rolling back."
    )
    with (
        dialogue(answer(o1=thrown)) as (_, client),
        pytest.raises(NoSuchCompactionError, match="another worker"),
    ):
        client.mark_compacted(COMPACTION)


def test_old_metastores_filter_less_and_the_client_does_it() -> None:
    def event(number: int, kind: str, table: str) -> Struct:
        return hive.NotificationEvent(
            eventId=number, eventTime=1, eventType=kind, dbName="db", tableName=table, message="{}"
        )

    pages = [
        [event(1, "OPEN_TXN", "t"), event(2, "INSERT", "other")],
        [event(3, "INSERT", "t"), event(4, "INSERT", "T")],
    ]
    steps = [answer(success=hive.NotificationEventResponse(events=page)) for page in pages]
    request = NotificationRequest(
        last_event_id=EventId(0), max_events=2, skipped_types=frozenset({"OPEN_TXN"}),
        database_name="db", table_names=("t",),
    )  # fmt: skip
    with dialogue(*steps) as (_, client):
        assert [one.id for one in client.get_next_notification(request)] == [3, 4]


def test_close_closes_the_connections_of_all_threads() -> None:
    fake: Any = FakeMetastore(get_database=DATABASE)
    with MetastoreServer(0, fake) as server:
        client = ThriftMetastoreClient(f"127.0.0.1:{server.port}", CallSettings(attempts=1))
        client.get_database("db")
        thread = threading.Thread(target=client.get_database, args=("db",))
        thread.start()
        thread.join(10)
        assert [one.fileno() >= 0 for one in client._caller._open].count(True) == 1
        client.close()
        assert client.get_database("db") == DATABASE  # and it can be used again
        client.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("thrift://h:9083", [Address("h", 9083)]),
        ("h", [Address("h", 9083)]),
        ("thrift://h/", [Address("h", 9083)]),
        ("thrift://a:1, thrift://b:2", [Address("a", 1), Address("b", 2)]),
        ("thrift://[::1]:7", [Address("::1", 7)]),
        ("[::1]", [Address("::1", 9083)]),
    ],
)
def test_addresses(text: str, expected: list[Address]) -> None:
    assert list(parse_addresses(text)) == expected
    for address in expected:
        assert parse_addresses(str(address)) == (address,)


@pytest.mark.parametrize(
    "text", ["", ",", "http://h:1", "thrift://", "h:x", "h:0", "h:70000", ":1"]
)
def test_addresses_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match="thrift://host:port"):
        parse_addresses(text)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = threading.active_count()
    yield
    for _ in range(100):
        if threading.active_count() <= before:
            return
        threading.Event().wait(0.02)
    pytest.fail(f"threads are left: {threading.enumerate()}")
