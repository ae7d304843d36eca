"""``hms-bridge serve``."""

from __future__ import annotations

import getpass
import os
from contextlib import ExitStack
from dataclasses import replace

import click

from hms_bridge.cli.garbage import spare_what_is_loaded
from hms_bridge.cli.logs import logging_options
from hms_bridge.cli.options import database_option, settings_options
from hms_bridge.cli.output import say
from hms_bridge.cli.serve_daemons import AskedDaemons, start_daemons
from hms_bridge.cli.serve_metrics import SharedMetrics, metrics_served
from hms_bridge.cli.serve_parts import (
    ServeRequest,
    counted_calls,
    make_server,
    prepare_store,
    require_word,
    say_ready,
)
from hms_bridge.cli.spark_options import spark_options
from hms_bridge.config.protection import Protected, require_none
from hms_bridge.config.settings import Settings
from hms_bridge.interrupts import stopped_by_sigterm
from hms_bridge.server.stop_requests import StopRequests
from hms_bridge.spark.request import SparkRequest


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="0 picks a free one.  [default: setting metastore.thrift.port, 9083]",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; 0.0.0.0 for all. No setting of Hive's says it.",
)
@click.option(
    "--insecure",
    "is_insecure",
    is_flag=True,
    help="Listen beyond this machine, though nobody is authenticated: whoever reaches the port may "
    "change all databases.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Tell metrics over HTTP there, at /metrics; 0 picks a free one.  [default: setting, off]",
)
@click.option(
    "--processes",
    type=click.IntRange(1, 64),
    help="How many answer clients; with more than one, another one does all else.  "
    "[default: setting, 1]",
)
@click.option("--warehouse", metavar="DIR", help="Where managed tables live.")
@click.option(
    "--worker", "is_worker", is_flag=True, help="Also take compactions; large ones run on Spark."
)
@click.option("--pool", "pool_name", metavar="NAME", help="Its workers take this pool's only.")
@click.option("--initiator", "is_initiator", is_flag=True, help="Also queue what needs compaction.")
@click.option("--cleaner", "is_cleaner", is_flag=True, help="Also run the cleaner and the purge.")
@logging_options
@database_option
@spark_options
@settings_options
def serve(
    port: int | None,
    host: str,
    is_insecure: bool,
    metrics_port: int | None,
    processes: int | None,
    warehouse: str | None,
    is_worker: bool,
    pool_name: str | None,
    is_initiator: bool,
    is_cleaner: bool,
    metastore_url: str,
    spark: SparkRequest,
    settings: Settings,
) -> None:
    """Run the metastore server until it is interrupted.

    Hive, Spark, Trino, PyIceberg and hmsclient connect to thrift://HOST:PORT. It is ready when it
    says "serving thrift://…" on standard error; SIGTERM and Ctrl-C stop it, a second one at once.
    A SQLite file is made if it is not there; in a database server, run "hms-bridge schema init"
    first. One that does not answer yet is waited for (hms.bridge.database.start.wait).

    \b
    Examples:
      hms-bridge serve --database sqlite:///metastore.db --warehouse ./warehouse --port 9083
      hms-bridge serve --config hive-site.xml --initiator --worker --cleaner --log-format json
      hms-bridge serve --metrics-port 9464 --processes 4
    """
    from hms_bridge.connect import absolute_location
    from hms_bridge.server.gate import Gate

    require_none(settings.access.asked, Protected.PORT, is_insecure=is_insecure)
    if warehouse is not None:
        place = absolute_location(warehouse, settings.hadoop)
        settings = replace(settings, warehouse=place)
    chosen_port = settings.server.port if port is None else port
    request = ServeRequest(
        metastore_url=metastore_url,
        settings=settings,
        host=host,
        is_beyond_this_machine=require_word(host, chosen_port, is_insecure=is_insecure),
        port=chosen_port,
        gate=Gate(settings.access, getpass.getuser()),
        metrics_port=settings.metrics.port if metrics_port is None else metrics_port,
        daemons=AskedDaemons(
            is_worker=is_worker,
            is_initiator=is_initiator,
            is_cleaner=is_cleaner,
            pool_name=pool_name,
        ),
        spark=spark,
    )
    _await_database(request)
    count = settings.server.processes if processes is None else processes
    if count == 1:
        _serve_alone(request)
        return
    from hms_bridge.cli.serve_processes import serve_in_processes

    serve_in_processes(request, count, click.get_current_context().find_root().obj["ending"].run)


def _await_database(request: ServeRequest) -> None:
    from hms_bridge.connect import await_database

    with stopped_by_sigterm():
        await_database(request.metastore_url, request.settings.server.database_wait_ms)


def _serve_alone(request: ServeRequest) -> None:
    from hms_bridge.connect import connected_locally

    with ExitStack() as stack:
        store = stack.enter_context(connected_locally(request.metastore_url, request.settings))
        prepare_store(store)
        calls = counted_calls(request)
        server = make_server(request, store, None if calls is None else calls.counter())
        # Whatever a second signal cuts off can be gone on with, as after a kill.
        requests = StopRequests(on_second=lambda: os._exit(1))
        requests.listen()
        server.start()
        stack.callback(server.stop)
        start_daemons(store, stack, request.daemons, request.spark)
        metrics = SharedMetrics.listening(
            request.settings.metrics, request.metrics_port, calls, is_alone=True
        )
        stack.enter_context(metrics_served(store, metrics))
        requests.listen()  # Spark's session takes Ctrl-C for itself
        spare_what_is_loaded()
        say_ready(request, server.port)
        requests.wait()
        say("stopping")
