"""``hms-bridge serve``."""

from __future__ import annotations

import gc
import os
import signal
import threading
from contextlib import ExitStack
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING

import click

from hms_bridge.cli.logs import logging_options
from hms_bridge.cli.options import database_option, settings_options
from hms_bridge.cli.output import say
from hms_bridge.cli.serve_daemons import AskedDaemons, start_daemons
from hms_bridge.cli.serve_metrics import counted_calls, metrics_served
from hms_bridge.cli.spark_options import spark_options
from hms_bridge.config.settings import (
    EXTERNAL_WAREHOUSE,
    MAX_MESSAGE_SIZE,
    MAX_OPEN_BATCH,
    TXN_TIMEOUT,
    WAREHOUSE,
    Settings,
)
from hms_bridge.spark.request import SparkRequest

if TYPE_CHECKING:
    from hms_bridge.connect import LocalStore
    from hms_bridge.server.dispatch import CallWatch
    from hms_bridge.server.serve import MetastoreServer

_GARBAGE_THRESHOLD = 20_000


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), help="0 picks a free one.  [default: 9083]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Tell metrics over HTTP there, at /metrics; 0 picks a free one.  [default: setting, off]",
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
    metrics_port: int | None,
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
    first.

    \b
    Examples:
      hms-bridge serve --database sqlite:///metastore.db --warehouse ./warehouse --port 9083
      hms-bridge serve --config hive-site.xml --initiator --worker --cleaner --log-format json
      hms-bridge serve --metrics-port 9464
    """
    from hms_bridge.config.jdbc import url_without_password
    from hms_bridge.connect import absolute_location, connected_locally

    asked = AskedDaemons(
        is_worker=is_worker,
        is_initiator=is_initiator,
        is_cleaner=is_cleaner,
        pool_name=pool_name,
    )
    if warehouse is not None:
        place = absolute_location(warehouse, settings.hadoop)
        settings = replace(settings, warehouse=place)
    with ExitStack() as stack:
        store = stack.enter_context(connected_locally(metastore_url, settings))
        if settings.archive.is_enabled:
            _prepare_archive(store)
        calls = counted_calls(settings.metrics, metrics_port)
        server = _server(store, host=host, port=port, watch=None if calls is None else calls.note)
        stopping = threading.Event()
        _stop_on_signals(stopping)
        server.start()
        stack.callback(server.stop)
        start_daemons(store, stack, asked, spark)
        stack.enter_context(metrics_served(store, metrics_port, calls))
        _stop_on_signals(stopping)  # Spark's session takes Ctrl-C for itself
        _spare_garbage_collections()
        _say_places(settings)
        say(f"serving thrift://{host}:{server.port} over {url_without_password(metastore_url)}")
        while not stopping.wait(0.5):
            pass
        say("stopping")


def _spare_garbage_collections() -> None:
    """What is loaded by now stays. Else each full collection goes through all of it again, and the
    answer with a thousand partitions is reason enough for one: tens of thousands of objects, none
    of which is garbage yet."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GARBAGE_THRESHOLD)


def _server(
    store: LocalStore, *, host: str, port: int | None, watch: CallWatch | None
) -> MetastoreServer:
    from hms_bridge.server.serve import MetastoreServer

    settings = store.settings
    return MetastoreServer(
        settings.server.port if port is None else port,
        store.metastore,
        host=host,
        config=_client_config(settings),
        limits=settings.server,
        watch=watch,
    )


def _prepare_archive(store: LocalStore) -> None:
    """As Hive's metastore does at its start. Raises ChangeManagerError, ConfigError."""
    from hms_bridge.connect import absolute_location

    settings = store.settings
    archive = store.archive()
    warehouse = absolute_location(settings.warehouse, settings.hadoop, key=WAREHOUSE.name)
    archive.require_beside(store.resolver(warehouse))
    archive.prepare()


def _say_places(settings: Settings) -> None:
    """A path without scheme means another place where Hadoop's configuration is not found."""
    from hms_bridge.connect import absolute_location, archive_root

    warehouse = absolute_location(settings.warehouse, settings.hadoop, key=WAREHOUSE.name)
    archive = archive_root(settings) if settings.archive.is_enabled else "off"
    say(f"warehouse {warehouse}, archive {archive}")


def _client_config(settings: Settings) -> dict[str, str]:
    """What get_config_value answers, by every name that Hive has for it.

    Hive's session asks for the warehouse, Trino for the time after which a transaction without
    a heartbeat ends, HCatalog for the name of a partition whose column is null.
    """
    from hms_bridge.model.catalog import DEFAULT_PARTITION_VALUE
    from hms_bridge.service.locations import warehouse_uri

    default_fs = settings.hadoop.default_prefix
    answers = {
        WAREHOUSE: warehouse_uri(settings.warehouse, default_fs),
        EXTERNAL_WAREHOUSE: warehouse_uri(
            settings.external_warehouse or settings.warehouse, default_fs
        ),
        TXN_TIMEOUT: f"{settings.txn.timeout_ms}ms",
        MAX_OPEN_BATCH: str(settings.txn.open_batch_max),
        MAX_MESSAGE_SIZE: str(settings.server.message_size_bytes_max),
    }
    return {
        "metastore.default.partition.name": DEFAULT_PARTITION_VALUE,
        "hive.exec.default.partition.name": DEFAULT_PARTITION_VALUE,
        **{name: text for key, text in answers.items() for name in key.names},
    }


def _stop_on_signals(stopping: threading.Event) -> None:
    """The first one stops in order; a second one, at once: whatever is cut off can be gone on
    with, as after a kill."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        if stopping.is_set():
            os._exit(1)
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
