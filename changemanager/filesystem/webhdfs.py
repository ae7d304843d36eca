"""HDFS over HTTP: its own checksum, file times, attributes, and a rename that may say false."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, BinaryIO, TypeVar

from changemanager.filesystem.plain import PlainVolume
from changemanager.filesystem.volume import FileStatus, FileSystemCapabilities, Placement

_Answer = TypeVar("_Answer")


class WebHdfsVolume(PlainVolume):
    """fsspec's WebHDFS with the calls that fsspec leaves out.

    fsspec raises RuntimeError and ValueError for refusals of the NameNode; here they are OSErrors.
    """

    def __init__(self, fs: Any) -> None:
        super().__init__(
            fs,
            FileSystemCapabilities(
                has_atomic_rename=True,
                has_directories=True,
                can_set_mtime=True,
                has_native_checksum=True,
                has_sync=False,
            ),
        )

    def _ask(self, what: str, call: Callable[[], _Answer]) -> _Answer:
        try:
            return call()
        except (RuntimeError, ValueError) as refusal:
            raise OSError(f"HDFS refused to {what}: {refusal}") from refusal

    def status(self, path: str) -> FileStatus | None:
        """What is there; None if nothing is."""
        return self._ask(f"describe {path}", lambda: PlainVolume.status(self, path))

    def children(self, path: str) -> tuple[FileStatus, ...]:
        """The names of one directory, sorted."""
        return self._ask(f"list {path}", lambda: PlainVolume.children(self, path))

    def open_input(self, path: str) -> BinaryIO:
        """Read a file from its start."""
        return self._ask(f"open {path}", lambda: PlainVolume.open_input(self, path))

    def write_new(self, path: str, chunks: Iterable[bytes]) -> None:
        """Write a whole file."""
        self._ask(f"write {path}", lambda: PlainVolume.write_new(self, path, chunks))

    def make_directory(self, path: str) -> None:
        """Make a directory for owner and group only; one that is there keeps its permissions."""
        if self.status(path) is None:
            self._answers_true(f"make {path}", "MKDIRS", "put", path, permission="770")

    def _answers_true(self, what: str, operation: str, method: str, path: str, **args: str) -> None:
        def call() -> bool:
            return bool(
                self.fs._call(operation, method=method, path=path, **args).json()["boolean"]
            )

        if not self._ask(what, call):
            raise OSError(f"HDFS answered false to: {what}")

    def place(self, source: str, target: str) -> Placement:
        """Rename; HDFS never renames onto a file that is there."""
        if self.status(target) is not None:
            raise FileExistsError(target)
        self._answers_true(
            f"rename {source} to {target}", "RENAME", "put", source, destination=target
        )
        return Placement.MOVED

    def remove_file(self, path: str) -> None:
        """Remove one file."""
        self._answers_true(f"delete {path}", "DELETE", "delete", path, recursive="false")

    def remove_empty_directory(self, path: str) -> None:
        """Remove one empty directory."""
        self._answers_true(f"delete {path}", "DELETE", "delete", path, recursive="false")

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        """Set the modification time; the access time stays."""
        self._ask(
            f"set the time of {path}",
            lambda: self.fs._call(
                "SETTIMES",
                method="put",
                path=path,
                modificationtime=str(mtime_ms),
                accesstime="-1",
            ),
        )

    def native_checksum(self, path: str) -> str:
        """HDFS's own checksum as Hive writes it: all of its bytes, in lower-case hex."""
        answer: dict[str, Any] = self._ask(f"sum {path}", lambda: self.fs.ukey(path))
        return str(answer["bytes"])[: 2 * int(answer["length"])].lower()

    def keeps_attributes(self, directory: str) -> bool:
        """HDFS has them everywhere, unless `dfs.namenode.xattrs.enabled` is off."""
        del directory
        return True

    def attribute(self, path: str, name: str) -> bytes | None:
        """An extended attribute; None if it is not set."""
        answer = self._ask(
            f"list the attributes of {path}",
            lambda: self.fs._call("GETXATTRS", path=path, encoding="hex").json(),
        )
        for found in answer["XAttrs"]:
            if found["name"] == name:
                return bytes.fromhex(str(found.get("value") or "0x").removeprefix("0x"))
        return None

    def set_attribute(self, path: str, name: str, value: bytes) -> None:
        """Set an extended attribute, whether it is there or not."""
        flag = "CREATE" if self.attribute(path, name) is None else "REPLACE"
        arguments = {"xattr.name": name, "xattr.value": f"0x{value.hex()}", "flag": flag}
        self._ask(
            f"set {name} of {path}",
            lambda: self.fs._call("SETXATTR", method="put", path=path, **arguments),
        )
