"""``hms-bridge demo``."""

from __future__ import annotations

import logging
import shutil
import time
from pathlib import Path

import click

from hms_bridge.cli.spark_options import spark_options, start_spark
from hms_bridge.errors import ConfigError
from hms_bridge.spark.request import SparkRequest


@click.command()
@click.option(
    "--work",
    "work",
    type=click.Path(path_type=Path, file_okay=False),
    default="demo-work",
    show_default=True,
    help="A folder for both sides; what an earlier demo left there is replaced.",
)
@spark_options
def demo(work: Path, spark: SparkRequest) -> None:
    """The main job, end to end: compaction between dump and load, and no row lost.

    \b
    Example:
      hms-bridge demo --work /tmp/hms-bridge-demo
    """
    work = work.resolve()
    _clear(work)
    from changemanager.location import FsspecResolver
    from hms_bridge.cli.worker import make_worker
    from hms_bridge.compaction.executor import always
    from hms_bridge.compaction.kernel import BucketKernel
    from hms_bridge.demo.side import open_side
    from hms_bridge.demo.story import MovableClock, Story
    from hms_bridge.spark.compaction_job import SparkExecutor
    from hms_bridge.spark.session import stop_spark

    logging.getLogger("changemanager.retention").setLevel(logging.ERROR)  # the story says it
    started = time.monotonic()
    click.echo("starting Spark …")
    session = start_spark(spark, "hms-bridge demo")
    clock = MovableClock()
    dumps = work / "dumps"
    source = open_side("source", work / "source", dumps, session, clock)
    replica = open_side("replica", work / "replica", dumps, session, clock)
    executor = SparkExecutor(spark=session, kernel=BucketKernel(resolver=FsspecResolver()))
    story = Story(
        source,
        replica,
        dumps=dumps,
        worker=make_worker(source.store.metastore, always(executor)),
        clock=clock,
        say=click.echo,
    )
    try:
        is_passed = story.play()
    finally:
        source.store.metastore.close()
        replica.store.metastore.close()
        stop_spark(session)
    click.echo(f"\n{time.monotonic() - started:.0f} s. Look around in {work}")
    for failure in story.failures:
        click.echo(f"WRONG: {failure}")
    click.echo("PASS" if is_passed else "FAIL")
    if not is_passed:
        raise SystemExit(1)


def _clear(work: Path) -> None:
    """Remove an earlier demo, and nothing else."""
    known = {"source", "replica", "dumps"}
    if work.exists():
        strangers = sorted(path.name for path in work.iterdir() if path.name not in known)
        if strangers:
            raise ConfigError(
                f"{work} has {strangers[0]} in it, which no demo made; choose another"
            )
        for name in known:
            shutil.rmtree(work / name, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
