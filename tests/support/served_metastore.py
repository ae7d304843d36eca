"""A metastore of ours on SQLite behind a real port, for clients that others wrote, and for calls by
name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hms_bridge.client.addresses import Address
from hms_bridge.client.caller import Caller, CallSettings
from hms_bridge.clock import Clock, SystemClock
from hms_bridge.metastore import LocalMetastore
from hms_bridge.server.serve import MetastoreServer
from tests.support.installation import Installation


@dataclass(frozen=True)
class ServedMetastore:
    """Where it listens, where tables lie, the metastore itself and its database.

    ``call`` sends any thrift method: its name, then its arguments by theirs.
    """

    port: int
    warehouse: Path
    metastore: LocalMetastore
    database_url: str
    call: Callable[..., Any]

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"


@contextmanager
def served_metastore(
    folder: Path, clock: Clock | None = None, **settings: Any
) -> Iterator[ServedMetastore]:
    # Where the recorded Hive had its external tables.
    external = str(folder / "warehouse-ext")
    world = Installation(
        folder,
        clock=clock or SystemClock(),
        deletion_roots=(external,),
        external_warehouse=external,
        **settings,
    )
    config = {
        "hive.metastore.warehouse.dir": str(world.warehouse),
        "hive.metastore.warehouse.external.dir": external,
    }
    try:
        identity = world.store.database_id()
        with MetastoreServer(0, world.metastore, config=config, database_uuid=identity) as server:
            address = (Address("127.0.0.1", server.port),)
            caller = Caller(address, CallSettings(attempts=1), SystemClock())
            yield ServedMetastore(
                server.port, world.warehouse, world.metastore, world.url, caller.call
            )
            caller.close()
    finally:
        world.close()
