"""One side of a replication: its metastore, and the archive's manifest if it can be reached."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hms_bridge.config.settings import Settings
from hms_bridge.metastore import Metastore

if TYPE_CHECKING:
    from changemanager.manifest import ArchiveManifest


@contextmanager
def source_side(url: str, settings: Settings) -> Iterator[tuple[Metastore, ArchiveManifest | None]]:
    """A source, and the manifest in its database; that of a remote one is out of reach."""
    from hms_bridge.connect import connected, connected_locally

    if url.startswith("thrift://"):
        with connected(url, settings, is_created=False) as metastore:
            yield metastore, None
    else:
        with connected_locally(url, settings, is_created=False) as store:
            yield store.metastore, store.manifest
