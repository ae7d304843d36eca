"""A NameNode that takes connections and keeps quiet: nothing is waited for without an end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from changemanager.filesystem import hdfs
from changemanager.filesystem.hdfs import HdfsFileSystem

hdfs_native = pytest.importorskip("hdfs_native")

pytestmark = pytest.mark.timeout(60)
UNKNOWN = "whether it did what it was asked is unknown"


class QuietClient:
    """As the native one, whose calls do not return before the other side says something."""

    def __init__(self) -> None:
        self.is_quiet = True
        self.speaks = threading.Event()

    def __getattr__(self, _: str) -> Callable[..., object]:
        return lambda *_, **__: self.is_quiet and self.speaks.wait()


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[QuietClient]:
    quiet = QuietClient()
    monkeypatch.setattr(hdfs, "FIRST_ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(hdfs, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(hdfs_native, "Client", lambda *_: quiet)
    yield quiet
    quiet.speaks.set()


def test_one_that_never_answers_is_no_file_system(client: QuietClient) -> None:
    assert client.is_quiet
    with pytest.raises(TimeoutError, match="the NameNode's RPC port") as refused:
        HdfsFileSystem("nn:8020", {})
    assert refused.value.filename == "hdfs://nn:8020/"


@pytest.mark.parametrize(
    "call",
    [
        lambda fs: fs.info("/a"),
        lambda fs: fs.ls("/a"),
        lambda fs: fs.makedirs("/a/b"),
        lambda fs: fs.rename("/a", "/b"),
        lambda fs: fs.rm("/a"),
        lambda fs: fs.set_times("/a", 1),
        lambda fs: fs.open("/a", "rb"),
        lambda fs: fs.open("/a", "wb"),
    ],
)
def test_one_that_falls_silent_ends_each_call(
    client: QuietClient, call: Callable[[Any], Any]
) -> None:
    client.is_quiet = False
    fs = HdfsFileSystem("nn:8020", {})
    client.is_quiet = True
    with pytest.raises(TimeoutError, match=UNKNOWN) as refused:
        call(fs)
    assert str(refused.value.filename).startswith("hdfs://nn:8020/")
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "hdfs")


GIVEN_UP = [
    lambda fs: fs.rename("/w/t", "/w/u"),
    lambda fs: fs.rm("/w/t"),
    lambda fs: fs.open("/w/t", "wb"),
]
TOUCHING = [
    lambda fs: fs.info("/w/t/delta/x"),
    lambda fs: fs.rename("/w/v", "/w/t"),
    lambda fs: fs.rm("/w", recursive=True),
    lambda fs: fs.open("/w/t/x", "wb"),
]


@pytest.mark.parametrize("change", GIVEN_UP)
@pytest.mark.parametrize("call", TOUCHING)
def test_nothing_is_done_where_a_change_that_was_given_up_may_still_come(
    client: QuietClient, change: Callable[[Any], Any], call: Callable[[Any], Any]
) -> None:
    """The native client asks again once its connection is lost: it would delete, or move, what has
    come meanwhile."""
    client.is_quiet = False
    fs = HdfsFileSystem("nn:8020", {})
    client.is_quiet = True
    with pytest.raises(TimeoutError, match=UNKNOWN):
        change(fs)
    client.is_quiet = False
    with pytest.raises(TimeoutError, match="may still come"):
        call(fs)
    fs.set_permission("/w/tt", 0o700)
    client.speaks.set()
    for thread in threading.enumerate():
        if thread.name == "hdfs":
            thread.join()
    fs.set_permission("/w/t", 0o700)
