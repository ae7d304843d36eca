"""Copies for the archive of what others delete: the metastore itself removes nothing there."""

from __future__ import annotations

import logging

from changemanager.archive import ChangeManager
from changemanager.errors import ChangeManagerError, DirectoryChangedError, PathNotContainedError
from changemanager.filesystem.volume import FileKind
from changemanager.manifest import ArchiveContext
from changemanager.recycle import RecycleKind
from hms_bridge.errors import MetaError
from hms_bridge.service.locations import parent
from hms_bridge.service.warehouse_files import WarehouseFiles

_LOG = logging.getLogger(__name__)


class ArchiveCopies:
    """Copies files into the archive; None: there is no archive."""

    def __init__(self, files: WarehouseFiles, archive: ChangeManager | None) -> None:
        self._files = files
        self._archive = archive

    def archive_copy(self, location: str, context: ArchiveContext) -> None:
        """Copy a file, which is not ours to delete, into the archive, for dumps that name it.
        Nothing for what is gone or no plain file; what lies below no known root, where a client may
        name any file, and what the archive does not take, is logged. Raises MetaError."""
        if self._archive is None:
            return
        try:
            root = self._files.known_root(location)
            place = self._archive.resolve(location)
            status = place.status()
            if status is None or status.kind is not FileKind.FILE:
                return
            self._archive.require_beside(place)
        except (ChangeManagerError, MetaError) as error:
            _LOG.warning("%s is not archived: %s", location, error)
            return
        except OSError as error:
            raise MetaError(f"{location} cannot be archived: {error}; try again") from error
        try:
            self._archive.recycle(
                place.uri, RecycleKind.COPY, is_purge=True, root=root, context=context
            )
        except DirectoryChangedError:
            _LOG.warning("%s is not archived: it went meanwhile", location)
        except PathNotContainedError as error:
            _LOG.warning("%s is not archived: %s", location, error)
        except (ChangeManagerError, OSError) as error:
            raise MetaError(f"{location} cannot be archived: {error}; try again") from error

    def archive_before_removal(self, location: str, context: ArchiveContext) -> None:
        """Copy what is at a place into the archive, because its client removes it next; nothing for
        a place that is gone. Raises MetaError: then it must stay."""
        if self._archive is None:
            return
        try:
            place = self._archive.resolve(location)
            if place.status() is None:
                return
            self._archive.require_beside(place)
            self._archive.recycle(
                place.uri, RecycleKind.COPY, is_purge=True, root=parent(place.uri), context=context
            )
        except (ChangeManagerError, OSError) as error:
            raise MetaError(
                f"{location} cannot be archived: {error}; do not remove it, and try again"
            ) from error
