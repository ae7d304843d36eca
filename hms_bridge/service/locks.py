"""Verbs of locks."""

from __future__ import annotations

from hms_bridge.backend.work import sql
from hms_bridge.model.lock import LockRequest, LockResponse
from hms_bridge.service import turn_rules
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import Alike, reads, shares, writes
from hms_bridge.txn import locks


def _alike(request: LockRequest) -> Alike[LockResponse] | None:
    if not locks.may_come_together(request):
        return None
    scope = request.components[0].scope
    return Alike(("lock", scope.database, scope.table), request, locks.lock_each)


class LockVerbs(VerbFamily):
    """The LockStore."""

    lock = shares(locks.lock, turn_rules.of_lock, _alike)
    check_lock = writes(locks.check_lock)
    unlock = writes(sql(locks.unlock))
    show_locks = reads(sql(locks.show_locks))
