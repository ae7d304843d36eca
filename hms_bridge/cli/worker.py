"""Puts a compaction worker together: port, executor, identity."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from changemanager.location import FsspecResolver, Resolver
from hms_bridge.cli.spark_options import started
from hms_bridge.compaction.dead_workers import end_dead_workers, is_other_process_alive
from hms_bridge.compaction.executor import CompactionExecutor, ExecutorFor, always
from hms_bridge.compaction.kernel import BucketKernel, LocalExecutor
from hms_bridge.compaction.lasting_job import LastingJob
from hms_bridge.compaction.plan import NothingToCompact
from hms_bridge.compaction.shared_job import SharedJobs, TakenInTurns
from hms_bridge.compaction.worker import Worker, WorkerIdentity
from hms_bridge.config.file_systems import file_systems
from hms_bridge.config.settings import Settings
from hms_bridge.metastore import Metastore
from hms_bridge.model.compaction import CompactionRequest, VerifyMode
from hms_bridge.spark.request import SparkRequest
from hms_bridge.versions import own_version

if TYPE_CHECKING:
    from hms_bridge.spark.compaction_job import SparkExecutor


def identity(number: int = 0) -> WorkerIdentity:
    """This process as a worker: host, process, number."""
    host = socket.gethostname()
    return WorkerIdentity(
        worker_id=f"{host}-{os.getpid()}-{number}",
        version=own_version(),
        user=getpass.getuser(),
        host=host,
    )


def make_worker(
    metastore: Metastore,
    executor_for: ExecutorFor,
    *,
    resolver: Resolver | None = None,
    number: int = 0,
    pool_name: str | None = None,
    is_default_pool: bool = False,
) -> Worker:
    """A worker over a metastore; of a pool, if it is to take that pool's entries only.
    ``is_default_pool``: of the default pool over thrift, too, where it cannot choose."""
    return Worker(
        metastore,
        executor_for,
        resolver or FsspecResolver(),
        identity(number),
        pool_name=pool_name,
        is_default_pool=is_default_pool,
    )


TOGETHER_BYTES_MAX = 256 * 1024 * 1024
"""An entry of more input does not share a job: its tasks take far longer than a job costs, and the
small ones would wait for them."""


class ExecutorsBySize:
    """Small compactions run in this process; Spark, which takes seconds to start and a tenth of one
    for each job, is started for the first that is not, and again when it has ended. What several
    workers give it at the same time goes as one job, but for large entries."""

    def __init__(self, kernel: BucketKernel, request: SparkRequest, local_bytes_max: int) -> None:
        self._kernel = kernel
        self._start = started(request, "hms-bridge compact")
        self._local_bytes_max = local_bytes_max
        self._local = TakenInTurns(LocalExecutor(kernel=kernel), os.cpu_count() or 1)
        self._on_spark = LastingJob(self._start_spark)
        self._together = SharedJobs(job=self._on_spark)

    def choose(self, input_bytes: int) -> CompactionExecutor:
        """See ExecutorFor. Raises ConfigError if Spark is needed and does not start."""
        if input_bytes <= self._local_bytes_max:
            return self._local
        self._on_spark.ready()
        return self._together if input_bytes <= TOGETHER_BYTES_MAX else self._on_spark

    def _start_spark(self) -> SparkExecutor:
        from hms_bridge.spark.compaction_job import SparkExecutor

        return SparkExecutor(spark=self._start(), kernel=self._kernel)

    def close(self) -> None:
        """Stop Spark, if it was started; it is not started any more."""
        self._on_spark.close()


@contextmanager
def compaction_workers(
    metastore: Metastore,
    settings: Settings,
    request: SparkRequest,
    *,
    count: int,
    pool_name: str | None = None,
    is_default_pool: bool = False,
) -> Iterator[tuple[Worker, ...]]:
    """Workers that share one Spark, if one of them needs it."""
    end_dead_workers(metastore, socket.gethostname(), is_other_process_alive)
    resolver = file_systems(settings)
    compactor = settings.compactor
    kernel = BucketKernel(resolver=resolver, verify=VerifyMode(compactor.verify))
    executors = ExecutorsBySize(kernel, request, compactor.local_bytes_max)
    try:
        yield tuple(
            make_worker(
                metastore,
                executors.choose,
                resolver=resolver,
                number=number,
                pool_name=pool_name,
                is_default_pool=is_default_pool,
            )
            for number in range(count)
        )
    finally:
        executors.close()


def plan_compaction_of(
    metastore: Metastore, request: CompactionRequest, settings: Settings
) -> Mapping[str, object]:
    """What a compaction would read and write now; nothing is changed."""
    resolver = file_systems(settings)
    executor = LocalExecutor(kernel=BucketKernel(resolver=resolver))
    worker = make_worker(metastore, always(executor), resolver=resolver)
    plan = worker.plan(request.target, request.type)
    if isinstance(plan, NothingToCompact):
        return {"target": str(request.target), "decision": "nothing to do", "reason": plan.reason}
    return {
        "target": str(request.target),
        "decision": f"{plan.type.name.lower()} compaction of {len(plan.inputs)} inputs",
        "inputs": list(plan.inputs),
        "outputs": [output.format() for output in plan.outputs],
        "buckets": [task.bucket_id for task in plan.tasks],
        "input bytes": plan.input_size_bytes,
        "highest write id": plan.highest_write_id,
    }
