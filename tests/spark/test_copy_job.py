"""The files of a load as tasks of a Spark job: what they bring, how they fail, how they end."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.clock import SystemClock
from hms_bridge.errors import ReplError, SourceFileMissingError
from hms_bridge.repl.load.copy import Copier
from hms_bridge.repl.load.distributed import CopyLimits, DistributedCopier
from hms_bridge.spark.copy_job import SparkCopyJob
from tests.support.copying import group_of

pytestmark = pytest.mark.spark

DELTA = "delta_0000001_0000001_0000"
FILES = 8


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "source" / DELTA
    folder.mkdir(parents=True)
    for number in range(FILES):
        (folder / f"bucket_{number:05d}").write_bytes(bytes([number]) * 10_000)
    return sorted(folder.iterdir())


def copier(
    spark: Any,
    before_each: Callable[[], None] = lambda: None,
    bandwidth: int | None = None,
    told: list[int] | None = None,
) -> DistributedCopier:
    resolve = FsspecResolver()
    bytes_told = [] if told is None else told
    return DistributedCopier(
        copier=Copier(resolve, before_each=before_each),
        job=SparkCopyJob(lambda: spark),
        resolve=resolve,
        sources=resolve,
        clock=SystemClock(),
        limits=CopyLimits(files_max=1, bytes_max=1),
        sizes={},
        bandwidth=bandwidth,
        on_copied=bytes_told.append,
    )


def test_tasks_bring_the_files(spark: Any, tmp_path: Path, sources: list[Path]) -> None:
    published: list[str] = []
    told: list[int] = []
    group = group_of(tmp_path, sources, DELTA, lambda: published.append("it"))
    report = copier(spark, told=told).copy([group])
    assert (report.source_files, report.by_job, report.bytes) == (FILES, FILES, FILES * 10_000)
    assert sum(told) == FILES * 10_000
    assert published == ["it"]
    for path in sources:
        assert (tmp_path / "target" / DELTA / path.name).read_bytes() == path.read_bytes()


def test_a_file_that_is_lost_is_named(spark: Any, tmp_path: Path, sources: list[Path]) -> None:
    published: list[str] = []
    group = group_of(tmp_path, sources, DELTA, lambda: published.append("it"))
    sources[3].unlink()
    with pytest.raises(SourceFileMissingError, match="bucket_00003 is lost"):
        copier(spark).copy([group])
    assert published == []


def test_a_task_that_fails_is_an_error_in_one_line(
    spark: Any, tmp_path: Path, sources: list[Path]
) -> None:
    published: list[str] = []
    group = group_of(tmp_path, sources, DELTA, lambda: published.append("it"))
    (tmp_path / "target" / DELTA).mkdir(parents=True)
    (tmp_path / "target" / DELTA / sources[0].name).mkdir()
    with pytest.raises(ReplError, match="is there with other content") as raised:
        copier(spark).copy([group])
    assert "\n" not in str(raised.value)
    assert published == []


def test_a_job_ends_with_its_load(spark: Any, tmp_path: Path, sources: list[Path]) -> None:
    """Whose lease is gone: tasks that would still take minutes are cancelled."""
    published: list[str] = []
    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1
        if asked > 2:
            raise ReplError("another load is at work")

    group = group_of(tmp_path, sources, DELTA, lambda: published.append("it"))
    began = time.monotonic()
    with pytest.raises(ReplError, match="another load"):
        copier(spark, check, bandwidth=1000).copy([group])
    assert time.monotonic() - began < 30, "at the bandwidth it would be 80 seconds"
    assert published == []
