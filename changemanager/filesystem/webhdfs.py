"""HDFS over HTTP (WebHDFS, HttpFS): its own checksum, file times, attributes, safe renames."""

from __future__ import annotations

import errno
import io
import json
import tempfile
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import requests
from fsspec.implementations.webhdfs import WebHDFile, WebHDFS

from changemanager.filesystem.hdfs_client import OWNER_ALONE, HdfsClient, HdfsClientVolume
from changemanager.filesystem.refusals import refusal
from changemanager.filesystem.volume import Durability

_TIMEOUT_SECONDS = (10, 120)
_SPOOL_BYTES = 8 << 20


class _BoundedSession(requests.Session):
    """Nothing is waited for without end."""

    def request(self, *args: Any, **given: Any) -> requests.Response:
        given.setdefault("timeout", _TIMEOUT_SECONDS)
        return super().request(*args, **given)


class HttpFileSystem(HdfsClient, WebHDFS):  # type: ignore[misc]
    """fsspec's WebHDFS, made to raise OSErrors wherever HDFS says no or false.

    `addresses` are the HTTP services of all NameNodes of one cluster; the active one answers. A
    file is written with one CREATE that carries its bytes; a rename never replaces and never nests.
    """

    def __init__(
        self, addresses: Sequence[str], *, user: str | None = None, umask: int = 0o022, **given: Any
    ) -> None:
        host, _, port = addresses[0].rpartition(":")
        super().__init__(host=host, port=int(port), user=user, **given)
        self.addresses = tuple(addresses)
        self.umask = umask

    def _connect(self) -> None:
        self.session = _BoundedSession()

    def _call(
        self,
        op: str,
        method: str = "get",
        path: str | None = None,
        data: Any = None,
        redirect: bool = True,
        **arguments: Any,
    ) -> requests.Response:
        place = "/" if path is None else self._strip_protocol(path)
        error: OSError | None = None
        for address in self._likely_first():
            url = f"http://{address}/webhdfs/v1"
            parameters = {**arguments, **self.pars, "op": op.upper()}
            try:
                answer = self.session.request(
                    method=method.upper(),
                    url=url + quote(place, safe="/="),
                    params=parameters,
                    data=data,
                    allow_redirects=redirect,
                )
                require_done(answer, place)
            except requests.ConnectionError as failure:
                error = OSError(
                    errno.ECONNREFUSED, f"no NameNode answers at http://{address}: {failure}", place
                )
                continue
            except requests.Timeout as failure:
                error = TimeoutError(
                    errno.ETIMEDOUT, f"http://{address} does not answer: {failure}", place
                )
                continue
            except OSError as failure:
                if "standby" not in str(failure).lower():
                    raise
                error = failure
                continue
            self.url = url
            return answer
        assert error is not None
        raise error

    def _likely_first(self) -> list[str]:
        last = self.url.removeprefix("http://").partition("/")[0]
        return sorted(self.addresses, key=lambda address: address != last)

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """What is there. FileNotFoundError if nothing is."""
        path = self._strip_protocol(path)
        described: dict[str, Any] = super().info(path)
        return described

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """What is in a directory; a file lists itself."""
        path = self._strip_protocol(path)
        infos = self._call("LISTSTATUS", path=path).json()["FileStatuses"]["FileStatus"]
        for info in infos:
            self._process_info(info)
            name = info["pathSuffix"]
            info["name"] = f"{path.rstrip('/')}/{name}" if name else path
        infos.sort(key=lambda info: str(info["name"]))
        return infos if detail else [info["name"] for info in infos]

    def _make(self, path: str, mode: int, *, create_parents: bool) -> None:
        del create_parents  # HTTP always makes them
        self._confirmed("make", "MKDIRS", "put", path, permission=f"{mode:o}")

    def rename(self, source: str, target: str, **_: Any) -> None:
        """Give a file or directory another name; never over another, never into a directory."""
        source, target = self._strip_protocol(source), self._strip_protocol(target)
        if self.exists(target):
            raise FileExistsError(errno.EEXIST, "HDFS: is there already", target)
        # With an option the NameNode takes its newer rename, which raises and does not nest.
        self._confirmed(
            f"rename to {target}", "RENAME", "put", source, destination=target, renameoptions="NONE"
        )

    def _delete(self, path: str, *, is_recursive: bool) -> bool:
        return self._is_done("DELETE", "delete", path, recursive=str(is_recursive).lower())

    def set_times(self, path: str, mtime_ms: int) -> None:
        """Set a file's modification time; its access time stays."""
        self._call("SETTIMES", "put", path, modificationtime=str(mtime_ms), accesstime="-1")

    def set_owner(self, path: str, *, owner: str | None = None, group: str | None = None) -> None:
        """Give a file away. PermissionError, of a group that this user is not in, too."""
        given: dict[str, Any] = {"owner": owner, "group": group}
        self._call("SETOWNER", "put", path, **{name: text for name, text in given.items() if text})

    def set_permission(self, path: str, mode: int) -> None:
        """Set the nine bits of a file."""
        self._call("SETPERMISSION", "put", path, permission=f"{mode:o}")

    def ukey(self, path: str) -> dict[str, Any]:
        """The checksum: algorithm, bytes in hex, length."""
        checksum: dict[str, Any] = self._call("GETFILECHECKSUM", path=path).json()["FileChecksum"]
        return checksum

    def _confirmed(self, what: str, op: str, method: str, path: str, **arguments: str) -> None:
        if not self._is_done(op, method, path, **arguments):
            raise OSError(errno.EIO, f"HDFS answered false to: {what}", self._strip_protocol(path))

    def _is_done(self, op: str, method: str, path: str, **arguments: str) -> bool:
        answer = self._call(op, method, path, None, True, **arguments)
        return not answer.content or bool(json.loads(answer.content).get("boolean", True))

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        permission: int = OWNER_ALONE,
        **_: Any,
    ) -> Any:
        if mode == "rb":
            return _Input(
                self,
                self._strip_protocol(path),
                mode=mode,
                block_size=block_size or self.blocksize,
                tempdir=self.tempdir,
                autocommit=True,
            )
        if mode in {"wb", "xb"}:
            path = self._strip_protocol(path)
            return _OneCreate(self, path, is_replacing=mode == "wb", permission=permission)
        raise ValueError(f"mode {mode} is not offered on HDFS: files are written once")

    def create(self, path: str, body: Any, *, is_replacing: bool, permission: int) -> None:
        """Write a whole file. FileExistsError if the name is taken and not to be replaced."""
        arguments = {"overwrite": str(is_replacing).lower(), "permission": f"{permission:o}"}
        first = self._call("CREATE", "put", path, redirect=False, **arguments)
        kind = {"content-type": "application/octet-stream"}
        self._at_data_node("PUT", first.headers["Location"], path, data=body, headers=kind)

    def read_range(self, path: str, offset_bytes: int, length_bytes: int) -> bytes:
        """A part of a file that is known to be as long."""
        limits = {"offset": str(offset_bytes), "length": str(length_bytes)}
        answer = self._call("OPEN", path=path, redirect=False, **limits)
        if "Location" in answer.headers:
            answer = self._at_data_node("GET", answer.headers["Location"], path)
        if len(answer.content) != length_bytes:
            raise OSError(
                errno.EIO,
                f"HDFS: {len(answer.content)} of {length_bytes} bytes came from {offset_bytes} on; "
                "try again, and check the file with hdfs fsck",
                path,
            )
        return answer.content

    def _at_data_node(
        self, method: str, address: str, path: str, **given: Any
    ) -> requests.Response:
        try:
            answer = self.session.request(method, address, **given)
        except requests.RequestException as failure:
            raise OSError(
                errno.EIO, f"HDFS: a DataNode gives no answer: {failure}", path
            ) from failure
        require_done(answer, path)
        return answer


class _Input(WebHDFile):  # type: ignore[misc]
    """fsspec's reader, but for its belief that whatever a DataNode answers are the file's bytes."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        start, end = max(start, 0), min(self.size, end)
        return b"" if start >= end else self.fs.read_range(self.path, start, end - start)


class _OneCreate(tempfile.SpooledTemporaryFile[bytes]):
    """A new file: its bytes wait here, in memory or on this machine's disk, until `close`."""

    def __init__(
        self, fs: HttpFileSystem, path: str, *, is_replacing: bool, permission: int
    ) -> None:
        super().__init__(max_size=_SPOOL_BYTES)
        self._permission = permission
        self._fs = fs
        self._path = path
        self._is_replacing = is_replacing
        if not is_replacing and fs.exists(path):
            raise FileExistsError(errno.EEXIST, "HDFS: is there already", path)

    def close(self) -> None:
        """Bring the bytes to HDFS."""
        if self.closed:
            return
        try:
            size_bytes = self.seek(0, io.SEEK_END)
            self.seek(0)
            # A file object of no length would be sent in chunks, which ask more of the server.
            body = self if size_bytes > _SPOOL_BYTES else self.read()
            self._fs.create(
                self._path, body, is_replacing=self._is_replacing, permission=self._permission
            )
        finally:
            super().close()

    def __exit__(self, kind: object, *_: object) -> None:
        """As `close`; after an error nothing is written."""
        if kind is None:
            self.close()
        else:
            super().close()

    def __del__(self) -> None:
        """What was not closed is not written."""
        super().close()


def require_done(answer: requests.Response, path: str) -> None:
    """Raise the OSError that an answer stands for, if it is a refusal."""
    if answer.status_code < 400:
        return
    try:
        refused = answer.json()["RemoteException"]
        kind, sentence = str(refused["exception"]), str(refused["message"])
    except (ValueError, KeyError, TypeError):
        kind, sentence = "HTTP", f"{answer.url.partition('?')[0]}: status {answer.status_code}"
    raise refusal(kind, sentence, path)


class WebHdfsVolume(HdfsClientVolume):
    """HDFS over HTTP. `fs` is an `HttpFileSystem`."""

    def __init__(self, fs: HttpFileSystem) -> None:
        super().__init__(fs, Durability.BY_REPLICAS)

    def native_checksum(self, path: str) -> str:
        """HDFS's own checksum as Hive writes it: all of its bytes, in lower-case hex."""
        answer: dict[str, Any] = self.fs.ukey(path)
        return str(answer["bytes"])[: 2 * int(answer["length"])].lower()

    def keeps_attributes(self, directory: str) -> bool:
        """HDFS has them everywhere, unless `dfs.namenode.xattrs.enabled` is off."""
        del directory
        return True

    def attribute(self, path: str, name: str) -> bytes | None:
        answer = self.fs._call("GETXATTRS", path=path, encoding="hex").json()
        for attribute in answer["XAttrs"]:
            if attribute["name"] == name:
                return bytes.fromhex(str(attribute.get("value") or "0x").removeprefix("0x"))
        return None

    def set_attribute(self, path: str, name: str, value: bytes) -> None:
        flag = "CREATE" if self.attribute(path, name) is None else "REPLACE"
        arguments = {"xattr.name": name, "xattr.value": f"0x{value.hex()}", "flag": flag}
        self.fs._call("SETXATTR", method="put", path=path, **arguments)
