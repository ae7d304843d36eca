"""The one place where the archive and the delete protocol are put together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from changemanager.archive import ChangeManager
from changemanager.delete_protocol import DeleteProtocol
from changemanager.location import Resolver
from changemanager.manifest import ArchiveManifest
from hms_bridge.clock import Clock
from hms_bridge.config.file_systems import archive_config
from hms_bridge.config.settings import ArchiveSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class Archiving:
    """What an archive and a delete protocol are made of.

    ``cmroot`` is the archive's absolute place, asked for only where it is needed; ``place`` makes
    any other directory of the settings absolute.
    """

    settings: ArchiveSettings
    cmroot: Callable[[], str]
    place: Callable[[str], str]
    resolve: Resolver
    manifest: ArchiveManifest
    clock: Clock
    new_id: Callable[[], str]

    def change_manager(self) -> ChangeManager:
        """The archive, whether or not it is on. Raises ConfigError, ChangeManagerError."""
        config = archive_config(
            self.settings,
            cmroot=self.cmroot(),
            trash=self.place(self.settings.trash) if self.settings.trash else None,
        )
        return ChangeManager(config, self.resolve, self.manifest, self.clock, self.new_id)

    def delete_protocol(self) -> DeleteProtocol:
        """It archives first what must be kept, if the archive is on. Raises as above."""
        return DeleteProtocol(
            resolve=self.resolve,
            intents=self.manifest,
            archive=self.change_manager() if self.settings.is_enabled else None,
            clock=self.clock,
            new_id=self.new_id,
        )
