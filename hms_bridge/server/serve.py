"""The thrift server: one port, one thread for each connection."""

from __future__ import annotations

import errno
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

from hms_bridge.clock import Clock, SystemClock
from hms_bridge.config.settings import ServerSettings
from hms_bridge.errors import ConfigError
from hms_bridge.server.answers import Answer, answered_names, collect_answers
from hms_bridge.server.catalog_calls import CatalogCalls
from hms_bridge.server.compaction_calls import CompactionCalls, NotificationCalls
from hms_bridge.server.connector_calls import ConnectorCalls
from hms_bridge.server.constraint_calls import ConstraintCalls
from hms_bridge.server.database_calls import DatabaseCalls
from hms_bridge.server.dispatch import CallWatch, Dispatcher
from hms_bridge.server.function_calls import FunctionCalls
from hms_bridge.server.mark_calls import MarkCalls
from hms_bridge.server.materialized_view_calls import MaterializedViewCalls
from hms_bridge.server.partition_calls import PartitionCalls
from hms_bridge.server.partition_changes import PartitionChangeCalls
from hms_bridge.server.partition_spec_calls import PartitionSpecCalls
from hms_bridge.server.plan_calls import PlanPartCalls, ResourcePlanCalls
from hms_bridge.server.privilege_calls import PrivilegeCalls
from hms_bridge.server.procedure_calls import ProcedureCalls
from hms_bridge.server.recycle_calls import RecycleCalls
from hms_bridge.server.report_calls import ReportCalls
from hms_bridge.server.role_calls import RoleCalls
from hms_bridge.server.schedule_calls import ScheduleCalls
from hms_bridge.server.served_metastore import ServedMetastore
from hms_bridge.server.service_calls import ServiceCalls
from hms_bridge.server.statistics_calls import StatisticsCalls
from hms_bridge.server.table_calls import TableCalls
from hms_bridge.server.token_calls import TokenCalls
from hms_bridge.server.transaction_calls import LockCalls, TransactionCalls
from hms_bridge.server.turns import Turns

_log = logging.getLogger(__name__)

_CAPABILITY_CHECK = "metastore.client.capability.check"
_DEFAULT_LIMITS = ServerSettings()
_BACKLOG = 128
_STOP_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Given:
    """What answers are made from."""

    metastore: ServedMetastore
    config: Mapping[str, str]
    database_uuid: str | None
    clock: Clock

    @property
    def is_capability_checked(self) -> bool:
        return self.config.get(_CAPABILITY_CHECK, "true").lower() != "false"


_FAMILIES: Mapping[str, tuple[type, ...]] = {
    "Service": (ServiceCalls,),
    "Catalogs and databases": (CatalogCalls, DatabaseCalls),
    "Tables": (TableCalls,),
    "Partitions": (PartitionCalls, PartitionChangeCalls, PartitionSpecCalls, MarkCalls),
    "Transactions and write ids": (TransactionCalls,),
    "Locks": (LockCalls,),
    "Compactions": (CompactionCalls,),
    "Notifications": (NotificationCalls,),
    "Column statistics": (StatisticsCalls,),
    "Functions": (FunctionCalls,),
    "Materialized views": (MaterializedViewCalls,),
    "Constraints": (ConstraintCalls,),
    "Roles and privileges": (RoleCalls, PrivilegeCalls),
    "Tokens": (TokenCalls,),
    "Files of replication sources": (RecycleCalls,),
    "Data connectors": (ConnectorCalls,),
    "Stored procedures and packages": (ProcedureCalls,),
    "Resource plans": (ResourcePlanCalls, PlanPartCalls),
    "Scheduled queries": (ScheduleCalls,),
    "Figures of other services": (ReportCalls,),
}
"""Who answers, under which heading of the page: a new class of answers is a line here."""
_MADE_OTHERWISE: Mapping[type, Callable[[_Given], object]] = {
    ServiceCalls: lambda given: ServiceCalls(given.config, given.database_uuid, given.clock),
    TableCalls: lambda given: TableCalls(given.metastore, given.is_capability_checked),
}
"""Those that do not answer from the metastore alone."""


def offered() -> dict[str, tuple[str, ...]]:
    """The thrift methods that are answered, by family."""
    return {
        family: tuple(name for handler in handlers for name in answered_names(handler))
        for family, handlers in _FAMILIES.items()
    }


def offered_names() -> frozenset[str]:
    """Names of the thrift methods that are answered."""
    return frozenset(name for names in offered().values() for name in names)


def answers_of(
    metastore: ServedMetastore,
    config: Mapping[str, str] | None = None,
    database_uuid: str | None = None,
    clock: Clock | None = None,
) -> dict[str, Answer]:
    """What answers each thrift method, over a metastore."""
    given = _Given(
        metastore=metastore,
        config=config or {},
        database_uuid=database_uuid,
        clock=clock or SystemClock(),
    )
    return collect_answers(
        _MADE_OTHERWISE[calls](given) if calls in _MADE_OTHERWISE else calls(metastore)
        for family in _FAMILIES.values()
        for calls in family
    )


def dispatcher_of(
    metastore: ServedMetastore,
    config: Mapping[str, str] | None = None,
    database_uuid: str | None = None,
    limits: ServerSettings = _DEFAULT_LIMITS,
    clock: Clock | None = None,
    watch: CallWatch | None = None,
) -> Dispatcher:
    """Everything that the server answers, over a metastore."""
    clock = clock or SystemClock()
    return Dispatcher(answers_of(metastore, config, database_uuid, clock), limits, clock, watch)


@dataclass(frozen=True, slots=True)
class _Connection:
    thread: threading.Thread
    turns: Turns


class MetastoreServer:
    """Serves a metastore to thrift clients until it is stopped.

    ``port`` 0 takes a free one, which ``port`` then has. ``config`` is what get_config_value
    shows, ``watch`` hears of each call. The metastore is used by many threads at once; it stays
    open when the server stops.
    """

    def __init__(
        self,
        port: int,
        metastore: ServedMetastore,
        *,
        host: str = "127.0.0.1",
        config: Mapping[str, str] | None = None,
        database_uuid: str | None = None,
        limits: ServerSettings = _DEFAULT_LIMITS,
        clock: Clock | None = None,
        watch: CallWatch | None = None,
    ) -> None:
        self._address = (host, port)
        self._limits = limits
        self._clock = clock or SystemClock()
        self._dispatcher = dispatcher_of(
            metastore, config, database_uuid, limits, self._clock, watch
        )
        self._listener: socket.socket | None = None
        self._acceptor: threading.Thread | None = None
        self._connections: dict[socket.socket, _Connection] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    @property
    def port(self) -> int:
        """The port in use."""
        return self._address[1]

    def start(self, on_ready: Callable[[int], None] | None = None) -> None:
        """Listen, and answer in threads of its own; ``on_ready`` is called with the port.

        Raises ConfigError if the port cannot be used.
        """
        self._listener = _listen(self._address)
        self._address = (self._address[0], self._listener.getsockname()[1])
        self._acceptor = threading.Thread(
            target=self._accept, args=(self._listener,), name="thrift-accept", daemon=True
        )
        self._acceptor.start()
        if on_ready is not None:
            on_ready(self.port)

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Block until the server is stopped, or the time is over; whether it is stopped."""
        return self._stopped.wait(timeout_seconds)

    def stop(self) -> None:
        """Close the port and every connection; calls under way end with their connection."""
        self._stopped.set()
        if self._listener is not None:
            _wake(self._listener)
            self._listener.close()
        if self._acceptor is not None:
            self._acceptor.join(_STOP_SECONDS)
        with self._lock:
            open_connections = dict(self._connections)
        for client in open_connections:
            _wake(client)
        deadline = time.monotonic() + _STOP_SECONDS
        for connection in open_connections.values():
            if connection.thread is not threading.current_thread():
                connection.thread.join(max(0.0, deadline - time.monotonic()))

    def __enter__(self) -> MetastoreServer:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _accept(self, listener: socket.socket) -> None:
        while not self._stopped.is_set():
            try:
                client, address = listener.accept()
            except OSError:
                if self._stopped.is_set():
                    return
                _log.exception("a connection could not be accepted")
                self._stopped.wait(1.0)  # e.g. out of file descriptors: others may close theirs
                continue
            self._admit(client, address)

    def _admit(self, client: socket.socket, address: object) -> None:
        with self._lock:
            if self._stopped.is_set() or not self._has_room():
                _log.warning("refused %s: %d connections are open", address, len(self._connections))
                client.close()
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            turns = Turns(self._clock)
            thread = threading.Thread(
                target=self._serve, args=(client, turns), name="thrift-client", daemon=True
            )
            try:
                thread.start()
            except RuntimeError as error:  # no more threads: those who are here are served on
                _log.warning("refused %s: %s", address, error)
                client.close()
                return
            self._connections[client] = _Connection(thread, turns)

    def _has_room(self) -> bool:
        """For one more; the one that has been idle longest makes room, if it has been for long."""
        if len(self._connections) < self._limits.connections_max:
            return True
        idlest = max(self._connections, key=lambda client: self._connections[client].turns.idle_ms)
        if not self._connections[idlest].turns.end_if_idle(self._limits.idle_timeout_ms):
            return False
        del self._connections[idlest]
        _wake(idlest)
        return True

    def _serve(self, client: socket.socket, turns: Turns) -> None:
        try:
            self._dispatcher.serve(client, turns)
        finally:
            _wake(client)
            client.close()
            with self._lock:
                self._connections.pop(client, None)


def _listen(address: tuple[str, int]) -> socket.socket:
    host, port = address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        raise ConfigError(_why_not(host, port, error)) from error
    return listener


def _why_not(host: str, port: int, error: Exception) -> str:
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EADDRINUSE:
        return (
            f"port {port} on {host} is in use by another program; stop that program, or serve "
            "on another port (0 takes a free one)"
        )
    if number == errno.EACCES:
        return f"port {port} on {host} may not be used by this user; take one above 1023"
    return f"cannot listen on {host} port {port}: {error}; check the address and the port"


def _wake(client: socket.socket) -> None:
    """End what a thread waits for on a socket."""
    with suppress(OSError):  # it may be closed already
        client.shutdown(socket.SHUT_RDWR)
