"""The thrift server: one port, one thread for each connection, and one for those of a crowd."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

from hms_bridge.clock import Clock, SystemClock
from hms_bridge.config.access import AccessSettings
from hms_bridge.config.settings import ServerSettings
from hms_bridge.server.answers import Answer, answered_names, collect_answers
from hms_bridge.server.catalog_calls import CatalogCalls
from hms_bridge.server.compaction_calls import CompactionCalls
from hms_bridge.server.connector_calls import ConnectorCalls
from hms_bridge.server.constraint_calls import ConstraintCalls
from hms_bridge.server.crowd import Crowd
from hms_bridge.server.database_calls import DatabaseCalls
from hms_bridge.server.dispatch import CallWatch, Dispatcher, Identify
from hms_bridge.server.door import Door, Entrance, address_text, host_of, listen
from hms_bridge.server.function_calls import FunctionCalls
from hms_bridge.server.gate import Gate
from hms_bridge.server.identity import identity_of
from hms_bridge.server.mark_calls import MarkCalls
from hms_bridge.server.materialized_view_calls import MaterializedViewCalls
from hms_bridge.server.notification_calls import NotificationCalls
from hms_bridge.server.partition_calls import PartitionCalls
from hms_bridge.server.partition_changes import PartitionChangeCalls
from hms_bridge.server.partition_rights_calls import PartitionRightsCalls
from hms_bridge.server.partition_spec_calls import PartitionSpecCalls
from hms_bridge.server.places import Place, Places, wake
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
from hms_bridge.silent_hosts import SILENT_SECONDS, give_up_silent_host
from hms_bridge.wire.messages import refusal_of_connection

_log = logging.getLogger(__name__)

_CAPABILITY_CHECK = "metastore.client.capability.check"
_DEFAULT_LIMITS = ServerSettings()
_STOP_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Given:
    """What answers are made from."""

    metastore: ServedMetastore
    config: Mapping[str, str]
    database_uuid: str | None
    since_seconds: int
    partitions_max: int

    @property
    def is_capability_checked(self) -> bool:
        return self.config.get(_CAPABILITY_CHECK, "true").lower() != "false"


_FAMILIES: Mapping[str, tuple[type, ...]] = {
    "Service": (ServiceCalls,),
    "Catalogs and databases": (CatalogCalls, DatabaseCalls),
    "Tables": (TableCalls,),
    "Partitions": (
        PartitionCalls,
        PartitionRightsCalls,
        PartitionChangeCalls,
        PartitionSpecCalls,
        MarkCalls,
    ),
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
    ServiceCalls: lambda given: ServiceCalls(
        given.config, given.database_uuid, given.since_seconds
    ),
    TableCalls: lambda given: TableCalls(given.metastore, given.is_capability_checked),
    PartitionCalls: lambda given: PartitionCalls(given.metastore, given.partitions_max),
    PartitionRightsCalls: lambda given: PartitionRightsCalls(given.metastore, given.partitions_max),
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
    since_seconds: int | None = None,
    partitions_max: int = _DEFAULT_LIMITS.partitions_max,
) -> dict[str, Answer]:
    """What answers each thrift method, over a metastore; ``since_seconds``: since when the service
    is there, if not from now on."""
    given = _Given(
        metastore=metastore,
        config=config or {},
        database_uuid=database_uuid,
        since_seconds=_seconds(SystemClock()) if since_seconds is None else since_seconds,
        partitions_max=partitions_max,
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
    since_seconds: int | None = None,
    gate: Gate | None = None,
    identify: Identify = identity_of,
) -> Dispatcher:
    """Everything that the server answers, over a metastore. Without a ``gate`` what is guarded is
    for this machine alone."""
    clock = clock or SystemClock()
    since_seconds = _seconds(clock) if since_seconds is None else since_seconds
    answers = answers_of(metastore, config, database_uuid, since_seconds, limits.partitions_max)
    gate = gate or Gate(AccessSettings(), own_user="")
    return Dispatcher(answers, limits, clock, gate, watch, identify)


def _seconds(clock: Clock) -> int:
    return clock.now_ms() // 1000


class MetastoreServer:
    """Serves a metastore to thrift clients until it is stopped.

    ``port`` 0 takes a free one, which ``port`` then has. ``config`` is what get_config_value
    shows, ``watch`` hears of each call. The metastore is used by many threads at once; it stays
    open when the server stops. With an ``entrance`` clients come in there: at a port that other
    processes serve, too. ``gate`` says which calls are answered to whom, by what ``identify`` makes
    of a connection.
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
        entrance: Entrance | None = None,
        gate: Gate | None = None,
        identify: Identify = identity_of,
    ) -> None:
        self._address = (host, port)
        self._entrance = entrance
        self._limits = limits
        self._clock = clock or SystemClock()
        self._dispatcher = dispatcher_of(
            metastore,
            config,
            database_uuid,
            limits,
            self._clock,
            watch,
            None if entrance is None else entrance.since_seconds,
            gate,
            identify,
        )
        self._crowd: Crowd | None = None
        self._door: Door | None = None
        self._acceptor: threading.Thread | None = None
        self._places = Places(limits, self._clock)
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
        listener = listen(*self._address) if self._entrance is None else self._entrance.listener
        self._address = (self._address[0], listener.getsockname()[1])
        self._crowd = Crowd(self._dispatcher.read_gathered)
        self._door = Door(listener, self._entrance)
        self._door.note(0)
        self._acceptor = threading.Thread(
            target=self._accept, args=(self._door,), name="thrift-accept", daemon=True
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
        door, self._door = self._door, None
        if door is not None and self._acceptor is not None:
            door.close()
            self._acceptor.join(_STOP_SECONDS)
            door.release()
        with self._lock:
            places = self._places.all
        for client in places:
            wake(client)
        deadline = time.monotonic() + _STOP_SECONDS
        for place in places.values():
            if place.thread is not threading.current_thread():
                place.thread.join(max(0.0, deadline - time.monotonic()))
        if self._crowd is not None:
            self._crowd.close(max(0.0, deadline - time.monotonic()))

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

    def _accept(self, door: Door) -> None:
        while not self._stopped.is_set():
            try:
                client = door.next_client()
            except OSError:
                _log.exception("a connection could not be accepted")
                self._stopped.wait(1.0)  # e.g. out of file descriptors: others may close theirs
                continue
            if client is None:
                return
            self._admit(door, *client)

    def _admit(self, door: Door, client: socket.socket, address: object) -> None:
        host = host_of(address)
        with self._lock:
            why = self._refusal(host)
            if why is not None:
                self._refuse(client, address, why)
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            give_up_silent_host(client, SILENT_SECONDS, while_sending=False)
            turns = Turns(self._clock)
            thread = threading.Thread(
                target=self._serve, args=(door, client, turns), name="thrift-client", daemon=True
            )
            try:
                thread.start()
            except RuntimeError as error:  # no more threads: those who are here are served on
                self._refuse(client, address, str(error))
                return
            self._places.add(client, Place(thread, turns, host))
            door.note(self._places.load)

    def _refusal(self, host: str) -> str | None:
        """Why no other client is taken; None if one is. The caller holds the lock, here and
        below."""
        if self._stopped.is_set():
            return "the server is being stopped"
        return self._places.make_room(host)

    def _refuse(self, client: socket.socket, address: object, why: str) -> None:
        """A client of thrift takes an exception for the answer to its first call."""
        self._places.say("a refusal", f"refused {address_text(address)}: {why}")
        with suppress(OSError):  # it may have left
            client.send(refusal_of_connection(why), socket.MSG_DONTWAIT)
        client.close()

    def _serve(self, door: Door, client: socket.socket, turns: Turns) -> None:
        try:
            self._dispatcher.serve(client, turns, self._crowd)
        finally:
            wake(client)
            client.close()
            with self._lock:
                self._places.remove(client)
                door.note(self._places.load)
