"""Errors of fsspec's drivers of object stores, as OSErrors that name the path.

Each driver has a family of its own besides: those of aiohttp, botocore, Google and Azure.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from fsspec import AbstractFileSystem


@contextmanager
def _of_one_family(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, TypeError, AttributeError, NameError, AssertionError):
        raise  # of the file system's family already, or nothing that it said
    except Exception as error:
        message = f"the file system failed: {type(error).__name__}: {error}"
        raise OSError(errno.EIO, message, path) from error


class ObjectStoreDriver:
    """A driver that raises OSErrors only, from its calls and from files that are read."""

    def __init__(self, fs: AbstractFileSystem) -> None:
        self._fs = fs

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self._fs, name)
        if not callable(asked):
            return asked

        def call(path: str, *rest: Any, **given: Any) -> Any:
            with _of_one_family(path):
                return asked(path, *rest, **given)

        return call

    def open(self, path: str, mode: str) -> Any:
        """A file; one that is written is given as it is."""
        with _of_one_family(path):
            stream = self._fs.open(path, mode)
        return _Input(stream, path) if mode == "rb" else stream


class _Input(io.IOBase):
    """Reads a file; whatever a driver raises comes out as an error of the one family."""

    def __init__(self, stream: BinaryIO, path: str) -> None:
        self._stream = stream
        self._path = path

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size_bytes: int = -1) -> bytes:
        with _of_one_family(self._path):
            return self._stream.read(size_bytes)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        with _of_one_family(self._path):
            return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def close(self) -> None:
        self._stream.close()
        super().close()
