"""SHOW LOCKS as bytes (:mod:`hms_bridge.wire.struct_bytes`): there may be ten thousand locks, whose
texts are of a few tables, users and hosts, while each has numbers of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from struct import Struct as BinaryLayout
from typing import Any

from hms_bridge.model.lock import LockRow, LockState, LockType
from hms_bridge.wire.struct_bytes import END, EncodedStructs, field_bytes, field_header
from hms_bridge.wire.structs import hive

_STATES = {state.stored: state.number for state in (LockState.ACQUIRED, LockState.WAITING)}
_TYPES = {kind.stored: kind.number for kind in LockType}
_NUMBER = BinaryLayout("!q").pack
_HEADERS = tuple(
    field_header(hive.ShowLocksResponseElement, name)
    for name in (
        "lockid", "txnid", "lastheartbeat", "acquiredat", "blockedByExtId", "blockedByIntId",
        "lockIdInternal",
    )
)  # fmt: skip
"""Of the fields with numbers, in the order in which they are written."""
_TEXTS = itemgetter(slice(7, None))
"""Of a LockRow."""


class _Alike:
    """Locks with the same texts: what stands before the numbers of a lock, and between them."""

    def __init__(self, texts: tuple[Any, ...]) -> None:
        self.target, self.owner = _text_fields(*texts)
        numbers = f"3sq{len(self.target)}s3sq3sq3sq{len(self.owner)}s3sqx"
        self.held = BinaryLayout(f"!{numbers}").pack
        """A lock that is held, whole: headers and numbers, the texts, and the end."""


def locks_to_bytes(rows: Iterable[LockRow]) -> EncodedStructs:
    """ShowLocksResponseElement structs, in the order of the rows."""
    first, txn, heartbeat, acquired, _, _, last = _HEADERS
    known: dict[tuple[Any, ...], _Alike] = {}
    locks: list[bytes] = []
    for texts, same in groupby(rows, _TEXTS):
        alike = known.get(texts)
        if alike is None:
            alike = known[texts] = _Alike(texts)
        held, target, owner = alike.held, alike.target, alike.owner
        locks += [
            held(
                first, lock_id, target, txn, txn_id, heartbeat, heartbeat_ms,
                acquired, acquired_ms, owner, last, inner_id,
            )
            if acquired_ms is not None and by_id is None and by_inner_id is None
            else _waiting(
                (lock_id, inner_id, txn_id, heartbeat_ms, acquired_ms, by_id, by_inner_id), alike
            )
            for lock_id, inner_id, txn_id, heartbeat_ms, acquired_ms, by_id, by_inner_id,
            _, _, _, _, _, _, _, _ in same
        ]  # fmt: skip
    return EncodedStructs(len(locks), b"".join(locks))


def _waiting(numbers: Sequence[int | None], alike: _Alike) -> bytes:
    """Any lock, whatever numbers it has not."""
    lock_id, inner_id, txn_id, heartbeat_ms, acquired_ms, by_id, by_inner_id = numbers
    ordered = (lock_id, txn_id, heartbeat_ms, acquired_ms, by_id, by_inner_id, inner_id)
    fields = [
        b"" if number is None else header + _NUMBER(number)
        for header, number in zip(_HEADERS, ordered, strict=True)
    ]
    return b"".join((fields[0], alike.target, *fields[1:4], alike.owner, *fields[4:], END))


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
