"""From settings to file systems and the archive's own settings."""

from __future__ import annotations

from functools import partial

from changemanager.config import ChangeManagerConfig
from changemanager.filesystem.opening import one_name_of, open_volume
from changemanager.location import FsspecResolver
from hms_bridge.config.settings import ArchiveSettings, Settings


def file_systems(settings: Settings) -> FsspecResolver:
    """What opens paths and URIs. It can be pickled, and brings Hadoop's configuration along."""
    hadoop = settings.hadoop
    return FsspecResolver(
        partial(open_volume, hadoop=hadoop),
        hadoop.default_fs,
        partial(one_name_of, hadoop=hadoop),
    )


def archive_config(
    archive: ArchiveSettings, *, cmroot: str, trash: str | None
) -> ChangeManagerConfig:
    """The ChangeManager's settings; the two places are absolute. Raises ChangeManagerError."""
    return ChangeManagerConfig(
        cmroot=cmroot,
        retain_ms=archive.retain_ms,
        interval_seconds=archive.interval_ms / 1000,
        trash=trash,
        trash_retain_ms=archive.trash_retain_ms,
        is_elsewhere_allowed=archive.is_elsewhere_allowed,
        budget=archive.budget,
    )
