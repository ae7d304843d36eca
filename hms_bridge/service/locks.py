"""Verbs of locks."""

from __future__ import annotations

from collections.abc import Sequence

from hms_bridge.backend.work import Work, sql
from hms_bridge.model.lock import CHANGES, LockRequest, LockResponse
from hms_bridge.service import turn_rules
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import Alike, Look, UnitOfWork, reads, shares, writes
from hms_bridge.txn import lock_list, locks


def _lock(unit: UnitOfWork, request: LockRequest) -> LockResponse:
    response = locks.lock(unit, request)
    # Whether they conflict with others is seen at their commit only.
    if any(component.operation in CHANGES for component in request.components):
        unit.news.append(lambda foresight: foresight.forget((request.txn_id,)))
    return response


def _alike(request: LockRequest) -> Alike[LockResponse] | None:
    if not locks.may_come_together(request):
        return None
    scope = request.components[0].scope
    return Alike(("lock", scope.database, scope.table), request, _ask_each)


def _ask_each(work: Work, requests: Sequence[LockRequest]) -> Look[LockResponse] | None:
    look = locks.ask_each(work, requests)
    return None if look is None else lambda _is_in_turn: look()


class LockVerbs(VerbFamily):
    """The LockStore, and what the server asks besides."""

    lock = shares(_lock, turn_rules.of_lock, _alike)
    check_lock = writes(locks.check_lock)
    unlock = writes(sql(locks.unlock))
    show_locks = reads(sql(lock_list.show_locks))
    show_lock_rows = reads(sql(lock_list.show_lock_rows))
