"""A metastore of ours on SQLite behind a real port, for clients that others wrote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hms_bridge.config.settings import ArchiveSettings, Settings
from hms_bridge.metastore import LocalMetastore
from hms_bridge.server.serve import MetastoreServer
from hms_bridge.service.open import open_local_metastore


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
    warehouse = folder / "warehouse"
    service = open_local_metastore(
        f"sqlite:///{folder}/metastore.db",
        settings=Settings(
            warehouse=str(warehouse),
            # Where the recorded Hive had its external tables.
            deletion_roots=(f"{warehouse}-ext",),
            archive=ArchiveSettings(root=str(folder / "cmroot")),
        ),
    )
    config = {"hive.metastore.warehouse.dir": str(warehouse)}
    try:
        with MetastoreServer(0, service, config=config) as server:
            yield ServedMetastore(server.port, warehouse, service)
    finally:
        service.close()
