"""SHOW LOCKS as bytes (:mod:`hms_bridge.wire.struct_bytes`): there may be ten thousand locks, whose
texts are of a few tables, users and hosts, while each has numbers of its own."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct as BinaryLayout

from hms_bridge.model.lock import LockRow, LockState, LockType
from hms_bridge.wire.struct_bytes import END, EncodedStructs, field_bytes, field_header
from hms_bridge.wire.structs import hive

_STATES = {state.stored: state.number for state in (LockState.ACQUIRED, LockState.WAITING)}
_TYPES = {kind.stored: kind.number for kind in LockType}


def locks_to_bytes(rows: Iterable[LockRow]) -> EncodedStructs:
    """ShowLocksResponseElement structs, in the order of the rows."""
    number = BinaryLayout("!q").pack
    first, txn, heartbeat, acquired, by, by_inner, last = _headers()
    known: dict[tuple[str | None, ...], tuple[bytes, bytes]] = {}
    pieces: list[bytes] = []
    count = 0
    for row in rows:
        lock_id, inner, txn_id, heartbeat_ms, acquired_ms, by_id, by_inner_id = row[:7]
        texts = row[7:]
        fields = known.get(texts)
        if fields is None:
            fields = known[texts] = _text_fields(*texts)
        target, owner = fields
        pieces += (first, number(lock_id), target, txn, number(txn_id))
        pieces += (heartbeat, number(heartbeat_ms))
        if acquired_ms is not None:
            pieces += (acquired, number(acquired_ms))
        pieces.append(owner)
        if by_id is not None:
            pieces += (by, number(by_id))
        if by_inner_id is not None:
            pieces += (by_inner, number(by_inner_id))
        pieces += (last, number(inner), END)
        count += 1
    return EncodedStructs(count, b"".join(pieces))


def _headers() -> list[bytes]:
    """Of the fields with numbers, in the order in which they are written."""
    names = ("lockid", "txnid", "lastheartbeat", "acquiredat", "blockedByExtId", "blockedByIntId",
             "lockIdInternal")  # fmt: skip
    return [field_header(hive.ShowLocksResponseElement, name) for name in names]


def _text_fields(
    database: str,
    table: str | None,
    partition: str | None,
    state: str,
    kind: str,
    user: str,
    host: str,
    agent: str | None,
) -> tuple[bytes, bytes]:
    """The fields between the numbers: what is locked and how, and who locked it."""
    target = hive.ShowLocksResponseElement(
        dbname=database,
        tablename=table,
        partname=partition,
        state=_STATES[state],
        type=_TYPES[kind],
    )
    owner = hive.ShowLocksResponseElement(user=user, hostname=host, agentInfo=agent)
    return field_bytes(target), field_bytes(owner)
