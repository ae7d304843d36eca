"""A NameNode's HTTP service in this process, as far as a file system needs one.

It answers below `requests`, so that our client's own code runs; a real HDFS has the last word
(integration/cases/test_hdfs.py).
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import requests
from requests.adapters import BaseAdapter

from changemanager.checksum import composite_checksum
from changemanager.filesystem.webhdfs import HttpFileSystem


@dataclass
class Node:
    content: bytes | None
    mtime_ms: int = 1_700_000_000_000
    permission: str = "755"
    owner: str = "hdfs"
    group: str = "supergroup"
    attributes: dict[str, str] = field(default_factory=dict)


class RefusalError(Exception):
    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class NameNode(BaseAdapter):
    """`calls` are the operations in order; `state` makes it refuse: "safe mode", "standby".

    `data_state` of its DataNodes: "ready", "refuses", "silent", "short"; None: it has none, and
    answers reads itself, as HttpFS does. `groups`: those of users, who may give files to them;
    `hdfs` is the superuser.
    """

    def __init__(self) -> None:
        super().__init__()
        self.nodes: dict[str, Node] = {"/": Node(None, permission="777")}
        self.groups: dict[str, set[str]] = {}
        self.calls: list[str] = []
        self.state = "active"
        self.data_state: str | None = None

    def send(self, request: Any, *_: Any, **__: Any) -> requests.Response:
        url = urlsplit(request.url)
        arguments = {name: values[0] for name, values in parse_qs(url.query).items()}
        path = unquote(url.path).removeprefix("/webhdfs/v1") or "/"
        response = requests.Response()
        response.status_code, response.url, response.request = 200, request.url, request
        self.calls.append(arguments["op"])
        try:
            if self.state == "standby":
                raise RefusalError("StandbyException", "Not supported in state standby")
            if self.state == "safe mode" and request.method != "GET":
                raise RefusalError(
                    "RetriableException", f"Cannot touch {path}. Name node is in safe mode."
                )
            answer = getattr(self, arguments["op"].lower())(path, arguments, request)
        except RefusalError as refused:
            told = {"exception": refused.kind, "message": str(refused)}
            response.status_code, answer = 403, {"RemoteException": told}
        if isinstance(answer, bytes):
            response.raw = io.BytesIO(answer)
        elif isinstance(answer, str):
            response.headers["Location"], response.raw = answer, io.BytesIO(b"")
        else:
            response.raw = io.BytesIO(json.dumps(answer).encode())
        return response

    def close(self) -> None:
        pass

    def _node(self, path: str) -> Node:
        if path not in self.nodes:
            raise RefusalError("FileNotFoundException", f"File does not exist: {path}")
        return self.nodes[path]

    def _below(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        return [one for one in self.nodes if one.startswith(prefix) and one != path]

    def _status(self, path: str, suffix: str) -> dict[str, Any]:
        node = self._node(path)
        return {
            "pathSuffix": suffix,
            "type": "DIRECTORY" if node.content is None else "FILE",
            "length": len(node.content or b""),
            "modificationTime": node.mtime_ms,
            "owner": node.owner,
            "group": node.group,
            "permission": node.permission,
        }

    def getfilestatus(self, path: str, *_: Any) -> Any:
        return {"FileStatus": self._status(path, "")}

    def liststatus(self, path: str, *_: Any) -> Any:
        if self._node(path).content is not None:
            found = [self._status(path, "")]
        else:
            depth = len(path.rstrip("/")) + 1
            names = [one[depth:] for one in self._below(path)]
            found = [
                self._status(path.rstrip("/") + "/" + name, name)
                for name in names
                if "/" not in name
            ]
        return {"FileStatuses": {"FileStatus": found}}

    def mkdirs(self, path: str, arguments: dict[str, str], _: Any) -> Any:
        levels = path.strip("/").split("/")
        for depth in range(1, len(levels) + 1):
            above = "/" + "/".join(levels[:depth])
            node = self.nodes.setdefault(above, self._made(above, None, arguments))
            if node.content is not None:
                raise RefusalError("FileAlreadyExistsException", f"Not a directory: {above}")
        return {"boolean": True}

    def create(self, path: str, arguments: dict[str, str], request: Any) -> Any:
        if "data" not in arguments:
            return f"http://data.example{urlsplit(request.url).path}?{urlsplit(request.url).query}&data=1"
        if path in self.nodes and arguments["overwrite"] != "true":
            raise RefusalError("FileAlreadyExistsException", f"{path} already exists")
        body = request.body.read() if hasattr(request.body, "read") else request.body or b""
        self.mkdirs(path.rpartition("/")[0] or "/", {**arguments, "permission": "755"}, None)
        self.nodes[path] = self._made(path, body, arguments)
        return b""

    def _made(self, path: str, content: bytes | None, arguments: dict[str, str]) -> Node:
        above = self.nodes.get(path.rpartition("/")[0] or "/")
        return Node(
            content,
            permission=arguments["permission"],
            owner=arguments.get("user.name", "dr.who"),
            group=above.group if above else "supergroup",
        )

    def setpermission(self, path: str, arguments: dict[str, str], _: Any) -> Any:
        self._node(path).permission = arguments["permission"]
        return b""

    def setowner(self, path: str, arguments: dict[str, str], _: Any) -> Any:
        node, user = self._node(path), arguments.get("user.name", "dr.who")
        owner, group = arguments.get("owner", user), arguments.get("group")
        if user != "hdfs" and (owner != user or group not in {None, *self.groups.get(user, ())}):
            raise RefusalError("AccessControlException", f"User {user} may not")
        node.owner, node.group = owner if "owner" in arguments else node.owner, group or node.group
        return b""

    def open(self, path: str, arguments: dict[str, str], request: Any) -> Any:
        if self.data_state is not None and "data" not in arguments:
            return f"http://data.example{path}?{urlsplit(request.url).query}&data=1"
        if self.data_state == "refuses":
            raise RefusalError("IOException", "Could not obtain block")
        if self.data_state == "silent":
            raise requests.ConnectionError("connection reset")
        if self.data_state == "short":
            arguments["length"] = "1"
        start = int(arguments.get("offset", 0))
        content = self._node(path).content or b""
        return content[start : start + int(arguments.get("length", len(content)))]

    def rename(self, path: str, arguments: dict[str, str], _: Any) -> Any:
        target = arguments["destination"]
        if arguments.get("renameoptions") != "NONE":
            raise AssertionError("the old rename answers false, and nests")
        self._node(path)
        if target in self.nodes:
            raise RefusalError("FileAlreadyExistsException", f"rename destination {target} exists")
        self._node(target.rpartition("/")[0] or "/")
        for one in [path, *self._below(path)]:
            self.nodes[target + one[len(path) :]] = self.nodes.pop(one)
        return b""

    def delete(self, path: str, arguments: dict[str, str], _: Any) -> Any:
        if path not in self.nodes:
            return {"boolean": False}
        if self._below(path) and arguments["recursive"] != "true":
            raise RefusalError(
                "PathIsNotEmptyDirectoryException", f"`{path} is non empty': Directory is not empty"
            )
        for one in [path, *self._below(path)]:
            del self.nodes[one]
        return {"boolean": True}

    def settimes(self, path: str, arguments: dict[str, str], _: Any) -> Any:
        self._node(path).mtime_ms = int(arguments["modificationtime"])
        return b""

    def getfilechecksum(self, path: str, *_: Any) -> Any:
        checksum = composite_checksum(io.BytesIO(self._node(path).content or b""))
        return {"FileChecksum": {"bytes": checksum + "0" * 8, "length": 28}}

    def getxattrs(self, path: str, *_: Any) -> Any:
        held = self._node(path).attributes
        return {"XAttrs": [{"name": name, "value": value} for name, value in held.items()]}

    def setxattr(self, path: str, arguments: dict[str, str], _: Any) -> Any:
        held = self._node(path).attributes
        if (arguments["xattr.name"] in held) != (arguments["flag"] == "REPLACE"):
            raise RefusalError("IOException", "XAttr flag does not fit")
        held[arguments["xattr.name"]] = arguments["xattr.value"]
        return b""


def over_http(*nodes: NameNode, user: str | None = None) -> HttpFileSystem:
    """Our client, with these NameNodes as the services of one cluster."""
    fs = HttpFileSystem([f"nn{number}.example:9870" for number, _ in enumerate(nodes)], user=user)
    for number, node in enumerate(nodes):
        fs.session.mount(f"http://nn{number}.example:9870", node)
    fs.session.mount("http://data.example", nodes[0])
    return fs
