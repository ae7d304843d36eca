"""The files of a load, copied by Spark's executors on two workers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.referees.ours import CHECKOUT, OurProgram
from integration.referees.processes import Workplace
from integration.referees.spark import WORKERS, SparkStandalone
from tests.support.repl_world import ReplWorld

TABLES = 4
INSERTS = 6
SPARK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": str(WORKERS),
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[ReplWorld]:
    """Tables of several deltas, one of them compacted, dumped and not loaded."""
    made = ReplWorld(tmp_path)
    for number in range(TABLES):
        name = f"t{number}"
        made.create_table(name)
        for row in range(INSERTS):
            made.insert(name, (row, "x" * 100))
    made.compact("t0")
    made.dump()
    yield made
    made.close()


def test_files_of_a_load_are_copied_by_executors_of_both_workers(
    workplace: Workplace, spark_standalone: SparkStandalone, world: ReplWorld
) -> None:
    events = workplace.folder("spark-events")
    program = OurProgram(workplace, f"sqlite:///{world.folder}/target.db3")
    words = [
        "repl", "load", "src", "--into", "dst", "--root", str(world.repl_root),
        "--set", f"hive.metastore.warehouse.dir={world.folder}/target",
        "--set", "hive.exec.copyfile.maxsize=0",
        "--files-from", str(world.folder),
        "--format", "json", "--copy-with", "spark", "--master", spark_standalone.master,
        *(word for key, value in SPARK.items() for word in ("--spark", f"{key}={value}")),
        "--spark", f"spark.pyspark.python={sys.executable}",
        "--spark", f"spark.executorEnv.PYTHONPATH={CHECKOUT}",
        "--spark", f"spark.eventLog.dir=file:{events}",
    ]  # fmt: skip
    report = json.loads(program.run(*words))
    assert report["files by Spark"] == report["files from source"] > TABLES * INSERTS / 2
    world.assert_same()
    copied_on = _executors_of_copies(events)
    assert len(copied_on) == WORKERS, copied_on
    assert list((world.folder / "target").rglob(".cm-part-*")) == []


def _executors_of_copies(events: Path) -> set[str]:
    """The executors whose tasks belonged to a job of ours that copies."""
    (log,) = [path for path in events.rglob("*") if path.is_file()]
    lines: list[dict[str, Any]] = [json.loads(line) for line in log.read_text().splitlines()]
    stages: set[int] = set()
    for line in lines:
        description = line.get("Properties", {}).get("spark.job.description")
        if line["Event"] == "SparkListenerJobStart" and description == "copies files of a load":
            stages.update(line["Stage IDs"])
    return {
        line["Task Info"]["Executor ID"]
        for line in lines
        if line["Event"] == "SparkListenerTaskEnd" and line["Stage ID"] in stages
    }
