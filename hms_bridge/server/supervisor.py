"""The process that does nothing but keep others alive.

It has no threads, no database and no clients, so that nothing in it can hang, and it may fork at
any time. A process that ends is started again, after a wait, and the log says so. The first start
is another thing: what ends then has said why, and a server that cannot start ends as a whole.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from typing import NoReturn

from hms_bridge.server.process_plan import restart_after
from hms_bridge.server.stop_requests import STOPPING, StopRequests

_LOG = logging.getLogger(__name__)
_FORK = get_context("fork")
_POLL_SECONDS = 0.5
_PIPE_ENDS = 4
_STOP_SECONDS = 75.0
"""How long processes have to stop: longer than the longest that one of them waits itself."""
_KILLED_SECONDS = 10.0


class Life:
    """What a process of a supervisor's knows of it. A signal asks it to stop, any number of times
    (a service manager sends its own to all processes), and so does the end of the supervisor,
    whatever ended it. Ctrl-C, which a terminal sends to all, is the supervisor's affair."""

    def __init__(self, lifeline: int, ready: Connection) -> None:
        self._lifeline = lifeline
        self._ready = ready
        self._requests = StopRequests(lambda: None, (signal.SIGTERM,))

    def listen(self) -> None:
        """Hear signals from now on; again after others took them over."""
        self._requests.listen()

    def begin(self) -> None:
        """Say to the supervisor that the work has begun, and wait until it shall end."""
        with suppress(OSError):  # it is gone, which is seen next
            self._ready.send_bytes(b"ready")
        if not self._requests.wait(also=[self._lifeline]):
            _LOG.warning("the server's first process is gone: this one stops, too")


@dataclass(frozen=True, slots=True)
class Member:
    """A process to keep alive. ``stage``: those of a lower one start first, and stop last. ``run``
    is called in it, and calls ``begin``. ``on_end`` is called in the supervisor when it has ended,
    and shall be started again."""

    name: str
    stage: int
    run: Callable[[Life], None]
    on_end: Callable[[], None]


class _Kept:
    """A member, and the process that it is now."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.process: ForkProcess | None = None
        self.ready: Connection | None = None
        self.is_ready = False
        self.started_at = 0.0
        self.failures = 0
        self.due_at = 0.0

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.is_alive()

    def wait(self, now: float) -> float:
        """Until when it is not started again; how long that is, in seconds."""
        restart = restart_after(self.failures, now - self.started_at)
        self.failures, self.due_at = restart.failures, now + restart.wait_seconds
        return restart.wait_seconds

    def ended(self) -> str:
        """How, for people; the process is no more."""
        assert self.process is not None
        self.process.join()
        code = self.process.exitcode
        self.process.close()
        self.process = None
        if self.ready is not None:
            self.ready.close()
        return f"by signal {-code}" if code is not None and code < 0 else f"with code {code}"


class Supervisor:
    """Keeps processes alive until it is asked to stop. ``enter``: what a process of its own does
    with its work, and ends."""

    def __init__(
        self, members: Sequence[Member], enter: Callable[[Callable[[], object]], NoReturn]
    ) -> None:
        self._kept = [_Kept(member) for member in sorted(members, key=lambda m: m.stage)]
        self._enter = enter
        self._requests = StopRequests(self._stop_at_once)
        self._lifeline, self._life = os.pipe()

    def run(self, on_ready: Callable[[], None], on_stop: Callable[[], None]) -> None:
        """Until it is asked to stop: ``on_stop`` is called before others are. Raises SystemExit if
        a process cannot start at first."""
        self._requests.listen()
        try:
            self._start_all()
            if not self._requests.is_asked:
                on_ready()
            while not self._requests.wait(_POLL_SECONDS, self._sentinels()):
                self._look_after_all()
        finally:
            on_stop()
            self._stop_all()

    def _start_all(self) -> None:
        for _, group in groupby(self._kept, key=lambda kept: kept.member.stage):
            stage = list(group)
            for kept in stage:
                self._start(kept)
            while not all(kept.is_ready for kept in stage):
                if self._requests.wait(_POLL_SECONDS, self._sentinels()):
                    return
                for kept in stage:
                    self._note_ready(kept)
                    if not kept.is_alive:
                        self._give_up(kept)

    def _give_up(self, kept: _Kept) -> NoReturn:
        assert kept.process is not None
        code = kept.process.exitcode
        how = kept.ended()
        if code != 1:  # else it has said why
            _LOG.error("%s ended %s before it was ready", kept.member.name, how)
        sys.exit(1)

    def _start(self, kept: _Kept) -> None:
        kept.started_at = time.monotonic()
        ready, begun = _FORK.Pipe(duplex=False)
        name = kept.member.name
        process = _FORK.Process(target=self._be, args=(kept.member, begun), name=name)
        # Until the new process has handlers of its own, it has those of this one.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        try:
            with _no_pipe_left_open():
                process.start()
            kept.process, kept.ready, kept.is_ready = process, ready, False
        except OSError:
            ready.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            begun.close()

    def _be(self, member: Member, ready: Connection) -> None:
        os.close(self._life)
        life = Life(self._lifeline, ready)
        life.listen()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
        self._enter(lambda: member.run(life))

    def _sentinels(self) -> list[int]:
        processes = [kept.process.sentinel for kept in self._kept if kept.process is not None]
        waiting = [
            kept.ready.fileno()
            for kept in self._kept
            if kept.process is not None and kept.ready is not None and not kept.is_ready
        ]
        return processes + waiting

    def _note_ready(self, kept: _Kept) -> None:
        if kept.is_ready or kept.process is None or kept.ready is None or not kept.ready.poll():
            return
        with suppress(EOFError):
            kept.ready.recv_bytes()
            kept.is_ready = True
            _LOG.info("%s is there, as process %d", kept.member.name, kept.process.pid)

    def _look_after_all(self) -> None:
        now = time.monotonic()
        for kept in self._kept:
            self._note_ready(kept)
            if kept.process is None and now >= kept.due_at:
                self._start_again(kept, now)
            elif kept.process is not None and not kept.is_alive:
                self._note_end(kept, now)

    def _start_again(self, kept: _Kept, now: float) -> None:
        try:
            self._start(kept)
        except OSError as error:  # no memory for another process: there may be some later
            seconds = kept.wait(now)
            _LOG.error("%s cannot start: %s; again in %g s", kept.member.name, error, seconds)

    def _note_end(self, kept: _Kept, now: float) -> None:
        seconds = kept.wait(now)
        name, how = kept.member.name, kept.ended()
        _LOG.error("%s ended %s; it is started again in %g s", name, how, seconds)
        kept.member.on_end()

    def _stop_all(self) -> None:
        """Those that answer clients first: what they did is for others to say to hooks."""
        for _, group in groupby(reversed(self._kept), key=lambda kept: kept.member.stage):
            living = [kept for kept in group if kept.is_alive]
            for kept in living:
                _signal(kept, signal.SIGTERM)
            deadline = time.monotonic() + _STOP_SECONDS
            for kept in living:
                assert kept.process is not None
                kept.process.join(max(0.0, deadline - time.monotonic()))
                if kept.is_alive:
                    _LOG.error("%s did not stop in time and is killed", kept.member.name)
                    _signal(kept, signal.SIGKILL)
                    kept.process.join(_KILLED_SECONDS)  # a disk that hangs keeps it for longer

    def _stop_at_once(self) -> None:
        for kept in self._kept:
            _signal(kept, signal.SIGKILL)
        os._exit(1)


@contextmanager
def _no_pipe_left_open() -> Iterator[None]:
    """A fork that fails leaves the pipes open that were made for it: so many tries, and this
    process has no descriptor left for one that would do. It has one thread, and gets the lowest
    numbers that are free: those that it has here for a moment."""
    numbers = [os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) for _ in range(_PIPE_ENDS)]
    for number in numbers:
        os.close(number)
    try:
        yield
    except OSError:
        for number in numbers:
            with suppress(OSError):
                os.close(number)
        raise


def _signal(kept: _Kept, number: signal.Signals) -> None:
    """Only to a process that was not waited for yet: its number is nobody else's."""
    with suppress(ProcessLookupError, ValueError):
        if kept.process is not None and kept.process.pid is not None and kept.is_alive:
            os.kill(kept.process.pid, number)
