"""From a URL to a metastore: a database that is opened directly, or a server over thrift.

The library's front door::

    from hms_bridge.connect import connected

    with connected("sqlite:////data/metastore.db") as metastore:
        print(metastore.get_databases())
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from changemanager.archive import ChangeManager
from changemanager.config import ChangeManagerConfig
from changemanager.location import FsspecResolver, Resolver
from changemanager.manifest import ArchiveManifest
from hms_bridge.backend.engine import open_database
from hms_bridge.backend.schema.install import schema_info
from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.clock import Clock, SystemClock
from hms_bridge.config.settings import Settings
from hms_bridge.errors import ConfigError
from hms_bridge.metastore import LocalMetastore, Metastore
from hms_bridge.service.open import open_local_metastore

_SQLITE = "sqlite:///"


@dataclass(frozen=True, kw_only=True)
class LocalStore:
    """A metastore over its own database, with the archive that stands beside it."""

    metastore: LocalMetastore
    manifest: ArchiveManifest
    resolver: Resolver
    clock: Clock
    settings: Settings

    def archive(self) -> ChangeManager:
        """The ChangeManager of the settings. Raises ChangeManagerError for a bad one."""
        archive = self.settings.archive
        config = ChangeManagerConfig(
            cmroot=absolute_location(archive.root),
            retain_ms=archive.retain_ms,
            interval_seconds=archive.interval_ms / 1000,
        )
        return ChangeManager(config, self.resolver, self.manifest, self.clock, lambda: uuid4().hex)


def open_metastore(url: str, settings: Settings | None = None) -> Metastore:
    """A metastore. Raises ConfigError for a URL that is none."""
    if url.startswith("thrift://"):
        return ThriftMetastoreClient(url)
    return open_local(url, settings).metastore


def open_local(
    url: str, settings: Settings | None = None, clock: Clock | None = None
) -> LocalStore:
    """A metastore over its own database, whose tables are made if there are none.

    Raises ConfigError for a thrift address or another text that is no database URL.
    """
    if "://" not in url or url.startswith("thrift://"):
        raise ConfigError(
            f"{url} is no database; this needs the metastore's database, as sqlite:///metastore.db"
        )
    chosen, time, resolver = settings or Settings(), clock or SystemClock(), FsspecResolver()
    service = open_local_metastore(
        shareable_url(url),
        warehouse=absolute_location(chosen.warehouse),
        settings=chosen,
        clock=time,
        resolve=resolver,
    )
    return LocalStore(
        metastore=service,
        manifest=service.manifest,
        resolver=resolver,
        clock=time,
        settings=chosen,
    )


@contextmanager
def connected(url: str, settings: Settings | None = None) -> Iterator[Metastore]:
    """A metastore for the length of a block."""
    metastore = open_metastore(url, settings)
    try:
        yield metastore
    finally:
        metastore.close()


@contextmanager
def connected_locally(
    url: str, settings: Settings | None = None, clock: Clock | None = None
) -> Iterator[LocalStore]:
    """A metastore's own database for the length of a block."""
    store = open_local(url, settings, clock)
    try:
        yield store
    finally:
        store.metastore.close()


def shareable_url(url: str) -> str:
    """The same for another process with another working directory."""
    if url.startswith(_SQLITE) and not url.startswith(f"{_SQLITE}/") and url != _SQLITE:
        path = url.removeprefix(_SQLITE)
        if not path.startswith(":"):
            return f"{_SQLITE}{Path(path).resolve()}"
    return url


def absolute_location(text: str) -> str:
    """A path or URI that means the same everywhere; relative paths are of this directory."""
    if ":/" in text or text.startswith("/"):
        return text.rstrip("/") or "/"
    return str(Path(text).resolve())


def install_schema(url: str, settings: Settings) -> None:
    """Make the tables that are missing, and the default database."""
    open_local(url, settings).metastore.close()


def describe_schema(url: str) -> dict[str, object]:
    """What schema a database has, and what it lacks."""
    database = open_database(shareable_url(url))
    try:
        found = schema_info(database)
    finally:
        database.close()
    return {
        "database": database.name,
        "version": found.version,
        "usable": found.is_complete,
        "missing tables": list(found.missing_tables),
        "missing columns": list(found.missing_columns),
    }
