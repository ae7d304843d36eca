"""Where a worker's tasks run: here if there is little to read, else on Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.cli import spark_options
from hms_bridge.cli.worker import TOGETHER_BYTES_MAX, ExecutorsBySize
from hms_bridge.compaction.kernel import BucketKernel
from hms_bridge.compaction.lasting_job import LastingJob
from hms_bridge.compaction.shared_job import SharedJobs, TakenInTurns
from hms_bridge.errors import ConfigError
from hms_bridge.spark.request import SparkRequest
from tests.support.busy_metastore import copy_golden
from tests.support.program import Program, process_environment

STAGE = "g02_iud/01-before-minor"
MAJOR = ("compact", "sales.orders", "major", "--run", "--format", "json")
MINOR = ("compact", "sales.orders", "minor", "--run", "--format", "json")


@pytest.fixture
def program(program: Program) -> Program:
    directory = copy_golden(STAGE, program.warehouse / "sales.db" / "orders")
    program.ok("table", "adopt", str(directory), "--name", "sales.orders")
    return program


class Started:
    """Spark, as far as it is started."""

    def __init__(self) -> None:
        self.count = 0

    def start(self, _request: SparkRequest, _application: str) -> Any:
        self.count += 1
        running = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False))
        context = SimpleNamespace(_jsc=running)
        return SimpleNamespace(stop=lambda: None, sparkContext=context)


def test_a_small_compaction_starts_no_spark(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = Started()
    monkeypatch.setattr(spark_options, "start_spark", spark.start)
    done = program.ok(*MAJOR).json
    assert (done["state"], spark.count) == ("ready for cleaning", 0)
    assert done["duration_ms"] is not None


@pytest.mark.process
def test_a_small_compaction_loads_only_what_it_uses(program: Program) -> None:
    """Each of these takes longer to load than the compaction to do."""
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "hms_bridge.cli.main", *MINOR],
        env=process_environment(program.environment), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (run.returncode, json.loads(run.stdout)["state"]) == (0, "ready for cleaning")
    loaded = {line.rpartition("|")[2].strip() for line in run.stderr.splitlines()}
    assert "pyarrow.orc" in loaded  # which the second reader is
    for unused in ("pyspark", "pandas", "requests", "sqlglot", "hms_bridge.client"):
        assert unused not in loaded


def test_a_larger_one_fails_by_name_where_spark_does_not_start(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is published, and the entry says why."""

    def no_java(_request: SparkRequest, _application: str) -> Any:
        raise ConfigError("no Java that Spark runs on")

    monkeypatch.setattr(spark_options, "start_spark", no_java)
    names = sorted(path.name for path in (program.warehouse / "sales.db" / "orders").iterdir())
    answer = program.run(*MAJOR, "--set", "hms.bridge.compactor.local.bytes=100")
    assert answer.exit_code == 1
    assert "no Java that Spark runs on" in answer.err
    left = sorted(path.name for path in (program.warehouse / "sales.db" / "orders").iterdir())
    assert left == names


def test_workers_share_one_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = Started()
    monkeypatch.setattr(spark_options, "start_spark", spark.start)
    executors = ExecutorsBySize(
        BucketKernel(resolver=FsspecResolver()), SparkRequest(master=None, settings={}), 10
    )
    assert isinstance(executors.choose(10), TakenInTurns)
    assert spark.count == 0
    with ThreadPoolExecutor(4) as threads:
        chosen = list(threads.map(executors.choose, [11] * 8))
    assert spark.count == 1
    assert isinstance(chosen[0], SharedJobs)
    assert len(set(map(id, chosen))) == 1  # else nothing of theirs would go together
    executors.close()


def test_a_large_entry_has_a_job_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is small would wait for its tasks."""
    monkeypatch.setattr(spark_options, "start_spark", Started().start)
    executors = ExecutorsBySize(
        BucketKernel(resolver=FsspecResolver()), SparkRequest(master=None, settings={}), 10
    )
    assert isinstance(executors.choose(TOGETHER_BYTES_MAX), SharedJobs)
    assert isinstance(executors.choose(TOGETHER_BYTES_MAX + 1), LastingJob)
    executors.close()
