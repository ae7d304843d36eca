"""Verbs of locks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hms_bridge.backend.work import sql
from hms_bridge.model.lock import CHANGES, LockComponent, LockRequest, LockResponse, LockState
from hms_bridge.service import turn_rules
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import Alike, Look, UnitOfWork, reads, shares, writes
from hms_bridge.txn import lock_list, locks, plain_locks
from hms_bridge.txn.foresight import Foresight


def _lock(unit: UnitOfWork, request: LockRequest) -> LockResponse:
    response = locks.lock(unit, request)
    _tell(unit, request, is_granted=response.state is LockState.ACQUIRED)
    return response


def _alike(request: LockRequest) -> Alike[LockResponse] | None:
    if not locks.may_come_together(request):
        return None
    scope = request.components[0].scope
    return Alike(("lock", scope.database, scope.table), request, _ask_each, _expect_each)


def _ask_each(unit: UnitOfWork, requests: Sequence[LockRequest]) -> Look[LockResponse] | None:
    ask = locks.ask_each(unit, requests)
    if ask is None:
        return None

    def look(_is_in_turn: bool) -> Sequence[LockResponse]:
        responses = ask()
        for request, response in zip(requests, responses, strict=True):
            _tell(unit, request, is_granted=response.state is LockState.ACQUIRED)
        return responses

    return look


def _expect_each(
    unit: UnitOfWork, foresight: Foresight, requests: Sequence[LockRequest]
) -> Callable[[], Sequence[LockResponse]] | None:
    look = plain_locks.expect_locks(unit, foresight, requests)
    if look is not None:
        # That they are free is what was expected.
        for request in requests:
            _forget_changes(unit, request)
    return look


def _tell(unit: UnitOfWork, request: LockRequest, *, is_granted: bool) -> None:
    _forget_changes(unit, request)
    for component in map(locks.lowered, request.components):
        unit.news.append(_news(component, is_granted=is_granted))


def _forget_changes(unit: UnitOfWork, request: LockRequest) -> None:
    """Whether they conflict with others is seen at their commit only."""
    if any(component.operation in CHANGES for component in request.components):
        unit.news.append(lambda foresight: foresight.forget((request.txn_id,)))


def _news(component: LockComponent, *, is_granted: bool) -> Callable[[Foresight], None]:
    scope = component.scope
    assert scope.database is not None
    database = scope.database
    return lambda foresight: foresight.locked(
        database, scope.table, component.type, is_granted=is_granted
    )


class LockVerbs(VerbFamily):
    """The LockStore, and what the server asks besides."""

    lock = shares(_lock, turn_rules.of_lock, _alike)
    check_lock = writes(locks.check_lock)
    unlock = writes(sql(locks.unlock))
    show_locks = reads(sql(lock_list.show_locks))
    show_lock_rows = reads(sql(lock_list.show_lock_rows))
