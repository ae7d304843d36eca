"""A database server that is stopped (SIGSTOP): who waits for it hears so."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, func, insert, select, text

from hms_bridge.backend import engine, frozen_server
from hms_bridge.backend.engine import Database, open_database
from hms_bridge.backend.fixed_sql import FixedSql
from hms_bridge.backend.frozen_server import ServerCheck, patient_reader
from hms_bridge.backend.retry import RetrySettings, run_in_transaction
from hms_bridge.backend.schema.txn_tables import AUX_TABLE
from hms_bridge.clock import SystemClock
from hms_bridge.errors import BackendError, CommitUnknownError
from tests.support.databases import ON_A_SERVER, SERVER_URL, fresh_database
from tests.support.mysql_greeting import NO_ENTRY, refusal

IS_POSTGRESQL = (SERVER_URL or "").startswith("postgresql")
SECONDS_MAX = 60
"""On a busy machine."""
_COUNT = FixedSql(select(func.count()).select_from(AUX_TABLE))


def server_processes() -> list[int]:
    """Of the server that listens at the address of the tests' database, and its children."""
    assert SERVER_URL is not None
    port = f":{SERVER_URL.rpartition(':')[2].partition('/')[0]}"
    name = "postgres" if IS_POSTGRESQL else "mariadbd"
    parents: dict[int, int] = {}
    first = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(folder.name)] = int(stat[1])
        if name in words[0] and any(port[1:] in word for word in words[1:]):
            first.append(int(folder.name))
    assert first, "the server runs on this machine"
    return first + [child for child, parent in parents.items() if parent in first]


def stands_still(process: int) -> bool:
    """All of its threads; a signal takes a moment to reach them."""
    threads = Path(f"/proc/{process}/task").iterdir()
    return {(thread / "stat").read_text().rpartition(")")[2][1] for thread in threads} == {"T"}


@contextmanager
def stopped() -> Iterator[None]:
    processes = server_processes()
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        while not all(map(stands_still, processes)):
            time.sleep(0.01)
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    assert SERVER_URL is not None
    with fresh_database():
        pass
    monkeypatch.setattr(frozen_server, "QUIET_SECONDS", 1.0)
    monkeypatch.setattr(engine, "_CONNECT_SECONDS", 2)
    database = open_database(SERVER_URL)
    yield database
    database.close()


def by_cursor(connection: Connection) -> object:
    return connection.scalar(select(func.count()).select_from(AUX_TABLE))


def fixed(connection: Connection) -> object:
    return _COUNT.all(connection)


def given_up(url: str) -> None:
    """Whoever wants a transaction there hears that it stands still."""
    database = open_database(url)
    with (
        pytest.raises(BackendError, match=frozen_server.LOOK_THERE),
        database.transaction(write=False),
    ):
        pass
    database.close()


@pytest.mark.timeout(60)
def test_one_that_greets_nobody_ends_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its host accepts for it: PyMySQL's own time for a connection is over then."""
    monkeypatch.setattr(engine, "_CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        given_up(f"mysql://u:p@127.0.0.1:{silent.getsockname()[1]}/d")


@pytest.mark.timeout(60)
def test_one_that_greets_late_has_the_time_that_its_url_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As one that looks for its clients' names first."""
    monkeypatch.setattr(engine, "_CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as slow, ThreadPoolExecutor(1) as threads:

        def greet() -> None:
            with slow.accept()[0] as client:
                time.sleep(0.6)
                client.sendall(refusal(1045))

        threads.submit(greet)
        url = f"mysql://u:p@127.0.0.1:{slow.getsockname()[1]}/d?connect_timeout=30"
        database = open_database(url)
        with pytest.raises(BackendError, match=NO_ENTRY), database.transaction(write=False):
            pass
        database.close()


@pytest.mark.parametrize(
    ("refusal", "is_working"), [(TimeoutError, False), (ConnectionRefusedError, True), (None, True)]
)
def test_whoever_answers_others_is_waited_for(
    refusal: type[Exception] | None, is_working: bool
) -> None:
    asked: list[object] = []
    ours, theirs = socket.socketpair()

    def log_in() -> ExitStack:
        asked.append(refusal)
        if len(asked) == 2:
            theirs.send(b"at last")
        if refusal is not None:
            raise refusal
        return ExitStack()

    with ours, theirs:
        ours.settimeout(0.01)
        reader = patient_reader(ours, ServerCheck("d", log_in))
        if is_working:
            assert reader.read(7) == b"at last"
        else:
            with pytest.raises(TimeoutError, match=frozen_server.LOOK_THERE):
                reader.read(7)
    assert len(asked) == 1 + is_working


@contextmanager
def answering(*, logins: int, statements: int) -> Iterator[int]:
    """The port of what begins as PostgreSQL does: it lets so many in, answers each so many
    statements, and stands still then."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as clients:
        thread = threading.Thread(target=let_in, args=(listener, clients, logins, statements))
        thread.daemon = True
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)  # whoever waits for another client waits no more
            thread.join(10)


def let_in(listener: socket.socket, clients: ExitStack, logins: int, statements: int) -> None:
    for _ in range(logins):
        try:
            client = clients.enter_context(listener.accept()[0])
        except OSError:
            return
        answer(client, statements)


def answer(client: socket.socket, statements: int) -> None:
    """Until that client hangs up."""
    asked = client.recv(1000)
    while len(asked) == len(b"size" + b"code"):  # for TLS, or for encryption by GSSAPI
        client.sendall(b"N")
        asked = client.recv(1000)
    client.sendall(b"R\0\0\0\x08\0\0\0\0" + READY)
    for _ in range(statements):
        while not asked.endswith(SYNC):
            if not (more := client.recv(1000)):
                return
            asked += more
        client.sendall(b"1\0\0\0\x042\0\0\0\x04n\0\0\0\x04C\0\0\0\x0dSELECT 0\0" + READY)
        asked = b""


READY, SYNC = b"Z\0\0\0\x05I", b"S\0\0\0\x04"


@pytest.mark.timeout(30)
@pytest.mark.parametrize("statements", [0, 1])
def test_one_that_stops_after_a_login_is_given_up_though_another_host_works(
    monkeypatch: pytest.MonkeyPatch, statements: int
) -> None:
    """The other one of the URL does not answer for it, as after a failover."""
    pytest.importorskip("psycopg")
    monkeypatch.setattr(frozen_server, "QUIET_SECONDS", 0.2)
    monkeypatch.setattr(engine, "_CONNECT_SECONDS", 2)
    with (
        answering(logins=1, statements=statements) as stopping,
        answering(logins=99, statements=99) as working,
    ):
        hosts = f"127.0.0.1:{stopping}&host=127.0.0.1:{working}"
        given_up(f"postgresql://u:p@/d?host={hosts}")


VERBS = pytest.mark.parametrize("verb", [by_cursor, fixed])


@ON_A_SERVER
@VERBS
@pytest.mark.parametrize("write", [False, True])
def test_who_waits_for_one_that_stands_still_hears_so(
    database: Database, verb: Callable[[Connection], Any], write: bool
) -> None:
    rule = RetrySettings(outage_seconds_max=1)

    def once() -> object:
        return run_in_transaction(database, verb, write=write, clock=SystemClock(), settings=rule)

    before = once()
    with ThreadPoolExecutor(1) as threads, stopped():
        waiting = threads.submit(once)
        error = waiting.exception(SECONDS_MAX)
    assert isinstance(error, BackendError)
    assert frozen_server.LOOK_THERE in str(error)
    assert once() == before, "it goes on with the server"


@ON_A_SERVER
def test_a_commit_that_it_does_not_answer_is_in_doubt(database: Database) -> None:
    def write(key: int) -> None:
        with database.transaction(write=True) as connection:
            connection.execute(insert(AUX_TABLE).values(MT_KEY1="in doubt", MT_KEY2=key))
            if key == 2:
                stopping.enter_context(stopped())

    write(1)
    with ThreadPoolExecutor(1) as threads, ExitStack() as stopping:
        error = threads.submit(write, 2).exception(SECONDS_MAX)
    assert isinstance(error, CommitUnknownError)
    assert frozen_server.LOOK_THERE in str(error)


@ON_A_SERVER
def test_a_long_statement_of_one_that_works_is_waited_for(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    long = "SELECT pg_sleep(3)" if IS_POSTGRESQL else "SELECT SLEEP(3)"
    with caplog.at_level(logging.WARNING), database.transaction(write=True) as connection:
        connection.execute(text(long))
        assert fixed(connection) is not None
    assert "the server answers others, so it is waited for" in caplog.text
