"""Directories in the making whose makers died, in tables to which nobody writes any more.

Writers and compactions remove what others left in the directories that they work in
(directories/staging.py); where none comes again, it would lie for ever. `.hive-staging*` and
`_tmp_space*` are Hive's and Hive's own clean-up knows them: they are left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import islice

from changemanager.errors import ChangeManagerError
from changemanager.journal import log_deed
from changemanager.location import Resolver
from cleaner.planner import current_txns
from hms_bridge.directories.staging import forget_dead_temporaries
from hms_bridge.errors import HmsBridgeError
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.catalog import Table

_LOG = logging.getLogger(__name__)

DIRECTORIES_AT_ONCE = 200
"""How many are looked at in one step."""


class TemporariesSweep:
    """Goes round every transactional table, a few directories in each step: a warehouse may have
    millions, and other work of the cleaner waits for a step."""

    def __init__(self, metastore: LocalMetastore, resolve: Resolver) -> None:
        self._metastore = metastore
        self._resolve = resolve
        self._round: Iterator[str] | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether a round has begun and is not at its end."""
        return self._round is not None

    def step(self) -> tuple[str, ...]:
        """Remove what is dead in the next directories; the places. One bad table stops no
        other."""
        # Before any directory is looked at: what is listed then is at least as new.
        txns = current_txns(self._metastore)
        self._round = self._round or self._directories()
        gone: list[str] = []
        directories = list(islice(self._round, DIRECTORIES_AT_ONCE))
        if len(directories) < DIRECTORIES_AT_ONCE:
            self._round = None
        for location in directories:
            try:
                place = self._resolve(location)
                for name in forget_dead_temporaries(place.volume, place.path, txns):
                    log_deed(_LOG, "removed temporary", path=place.child(name).uri)
                    gone.append(place.child(name).uri)
            except (HmsBridgeError, ChangeManagerError, OSError) as error:
                _LOG.warning("%s could not be looked at for leftovers: %s", location, error)
        return tuple(gone)

    def _directories(self) -> Iterator[str]:
        for database in self._metastore.get_databases():
            names = self._metastore.get_tables(database)
            for start in range(0, len(names), DIRECTORIES_AT_ONCE):
                for table in self._tables(database, names[start : start + DIRECTORIES_AT_ONCE]):
                    try:
                        yield from self._directories_of(table)
                    except HmsBridgeError as error:  # it may have been dropped meanwhile
                        _log_unread(table.full_name, error)

    def _tables(self, database: str, names: Sequence[str]) -> Iterator[Table]:
        """All in one answer; one that cannot be read hides no other."""
        try:
            yield from self._metastore.get_tables_by_names(database, names)
        except HmsBridgeError as error:
            if len(names) == 1:
                _log_unread(f"{database}.{names[0]}", error)
                return
            for name in names:
                yield from self._tables(database, [name])

    def _directories_of(self, table: Table) -> Iterator[str]:
        if not table.is_transactional or not table.storage.location:
            return
        yield table.storage.location
        if not table.is_partitioned:
            return
        database, name = table.database_name, table.name
        names = self._metastore.get_partition_names(database, name)
        for start in range(0, len(names), DIRECTORIES_AT_ONCE):
            for partition in self._metastore.get_partitions_by_names(
                database, name, names[start : start + DIRECTORIES_AT_ONCE]
            ):
                if partition.storage.location:
                    yield partition.storage.location


def _log_unread(name: str, error: Exception) -> None:
    _LOG.info("%s was not looked at for leftovers: %s", name, error)
