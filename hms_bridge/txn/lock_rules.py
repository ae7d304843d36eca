"""Which lock blocks which (Hive: CheckLockFunction; docs/hive/transactions.md §13). Pure.

| request \\ held | SHARED_READ | SHARED_WRITE | EXCL_WRITE | EXCLUSIVE |
|---|---|---|---|---|
| SHARED_READ | | | | blocks (1) |
| SHARED_WRITE | | | blocks | blocks |
| EXCL_WRITE | | blocks | blocks | blocks |
| EXCLUSIVE | blocks (2) | blocks | blocks | blocks |

(1) not when a whole database is requested and a table or partition is held: looking at a database
goes on while one of its tables is dropped. (2) not the other way round either.
"""

from __future__ import annotations

from dataclasses import dataclass

from hms_bridge.model.lock import LockType
from hms_bridge.model.target import Scope

_READ, _WRITE = LockType.SHARED_READ, LockType.SHARED_WRITE
_EXCL_WRITE, _EXCLUSIVE = LockType.EXCL_WRITE, LockType.EXCLUSIVE

BLOCKERS: dict[LockType, frozenset[LockType]] = {
    _READ: frozenset({_EXCLUSIVE}),
    _WRITE: frozenset({_EXCL_WRITE, _EXCLUSIVE}),
    _EXCL_WRITE: frozenset({_WRITE, _EXCL_WRITE, _EXCLUSIVE}),
    _EXCLUSIVE: frozenset(LockType),
}
"""For each requested type the held ones that block it."""

STRENGTH = {_READ: 0, _WRITE: 1, _EXCL_WRITE: 2, _EXCLUSIVE: 3}
"""Order in which SHOW LOCKS lists types."""


@dataclass(frozen=True, slots=True)
class LockTarget:
    """What a lock covers, and how."""

    type: LockType
    scope: Scope

    @property
    def is_whole_database(self) -> bool:
        """Whether no table is named."""
        return self.scope.table is None


def blocks(held: LockTarget, requested: LockTarget) -> bool:
    """Whether a lock that stands before the request in the queue keeps it waiting.

    Whether the held one is acquired does not matter: first come, first served. Locks of one
    transaction never block each other, which the caller sees to.
    """
    if held.type not in BLOCKERS[requested.type] or not held.scope.overlaps(requested.scope):
        return False
    if requested.type is _READ and requested.is_whole_database and not held.is_whole_database:
        return False
    return not (held.type is _READ and held.is_whole_database and not requested.is_whole_database)
