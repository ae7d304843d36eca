"""Puts a compaction worker together: port, executor, identity."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from changemanager.location import FsspecResolver, Resolver
from hms_bridge.cli.spark_options import start_spark
from hms_bridge.cli.versions import own_version
from hms_bridge.compaction.dead_workers import end_dead_workers, is_other_process_alive
from hms_bridge.compaction.executor import CompactionExecutor
from hms_bridge.compaction.kernel import BucketKernel, LocalExecutor
from hms_bridge.compaction.plan import NothingToCompact
from hms_bridge.compaction.worker import Worker, WorkerIdentity
from hms_bridge.config.file_systems import file_systems
from hms_bridge.config.settings import Settings
from hms_bridge.metastore import Metastore
from hms_bridge.model.compaction import CompactionRequest, VerifyMode
from hms_bridge.spark.request import SparkRequest


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
    executor: CompactionExecutor,
    *,
    resolver: Resolver | None = None,
    number: int = 0,
    pool_name: str | None = None,
) -> Worker:
    """A worker over a metastore; of a pool, if it is to take that pool's entries only."""
    return Worker(
        metastore,
        executor,
        resolver or FsspecResolver(),
        identity(number),
        pool_name=pool_name,
    )


@contextmanager
def spark_workers(
    metastore: Metastore,
    settings: Settings,
    request: SparkRequest,
    *,
    count: int,
    pool_name: str | None = None,
) -> Iterator[tuple[Worker, ...]]:
    """Workers whose tasks run on one Spark."""
    from hms_bridge.spark.compaction_job import SparkExecutor
    from hms_bridge.spark.session import stop_spark

    end_dead_workers(metastore, socket.gethostname(), is_other_process_alive)
    spark = start_spark(request, "hms-bridge compact")
    resolver = file_systems(settings)
    kernel = BucketKernel(resolver=resolver, verify=VerifyMode(settings.compactor.verify))
    executor = SparkExecutor(spark=spark, kernel=kernel)
    try:
        yield tuple(
            make_worker(metastore, executor, resolver=resolver, number=number, pool_name=pool_name)
            for number in range(count)
        )
    finally:
        stop_spark(spark)


def plan_compaction_of(
    metastore: Metastore, request: CompactionRequest, settings: Settings
) -> Mapping[str, object]:
    """What a compaction would read and write now; nothing is changed."""
    resolver = file_systems(settings)
    executor = LocalExecutor(kernel=BucketKernel(resolver=resolver))
    plan = make_worker(metastore, executor, resolver=resolver).plan(request.target, request.type)
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
