"""The recorded calls of real Hive metastores, and how to read and write their bytes."""

import base64
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocol, TBinaryProtocolAccelerated
from thrift.Thrift import TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer

from hms_bridge.wire.methods import method
from hms_bridge.wire.structs import Struct, hive

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "wire"
MAIN, MORE, MORE_42 = "wire-4.0.1.jsonl.gz", "more-4.0.1.jsonl.gz", "more-4.2.0.jsonl.gz"
RECORDINGS = (MAIN, MORE, MORE_42)
"""Each of a server of its own; calls have other numbers in each."""


@dataclass(frozen=True)
class RecordedCall:
    """One call as it went over the wire."""

    number: int
    section: str
    method: str
    request: bytes | None
    response: bytes | None
    error: dict[str, Any] | None
    has_log: bool = True
    """Whether the events that it left are known."""

    def __str__(self) -> str:
        return f"{self.number}-{self.method}"


def lines(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(FOLDER / name, "rt", encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


@cache
def recorded_calls(recording: str = MAIN) -> tuple[RecordedCall, ...]:
    return tuple(calls_of(recording, lines(recording)))


def calls_of(recording: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[RecordedCall]:
    """What the rows of a recording say."""
    for row in rows:
        yield RecordedCall(
            number=row["n"],
            section=row["section"],
            method=row["method"],
            request=base64.b64decode(row["req"]) if "req" in row else None,
            response=base64.b64decode(row["resp"]) if "resp" in row else None,
            error=row.get("error"),
            has_log=recording != MORE,
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


def request_bytes(name: str, arguments: Struct) -> bytes:
    return write_message(name, TMessageType.CALL, arguments)


def moved_message(message: bytes, places: Mapping[str, str]) -> bytes:
    """With other texts in place of some, wherever they stand, and no other change: whatever the
    message's structs are."""
    source = TBinaryProtocol(TMemoryBuffer(message))
    target = TBinaryProtocol(TMemoryBuffer())
    target.writeMessageBegin(*source.readMessageBegin())
    _copy(source, target, TType.STRUCT, places)
    content: bytes = target.trans.getvalue()
    return content


def _copy(source: Any, target: Any, kind: int, places: Mapping[str, str]) -> None:
    if kind == TType.STRUCT:
        while (field := source.readFieldBegin())[1] != TType.STOP:
            target.writeFieldBegin(*field)
            _copy(source, target, field[1], places)
        target.writeFieldStop()
    elif kind == TType.MAP:
        key, value, size = source.readMapBegin()
        target.writeMapBegin(key, value, size)
        for inner in (key, value) * size:
            _copy(source, target, inner, places)
    elif kind in (TType.LIST, TType.SET):  # which are written alike
        inner, size = source.readListBegin()
        target.writeListBegin(inner, size)
        for _ in range(size):
            _copy(source, target, inner, places)
    elif kind == TType.STRING:
        text = source.readBinary()
        for place, moved in places.items():
            text = text.replace(place.encode(), moved.encode())
        target.writeBinary(text)
    else:
        read, write = _SCALARS[kind]
        getattr(target, write)(getattr(source, read)())


_SCALARS = {
    getattr(TType, kind.upper()): (f"read{kind}", f"write{kind}")
    for kind in ("Bool", "Byte", "I16", "I32", "I64", "Double")
}


@cache
def bodies() -> dict[int, dict[str, Any]]:
    """Of calls whose bytes were not kept, by their numbers: arguments and result as JSON."""
    return {row["n"]: row for row in lines("bodies-4.0.1.jsonl.gz")}


def struct_of(value: Any) -> Any:
    """The structs that such JSON describes."""
    if isinstance(value, list):
        return [struct_of(item) for item in value]
    if isinstance(value, dict) and "$b64" in value:
        return base64.b64decode(value["$b64"])
    if isinstance(value, dict):
        fields = {name: struct_of(item) for name, item in value.items() if name != "$"}
        return getattr(hive, value["$"])(**fields) if "$" in value else fields
    return value


def request_of(call: RecordedCall) -> Struct:
    arguments = method(call.method).arguments
    if not call.request:
        names = [field[2] for field in arguments.thrift_spec if field]
        return arguments(**dict(zip(names, struct_of(bodies()[call.number]["args"]), strict=True)))
    return read_message(call.request, arguments)[2]


def response_of(call: RecordedCall) -> Struct | None:
    """The result struct; None for a TApplicationException."""
    assert call.response is not None
    result = method(call.method).result
    assert result is not None
    _, kind, body = read_message(call.response, result)
    return body if kind == TMessageType.REPLY else None
