"""The directories behind the catalog, as verbs make, count and list them.

A directory is made before the transaction that names it; if that fails the directory, still empty,
goes again. What deletes and moves is in file_work.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile

from changemanager.archive import ChangeManager
from changemanager.errors import ChangeManagerError
from changemanager.location import ListedFile
from changemanager.uri import EncodedUri, encode_uri
from hms_bridge.acid.markers import METADATA_FILE, DataFormat, format_metadata
from hms_bridge.acid.names import DirectoryName, is_hidden
from hms_bridge.catalog import places
from hms_bridge.config.settings import LOCATION_ROOTS
from hms_bridge.errors import BackendError, InvalidOperationError, MetaError
from hms_bridge.model.ids import WriteId
from hms_bridge.service.deletion_rule import DeletionRule
from hms_bridge.service.directories import Directories
from hms_bridge.service.file_statistics import FileCount
from hms_bridge.service.locations import WarehouseRoots
from hms_bridge.service.unit_of_work import Transactions

_LOG = logging.getLogger(__name__)


class WarehouseFiles:
    """Makes directories for the service, and looks into them."""

    def __init__(
        self,
        *,
        transactions: Transactions,
        roots: WarehouseRoots,
        directories: Directories,
        is_connected: Callable[[str], bool],
        archive: ChangeManager | None,
    ) -> None:
        self.roots = roots
        self._transactions = transactions
        self._directories = directories
        self.is_connected = is_connected
        self._archive = archive
        self.rule = DeletionRule(roots=roots, real_places=directories.real_places)

    @property
    def cmroot(self) -> str | None:
        """Where files are archived; None if they are not."""
        return None if self._archive is None else self._archive.cmroot.uri

    def make_directory(self, location: str, *, is_external: bool = False) -> bool:
        """Make it; whether it was not there before. Below no known root it is left to who writes
        there first: the server may make and see what its clients may not. So is one of an external
        table, which others keep, where the metastore does not connect to. Raises MetaError."""
        return bool(self.make_directories([location], is_external=is_external))

    def make_directories(self, locations: Sequence[str], *, is_external: bool = False) -> list[str]:
        """Those that were not there before: as :meth:`make_directory`, for many at once. What was
        made before one fails goes again."""
        begun: list[str] = []
        shown = ", ".join(locations[:1]) + (" and others" if len(locations) > 1 else "")
        try:
            known = [place for place in locations if self._is_made_here(place, is_external)]
            self._directories.make_all(known, begun)
        except (OSError, ChangeManagerError, ValueError) as error:
            self.undo_made(begun)
            raise _not_made(shown, error) from error
        return begun

    def _is_made_here(self, location: str, is_external: bool) -> bool:
        if is_external and not self.is_connected(location):
            return False
        if self._is_below_a_root(location):
            return True
        _LOG.info("%s is not made: no directory of %s is above it", location, LOCATION_ROOTS.name)
        return False

    def _is_below_a_root(self, location: str) -> bool:
        return self._directories.is_below_any(location, self.roots.known)

    def count(self, location: str | None) -> FileCount | None:
        """What lies at a place; None if it cannot be read, is too much to be counted, or is below
        no known root: who asks may not be allowed to look there. Not worth a failure."""
        if not location:
            return None
        try:
            if not self._is_below_a_root(location):
                return None
            sizes_bytes = self._directories.file_sizes_bytes(location)
        except (OSError, ChangeManagerError, ValueError) as error:
            _LOG.warning("the files at %s could not be counted: %s", location, error)
            return None
        return FileCount(file_count=len(sizes_bytes), size_bytes=sum(sizes_bytes))

    def acid_directories(self, location: str) -> list[DirectoryName]:
        """Bases and deltas below a place, each name once, but for hidden ones; none where
        :meth:`count` does not look."""
        try:
            if not self._is_below_a_root(location):
                return []
            listed = self._directories.listing(location, is_limited=True)
        except (OSError, ChangeManagerError, ValueError) as error:
            _LOG.warning("what lies at %s is not known: %s", location, error)
            return []
        paths = (takewhile(_is_shown, file.path.split("/")) for file in listed)
        names = map(DirectoryName.parse, sorted({level for path in paths for level in path}))
        return [name for name in names if name is not None]

    def require_none(self, location: str, what: str) -> None:
        """For what a load makes at a place: files of something that was dropped, and had to stay
        there, would be rows that its source does not have. Not where nobody can look. Raises
        MetaError."""
        try:
            left = self._directories.first_visible_file(location)
        except (OSError, ChangeManagerError, ValueError) as error:
            _LOG.warning("what lies at %s is not known: %s", location, error)
            return
        if left is not None:
            raise MetaError(
                f"{what} cannot be made at {location}: {left} lies there, which no load has "
                "brought for it, and its rows would come back; if it is of a table that was "
                "dropped there, move it away, then load again"
            )

    def references(self, location: str, *, is_source: bool) -> list[str]:
        """The files at a place, as events name them, for a replica: none below no known root.

        Raises MetaError, for such a place of a replication source (`is_source`), too: its replica
        would lack them.
        """
        try:
            if not self._is_below_a_root(location):
                if is_source:
                    raise MetaError(_unlisted(location))
                return []
            paths = sorted(self._directories.visible_files(location))
            return [encode_uri(EncodedUri(uri=f"{location.rstrip('/')}/{path}")) for path in paths]
        except (OSError, ChangeManagerError, ValueError) as error:
            raise MetaError(
                f"the files at {location} cannot be listed: {error}; make it an external table, "
                "or move files away"
            ) from error

    def known_root(self, location: str) -> str:
        """The known root above a place. Raises MetaError for a place below none: whoever asks could
        have the files of others copied."""
        try:
            for root in self.roots.known:
                if self._directories.is_below_any(location, (root,)):
                    return root
        except (OSError, ChangeManagerError, ValueError) as error:
            raise MetaError(f"{location} cannot be archived: {error}") from error
        raise MetaError(_unread(location))

    def add_truncated_base(self, location: str, write_id: WriteId) -> bool:
        """Say that nothing is left of a place once this write id is committed; False if that was
        said already. Raises MetaError."""
        content = format_metadata(DataFormat.TRUNCATED)
        try:
            return self._directories.write_file(location, _truncated_base(write_id), content)
        except (OSError, ChangeManagerError, ValueError) as error:
            raise MetaError(f"{location} cannot be truncated: {error}") from error

    def undo_truncated_bases(self, locations: Sequence[str], write_id: WriteId) -> None:
        """Those that :meth:`add_truncated_base` added are of a table that does not lie there any
        more: what comes to the place next would seem empty."""
        for location in locations:
            try:
                self._directories.unwrite_file(location, _truncated_base(write_id))
            except (OSError, ChangeManagerError) as error:
                _LOG.warning("%s/%s stays: %s", location, _truncated_base(write_id), error)
        self.undo_made(locations)

    def look(self, location: str) -> tuple[ListedFile, ...]:
        """What is at a place before it is dropped, and may be deleted then. Raises MetaError, of a
        place below no known root (that of a database elsewhere) also where it is much: a client
        names such ones as it likes."""
        try:
            is_known = self._is_below_a_root(location)
            return self._directories.listing(location, is_limited=not is_known)
        except (OSError, ChangeManagerError, ValueError) as error:
            raise MetaError(
                f"{location} cannot be listed: {error}; nothing was dropped. Try again when it can "
                "be reached, or drop it without its data"
            ) from error

    def undo_made(self, locations: Sequence[str]) -> None:
        """Directories that :meth:`make_directory` made are not needed after all.

        What is not empty stays, and what someone else has given a table meanwhile; all of them
        where that cannot be asked, for the caller's own failure is what is to be heard.
        """
        for location in locations:
            look = partial(places.user_of, place=location)
            try:
                user = self._transactions.read_without_waiting(look)
            except BackendError as error:
                _LOG.warning("%s was made and not used; it stays there, empty: %s", location, error)
                return
            if user is None:
                self.remove_if_empty(location)

    def remove_if_empty(self, location: str) -> bool:
        """Remove a directory without files; whether it is gone. A failure leaves it, and is
        logged."""
        try:
            return self._directories.remove_empty(location)
        except (OSError, ChangeManagerError) as error:
            _LOG.warning("%s stays, if it is there: %s", location, error)
            return False

    def require_archive(self, what: str) -> None:
        """Refuse to drop files of a replication source while the ChangeManager is off (I4)."""
        if self._archive is None:
            raise InvalidOperationError(
                f"{what} belongs to a replication source, whose files must be archived before "
                "they are deleted, but the ChangeManager is off: set hive.repl.cm.enabled=true, "
                "or remove the database's property repl.source.for"
            )


def _is_shown(name: str) -> bool:
    return not is_hidden(name)


def _truncated_base(write_id: WriteId) -> str:
    return f"{DirectoryName.base(write_id).format()}/{METADATA_FILE}"


def _unread(location: str) -> str:
    return (
        f"{location} is below no directory whose files this metastore reads for clients; name a "
        f"directory above it in {LOCATION_ROOTS.name}"
    )


def _unlisted(location: str) -> str:
    return (
        f"{_unread(location)}, because a replica needs the files of managed tables, or make it an "
        "external table"
    )


def _not_made(location: str, error: Exception) -> MetaError:
    return MetaError(f"{location} is not a directory or unable to create one: {error}")
