"""What makes, discards and expires dumps is put together in one way."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from hms_bridge.cli.output import say
from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import Settings
from hms_bridge.metastore import Metastore

if TYPE_CHECKING:
    from changemanager.manifest import ArchiveManifest
    from hms_bridge.repl.dump.verb import DumpVerb

Job = TypeVar("Job", bound="DumpVerb")


def dump_job(
    kind: type[Job], metastore: Metastore, manifest: ArchiveManifest | None, settings: Settings
) -> Job:
    """A job of a kind on a source; a person reads why it waits for another one. Raises ConfigError
    for an archive that is not the source's."""
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.connect import known_archive_root

    resolve = file_systems(settings)
    if manifest is not None and settings.archive.is_enabled:
        known_archive_root(settings, manifest, resolve)
    return kind(
        metastore,
        resolve,
        SystemClock(),
        new_name,
        manifest,
        on_waiting=say,
    )


def new_name() -> str:
    """Of a dump, or of a place that is used once."""
    return str(uuid4())
