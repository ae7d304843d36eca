"""HDFS by its own protocol (hdfs-native: no JVM), as an fsspec file system that never keeps quiet.

Where HDFS answers "no" or "false", an OSError is raised; a rename never replaces and never nests.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from io import UnsupportedOperation
from queue import Empty
from typing import Any, TypeVar, cast

import hdfs_native

from changemanager.checksum import HDFS_LAYOUT, ChecksumLayout, composite_checksum
from changemanager.filesystem.hdfs_client import OWNER_ALONE, HdfsClient, HdfsClientVolume
from changemanager.filesystem.hdfs_question import Question
from changemanager.filesystem.refusals import native_refusal
from changemanager.filesystem.volume import Durability
from changemanager.filesystem.webhdfs import HttpFileSystem, WebHdfsVolume

FIRST_ANSWER_SECONDS = 30.0
"""How long a cluster may take for its first answer, failing over included."""
ANSWER_SECONDS = 180.0
"""For any later one: longer than Hadoop's own client waits for a NameNode (two minutes), and than a
DataNode has that fails (one) and is replaced."""
_SILENT_ADVICE = (
    "whether it did what it was asked is unknown; see whether its NameNode or a DataNode stands "
    "still, then try again"
)
_MAY_COME = (
    "HDFS has not answered an earlier change of {}, which may still come; wait for HDFS to work "
    "again, or start this program anew"
)
_DEFAULTS = {
    # The native client's own defaults make an unreachable NameNode known after three minutes.
    "dfs.client.failover.max.attempts": "6",
    "dfs.client.failover.sleep.base.millis": "500",
    "dfs.client.failover.sleep.max.millis": "5000",
}
_BUFFER_BYTES = 1 << 20
_CRC_BYTES = "dfs.bytes-per-checksum"

_Answer = TypeVar("_Answer")


class HdfsFileSystem(HdfsClient):
    """One cluster. `authority` is a host with its port, or a name service of the configuration.

    `web` is the same cluster over HTTP, for what only HTTP offers; None if no address is known.
    """

    protocol = "hdfs"
    root_marker = "/"

    def __init__(
        self,
        authority: str,
        settings: Mapping[str, str],
        *,
        umask: int = 0o022,
        user: str | None = None,
        web: HttpFileSystem | None = None,
        **given: Any,
    ) -> None:
        super().__init__(**given)
        self.authority = authority
        self.settings = dict(settings)
        self.umask = umask
        self.web = web
        self._given_up: list[tuple[Question[Any], tuple[str, ...]]] = []
        if user:
            # The native client asks the environment only; every client of a process is one user.
            os.environ["HADOOP_USER_NAME"] = user
        self.client = self._do(
            "/",
            lambda: hdfs_native.Client(
                f"hdfs://{authority}", {**_DEFAULTS, **self.settings}, os.devnull
            ),
        )
        self._do(
            "/",
            lambda: self.client.get_file_info("/"),
            seconds=FIRST_ANSWER_SECONDS,
            advice="check the address and that it is the NameNode's RPC port",
        )

    def _do(
        self,
        path: str,
        call: Callable[[], _Answer],
        *,
        changed: tuple[str, ...] = (),
        seconds: float = 0.0,
        advice: str = "",
    ) -> _Answer:
        """Raises OSError, at the latest after a time; 0 seconds: that of any later answer.
        ``changed``: where files come or go."""
        place, seconds = f"hdfs://{self.authority}{path}", seconds or ANSWER_SECONDS
        if self._given_up:
            self._require_settled(path, changed, place)
        question = Question(call)
        try:
            answer, error = question.answer(seconds)
        except Empty:
            if changed:
                self._given_up.append((question, changed))
            raise TimeoutError(
                errno.ETIMEDOUT,
                f"HDFS does not answer within {seconds:g} s; {advice or _SILENT_ADVICE}",
                place,
            ) from None
        if isinstance(error, OSError | RuntimeError):
            raise native_refusal(error, place) from error
        if error is not None:
            raise error
        return cast(_Answer, answer)

    def _require_settled(self, path: str, changed: tuple[str, ...], place: str) -> None:
        """Where a change was given up that may still come, nothing that is seen is sure, and what
        is put there may go. Raises TimeoutError."""
        for question, places in tuple(self._given_up):
            if not question.is_open:
                with suppress(ValueError):  # another thread has done so
                    self._given_up.remove((question, places))
                continue
            for late in places:
                if _is_at(path, late) or any(_is_at(p, late) or _is_at(late, p) for p in changed):
                    raise TimeoutError(errno.ETIMEDOUT, _MAY_COME.format(late), place)

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """What is there. FileNotFoundError if nothing is."""
        path = self._strip_protocol(path)
        return _described(self._do(path, lambda: self.client.get_file_info(path)))

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """What is in a directory; a file lists itself."""
        path = self._strip_protocol(path)
        statuses = self._do(path, lambda: list(self.client.list_status(path, False)))
        infos = sorted(
            (_described(status) for status in statuses), key=lambda info: str(info["name"])
        )
        return infos if detail else [info["name"] for info in infos]

    def _make(self, path: str, mode: int, *, create_parents: bool) -> None:
        self._do(path, lambda: self.client.mkdirs(path, mode, create_parents))

    def rename(self, source: str, target: str, **_: Any) -> None:
        """Give a file or directory another name; never over another, never into a directory."""
        source, target = self._strip_protocol(source), self._strip_protocol(target)
        self._do(
            source,
            lambda: self.client.rename(source, target, overwrite=False),
            changed=(source, target),
        )

    def _delete(self, path: str, *, is_recursive: bool) -> bool:
        call = partial(self.client.delete, path, is_recursive)
        return bool(self._do(path, call, changed=(path,)))

    def set_times(self, path: str, mtime_ms: int) -> None:
        """Set a file's modification time; its access time stays."""
        path = self._strip_protocol(path)
        status = self._do(path, lambda: self.client.get_file_info(path))
        self._do(path, lambda: self.client.set_times(path, mtime_ms, status.access_time))

    def set_owner(self, path: str, *, owner: str | None = None, group: str | None = None) -> None:
        """Give a file away. PermissionError, of a group that this user is not in, too."""
        self._do(path, lambda: self.client.set_owner(path, owner, group))

    def set_permission(self, path: str, mode: int) -> None:
        """Set the nine bits of a file."""
        self._do(path, lambda: self.client.set_permission(path, mode))

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        permission: int = OWNER_ALONE,
        **_: Any,
    ) -> Any:
        del block_size
        if mode == "rb":
            return io.BufferedReader(_Reader(self, path), _BUFFER_BYTES)
        if mode in {"wb", "xb"}:
            writer = _Writer(self, path, is_replacing=mode == "wb", permission=permission)
            return io.BufferedWriter(cast(io.RawIOBase, writer), _BUFFER_BYTES)
        raise ValueError(f"mode {mode} is not offered on HDFS: files are written once")


class _Reader(io.RawIOBase):
    """A file at HDFS as Python reads files; errors carry the path."""

    def __init__(self, fs: HdfsFileSystem, path: str) -> None:
        super().__init__()
        self._fs = fs
        self._path = path
        self._inner = fs._do(path, lambda: fs.client.read(path))
        self.size = self._inner.size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._inner.tell(), os.SEEK_END: self.size}[whence]
        if start + offset < 0:
            raise OSError(errno.EINVAL, "a position before the file's start", self._path)
        # The native client panics past the end, where Python's files have no bytes.
        self._inner.seek(min(start + offset, self.size))
        return int(self._inner.tell())

    def tell(self) -> int:
        return int(self._inner.tell())

    def readinto(self, buffer: Any) -> int:
        length = min(len(buffer), self.size - self._inner.tell())
        if length <= 0:
            return 0
        data = self._fs._do(self._path, lambda: self._inner.read(length))
        buffer[: len(data)] = data
        return len(data)


class _Writer(io.RawIOBase):
    """A new file at HDFS. On `close` its bytes are on the disks and its length is known."""

    def __init__(
        self, fs: HdfsFileSystem, path: str, *, is_replacing: bool, permission: int
    ) -> None:
        super().__init__()
        self._fs = fs
        self._path = path
        self._has_bytes = False
        options = hdfs_native.WriteOptions(
            overwrite=is_replacing, create_parent=False, permission=permission
        )
        self._inner = fs._do(path, lambda: fs.client.create(path, options), changed=(path,))

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        written = bytes(data)
        self._has_bytes = self._has_bytes or bool(written)
        return int(self._fs._do(self._path, lambda: self._inner.write(written)))

    def close(self) -> None:
        if self.closed:
            return
        try:
            if self._has_bytes:
                self._sync()
            self._fs._do(self._path, self._inner.close)
        finally:
            super().close()

    def _sync(self) -> None:
        try:
            self._fs._do(self._path, self._inner.hsync)
        except OSError as error:
            # Erasure-coded files have no sync; closing them is all there is.
            if error.errno != errno.EOPNOTSUPP:
                raise


def _is_at(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place.rstrip('/')}/")


def _described(status: hdfs_native.FileStatus) -> dict[str, Any]:
    return {
        "name": status.path,
        "type": "directory" if status.isdir else "file",
        "size": status.length,
        "modificationTime": status.modification_time,
        "owner": status.owner,
        "group": status.group,
        "permission": status.permission,
        "blocksize": status.blocksize,
    }


class HdfsVolume(HdfsClientVolume):
    """HDFS by its own protocol; extended attributes, and the checksum as HDFS has it, by HTTP."""

    def __init__(self, fs: HdfsFileSystem) -> None:
        super().__init__(fs, Durability.BY_CLOSE)
        self._web = WebHdfsVolume(fs.web) if fs.web is not None else None

    def native_checksum(self, path: str) -> str:
        """HDFS's own checksum; without HTTP, the same computed from the bytes and the file's
        block size."""
        if self._web is not None:
            return self._web.native_checksum(path)
        layout = ChecksumLayout(
            crc_bytes=int(self.fs.settings.get(_CRC_BYTES, HDFS_LAYOUT.crc_bytes)),
            block_bytes=int(self.fs.info(path)["blocksize"] or HDFS_LAYOUT.block_bytes),
        )
        with self.open_input(path) as stream:
            return composite_checksum(stream, layout)

    def keeps_attributes(self, directory: str) -> bool:
        """Over HTTP: HDFS has them everywhere, unless they are switched off."""
        return self._web is not None and self._web.keeps_attributes(directory)

    def attribute(self, path: str, name: str) -> bytes | None:
        return self._over_http(path).attribute(path, name)

    def set_attribute(self, path: str, name: str, value: bytes) -> None:
        self._over_http(path).set_attribute(path, name, value)

    def _over_http(self, path: str) -> WebHdfsVolume:
        if self._web is None:
            raise UnsupportedOperation(f"extended attributes need HDFS over HTTP: {path}")
        return self._web
