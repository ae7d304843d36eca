"""Stores that take no more, as full disks are told: HDFS's quotas and DataNodes, S3's codes."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from changemanager.filesystem.opening import open_volume
from changemanager.filesystem.refusals import native_refusal, refusal
from changemanager.hadoop import HadoopConfig
from changemanager.location import FsspecResolver, Location

NO_NODE = (
    "File /t could only be written to 0 of the 1 minReplication nodes. There are {} datanode(s) "
    "running and {} node(s) are excluded in this operation."
)


@pytest.mark.parametrize(
    ("kind", "sentence", "number", "advice"),
    [
        (
            "DSQuotaExceededException",
            "The DiskSpace quota of /t is exceeded",
            errno.EDQUOT,
            "space",
        ),
        (
            "NSQuotaExceededException",
            "The NameSpace quota of /t is exceeded",
            errno.EDQUOT,
            "names",
        ),
        ("QuotaByStorageTypeExceededException", "Quota by storage type", errno.EDQUOT, "space"),
        ("DiskOutOfSpaceException", "Out of space: The volume", errno.ENOSPC, "add DataNodes"),
        ("IOException", NO_NODE.format(3, "no"), errno.ENOSPC, "add DataNodes"),
        ("RemoteException", NO_NODE.format(3, 2), errno.ENOSPC, "add DataNodes"),
        ("IOException", NO_NODE.format(3, 3), errno.EIO, ""),  # none of them answered the client
        ("IOException", NO_NODE.format(0, "no"), errno.EIO, ""),
    ],
)
def test_what_a_name_node_says(kind: str, sentence: str, number: int, advice: str) -> None:
    rust = RuntimeError(f'RPCError("org.apache.hadoop.{kind}", "{sentence}\\n\\tat x")')
    for error in (refusal(kind, sentence, "/t"), native_refusal(rust, "/t")):
        assert (error.errno, error.filename) == (number, "/t")
        assert sentence in str(error.strerror)
        assert advice in str(error.strerror)


class Answer(BaseHTTPRequestHandler):
    """A bucket that takes nothing."""

    protocol_version = "HTTP/1.1"  # a client that sends a body waits to be told to go on
    code, status = "", 200

    def do_HEAD(self) -> None:
        self._answer(404, b"")

    def do_GET(self) -> None:
        self._answer(200, b"<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>")

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.close_connection = True
        text = f"<Error><Code>{self.code}</Code><Message>takes no more</Message></Error>"
        self._answer(self.status, text.encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def bucket() -> Iterator[tuple[Location, type[Answer]]]:
    answer = type("AnswerHere", (Answer,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), answer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        settings = {
            "fs.s3a.endpoint": f"http://127.0.0.1:{server.server_port}",
            "fs.s3a.access.key": "a",
            "fs.s3a.secret.key": "b",
            "fs.s3a.endpoint.region": "eu-central-1",
            "fs.s3a.path.style.access": "true",
        }
        resolve = FsspecResolver(partial(open_volume, hadoop=HadoopConfig(values=settings)))
        yield resolve("s3a://bucket/t/f"), answer
        server.shutdown()


@pytest.mark.parametrize(
    ("status", "code", "number", "advice"),
    [
        (403, "QuotaExceeded", errno.EDQUOT, "raise the quota"),
        (400, "XMinioAdminBucketQuotaExceeded", errno.EDQUOT, "raise the quota"),
        (507, "XMinioStorageFull", errno.ENOSPC, "add storage"),
        (507, "SomeOther", errno.ENOSPC, "add storage"),
        (403, "AccessDenied", None, "takes no more"),
    ],
)
def test_what_a_store_that_speaks_s3_says(
    bucket: tuple[Location, type[Answer]], status: int, code: str, number: int | None, advice: str
) -> None:
    place, answer = bucket
    answer.status, answer.code = status, code
    with pytest.raises(OSError, match=advice) as raised:
        place.volume.write_new(place.path, [b"x"])
    assert raised.value.errno == number
    if number is not None:
        assert f"takes no more ({code})" in str(raised.value)
