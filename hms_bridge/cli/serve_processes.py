"""``hms-bridge serve --processes``: several that answer clients, one for all else, and this one.

In one process of Python one thread computes at a time. So each of several has a part of the
clients, with connections to the database of its own; they know of each other what stands in the
database, and nothing besides. What is to be done once for all of them (housekeeping, compaction,
cleaning, hooks that hear after a commit, the page of metrics) is done in a process that no client
waits for. This one, which started the others, starts again those that end.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import NoReturn

from hms_bridge.cli.garbage import spare_what_is_loaded
from hms_bridge.cli.output import say
from hms_bridge.cli.serve_daemons import start_daemons
from hms_bridge.cli.serve_metrics import SharedMetrics, metrics_served
from hms_bridge.cli.serve_parts import (
    ServeRequest,
    counted_calls,
    make_server,
    prepare_store,
    say_ready,
)
from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import Settings
from hms_bridge.connect import ProcessPlace, connected_locally, require_shareable
from hms_bridge.errors import ConfigError
from hms_bridge.server.door import Entrance, listen
from hms_bridge.server.peers import Peers
from hms_bridge.server.process_plan import part_of_limits, part_of_pool
from hms_bridge.server.supervisor import Life, Member, Supervisor

_BACKGROUND = "the background process"
_FIRST, _THEN = 0, 1


@dataclass(frozen=True, slots=True)
class _Shared:
    """What was there before the processes were, and belongs to all of them."""

    request: ServeRequest
    entrances: tuple[Entrance, ...]
    metrics: SharedMetrics

    @property
    def settings(self) -> Settings:
        """Those of one process."""
        whole = self.request.settings
        return replace(whole, server=part_of_limits(whole.server, len(self.entrances)))

    def place(self, *, tells_hooks: bool) -> ProcessPlace:
        """Of a process."""
        pool_size = part_of_pool(ProcessPlace().pool_size, len(self.entrances))
        return ProcessPlace(
            pool_size=pool_size, tells_hooks=tells_hooks, processes=len(self.entrances) + 1
        )


def serve_in_processes(
    request: ServeRequest, processes: int, enter: Callable[[Callable[[], object]], NoReturn]
) -> None:
    """Serve until it is asked to stop; ``enter`` is how a process that is forked does its work and
    ends. Raises ConfigError for ports and databases that cannot be used so."""
    require_shareable(request.metastore_url)
    if not hasattr(os, "fork"):
        raise ConfigError("several processes need a system that forks them; serve by one process")
    if request.metastore_url.startswith("sqlite:"):
        say(
            "SQLite has one writer at a time: several processes answer more questions at once, and "
            "write no more than one; a database server has no such limit"
        )
    with ExitStack() as stack:
        listener = stack.enter_context(listen(request.host, request.port))
        shared = _Shared(
            request, _entrances(listener, processes), _shared_metrics(request, processes)
        )
        if shared.metrics.listener is not None:
            stack.enter_context(shared.metrics.listener)
        port = listener.getsockname()[1]
        supervisor = Supervisor(_members(shared), enter)
        # From a stop on, clients come in as long as a process is there that answers them.
        supervisor.run(partial(say_ready, request, port), on_stop=listener.close)
        say("stopping")


def _entrances(listener: socket.socket, processes: int) -> tuple[Entrance, ...]:
    peers, since_seconds = Peers(processes), SystemClock().now_ms() // 1000
    return tuple(Entrance(listener, peers, n, since_seconds) for n in range(processes))


def _shared_metrics(request: ServeRequest, processes: int) -> SharedMetrics:
    calls = counted_calls(request, processes)
    metrics = request.settings.metrics
    return SharedMetrics.listening(metrics, request.metrics_port, calls, is_alone=False)


def _members(shared: _Shared) -> list[Member]:
    metrics = shared.metrics
    members = [
        Member(
            name=_BACKGROUND,
            stage=_FIRST,
            run=partial(_work_in_background, shared),
            on_end=partial(metrics.note_restart, "background"),
        )
    ]
    for entrance in shared.entrances:

        def on_end(entrance: Entrance = entrance) -> None:
            entrance.peers.leave(entrance.number)
            metrics.note_restart("clients")

        members.append(
            Member(
                name=f"client process {entrance.number + 1}",
                stage=_THEN,
                run=partial(_answer_clients, shared, entrance),
                on_end=on_end,
            )
        )
    return members


def _work_in_background(shared: _Shared, life: Life) -> None:
    for entrance in shared.entrances:
        entrance.listener.close()  # else clients wait there as long as this lives
    request, place = shared.request, shared.place(tells_hooks=True)
    with ExitStack() as stack:
        store = stack.enter_context(
            connected_locally(request.metastore_url, shared.settings, place=place)
        )
        prepare_store(store)
        start_daemons(store, stack, request.daemons, request.spark)
        stack.enter_context(metrics_served(store, shared.metrics))
        life.listen()  # Spark's session takes Ctrl-C for itself
        spare_what_is_loaded()
        life.begin()


def _answer_clients(shared: _Shared, entrance: Entrance, life: Life) -> None:
    if shared.metrics.listener is not None:
        shared.metrics.listener.close()
    request, place = shared.request, shared.place(tells_hooks=False)
    with ExitStack() as stack:
        store = stack.enter_context(
            connected_locally(request.metastore_url, shared.settings, place=place)
        )
        calls = shared.metrics.calls
        watch = None if calls is None else calls.counter(entrance.number)
        server = make_server(request, store, watch, entrance)
        server.start()
        stack.callback(server.stop)
        spare_what_is_loaded()
        life.begin()
