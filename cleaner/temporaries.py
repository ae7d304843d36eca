"""Directories in the making whose makers died, in tables to which nobody writes any more.

Writers and compactions remove what others left in the directories that they work in
(rows.staging); where none comes again, it would lie for ever. `.hive-staging*` and `_tmp_space*`
are Hive's and Hive's own clean-up knows them: they are left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from changemanager.errors import ChangeManagerError
from changemanager.journal import tell
from changemanager.location import Resolver
from cleaner.planner import current_txns
from hms_bridge.errors import HmsBridgeError
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.catalog import Table
from hms_bridge.rows.staging import forget_dead_temporaries

_LOG = logging.getLogger(__name__)


def sweep_temporaries(metastore: LocalMetastore, resolve: Resolver) -> tuple[str, ...]:
    """Remove them from every transactional table; the places. One bad table stops no other."""
    # Before any directory is looked at: what is listed then is at least as new.
    txns = current_txns(metastore)
    gone: list[str] = []
    for table in _transactional_tables(metastore):
        try:
            for location in _locations(metastore, table):
                place = resolve(location)
                names = forget_dead_temporaries(place.volume.fs, place.path, txns)
                for name in names:
                    tell(_LOG, "removed temporary", path=place.child(name).uri)
                    gone.append(place.child(name).uri)
        except (HmsBridgeError, ChangeManagerError, OSError) as error:
            _LOG.warning("%s could not be looked at for leftovers: %s", table.full_name, error)
    return tuple(gone)


def _transactional_tables(metastore: LocalMetastore) -> Iterator[Table]:
    for database in metastore.get_databases():
        for table in metastore.get_tables_by_names(database, metastore.get_tables(database)):
            if table.is_transactional and table.storage.location:
                yield table


def _locations(metastore: LocalMetastore, table: Table) -> tuple[str, ...]:
    own = table.storage.location or ""
    if not table.is_partitioned:
        return (own,)
    partitions = metastore.get_partitions(table.database_name, table.name)
    found = [partition.storage.location for partition in partitions]
    return (own, *(location for location in found if location))
