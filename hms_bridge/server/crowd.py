"""Connections that do nothing but short calls, such as many do at once: one thread reads them all.

Each connection has a thread of its own, which can wait for as long as it likes. A client that opens
and commits transactions all the time does not need it: its calls are done together with those of
others anyway (:mod:`hms_bridge.gathering`), and to wake a thread for its part of them takes longer
than the part does. So that thread sleeps, and one reads the messages of all of them, has their
calls done together, and sends the answers.

It never waits for a client, nor for the database but with what is done together: alone only where
a call that has done something has more to do. What it cannot do at once is the sleeping thread's:
any other call, half a message, what is no message at all, an answer that its client has no room
for. If it is held up itself for a few seconds, who has no call under way goes its own way.

Without epoll, which Linux has, each keeps to its own thread.
"""

from __future__ import annotations

import logging
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from thrift.transport.TTransport import TTransportException

from hms_bridge.gathering import Gathering, LeftGatheringError
from hms_bridge.server.identity import CallerIdentity
from hms_bridge.server.turns import Turns
from hms_bridge.wire.messages import MessageStream

_log = logging.getLogger(__name__)

STREAK = 4
"""After so many calls in a row that can be done together a connection joins the crowd."""

STREAK_OF_LONERS = 1024
"""The same, after a call that is not even tried with others: where one is not, no next one is."""

PATIENCE_SECONDS = 2.0
"""How long the crowd's thread may take for what lies between two looks at its clients."""

_HAS_EPOLL = hasattr(select, "epoll")
_EVENTS = select.EPOLLIN | select.EPOLLET | select.EPOLLRDHUP if _HAS_EPOLL else 0

Answering = Callable[[], Iterable[bytes]]
"""A call that has been read, and is made now; gives its encoded answer. Raises LeftGatheringError
if it cannot be made here."""


class Guest:
    """A connection. While it is here, all that belongs to it is for the crowd's thread alone."""

    def __init__(
        self,
        client: socket.socket,
        stream: MessageStream,
        turns: Turns,
        identity: CallerIdentity,
    ) -> None:
        self.identity = identity
        """Whose calls come on it: given along with each of them."""
        self.stream = stream
        self.turns = turns
        self.client = client
        self.number = -1
        """By which the system knows it, while it is here."""
        self.unsent = b""
        """Of its last answer, what its client had no room for."""
        self.calls_to_join = STREAK
        """How many more that can be done together, until it joins."""
        self.is_busy = False
        """Whether a call of it is being made."""
        self.has_more = False
        """Whether something may have come after the message that was read."""
        self.is_lost = False
        """Whether nobody knows what its client has heard."""
        self.called = threading.Lock()
        """Held until its own thread is to go on."""
        self.called.acquire()

    def count(self, *, is_gathered: bool) -> None:
        """A call was made on its own thread; ``is_gathered``: it might have been done here."""
        if is_gathered:
            self.calls_to_join -= 1
        else:
            self.calls_to_join = max(self.calls_to_join, STREAK)


class Crowd:
    """Those who are here, and the thread that reads them, which begins with the first of them.
    ``read`` reads a call that has arrived, without waiting; None where it is not for here."""

    def __init__(self, read: Callable[[Guest], Answering | None]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._guests: dict[int, Guest] = {}
        self._thread: threading.Thread | None = None
        self._is_watched = False
        self._over = threading.Event()
        self._is_stuck = False
        self._busy_since: float | None = None
        self._company_until = 0.0

    def join(self, guest: Guest) -> None:
        """Let the crowd's thread read for a connection, until it is its own thread's turn: to send
        what is left of an answer, and to read. At once, where the crowd takes nobody in.

        Raises TTransportException if the connection has to end.
        """
        with self._lock:
            if self._over.is_set() or self._is_stuck or not _HAS_EPOLL:
                return
            guest.is_busy = guest.has_more = False
            try:
                if self._thread is None:
                    self._start()
                guest.number = guest.client.fileno()
                self._arrivals.register(guest.number, _EVENTS)
            # No threads or descriptors are left, or its client is gone: its own thread will see.
            except (OSError, RuntimeError, ValueError) as error:
                _log.debug("a connection stays with its own thread: %s", error)
                guest.calls_to_join = STREAK_OF_LONERS
                return
            self._guests[guest.number] = guest
        guest.called.acquire()
        if guest.is_lost:
            raise TTransportException(TTransportException.UNKNOWN, "the connection was given up")

    def close(self, seconds: float) -> None:
        """Everybody leaves, once the calls that are under way are made. Waits so long at most."""
        with self._lock:
            self._over.set()
        if self._thread is not None:
            with suppress(OSError):  # it may be over already
                self._rope.send(b".")
            self._thread.join(seconds)

    def _start(self) -> None:
        """Begin anew where an earlier attempt failed. The watch is first: without it nobody would
        be let go whom the crowd's thread holds up."""
        if not self._is_watched:
            threading.Thread(target=self._watch, name="thrift-crowd-watch", daemon=True).start()
            self._is_watched = True
        self._arrivals = select.epoll()
        try:
            self._bell, self._rope = socket.socketpair()
        except OSError:
            self._arrivals.close()
            raise
        self._arrivals.register(self._bell.fileno(), select.EPOLLIN)
        thread = threading.Thread(target=self._run, name="thrift-crowd", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            self._put_away()
            raise
        self._thread = thread

    def _put_away(self) -> None:
        self._arrivals.close()
        self._bell.close()
        self._rope.close()

    def _run(self) -> None:
        gathering = Gathering()
        try:
            while not self._over.is_set():
                self._turn(gathering)
            while len(gathering):
                gathering.take()
        # The border: all go on without it.
        except Exception:
            _log.exception("clients are no longer read by one thread")
        finally:
            with self._lock:
                self._over.set()
            self._empty(with_busy=True)
            self._put_away()
            gathering.close()

    def _turn(self, gathering: Gathering) -> None:
        with self._lock:
            self._busy_since, self._is_stuck = None, False
        seconds = max(0.0, self._company_until - time.monotonic()) if len(gathering) else None
        came = self._arrivals.poll(seconds)
        now = self._busy_since = time.monotonic()
        was_empty = not len(gathering)
        for number, what in came:
            self._come(number, gathering, is_end=bool(what & ~select.EPOLLIN))
        if not len(gathering):
            return
        if was_empty:
            self._company_until = now + gathering.seconds_for_company
        if not gathering.seconds_for_company or time.monotonic() >= self._company_until:
            gathering.take()

    def _come(self, number: int, gathering: Gathering, *, is_end: bool) -> None:
        """Something has arrived. ``is_end``: and nothing will after it, which is said but once."""
        with self._lock:
            guest = self._guests.get(number)
            if guest is None:
                return
            if guest.is_busy:
                guest.has_more = True
                return
            guest.is_busy = True
        try:
            guest.turns.rest()
            guest.has_more = guest.stream.arrive() or is_end
            answering = self._read(guest)
        except BlockingIOError:
            guest.is_busy = False
            return
        # The border, and the way of half a message: its own thread reads the same again, waits for
        # the rest, and says what is wrong with it.
        except Exception:
            answering = None
        if answering is None:
            self._give_back(guest)
        else:
            gathering.begin(partial(self._serve, guest, answering))

    def _serve(self, guest: Guest, answering: Answering) -> None:
        stream = guest.stream
        try:
            message = answering()
            stream.settle()
            guest.turns.rest()
            guest.unsent = stream.send_now(message)
        except LeftGatheringError as left:
            guest.calls_to_join = STREAK if left.has_waited else STREAK_OF_LONERS
            self._give_back(guest)
            return
        # The border: whatever went wrong, the others go on. What its client heard, nobody knows.
        except Exception as error:
            if not isinstance(error, OSError):
                _log.exception("connection closed: a call failed after it was made")
            guest.is_lost = True
            self._give_back(guest)
            return
        if guest.has_more or guest.unsent or stream.has_rest:
            self._give_back(guest)
        else:
            guest.is_busy = False

    def _give_back(self, guest: Guest) -> None:
        with self._lock:
            del self._guests[guest.number]
        self._release(guest)

    def _release(self, guest: Guest) -> None:
        """It is its own thread's again, with what has arrived and is not answered."""
        with suppress(OSError, ValueError):  # its client may have left; all may be over
            self._arrivals.unregister(guest.number)
        guest.stream.rewind()
        guest.calls_to_join = max(guest.calls_to_join, STREAK)
        guest.called.release()

    def _watch(self) -> None:
        while not self._over.wait(PATIENCE_SECONDS / 2):
            with self._lock:
                since = self._busy_since
                self._is_stuck = since is not None and time.monotonic() - since > PATIENCE_SECONDS
            if self._is_stuck:
                self._empty(with_busy=False)

    def _empty(self, *, with_busy: bool) -> None:
        """Give back who has no call under way; with those who have one, whose answer is lost."""
        with self._lock:
            leaving = [guest for guest in self._guests.values() if with_busy or not guest.is_busy]
            for guest in leaving:
                del self._guests[guest.number]
        for guest in leaving:
            guest.is_lost = guest.is_busy
            self._release(guest)
