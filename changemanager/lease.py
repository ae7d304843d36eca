"""What one process holds while it works; whoever lost it changes nothing more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
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
    """Leases that are taken and given back together, with an owner that nobody else has. Not for
    threads.

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
        self._held: tuple[frozenset[str], str] | None = None
        self._heard_ms = 0

    @contextmanager
    def over(self, name: str) -> Iterator[bool]:
        """Hold a lease for a block; False if another one holds it.

        A process that dies leaves it to run out.
        """
        with self.over_each([name]) as held:
            yield name in held

    @contextmanager
    def over_each(self, names: Collection[str]) -> Iterator[frozenset[str]]:
        """Hold leases for a block, all but those that others hold; which."""
        owner, now_ms = self._new_id(), self._clock.now_ms()
        held = _take(self._leases, names, owner, now_ms, self._is_dead)
        if not held:
            yield held
            return
        self._held, self._heard_ms = (held, owner), now_ms
        try:
            yield held
        except (Exception, KeyboardInterrupt):
            self._end(held, owner)
            raise
        else:
            self._end(held, owner)

    def _end(self, names: Collection[str], owner: str) -> None:
        self._held = None
        self._leases.end_leases(names, owner)

    def require(self) -> None:
        """To be called before each step that changes something. Raises LeaseLostError.

        Cheap: the store is asked only when some time has gone by. Without a lease, nothing.
        """
        now_ms = self._clock.now_ms()
        if self._held is None or 0 <= now_ms - self._heard_ms <= _RENEW_AFTER_MS:
            return
        names, owner = self._held
        for name in sorted(names):
            if not self._leases.renew_lease(name, owner, now_ms):
                raise LeaseLostError(
                    f"this process was silent for too long, and another one took over ({name}); "
                    "it changed nothing more"
                )
        self._heard_ms = now_ms


class StandingLease:
    """One lease on what has to be done again and again, by one of several processes: whoever has
    it keeps it from one time to the next, until he stops. One that dies, or is silent for
    `LEASE_MS`, is followed by another.

    `owner` is a text that nobody else has; `is_dead` as for :class:`WorkLease`.
    """

    def __init__(
        self,
        leases: ArchiveLeases,
        clock: Clock,
        name: str,
        owner: str,
        is_dead: Callable[[str], bool] = _nobody,
    ) -> None:
        self._leases = leases
        self._clock = clock
        self._name = name
        self._owner = owner
        self._is_dead = is_dead

    def keep(self) -> bool:
        """Take it, or give a sign of life; False if another one has it."""
        now_ms = self._clock.now_ms()
        return bool(_take(self._leases, [self._name], self._owner, now_ms, self._is_dead))

    def give_back(self) -> None:
        """To whoever asks next; no effect on another's."""
        self._leases.end_leases([self._name], self._owner)


def _take(
    leases: ArchiveLeases,
    names: Collection[str],
    owner: str,
    now_ms: int,
    is_dead: Callable[[str], bool],
) -> frozenset[str]:
    """As :meth:`ArchiveLeases.take_leases`; those of the dead do not have to run out."""
    taken = leases.take_leases(names, owner, now_ms)
    of_the_dead = []
    for name in sorted(frozenset(names) - taken):
        other = leases.lease_owner(name)
        if other is not None and is_dead(other):
            leases.end_leases([name], other)
            of_the_dead.append(name)
    if not of_the_dead:
        return taken
    return taken | leases.take_leases(of_the_dead, owner, now_ms)
