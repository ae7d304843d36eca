"""Runs cycles of policies: one of a policy at a time, again after a bad moment, written down."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from hms_bridge.clock import Clock
from hms_bridge.errors import (
    BusyError,
    HmsBridgeError,
    MetastoreUnavailableError,
    RetryableBackendError,
)
from hms_bridge.metastore import Metastore
from hms_bridge.model.replication import CycleOutcome, CycleResult, ReplicationPolicy
from hms_bridge.policy_store import PolicyStore
from hms_bridge.repl.lease import LeaseKind, LeaseRequest, LeaseRules, held_lease

_LASTING = frozenset({errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP})
"""What a storage says of a place that is named wrongly: it says so every time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRules:
    """How often a cycle is tried, and how patiently: waits double from ``first_wait_seconds``."""

    attempts_max: int = 5
    first_wait_seconds: float = 5.0
    wait_seconds_max: float = 300.0


class CycleWork(Protocol):
    """What is done in one: a cycle, or a repair."""

    def run(self) -> CycleResult:
        """Raises HmsBridgeError."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Runner:
    """``metastore`` and ``store`` are of one database, where policies are kept. ``open_cycle``
    opens both sides of a policy anew for each attempt. ``say`` prints what people should know;
    ``verb`` is what was typed."""

    metastore: Metastore
    store: PolicyStore
    open_cycle: Callable[[ReplicationPolicy], AbstractContextManager[CycleWork]]
    clock: Clock
    user: str
    host: str
    lease: LeaseRules
    rules: RunRules = RunRules()
    say: Callable[[str], None] = lambda _: None
    verb: str = LeaseKind.RUN.verb

    def run(self, policy: ReplicationPolicy) -> CycleResult:
        """One cycle, which history keeps whatever becomes of it. A failure is a result.

        Raises BusyError while another process has a cycle of the policy, or if it was paused
        meanwhile, and what keeping history raises.
        """
        wanted = LeaseRequest.of(self, LeaseKind.RUN, policy.name, self.say, self.verb)
        with held_lease(self.metastore, self.clock, wanted):
            policy = self._as_it_is_now(policy)
            number = self.store.begin_cycle(policy.name, self.host)
            result = CycleResult(outcome=CycleOutcome.INTERRUPTED)
            try:
                result = self._attempts(policy)
            finally:
                self.store.end_cycle(policy.name, number, result)
        return result

    def _as_it_is_now(self, before: ReplicationPolicy) -> ReplicationPolicy:
        """Whoever had the lease while this one waited may have paused it, or turned it around."""
        now = self.store.get_policy(before.name)
        if now.is_paused and not before.is_paused:
            raise BusyError(
                f"policy {now.name} was paused while this run waited for another one: nothing was "
                f"done. 'repl policy resume {now.name}' ends the pause"
            )
        return now

    def _attempts(self, policy: ReplicationPolicy) -> CycleResult:
        rules = self.rules
        retrying = Retrying(
            stop=stop_after_attempt(rules.attempts_max),
            wait=wait_exponential(rules.first_wait_seconds, rules.wait_seconds_max),
            retry=retry_if_exception(may_pass),
            sleep=self.clock.sleep_seconds,
            before_sleep=lambda state: self.say(
                f"{policy.name}: {state.outcome.exception() if state.outcome else ''}; "
                f"attempt {state.attempt_number + 1} of {rules.attempts_max} follows"
            ),
            reraise=True,
        )
        try:
            result = retrying(self._once, policy)
        except HmsBridgeError as error:
            result = CycleResult(outcome=CycleOutcome.FAILED, message=str(error))
        return replace(result, attempt_count=retrying.statistics["attempt_number"])

    def _once(self, policy: ReplicationPolicy) -> CycleResult:
        with self.open_cycle(policy) as cycle:
            return cycle.run()


def may_pass(error: BaseException) -> bool:
    """Whether trying again may help by itself: a server or a storage that did not answer.

    Not where a place cannot be what it should: a directory that is a file, or below one.
    """
    if isinstance(error, MetastoreUnavailableError | RetryableBackendError):
        return True
    cause = error.__cause__
    if not isinstance(error, HmsBridgeError) or not isinstance(cause, OSError):
        return False
    return cause.errno not in _LASTING
