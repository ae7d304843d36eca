"""One load, or dump, of a database at a time: a lease, held as a lock in its metastore.

The lock has no transaction and stands on a name that no table has, so it works on every metastore,
over thrift too, and no reader or writer of the database waits for it: an EXCLUSIVE lock of a table
and a SHARED_READ lock of its database let each other pass (golden lock matrix). Hive asks of a lock
neither database nor table.

Two that run at once are distinguished from one that was killed by the heartbeat. While the holder
gives signs of life, the other is refused. A holder that gave none for ``dead_after_seconds`` is
dead; whoever waits takes its lock away and goes on, as the metastore would after hive.txn.timeout.
So a load that is started again after a kill waits at most that long, and nobody has to repair. On
the machine of the killed one its process is asked for, and nobody waits for it but some beats.

Clocks may be set while the holder lives. So nobody is dead before the one who waits has watched it
for some beats, by a clock that goes forward only, and heard none. What the metastore's clock says
can only make that shorter than ``dead_after_seconds``, never take its place.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Protocol

from changemanager.clock import span_text
from hms_bridge.clock import Clock, steady_ms
from hms_bridge.errors import BusyError, HmsBridgeError, NoSuchLockError, ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.ids import NO_TXN, LockId
from hms_bridge.model.lock import (
    DataOperation,
    LockComponent,
    LockFilter,
    LockInfo,
    LockLevel,
    LockRequest,
    LockResponse,
    LockState,
    LockType,
)
from hms_bridge.model.target import Scope
from hms_bridge.session.heartbeat import Heartbeat, heartbeat_interval_seconds
from hms_bridge.session.holding_process import has_ended, with_own_process, without_mark

_LOG = logging.getLogger(__name__)

_PROGRAM = "hms-bridge "
_VERB = re.compile(rf"{_PROGRAM}(repl [a-z ]+)(?:,|$)")
_BEATS_MISSED_MIN = 3
_FIRST_PAUSE_SECONDS = 0.5


class LeaseKind(Enum):
    """What is done alone; the value stands in SHOW LOCKS for the table (none has a hyphen)."""

    LOAD = "repl-load"
    DUMP = "repl-dump"
    RUN = "repl-run"
    DRILL = "repl-drill"
    REPAIR = "repl-repair"

    @property
    def verb(self) -> str:
        """For messages: ``repl load``."""
        return self.value.replace("-", " ")


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseRules:
    """``dead_after_seconds``: as long as the metastore's hive.txn.timeout, or longer.

    ``heartbeat_seconds``: at most; it is less where the metastore's hive.txn.timeout is short.
    """

    dead_after_seconds: float = 300.0
    heartbeat_seconds: float = 10.0

    @property
    def patience_ms(self) -> int:
        """How long a holder may be silent; never so short that one late heartbeat counts."""
        shortest = _BEATS_MISSED_MIN * self.heartbeat_seconds
        return int(1000 * max(self.dead_after_seconds, shortest))

    @property
    def watch_ms(self) -> int:
        """How long a holder is watched at least, however long ago its last heartbeat seems to be:
        beats that a living one would give."""
        return int(1000 * _BEATS_MISSED_MIN * self.heartbeat_seconds)


class LeaseHolder(Protocol):
    """Who does something alone."""

    @property
    def user(self) -> str:
        """For SHOW LOCKS."""
        ...

    @property
    def host(self) -> str:
        """For SHOW LOCKS."""
        ...

    @property
    def lease(self) -> LeaseRules:
        """When another one at work counts as dead."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseRequest:
    """What to do alone on which database (RUN: for which policy), and who does it. ``on_waiting``
    is given why it waits. ``doing``: the verb that was typed, if it is not that of ``kind``: a
    promotion is alone with a policy as its cycles are."""

    kind: LeaseKind
    database_name: str
    user: str
    host: str
    rules: LeaseRules
    on_waiting: Callable[[str], None]
    doing: str | None = None

    @classmethod
    def of(
        cls,
        holder: LeaseHolder,
        kind: LeaseKind,
        name: str,
        on_waiting: Callable[[str], None],
        doing: str | None = None,
    ) -> LeaseRequest:
        """What a holder asks for."""
        return cls(
            kind=kind,
            database_name=name,
            user=holder.user,
            host=holder.host,
            rules=holder.lease,
            on_waiting=on_waiting,
            doing=doing,
        )

    @property
    def verb(self) -> str:
        """What this one does, for messages."""
        return self.doing or self.kind.verb

    @property
    def scope(self) -> Scope:
        """What is locked. Metastores keep names of locks in lower case, but compare what a listing
        asks for as it is (Hive's ShowLocksHandler)."""
        return Scope(self.database_name.lower(), self.kind.value)

    @property
    def name(self) -> str:
        """What it is about, for messages: ``database sales``."""
        kind = "policy" if self.kind is LeaseKind.RUN else "database"
        return f"{kind} {self.database_name}"


class Lease:
    """A held lease. ``check`` before everything that another one's work would contradict."""

    def __init__(self, heartbeat: Heartbeat, clock: Clock, request: LeaseRequest) -> None:
        self._heartbeat = heartbeat
        self._clock = clock
        self._request = request
        self._interval_ms = int(1000 * request.rules.heartbeat_seconds)
        self._beat_ms = self._now()

    def check(self) -> None:
        """Raises ReplError if the lease is lost, so that another one may be at work.

        Asks the metastore itself once in a heartbeat: in a process that was suspended the thread
        that beats has not yet noticed what happened meanwhile.
        """
        now_ms = self._now()
        try:
            if self._is_just_after_beat(now_ms):
                self._heartbeat.raise_if_lost()
            else:
                self._heartbeat.check()
                self._beat_ms = now_ms
        except NoSuchLockError as error:
            verb, name = self._request.verb, self._request.name
            raise ReplError(
                f"this {verb} of {name} was silent for so long that it counts as "
                f"dead ({error}), and another one may be at work: stopped before the next step. "
                f"What was done stays; {verb} again, and see that hive.txn.timeout of the "
                "metastore is not too short"
            ) from error

    def _now(self) -> tuple[int, int]:
        """By two clocks: the time can be set back, and the steady one may stand still while the
        machine sleeps."""
        return self._clock.now_ms(), steady_ms(self._clock)

    def _is_just_after_beat(self, now_ms: tuple[int, int]) -> bool:
        pairs = zip(now_ms, self._beat_ms, strict=True)
        return all(0 <= now - beat < self._interval_ms for now, beat in pairs)


@contextmanager
def held_lease(metastore: Metastore, clock: Clock, request: LeaseRequest) -> Iterator[Lease]:
    """Hold the lease for the length of a block.

    Raises ReplError if another one is at work, or a lock covers the whole database.
    """
    beats = min(request.rules.heartbeat_seconds, heartbeat_interval_seconds(metastore))
    request = replace(request, rules=replace(request.rules, heartbeat_seconds=beats))
    lock_id = _Acquisition(metastore, clock, request).acquire()
    try:
        with Heartbeat(metastore, NO_TXN, beats, lock_id) as heartbeat:
            yield Lease(heartbeat, clock, request)
    finally:
        _give_back(metastore, lock_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseSeen:
    """A lease that somebody has. ``who`` and ``doing``, the verb, are for people; ``has_ended``:
    its process was one of this machine, and is gone. Whether any other holder lives shows only to
    who waits for it."""

    who: str
    doing: str
    has_ended: bool


def lease_seen(metastore: Metastore, kind: LeaseKind, name: str) -> LeaseSeen | None:
    """Who has a lease on a database or policy now; None if nobody. Changes nothing."""
    scope = Scope(name.lower(), kind.value)
    holder = min(
        metastore.show_locks(LockFilter(scope=scope)),
        key=lambda lock: lock.lock_id,
        default=None,
    )
    if holder is None:
        return None
    return LeaseSeen(
        who=_who(holder), doing=_doing(holder, kind), has_ended=has_ended(holder.agent)
    )


@dataclass(kw_only=True, slots=True)
class _Watch:
    """How long a holder was watched without a heartbeat. Times are of the steady clock."""

    heartbeat_ms: int
    """Its last one when it was seen first, by the metastore's clock."""
    looked_at_ms: int
    watched_ms: int = 0

    def look(self, now_ms: int, longest_ms: int) -> None:
        """Count what passed since the last look, as ``longest_ms`` if it was longer: who did not
        come to look, because the metastore did not answer or the process stood still, has not
        watched, and the holder may not have come to beat either."""
        self.watched_ms += min(now_ms - self.looked_at_ms, longest_ms)
        self.looked_at_ms = now_ms


class _Acquisition:
    """The way to a lease: wait for one who may be dead, never for one who lives."""

    def __init__(self, metastore: Metastore, clock: Clock, request: LeaseRequest) -> None:
        self._metastore = metastore
        self._clock = clock
        self._request = request
        self._rules = request.rules
        self._watches: dict[LockId, _Watch] = {}

    def acquire(self) -> LockId:
        """Raises ReplError."""
        answer = self._metastore.lock(self._lock_request())
        lock_id = answer.lock_id
        try:
            has_broken, pause_seconds = False, _FIRST_PAUSE_SECONDS
            while answer.state is LockState.WAITING:
                has_broken |= self._take_from_dead(lock_id)
                self._clock.sleep_seconds(pause_seconds)
                pause_seconds = min(2 * pause_seconds, self._rules.heartbeat_seconds)
                answer = self._look_again(lock_id)
            if answer.state is not LockState.ACQUIRED:
                raise ReplError(
                    f"the metastore does not let this {self._request.verb} be alone: lock "
                    f"{lock_id} is {answer.state.name} ({answer.error_message}); try again"
                )
            if has_broken:
                # Had it only been suspended, it finds out at its next heartbeat and stops.
                self._clock.sleep_seconds(2 * self._rules.heartbeat_seconds)
        except BaseException:
            _give_back(self._metastore, lock_id)
            raise
        return lock_id

    def _look_again(self, lock_id: LockId) -> LockResponse:
        try:
            return self._metastore.check_lock(lock_id)
        except NoSuchLockError as error:
            verb = self._request.verb
            raise ReplError(
                f"this {verb} of {self._request.name} waited in vain: the metastore took its "
                f"request for dead ({error}), as where its clock was set forward. Nothing was "
                f"changed; {verb} again"
            ) from error

    def _lock_request(self) -> LockRequest:
        request = self._request
        component = LockComponent(
            type=LockType.EXCLUSIVE,
            level=LockLevel.TABLE,
            scope=request.scope,
            operation=DataOperation.NO_TXN,
            is_transactional=False,
        )
        return LockRequest(
            components=(component,),
            user=request.user,
            host=request.host,
            agent=with_own_process(f"{_PROGRAM}{request.verb}"),
        )

    def _take_from_dead(self, lock_id: LockId) -> bool:
        """Whether the lock of a dead holder was taken away. Raises ReplError for a living one."""
        wanted = LockFilter(scope=Scope(self._request.scope.database))
        listed = self._metastore.show_locks(wanted)
        own = next((lock for lock in listed if lock.lock_id == lock_id), None)
        before = [lock for lock in listed if lock.lock_id < lock_id and self._is_in_the_way(lock)]
        if own is None or not before:
            return False
        holder = min(before, key=lambda lock: lock.lock_id)
        if holder.scope.table != self._request.kind.value or holder.txn_id:
            raise ReplError(
                f"{self._request.name} is locked as a whole: {_who(holder)}. "
                f"{self._request.verb} again when that is over (see hms-bridge locks)"
            )
        return self._take_if_dead(holder, own.last_heartbeat_ms - holder.last_heartbeat_ms)

    def _take_if_dead(self, holder: LockInfo, silent_ms: int) -> bool:
        """``silent_ms``: since its last heartbeat by the metastore's clock, which may have been
        set meanwhile."""
        rules, now_ms = self._rules, steady_ms(self._clock)
        if has_ended(holder.agent):
            self._request.on_waiting(self._killed(holder))
            self._metastore.unlock(holder.lock_id)
            return True
        is_new = holder.lock_id not in self._watches
        new = _Watch(heartbeat_ms=holder.last_heartbeat_ms, looked_at_ms=now_ms)
        watch = self._watches.setdefault(holder.lock_id, new)
        if holder.last_heartbeat_ms != watch.heartbeat_ms:
            raise self._busy(holder)
        watch.look(now_ms, int(1000 * rules.heartbeat_seconds))
        enough_ms = rules.watch_ms if silent_ms >= rules.patience_ms else rules.patience_ms
        if watch.watched_ms < enough_ms:
            if is_new:
                self._report_wait(holder, silent_ms)
            return False
        silence = span_text(max(silent_ms, enough_ms))
        _LOG.warning("%s is dead: no sign of life for %s", _who(holder), silence)
        self._metastore.unlock(holder.lock_id)
        return True

    def _is_in_the_way(self, other: LockInfo) -> bool:
        if other.scope.table is None:
            return other.type is not LockType.SHARED_READ
        return other.scope.table == self._request.kind.value

    def _busy(self, holder: LockInfo) -> BusyError:
        verb = _doing(holder, self._request.kind)
        return BusyError(
            f"another {verb} of {self._request.name} is at work: "
            f"{_who(holder)}. Let it end, then type this again; if it must not go on, stop that "
            "process"
        )

    def _report_wait(self, holder: LockInfo, silent_ms: int) -> None:
        verb = _doing(holder, self._request.kind)
        left_ms = max(self._rules.patience_ms - max(silent_ms, 0), self._rules.watch_ms)
        # One pause between two looks, and the two heartbeats after.
        latest_ms = left_ms + int(3000 * self._rules.heartbeat_seconds)
        silence, latest = span_text(max(silent_ms, 0)), span_text(-(-latest_ms // 1000) * 1000)
        self._request.on_waiting(
            f"another {verb} of {self._request.name} began and did not end: "
            f"{_who(holder)}, no sign of life for {silence}. Waiting: if it lives, "
            f"this one is refused; if it was killed, this one goes on in {latest} at the latest. "
            f"Ctrl-C ends the waiting, and nothing is changed; typed on {holder.host}, this needs "
            "no waiting for one that was killed there"
        )

    def _killed(self, holder: LockInfo) -> str:
        verb = _doing(holder, self._request.kind)
        beats_ms = int(2000 * self._rules.heartbeat_seconds)
        return (
            f"another {verb} of {self._request.name} was killed: {_who(holder)}, and that process "
            f"is gone. This one goes on in {span_text(beats_ms)}"
        )


def _doing(holder: LockInfo, kind: LeaseKind) -> str:
    """The verb that somebody typed, by what stands in its lock."""
    match = _VERB.match(holder.agent or "")
    return kind.verb if match is None else match[1]


def _who(lock: LockInfo) -> str:
    since = lock.acquired_at_ms
    moment = (
        ""
        if not since
        else f" since {datetime.fromtimestamp(since // 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    )
    transaction = f" of transaction {lock.txn_id}" if lock.txn_id else ""
    agent = f" ({without_mark(lock.agent)})" if lock.agent else ""
    return (
        f"{lock.user}@{lock.host}{agent} holds {lock.type.name} lock {lock.lock_id}"
        f"{transaction}{moment}"
    )


def _give_back(metastore: Metastore, lock_id: LockId) -> None:
    """What was done is done: a lock that cannot be given back ends by itself."""
    try:
        metastore.unlock(lock_id)
    except HmsBridgeError as error:
        _LOG.warning("lock %d was not given back and will time out: %s", lock_id, error)
