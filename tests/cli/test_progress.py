"""What a person sees on a terminal while a verb works."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.progress import Progress

from changemanager.location import FsspecResolver
from hms_bridge.cli import progress, spark_options
from hms_bridge.cli.worker import ExecutorsBySize
from hms_bridge.compaction.kernel import BucketKernel
from hms_bridge.spark.request import SparkRequest


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Progress]:
    """Every display that was made."""
    made: list[Progress] = []

    def on_a_terminal(*columns: object) -> Progress:
        console = Console(file=io.StringIO(), force_terminal=True)
        made.append(Progress(*columns, console=console))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(progress, "_progress", on_a_terminal)
    return made


def lines(display: Progress) -> list[str]:
    return [task.description for task in display.tasks]


def test_work_within_work_is_a_line_below_it(shown: list[Progress]) -> None:
    with progress.working("compacting"):
        with progress.working("starting Spark") as change:
            assert lines(shown[0]) == ["compacting", "starting Spark"]
            change("still starting")
            assert lines(shown[0]) == ["compacting", "still starting"]
        assert lines(shown[0]) == ["compacting"]
    with progress.working("again"):
        assert [len(shown), *lines(shown[1])] == [2, "again"]


def test_a_compaction_that_starts_spark_says_so(
    shown: list[Progress], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(spark_options, "start_spark", lambda *_: seen.extend(lines(shown[-1])))
    request = SparkRequest(master=None, settings={})
    executors = ExecutorsBySize(BucketKernel(resolver=FsspecResolver()), request, 10)
    with progress.working("compacting"):
        executors.choose(11)
    assert seen == ["compacting", "starting Spark"]
