"""SHOW LOCKS as bytes (:mod:`hms_bridge.wire.struct_bytes`): there may be ten thousand locks, whose
texts are of a few tables, users and hosts, while each has numbers of its own, and mostly an agent
that is a query's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import groupby, islice
from operator import itemgetter
from struct import Struct as BinaryLayout
from typing import Any

from hms_bridge.model.lock import LockRow, lock_state_of, lock_type_of
from hms_bridge.wire.struct_bytes import (
    END,
    EncodedStructs,
    field_bytes,
    field_header,
    text_bytes,
)
from hms_bridge.wire.structs import hive

_AT_ONCE = 256
"""Of so many locks a piece is made at once, while the client reads the piece before."""

_NUMBER = BinaryLayout("!q").pack
_HEADERS = tuple(
    field_header(hive.ShowLocksResponseElement, name)
    for name in (
        "lockid", "txnid", "lastheartbeat", "acquiredat", "blockedByExtId", "blockedByIntId",
        "lockIdInternal",
    )
)  # fmt: skip
"""Of the fields with numbers, in the order in which they are written."""
_AGENT = field_header(hive.ShowLocksResponseElement, "agentInfo")
_TEXTS = itemgetter(slice(7, 14))
"""Of a LockRow, but for the agent."""
_AGENTS = itemgetter(14)
_LAST = BinaryLayout("!3sqx").pack
_Pack = Callable[..., bytes]


def locks_to_bytes(rows: Sequence[LockRow]) -> EncodedStructs:
    """ShowLocksResponseElement structs, in the order of the rows."""
    return EncodedStructs(len(rows), _pieces(rows))


def _pieces(rows: Sequence[LockRow]) -> Iterator[bytes]:
    target_of, owner_of = cache(_target), cache(_owner)
    whole, front = cache(_whole), cache(_front)
    for texts, same in groupby(rows, _TEXTS):
        target, owner = target_of(*texts[:5]), owner_of(*texts[5:])
        while run := list(islice(same, _AT_ONCE)):
            agents = set(map(_AGENTS, run))
            if len(agents) == 1:
                known = owner + _agent(agents.pop())
                locks = _alike(run, target, known, whole(len(target), len(known)))
            else:
                locks = _of_agents(run, target, owner, front(len(target), len(owner)))
            yield b"".join(locks)


def _alike(run: Sequence[LockRow], target: bytes, owner: bytes, held: _Pack) -> list[bytes]:
    """Locks with the same texts."""
    first, txn, heartbeat, acquired, _, _, last = _HEADERS
    return [
        held(
            first, lock_id, target, txn, txn_id, heartbeat, heartbeat_ms,
            acquired, acquired_ms, owner, last, inner_id,
        )
        if acquired_ms is not None and by_id is None and by_inner_id is None
        else _waiting(
            (lock_id, inner_id, txn_id, heartbeat_ms, acquired_ms, by_id, by_inner_id),
            target,
            owner,
        )
        for lock_id, inner_id, txn_id, heartbeat_ms, acquired_ms, by_id, by_inner_id,
        _, _, _, _, _, _, _, _ in run
    ]  # fmt: skip


def _of_agents(run: Sequence[LockRow], target: bytes, owner: bytes, held: _Pack) -> list[bytes]:
    """Locks with the same texts, but for the agent."""
    first, txn, heartbeat, acquired, _, _, last = _HEADERS
    return [
        held(
            first, lock_id, target, txn, txn_id, heartbeat, heartbeat_ms,
            acquired, acquired_ms, owner,
        ) + _agent(agent) + _LAST(last, inner_id)
        if acquired_ms is not None and by_id is None and by_inner_id is None
        else _waiting(
            (lock_id, inner_id, txn_id, heartbeat_ms, acquired_ms, by_id, by_inner_id),
            target,
            owner + _agent(agent),
        )
        for lock_id, inner_id, txn_id, heartbeat_ms, acquired_ms, by_id, by_inner_id,
        _, _, _, _, _, _, _, agent in run
    ]  # fmt: skip


def _whole(target_length: int, owner_length: int) -> _Pack:
    """A lock that is held: headers and numbers, the texts, and the end. To make such a layout takes
    as long as ten locks, so it is of lengths, not of texts."""
    return BinaryLayout(f"!3sq{target_length}s3sq3sq3sq{owner_length}s3sqx").pack


def _front(target_length: int, owner_length: int) -> _Pack:
    """The same up to the owner."""
    return BinaryLayout(f"!3sq{target_length}s3sq3sq3sq{owner_length}s").pack


def _agent(agent: str | None) -> bytes:
    return b"" if agent is None else _AGENT + text_bytes(agent)


def _waiting(numbers: Sequence[int | None], target: bytes, owner: bytes) -> bytes:
    """Any lock, whatever numbers it has not."""
    lock_id, inner_id, txn_id, heartbeat_ms, acquired_ms, by_id, by_inner_id = numbers
    ordered = (lock_id, txn_id, heartbeat_ms, acquired_ms, by_id, by_inner_id, inner_id)
    fields = [
        b"" if number is None else header + _NUMBER(number)
        for header, number in zip(_HEADERS, ordered, strict=True)
    ]
    return b"".join((fields[0], target, *fields[1:4], owner, *fields[4:], END))


def _target(
    database: str, table: str | None, partition: str | None, state: str, kind: str
) -> bytes:
    """What is locked, and how."""
    fields: dict[str, Any] = {"dbname": database, "tablename": table, "partname": partition}
    fields |= {"state": lock_state_of(state).number, "type": lock_type_of(kind).number}
    return field_bytes(hive.ShowLocksResponseElement(**fields))


def _owner(user: str, host: str) -> bytes:
    """Who locked it."""
    return field_bytes(hive.ShowLocksResponseElement(user=user, hostname=host))
