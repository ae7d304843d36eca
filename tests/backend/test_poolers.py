"""Behind a pooler it may be the pooler that speaks, and it does not know what the database did."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy.engine import make_url

from hms_bridge.backend.engine import Database, open_database
from hms_bridge.errors import CommitUnknownError, DatabaseGoneError
from tests.support.aux_rows import keys, put
from tests.support.databases import ON_POSTGRESQL, SERVER_URL

pytestmark = ON_POSTGRESQL


class Pooler:
    """Hands on what client and database say. Once it ``is_cut_off``, no answer comes to it, and it
    says of its own accord what PgBouncer then says to the client."""

    def __init__(self, host: str, port: int) -> None:
        self._behind = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.is_cut_off = False
        self.state = "08P01"
        self._run(self._accept)

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            database = socket.create_connection(self._behind)
            self._run(self._hand_on, client, database)
            self._run(self._answer, client, database)

    @staticmethod
    def _run(work: Callable[..., None], *given: Any) -> None:
        threading.Thread(target=work, args=given, daemon=True).start()

    @staticmethod
    def _hand_on(client: socket.socket, database: socket.socket) -> None:
        while said := client.recv(1 << 16):
            database.sendall(said)
        database.close()

    def _answer(self, client: socket.socket, database: socket.socket) -> None:
        while said := database.recv(1 << 16):
            if self.is_cut_off:
                # It has answered, so all is done.
                client.sendall(_fatal(self.state, "server conn crashed?"))
                client.shutdown(socket.SHUT_RDWR)
                return
            client.sendall(said)
        client.close()


def _fatal(state: str, text: str) -> bytes:
    fields = ("SFATAL", "VFATAL", f"C{state}", f"M{text}")
    body = b"".join(field.encode() + b"\0" for field in fields) + b"\0"
    return b"E" + struct.pack("!i", len(body) + 4) + body


@pytest.fixture
def pooler() -> Pooler:
    assert SERVER_URL is not None
    url = make_url(SERVER_URL)
    return Pooler(url.host or "127.0.0.1", url.port or 5432)


@pytest.fixture
def pooled(database: Database, pooler: Pooler) -> Iterator[Database]:
    """Whose texts are prepared."""
    assert keys(database) == []
    assert SERVER_URL is not None
    url = make_url(SERVER_URL).set(host="127.0.0.1", port=pooler.port)
    pooled = open_database(url.render_as_string(hide_password=False))
    with pooled.transaction(write=True) as connection:
        put(connection, 1)
    yield pooled
    pooled.close()


@pytest.mark.parametrize("state", ["08P01", "08006", "58000", "XX000"])
def test_what_a_pooler_says_leaves_a_doubt_about_the_commit(
    database: Database, pooled: Database, pooler: Pooler, state: str
) -> None:
    pooler.state, pooler.is_cut_off = state, True
    with pytest.raises(CommitUnknownError), pooled.transaction(write=True) as connection:
        put(connection, 2)
    assert keys(database) == [1, 2], "it was done, and must not be done again"


def test_what_postgresql_says_leaves_none(pooled: Database, pooler: Pooler) -> None:
    """As when it stops; the pooler hands it on."""
    pooler.state, pooler.is_cut_off = "57P01", True
    with pytest.raises(DatabaseGoneError), pooled.transaction(write=True) as connection:
        put(connection, 2)
