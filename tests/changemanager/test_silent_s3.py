"""An object store that takes connections and keeps quiet."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import pytest

from changemanager.filesystem import s3
from changemanager.filesystem.s3 import S3, open_s3
from changemanager.hadoop import HadoopConfig


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[socket.socket]]:
    """The store; the first is its listener, the others are connections to it."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr(s3, "_TIMES_SECONDS", {"connect_timeout": 0.2, "read_timeout": 0.2})
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = [listener]

        def take_all() -> None:
            with suppress(OSError):
                while True:
                    taken.append(listener.accept()[0])

        accepting = threading.Thread(target=take_all, daemon=True)
        accepting.start()
        yield taken
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join(10)
        for connection in taken:
            connection.close()


def store(taken: Sequence[socket.socket]) -> S3:
    values = {
        "fs.s3a.endpoint": f"http://127.0.0.1:{taken[0].getsockname()[1]}",
        "fs.s3a.access.key": "a", "fs.s3a.secret.key": "b",
        "fs.s3a.path.style.access": "true", "fs.s3a.endpoint.region": "x",
    }  # fmt: skip
    return open_s3(HadoopConfig(values=values))


@pytest.mark.parametrize("call", [lambda fs: fs.info("b/k"), lambda fs: fs.ls("b/d")])
def test_it_is_asked_twice_and_then_named(
    taken: list[socket.socket], call: Callable[[S3], Any]
) -> None:
    """Each time as often as botocore repeats, which is once here."""
    with pytest.raises(OSError, match="S3 does not answer") as refused:
        call(store(taken))
    assert refused.value.filename == "b"
    assert len(taken) == 1 + 2


@pytest.mark.timeout(60)
def test_who_may_not_begin_to_write_gives_up(
    taken: list[socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "CALL_SECONDS_MAX", 1.0)
    with pytest.raises(OSError, match="S3 does not answer: put_object") as refused:
        store(taken).pipe_file("b/k", b"rows")
    assert refused.value.filename == "b"
