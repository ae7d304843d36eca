"""What drivers of object stores raise of their own comes out as OSErrors with the path."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from changemanager.filesystem.opening import volume_of
from changemanager.filesystem.volume import Volume


class PayloadError(Exception):
    """As aiohttp's: no OSError."""


class BreakingFile(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        raise PayloadError("the connection broke")


class BreakingStore(MemoryFileSystem):
    """A store whose connection breaks."""

    protocol = "breaking"
    cachable = False

    def info(self, path: str, *_: Any, **__: Any) -> Any:
        raise PayloadError("the connection broke")

    ls = find = cat_file = cp_file = rm = rm_file = info

    def open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        return BreakingFile()


@pytest.mark.parametrize(
    "call",
    [
        lambda volume: volume.status("/t/f"),
        lambda volume: volume.children("/t/f"),
        lambda volume: volume.descendants("/t/f"),
        lambda volume: volume.read("/t/f"),
        lambda volume: volume.open_input("/t/f").read(),
        lambda volume: volume.copy_file("/t/f", "/t/g"),
        lambda volume: volume.remove_tree("/t/f"),
        lambda volume: volume.remove_file("/t/f"),
    ],
)
def test_a_broken_connection_is_an_error_of_the_file(call: Callable[[Volume], object]) -> None:
    with pytest.raises(OSError, match="the connection broke") as raised:
        call(volume_of(BreakingStore()))
    assert raised.value.filename == "/t/f"
    assert isinstance(raised.value.__cause__, PayloadError)
