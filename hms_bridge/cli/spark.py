"""``hms-bridge spark``: what executors need, whether they have it, and plans for Spark."""

from __future__ import annotations

from pathlib import Path

import click

from hms_bridge.cli.options import format_option, settings_options
from hms_bridge.cli.output import print_record, print_rows, say
from hms_bridge.cli.progress import working
from hms_bridge.cli.spark_options import spark_options
from hms_bridge.cli.spark_plans import plans
from hms_bridge.config.settings import Settings
from hms_bridge.errors import ConfigError
from hms_bridge.spark.request import SparkRequest

_COLUMNS = ("host", "python", "executable", "lacks", "differs")


@click.group()
def spark() -> None:
    """For Spark: build what executors need, check that they have it, plan what others read.

    \b
    Example:
      hms-bridge spark package --output ./for-spark --environment
    """


spark.add_command(plans)


@spark.command()
@click.option(
    "--output",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="A folder for the files; those of an earlier call are replaced.",
)
@click.option(
    "--environment",
    "is_with_environment",
    is_flag=True,
    help="Also pack the Python packages that tasks import, for hosts that have only Python.",
)
@format_option
def package(output: Path, is_with_environment: bool, output_format: str) -> None:
    """Write what executors need: a zip of this program's packages, with --environment an archive
    of the Python packages that its tasks import, and the settings of Spark that use them.

    Hosts need a Python of the same minor version as this one. Give the settings with
    --spark-properties, or append them to spark-defaults.conf.

    \b
    Examples:
      hms-bridge spark package --output ./for-spark --environment
      hms-bridge sql --master spark://HOST:7077 --spark-properties ./for-spark/spark.properties
    """
    from hms_bridge.spark.package import build_package

    with working("packing"):
        built = build_package(output, is_with_environment=is_with_environment)
    record: dict[str, object] = {"settings": str(built.properties)}
    record |= dict(built.settings)
    if built.distributions:
        record["packages"] = list(built.distributions)
    print_record(record, output_format)


@spark.command()
@click.option(
    "--location",
    "locations",
    multiple=True,
    metavar="URI",
    help="A place that executors must reach, as hdfs://HOST:8020/warehouse. May be repeated.",
)
@format_option
@spark_options
@settings_options
def check(
    locations: tuple[str, ...],
    output_format: str,
    spark: SparkRequest,
    settings: Settings,
) -> None:
    """Start Spark and ask its executors what they lack: another Python, packages, another version
    of this program, a file system that they cannot reach. Ends with 1 if anything lacks.

    Verbs that use a cluster ask the same before they start, but for locations.

    \b
    Examples:
      hms-bridge spark check --master spark://HOST:7077 --location hdfs://HOST:8020/warehouse
      hms-bridge spark check --master yarn --spark-properties ./for-spark/spark.properties
    """
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.spark.executor_check import (
        differing_versions,
        look_at_executors,
        look_at_locations,
    )
    from hms_bridge.spark.session import open_session, stop_spark

    with working("asking the executors"):
        session = open_session(
            "hms-bridge spark check",
            master=spark.master,
            settings=spark.settings,
            is_checked=False,
        )
        try:
            looked = look_at_executors(session)
            lacking = [f"{executor.host}: {text}" for executor in looked for text in executor.lacks]
            if locations and not lacking:
                seen = look_at_locations(session, file_systems(settings), locations)
                lacking += [f"{host}: {uri}: {wrong}" for host, uri, wrong in seen if wrong]
        finally:
            stop_spark(session)
    rows = [
        {
            "host": executor.host,
            "python": executor.python,
            "executable": executor.executable,
            "lacks": list(executor.lacks),
            "differs": [
                f"{name} {theirs}, here {ours}"
                for name, (theirs, ours) in differing_versions(executor).items()
            ],
        }
        for executor in looked
    ]
    print_rows(rows, _COLUMNS, output_format)
    if lacking:
        raise ConfigError(
            f"executors cannot run tasks: {'; '.join(lacking)}; see 'hms-bridge spark package "
            "--help' for how to give them what they lack"
        )
    say("executors have what tasks need")
