"""Asks executors whether they have what tasks need, before a task finds out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

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

_Answer = TypeVar("_Answer")

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
    findings = look_at_executors(spark)
    for finding in findings:
        if finding.lacks:
            raise ConfigError(
                f"an executor on {finding.host} ({finding.executable}) cannot run tasks: "
                f"{'; '.join(finding.lacks)}; {_REMEDY}"
            )
    return findings


def look_at_executors(spark: SparkSession) -> tuple[ExecutorFinding, ...]:
    """One finding for each executor that took one of as many tasks as there are cores.

    Raises ConfigError if not even an empty task runs there.
    """
    here = executor_probe.look(MODULES, PACKAGES)
    # By value: executors may not have this package, which is what is asked.
    cloudpickle.register_pickle_by_value(executor_probe)
    try:
        answers = _asked_everywhere(spark, executor_probe.Probe(MODULES, PACKAGES))
    except (PySparkException, Py4JError) as error:
        raise ConfigError(
            f"executors cannot run Python {here['python']} tasks: {first_line(error)}; set "
            "spark.pyspark.python (or PYSPARK_PYTHON) to a Python that is there, or "
            f"{_REMEDY}"
        ) from error
    finally:
        cloudpickle.unregister_pickle_by_value(executor_probe)
    by_executor = {
        (answer["host"], answer["executor"], answer["executable"]): answer for answer in answers
    }
    return tuple(_finding(answer, here) for _, answer in sorted(by_executor.items()))


def look_at_locations(
    spark: SparkSession, resolver: Resolver, locations: Sequence[str]
) -> tuple[tuple[str, str, str], ...]:
    """Host, location and what is wrong with it there (empty: nothing) for each that is asked.

    Raises ConfigError if executors cannot run the task that looks.
    """
    task = LocationTask(resolver=resolver, locations=tuple(locations))
    try:
        answers = _asked_everywhere(spark, task)
    except (PySparkException, Py4JError) as error:
        raise ConfigError(f"executors cannot look at files: {first_line(error)}") from error
    return tuple(sorted(set(answers)))


def _asked_everywhere(
    spark: SparkSession, task: Callable[[Iterable[object]], Iterator[_Answer]]
) -> list[_Answer]:
    """What a task answers that runs as often as there are cores, so that every executor is asked
    as far as Spark's scheduler lets that be."""
    context = spark.sparkContext
    count = max(2, context.defaultParallelism)
    answers: list[_Answer] = context.parallelize(range(count), count).mapPartitions(task).collect()
    return answers


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
