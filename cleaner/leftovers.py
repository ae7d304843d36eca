"""What aborted writes left where there is no table: CREATE TABLE AS SELECT writes before it makes
its table.

Removed is only what bears their write ids. The statement may be tried again meanwhile, whose files
lie in the same directory before its table is there (docs/hive/compaction.md §25).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from changemanager.filesystem.volume import FileKind
from changemanager.location import Location, Resolver
from cleaner.planner import CleaningPlanner, current_txns
from cleaner.remover import RemovalReport, Remover
from hms_bridge.acid.names import DirectoryName
from hms_bridge.directories.listing import find_acid_roots
from hms_bridge.errors import NoSuchObjectError
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.compaction import Compaction
from hms_bridge.model.ids import WriteId

_FIRST = WriteId(1)


class Leftovers:
    """Removes them, archived first where the database is a replication source."""

    def __init__(
        self,
        metastore: LocalMetastore,
        planner: CleaningPlanner,
        remover: Remover,
        resolve: Resolver,
    ) -> None:
        self._metastore = metastore
        self._planner = planner
        self._remover = remover
        self._resolve = resolve

    def aborted_writes(self, entry: Compaction) -> Sequence[WriteId]:
        """Write ids of the entry's table, up to the entry's own, that are aborted now.

        Asked before directories are listed, and not taken from the entry, which may have been found
        long ago: since then the table may have been made and dropped, and its ids begin anew.
        """
        txns = current_txns(self._metastore)
        (write_ids,) = self._metastore.get_valid_write_ids([str(entry.target.name)], txns)
        highest = entry.highest_write_id
        return write_ids.aborted_between(_FIRST, highest) if highest else ()

    def remove(
        self, entry: Compaction, location: Location, root: str, write_ids: Collection[WriteId]
    ) -> tuple[RemovalReport, bool]:
        """Remove directories of these writes alone below a table's place, then what is empty; and
        whether nothing is left there.

        ``root``: below which it is allowed (`may_be_deleted`). Raises CleanerError.
        """
        report = self._remover.remove_whole(
            entry,
            _written(location, write_ids),
            location=location.uri,
            root=root,
            is_archived=self._planner.is_replication_source(entry.target.database),
        )
        return report, _remove_if_empty(location)

    def remove_where_expected(self, entry: Compaction) -> None:
        """The same of aborted writes of a table that is not there, and that nobody asked to clean
        up: the statement was killed. Where such a table lies if it gives no location.

        With the record of an abort goes what hides its rows from a later table of that name.
        Raises CleanerError, with which the record stays.
        """
        name = entry.target.name
        if entry.target.partition is not None:
            return
        try:
            location = self._resolve(self._metastore.default_location(name.database, name.table))
        except NoSuchObjectError:  # with the database its directory is gone
            return
        verdict = self._metastore.may_be_deleted(location.uri)
        if verdict.root is None or verdict.refusal is not None:
            return  # somebody else's, who has write ids of their own
        self.remove(entry, location, verdict.root, self.aborted_writes(entry))
        self._remover.finish(location.uri)


def _written(location: Location, write_ids: Collection[WriteId]) -> Sequence[str]:
    """The bases and deltas of one of these writes alone, in a table's directory or its
    partitions'."""
    directories = []
    for path in find_acid_roots(location.volume, location.path):
        root = location.child(path.removeprefix(location.path).strip("/"))
        for name in (status.name for status in root.volume.children(root.path)):
            parsed = DirectoryName.parse(name)
            if parsed is None or parsed.min_write_id != parsed.max_write_id:
                continue
            if parsed.max_write_id in write_ids:
                directories.append(root.child(name).uri)
    return directories


def _remove_if_empty(directory: Location) -> bool:
    """Whether it is gone, with what is empty below it. One call a directory, which fails where
    somebody has just put something in."""
    volume = directory.volume
    if not volume.capabilities.has_directories:
        return not volume.descendants(directory.path)
    try:
        children = volume.children(directory.path)
    except FileNotFoundError:
        return True
    is_empty = True
    for child in children:
        is_directory = child.kind is FileKind.DIRECTORY
        is_empty &= is_directory and _remove_if_empty(directory.child(child.name))
    if is_empty:
        volume.remove_empty_directory(directory.path)
    return is_empty
