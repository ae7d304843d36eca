"""How a load copies, as ``repl load`` and ``repl run`` are asked for it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from hms_bridge.cli.spark_options import spark_options, start_spark
from hms_bridge.config.repl import BY_SPARK, BY_THREADS
from hms_bridge.config.settings import Settings
from hms_bridge.errors import ConfigError
from hms_bridge.spark.request import SparkRequest

if TYPE_CHECKING:
    from hms_bridge.repl.load.distributed import CopyJob


@dataclass(frozen=True, kw_only=True, slots=True)
class CopyOptions:
    """``is_quick``: before anything is changed files are looked for by name only,
    ``is_read_first``: every byte is read. ``bandwidth``: bytes a second, as people write them.
    ``copy_with``: what copies what is large; ``spark``: the Spark for it. What is not given is as
    the settings say."""

    is_quick: bool = False
    is_read_first: bool = False
    bandwidth: str | None = None
    copy_with: str | None = None
    spark: SparkRequest = field(default_factory=SparkRequest)


def copy_options(command: Callable[..., object]) -> Callable[..., object]:
    """``--quick``, ``--check-first``, ``--bandwidth``, ``--copy-with`` and what Spark needs; the
    verb gets ``copying``."""

    @click.option(
        "--quick", "is_quick", is_flag=True, help="Look for all files by name only at first."
    )
    @click.option(
        "--check-first",
        "is_read_first",
        is_flag=True,
        help="Read every byte before anything is changed, and again as it is copied.  "
        "[default: setting]",
    )
    @click.option(
        "--bandwidth",
        metavar="SIZE",
        help="Copy so much a second at most, such as 50MiB.  [default: setting]",
    )
    @click.option(
        "--copy-with",
        type=click.Choice([BY_THREADS, BY_SPARK]),
        help="What copies many large files: threads of this process, or tasks of Spark.  "
        "[default: setting]",
    )
    @spark_options
    @functools.wraps(command)
    def with_copying(
        *args: object,
        is_quick: bool,
        is_read_first: bool,
        bandwidth: str | None,
        copy_with: str | None,
        spark: SparkRequest,
        **kwargs: object,
    ) -> object:
        if is_quick and is_read_first:
            raise click.UsageError(
                "--quick looks at names only, --check-first at every byte: give one"
            )
        copying = CopyOptions(
            is_quick=is_quick,
            is_read_first=is_read_first,
            bandwidth=bandwidth,
            copy_with=copy_with,
            spark=spark,
        )
        return command(*args, copying=copying, **kwargs)

    return with_copying


@contextmanager
def copy_job(copying: CopyOptions | None, settings: Settings) -> Iterator[CopyJob | None]:
    """What copies many large files of a load; None: threads of this process. Spark starts once it
    is needed, and stops with the block. Raises ConfigError for a Spark that nothing asks for."""
    copying = copying or CopyOptions()
    if (copying.copy_with or settings.repl.copy_with) != BY_SPARK:
        if copying.spark != SparkRequest():
            raise ConfigError("--master and --spark are for --copy-with spark: give that, too")
        yield None
        return
    from hms_bridge.spark.copy_job import SparkCopyJob

    job = SparkCopyJob(lambda: start_spark(copying.spark, "hms-bridge repl load"))
    try:
        yield job
    finally:
        job.close()
