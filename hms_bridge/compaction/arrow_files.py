"""A volume as pyarrow opens files of it: to read, and for nothing else."""

from __future__ import annotations

import errno
import io
import os
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow.fs import FileSystemHandler, PyFileSystem

from changemanager.filesystem.volume import Volume


def arrow_files(volume: Volume) -> PyFileSystem:
    """The file system that pyarrow's own readers are given; paths are the volume's."""
    return PyFileSystem(_ReadOnly(volume))


class _ReadOnly(FileSystemHandler):  # type: ignore[misc]
    """pyarrow's readers ask for an open file only."""

    def __init__(self, volume: Volume) -> None:
        self._volume = volume

    def get_type_name(self) -> str:
        return "volume"

    def normalize_path(self, path: str) -> str:
        return path

    def open_input_file(self, path: str) -> pa.PythonFile:
        if self._volume.status(path) is None:
            raise FileNotFoundError(errno.ENOENT, "is gone", path)
        return pa.PythonFile(_Opened(self._volume.open_input(path)), mode="r")

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise io.UnsupportedOperation("files are read here, nothing else")

    open_input_stream = get_file_info = get_file_info_selector = _refuse
    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = _refuse
    delete_file = move = copy_file = open_output_stream = open_append_stream = _refuse


class _Opened(io.IOBase):
    """Closed once nobody has it any more: pyarrow lets go of files without closing them."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size_bytes: int = -1) -> bytes:
        return self._stream.read(size_bytes)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def close(self) -> None:
        self._stream.close()
        super().close()
