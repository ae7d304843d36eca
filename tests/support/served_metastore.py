"""A metastore of ours on SQLite behind a real port, for clients that others wrote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hms_bridge.clock import SystemClock
from hms_bridge.metastore import LocalMetastore
from hms_bridge.server.serve import MetastoreServer
from tests.support.installation import Installation


@dataclass(frozen=True)
class ServedMetastore:
    """Where it listens, where tables lie, and the metastore itself."""

    port: int
    warehouse: Path
    metastore: LocalMetastore

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"


@contextmanager
def served_metastore(folder: Path) -> Iterator[ServedMetastore]:
    # Where the recorded Hive had its external tables.
    external = str(folder / "warehouse-ext")
    world = Installation(folder, clock=SystemClock(), deletion_roots=(external,))
    config = {"hive.metastore.warehouse.dir": str(world.warehouse)}
    try:
        with MetastoreServer(0, world.metastore, config=config) as server:
            yield ServedMetastore(server.port, world.warehouse, world.metastore)
    finally:
        world.close()
