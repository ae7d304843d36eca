"""Asks executors whether they have what tasks need, before a task finds out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from changemanager.location import Resolver
from hms_bridge.errors import ConfigError
from hms_bridge.spark import executor_probe
from hms_bridge.spark.failures import first_line
from hms_bridge.spark.needs import MODULES, PACKAGES
from hms_bridge.spark.tasks import LocationTask

_REMEDY = "see 'hms-bridge spark package --help' for how to give it to them"


@dataclass(frozen=True, kw_only=True, slots=True)
class ExecutorFinding:
    """What one executor's Python is, and what it lacks."""

    host: str
    executable: str
    python: str
    versions: Mapping[str, str | None]
    lacks: tuple[str, ...]


def require_executors(spark: SparkSession) -> tuple[ExecutorFinding, ...]:
    """What the executors have. Raises ConfigError for the first that lacks something."""
    found = look_at_executors(spark)
    for one in found:
        if one.lacks:
            raise ConfigError(
                f"an executor on {one.host} ({one.executable}) cannot run tasks: "
                f"{'; '.join(one.lacks)}; {_REMEDY}"
            )
    return found


def look_at_executors(spark: SparkSession) -> tuple[ExecutorFinding, ...]:
    """One finding for each executor that took one of as many tasks as there are cores.

    Raises ConfigError if not even an empty task runs there.
    """
    here = executor_probe.look(MODULES, PACKAGES)
    context = spark.sparkContext
    count = max(2, context.defaultParallelism)
    # By value: executors may not have this package, which is what is asked.
    cloudpickle.register_pickle_by_value(executor_probe)
    try:
        task = executor_probe.Probe(MODULES, PACKAGES)
        answers = context.parallelize(range(count), count).mapPartitions(task).collect()
    except (PySparkException, Py4JError) as error:
        raise ConfigError(
            f"executors cannot run Python {here['python']} tasks: {first_line(error)}; set "
            "spark.pyspark.python (or PYSPARK_PYTHON) to a Python that is there, or "
            f"{_REMEDY}"
        ) from error
    finally:
        cloudpickle.unregister_pickle_by_value(executor_probe)
    by_executor = {(a["host"], a["executor"], a["executable"]): a for a in answers}
    return tuple(_finding(answer, here) for _, answer in sorted(by_executor.items()))


def look_at_locations(
    spark: SparkSession, resolver: Resolver, locations: Sequence[str]
) -> tuple[tuple[str, str, str], ...]:
    """Host, location and what is wrong with it there (empty: nothing) for each that is asked."""
    context = spark.sparkContext
    count = max(2, context.defaultParallelism)
    task = LocationTask(resolver=resolver, locations=tuple(locations))
    try:
        answers = context.parallelize(range(count), count).mapPartitions(task).collect()
    except (PySparkException, Py4JError) as error:
        raise ConfigError(f"executors cannot look at files: {first_line(error)}") from error
    return tuple(sorted(set(answers)))


def _finding(answer: Mapping[str, Any], here: Mapping[str, Any]) -> ExecutorFinding:
    lacks = [f"{name} ({why})" for name, why in answer["errors"].items()]
    for package in PACKAGES:
        theirs, ours = answer["digests"][package], here["digests"][package]
        if theirs is None:
            lacks.append(f"no package {package}")
        elif theirs != ours:
            lacks.append(f"another version of {package} than the driver's")
    if answer["python"] != here["python"]:
        lacks.append(f"Python {answer['python']}, and the driver's is {here['python']}")
    return ExecutorFinding(
        host=answer["host"],
        executable=answer["executable"],
        python=answer["python"],
        versions=answer["versions"],
        lacks=tuple(lacks),
    )


def differing_versions(finding: ExecutorFinding) -> Mapping[str, tuple[str, str]]:
    """Packages whose version is not the driver's: allowed, and worth knowing."""
    here = executor_probe.look(MODULES, ())["versions"]
    return {
        name: (str(theirs), str(here.get(name)))
        for name, theirs in finding.versions.items()
        if theirs != here.get(name)
    }
