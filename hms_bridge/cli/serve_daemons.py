"""What ``hms-bridge serve`` does beside answering calls: housekeeping, and what it is asked for."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.metadata import entry_points
from typing import TYPE_CHECKING
from uuid import uuid4

from changemanager.lease import StandingLease
from hms_bridge.cli.dump_jobs import new_name
from hms_bridge.errors import HmsBridgeError
from hms_bridge.periodic import PeriodicTask
from hms_bridge.session.holding_process import has_ended, with_own_process
from hms_bridge.spark.request import SparkRequest

if TYPE_CHECKING:
    from hms_bridge.connect import LocalStore

_LOG = logging.getLogger(__name__)
HOUSEKEEPING_LEASE = "housekeeping"
_HOUSEKEEPING_SECONDS = 10.0
_WORKER_POLL_SECONDS = 1.0
_STOP_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedDaemons:
    """Which daemons the command line asks for; the settings may ask for more."""

    is_worker: bool
    is_initiator: bool
    is_cleaner: bool
    pool_name: str | None


def start_daemons(
    store: LocalStore, stack: ExitStack, asked: AskedDaemons, spark: SparkRequest
) -> None:
    """Start them; they stop when the stack is left."""
    ending = threading.Event()
    tasks = _tasks(store, stack, asked, spark, ending)
    stack.callback(_stop_tasks, tasks)
    stack.callback(ending.set)  # before them: workers would take entry after entry meanwhile
    for task in tasks:
        task.start()


def _tasks(
    store: LocalStore,
    stack: ExitStack,
    asked: AskedDaemons,
    spark: SparkRequest,
    ending: threading.Event,
) -> list[PeriodicTask]:
    settings = store.settings.compactor
    housekeeping = housekeeper(store, stack)
    tasks = [PeriodicTask("housekeeping", housekeeping, _HOUSEKEEPING_SECONDS)]
    clean_ms = store.settings.repl.dump_clean_interval_ms
    if clean_ms > 0:
        tasks.append(PeriodicTask("dump-cleaner", dump_cleaner(store), clean_ms / 1000))
    if asked.is_worker or settings.worker_threads > 0:
        from hms_bridge.cli.worker import compaction_workers

        workers = stack.enter_context(
            compaction_workers(
                store.metastore,
                store.settings,
                spark,
                count=max(1, settings.worker_threads),
                pool_name=asked.pool_name,
            )
        )
        tasks += [
            PeriodicTask(
                f"worker-{number}",
                partial(worker.run_until_idle, ending.is_set),
                _WORKER_POLL_SECONDS,
            )
            for number, worker in enumerate(workers)
        ]
    if asked.is_initiator or settings.is_initiator_on:
        from hms_bridge.cli.initiator import make_initiator

        interval = settings.check_interval_ms / 1000
        tasks.append(PeriodicTask("initiator", make_initiator(store).run_once, interval))
    if asked.is_cleaner or settings.is_cleaner_on:
        interval = settings.cleaner_interval_ms / 1000
        for point in entry_points(group="hms_bridge.daemons"):
            tasks.append(PeriodicTask(point.name, point.load()(store), interval))
        if store.settings.archive.is_enabled:
            interval = store.settings.archive.interval_ms / 1000
            tasks.append(PeriodicTask("purge", _purge(store), interval))
    return tasks


def housekeeper(store: LocalStore, stack: ExitStack) -> Callable[[], None]:
    """The housekeeping, which one server of a database does: the lease on it goes to another one
    when the stack is left, or when nothing was heard of this one."""
    owner = with_own_process(uuid4().hex[:16])
    lease = StandingLease(store.manifest, store.clock, HOUSEKEEPING_LEASE, owner, has_ended)
    stack.callback(_give_back, lease)

    def keep_house() -> None:
        if not lease.keep():
            return
        try:
            store.metastore.run_housekeeping()
        except Exception:
            _give_back(lease)  # what fails here may be done by another one
            raise

    return keep_house


def _give_back(lease: StandingLease) -> None:
    """A server whose database has gone stops all the same: the lease runs out."""
    try:
        lease.give_back()
    except HmsBridgeError as error:
        _LOG.warning("the lease on the housekeeping was not given back: %s", error)


def _purge(store: LocalStore) -> Callable[[], object]:
    """A purge of the archive; pins of loaded dumps go first."""
    from changemanager.errors import ClockDoubtError
    from changemanager.purge import Purge
    from hms_bridge.cli.archive_clock import next_step
    from hms_bridge.repl.pinned_dumps import release_loaded_dumps

    job = Purge(store.archive(), store.manifest, store.clock)

    def purge() -> object:
        release_loaded_dumps(store.resolver, store.manifest)
        job.settle()
        plan = job.plan()
        try:
            report = job.run(plan)
        except ClockDoubtError as error:
            _LOG.warning("%s", error)
            return None
        if plan.doubt:
            _LOG.warning("%s; %s", plan.doubt, next_step(plan.time))
        return report

    return purge


def dump_cleaner(store: LocalStore) -> Callable[[], None]:
    """Removes loaded dumps below the root of dumps that are old (Hive: DumpDirCleanerTask)."""
    from hms_bridge.cli.repl_requests import expiry_request
    from hms_bridge.repl.dump.expiry import ReplExpiry, remove_expired

    job = ReplExpiry(store.metastore, store.resolver, store.clock, new_name, store.manifest)
    return lambda: remove_expired(
        store.metastore, job, lambda name: expiry_request(name, store.settings)
    )


def _stop_tasks(tasks: Sequence[PeriodicTask]) -> None:
    """All at once, else each that hangs would have its own time to wait for."""
    deadline = time.monotonic() + _STOP_SECONDS
    for task in tasks:
        task.ask_to_stop()
    for task in tasks:
        task.stop(max(0.0, deadline - time.monotonic()))
