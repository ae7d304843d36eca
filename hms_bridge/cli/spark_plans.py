"""``hms-bridge spark plans``."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import click

from changemanager.masking import masked_url
from hms_bridge.cli.logs import logging_options
from hms_bridge.cli.options import format_option, metastore_option, settings_options
from hms_bridge.cli.output import print_record, say
from hms_bridge.config.settings import Settings
from hms_bridge.server.stop_requests import StopRequests

_EVERYWHERE = ("", "0.0.0.0", "::")


@click.command()
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; 0.0.0.0 for all. Beyond this machine nothing is encrypted.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="With one of its own, settings of Spark's hold for the next start, too.  [default: a free "
    "one]",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    default="spark-plans.token",
    show_default=True,
    help="What Spark proves itself by; made, for its owner alone, if it is not there.",
)
@click.option(
    "--catalog", "name", default="acid", show_default=True, help="The catalog's name in Spark."
)
@click.option(
    "--session-catalog",
    "has_session_catalog",
    is_flag=True,
    help="ACID tables are found by names of two parts, too, among Spark's own.",
)
@metastore_option
@format_option
@logging_options
@settings_options
def plans(
    host: str,
    port: int,
    token_file: Path,
    name: str,
    has_session_catalog: bool,
    metastore_url: str,
    output_format: str,
    settings: Settings,
) -> None:
    """Let programs without Python read ACID tables in Spark: spark-sql, Spark's servers, Java.
    Prints the settings that they need, for spark-defaults.conf, and plans what they read until it
    is interrupted; then all of their snapshots end.

    It is ready when it says "serving plans" on standard error. Only the driver of a Spark
    application asks it.

    \b
    Examples:
      hms-bridge spark plans --metastore thrift://127.0.0.1:9083 > plans.conf
      hms-bridge spark plans --port 7420 --token-file /etc/hms-bridge/plans.token --session-catalog
    """
    from hms_bridge.plans.token_file import kept_token
    from hms_bridge.server.door import is_beyond_this_machine
    from hms_bridge.spark.jar import JAR
    from hms_bridge.spark.plan_server import serving_plans, spark_settings

    token = kept_token(token_file)
    requests = StopRequests(on_second=lambda: os._exit(1))
    requests.listen()
    with serving_plans(metastore_url, settings, host=host, port=port, token=token) as endpoint:
        url = _reachable(endpoint.url, host)
        options = {"url": url, "token-file": str(token_file.resolve())}
        catalogs = spark_settings(name, options, has_session_catalog=has_session_catalog)
        _print({"spark.jars": str(JAR), **catalogs}, output_format)
        if is_beyond_this_machine(host):
            say(
                "nothing is encrypted: who sees the traffic to this port has the token, and reads "
                "what tables and files there are; let only trusted hosts reach it"
            )
        say(f"serving plans at {url} over {masked_url(metastore_url)}")
        requests.wait()
        say("stopping")


def _print(settings: dict[str, str], output_format: str) -> None:
    """For people as spark-defaults.conf has it, in whole lines."""
    if output_format != "table":
        print_record(settings, output_format)
        return
    for key, value in settings.items():
        click.echo(f"{key} {value}")


def _reachable(url: str, host: str) -> str:
    """What other hosts call this one, if it listens on all addresses."""
    return f"http://{socket.getfqdn()}:{url.rpartition(':')[2]}" if host in _EVERYWHERE else url
