"""The main job, end to end: compaction between dump and load, and no row lost (I1, I4, I5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.cli.worker import make_worker
from hms_bridge.compaction.executor import always
from hms_bridge.compaction.kernel import BucketKernel
from hms_bridge.demo.side import open_side
from hms_bridge.demo.story import HIVE_TABLES, MovableClock, Story
from hms_bridge.spark.compaction_job import SparkExecutor
from tests.support.golden import acid_goldens

pytestmark = [pytest.mark.spark, pytest.mark.golden]


def test_the_story_ends_well(spark: Any, tmp_path: Path) -> None:
    clock = MovableClock()
    dumps = tmp_path / "dumps"
    source = open_side("source", tmp_path / "source", dumps, spark, clock)
    replica = open_side("replica", tmp_path / "replica", dumps, spark, clock)
    told: list[str] = []
    executor = SparkExecutor(spark=spark, kernel=BucketKernel(resolver=FsspecResolver()))
    story = Story(
        source,
        replica,
        dumps=dumps,
        worker=make_worker(source.store.metastore, always(executor)),
        clock=clock,
        say=told.append,
    )
    try:
        is_passed = story.play()
    finally:
        source.store.metastore.close()
        replica.store.metastore.close()
    assert story.failures == []
    assert is_passed
    assert sum("ok:" in line for line in told) >= 15


@pytest.mark.parametrize(
    ("table", "stage"),
    [
        ("orders", "g02_iud/01-before-minor"),
        ("events", "g07_part/03-after-minor-cleaner"),
        ("customers", "g08_bucketed/03-after-minor-cleaner"),
    ],
)
def test_its_tables_are_what_a_real_hive_wrote(table: str, stage: str) -> None:
    ours, golden = HIVE_TABLES / table, acid_goldens() / stage
    assert contents(ours) == {
        path: content for path, content in contents(golden).items() if path != "state.json"
    }


def contents(folder: Path) -> dict[str, bytes]:
    """Of all files below a folder, by path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
