"""What ``hms-bridge serve`` is made of, in one process or in each of several."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hms_bridge.cli.output import say
from hms_bridge.cli.serve_daemons import AskedDaemons
from hms_bridge.config.settings import (
    EXTERNAL_WAREHOUSE,
    MAX_MESSAGE_SIZE,
    MAX_OPEN_BATCH,
    TXN_TIMEOUT,
    WAREHOUSE,
    Settings,
)
from hms_bridge.errors import ConfigError
from hms_bridge.spark.request import SparkRequest

if TYPE_CHECKING:
    from hms_bridge.connect import LocalStore
    from hms_bridge.metrics.call_times import CallTimes
    from hms_bridge.server.dispatch import CallWatch
    from hms_bridge.server.door import Entrance
    from hms_bridge.server.gate import Gate
    from hms_bridge.server.serve import MetastoreServer


@dataclass(frozen=True, kw_only=True, slots=True)
class ServeRequest:
    """What the command line asks for."""

    metastore_url: str
    settings: Settings
    host: str
    is_beyond_this_machine: bool
    port: int
    gate: Gate
    metrics_port: int | None
    daemons: AskedDaemons
    spark: SparkRequest


def make_server(
    request: ServeRequest,
    store: LocalStore,
    watch: CallWatch | None,
    entrance: Entrance | None = None,
) -> MetastoreServer:
    """The server, which does not listen yet; within the limits of the store's settings."""
    from hms_bridge.server.serve import MetastoreServer

    return MetastoreServer(
        request.port,
        store.metastore,
        host=request.host,
        config=_client_config(store.settings),
        database_uuid=store.database_id(),
        limits=store.settings.server,
        watch=watch,
        entrance=entrance,
        gate=request.gate,
    )


def require_word(host: str, port: int, *, is_insecure: bool) -> bool:
    """Whether other machines reach the port. Raises ConfigError, with the command that opens it, if
    they do and the command line does not say so."""
    from hms_bridge.server.door import is_beyond_this_machine

    is_beyond = is_beyond_this_machine(host)
    if is_insecure or not is_beyond:
        return is_beyond
    raise ConfigError(
        f"--host {host} lets other machines in, and nobody is authenticated: whoever reaches the "
        "port may change all databases; let only trusted hosts reach it, and say so: hms-bridge "
        f"serve --host {shlex.quote(host)} --port {port} --insecure, with your other options"
    )


def counted_calls(request: ServeRequest, processes: int = 1) -> CallTimes | None:
    """What counts the calls of a server; None where nobody would read it."""
    if request.metrics_port is None:
        return None
    from hms_bridge.metrics.call_times import CallTimes
    from hms_bridge.server.serve import offered_names

    return CallTimes(offered_names(), processes)


def prepare_store(store: LocalStore) -> None:
    """What Hive's metastore does at each start: administrators that the settings name, and the
    archive; and which folder relative places are of. Raises ChangeManagerError, ConfigError."""
    from hms_bridge.connect import absolute_location

    settings = store.settings
    store.note_folder()
    if settings.admins:
        store.metastore.add_admins()
    if not settings.archive.is_enabled:
        return
    archive = store.archive()
    warehouse = absolute_location(settings.warehouse, settings.hadoop, key=WAREHOUSE.name)
    archive.require_beside(store.resolver(warehouse))
    archive.prepare()


def say_ready(request: ServeRequest, port: int) -> None:
    """The line that whoever starts a server waits for. A path without scheme means another place
    where Hadoop's configuration is not found."""
    from changemanager.masking import masked_url
    from hms_bridge.client.addresses import Address
    from hms_bridge.connect import absolute_location, archive_root

    settings = request.settings
    warehouse = absolute_location(settings.warehouse, settings.hadoop, key=WAREHOUSE.name)
    archive = archive_root(settings) if settings.archive.is_enabled else "off"
    address = Address(request.host, port)
    say(f"warehouse {warehouse}, archive {archive}")
    if request.is_beyond_this_machine:
        say(
            f"insecure: nobody is authenticated at {address}; everybody who reaches it reads and "
            "changes databases, tables, partitions and transactions; "
            f"{request.gate.open_to}"
        )
    say(f"serving {address} over {masked_url(request.metastore_url)}")


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
