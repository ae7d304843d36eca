"""The recorded calls of a real Hive 4.0.1 metastore, and how to read and write their bytes."""

import base64
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TMessageType
from thrift.transport.TTransport import TMemoryBuffer

from hms_bridge.wire.methods import method
from hms_bridge.wire.structs import Struct

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "wire"


@dataclass(frozen=True)
class RecordedCall:
    """One call as it went over the wire."""

    number: int
    section: str
    method: str
    request: bytes | None
    response: bytes | None
    error: dict[str, Any] | None

    def __str__(self) -> str:
        return f"{self.number}-{self.method}"


def lines(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(FOLDER / name, "rt", encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


@cache
def recorded_calls() -> tuple[RecordedCall, ...]:
    return tuple(
        RecordedCall(
            number=row["n"],
            section=row["section"],
            method=row["method"],
            request=base64.b64decode(row["req"]) if "req" in row else None,
            response=base64.b64decode(row["resp"]) if "resp" in row else None,
            error=row.get("error"),
        )
        for row in lines("wire-4.0.1.jsonl.gz")
    )


def read_message(message: bytes, cls: type[Struct]) -> tuple[str, int, Struct]:
    """Name, message type and body."""
    protocol = TBinaryProtocolAccelerated(TMemoryBuffer(message))
    name, kind, _ = protocol.readMessageBegin()
    body = cls()
    body.read(protocol)
    return name, kind, body


def write_message(name: str, kind: int, body: Struct) -> bytes:
    buffer = TMemoryBuffer()
    protocol = TBinaryProtocolAccelerated(buffer)
    protocol.writeMessageBegin(name, kind, 0)
    body.write(protocol)
    protocol.writeMessageEnd()
    content: bytes = buffer.getvalue()
    return content


def request_of(call: RecordedCall) -> Struct:
    assert call.request is not None
    return read_message(call.request, method(call.method).arguments)[2]


def response_of(call: RecordedCall) -> Struct | None:
    """The result struct; None for a TApplicationException."""
    assert call.response is not None
    result = method(call.method).result
    assert result is not None
    _, kind, body = read_message(call.response, result)
    return body if kind == TMessageType.REPLY else None
