"""What one process holds while it works; whoever lost it changes nothing more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from changemanager.clock import Clock
from changemanager.errors import LeaseLostError
from changemanager.manifest import LEASE_MS, ArchiveLeases

_RENEW_AFTER_MS = LEASE_MS // 20


def never_lost() -> None:
    """The check of work at which nobody else can be."""


def _nobody(_owner: str) -> bool:
    return False


class WorkLease:
    """At most one lease at a time, each with an owner that nobody else has. Not for threads.

    `new_id` gives such owners; `is_dead` says of which it is known that they are dead: their leases
    need not run out.
    """

    def __init__(
        self,
        leases: ArchiveLeases,
        clock: Clock,
        new_id: Callable[[], str],
        is_dead: Callable[[str], bool] = _nobody,
    ) -> None:
        self._is_dead = is_dead
        self._leases = leases
        self._clock = clock
        self._new_id = new_id
        self._held: tuple[str, str] | None = None
        self._heard_ms = 0

    @contextmanager
    def over(self, name: str) -> Iterator[bool]:
        """Hold a lease for a block; False if another one holds it.

        A process that dies leaves it to run out.
        """
        owner, now_ms = self._new_id(), self._clock.now_ms()
        if not self._take(name, owner, now_ms):
            yield False
            return
        self._held, self._heard_ms = (name, owner), now_ms
        try:
            yield True
        except (Exception, KeyboardInterrupt):
            self._end(name, owner)
            raise
        else:
            self._end(name, owner)

    def _take(self, name: str, owner: str, now_ms: int) -> bool:
        if self._leases.take_lease(name, owner, now_ms):
            return True
        other = self._leases.lease_owner(name)
        if other is None or not self._is_dead(other):
            return False
        self._leases.end_lease(name, other)
        return self._leases.take_lease(name, owner, now_ms)

    def _end(self, name: str, owner: str) -> None:
        self._held = None
        self._leases.end_lease(name, owner)

    def require(self) -> None:
        """To be called before each step that changes something. Raises LeaseLostError.

        Cheap: the store is asked only when some time has gone by. Without a lease, nothing.
        """
        now_ms = self._clock.now_ms()
        if self._held is None or 0 <= now_ms - self._heard_ms <= _RENEW_AFTER_MS:
            return
        name, owner = self._held
        if not self._leases.renew_lease(name, owner, now_ms):
            raise LeaseLostError(
                f"this process was silent for too long, and another one took over ({name}); it "
                "changed nothing more"
            )
        self._heard_ms = now_ms
