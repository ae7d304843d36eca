"""Finds out what may go: the transactions first, then the write ids, then the directory.

The order is what makes it safe: whatever is listed last is at least as new as the lists say (Hive's
CompactionCleaner has it too: docs/hive/compaction.md §16). The transaction list is what *every*
open reader sees: nothing from the oldest open transaction on, and nothing that ended after that one
began.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from changemanager.location import Location, Resolver, is_below
from cleaner.errors import TargetChangedError
from cleaner.plan import CleaningTarget, EntryPlan, RootPlan
from hms_bridge.acid.obsolete import CleaningScope, plan_cleaning
from hms_bridge.compaction.target import look_up
from hms_bridge.directories.known_ids import require_known_ids
from hms_bridge.directories.listing import find_acid_roots, list_acid_directory
from hms_bridge.errors import NoSuchObjectError
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.catalog import Table
from hms_bridge.model.cleaning_view import CleaningView
from hms_bridge.model.compaction import Compaction, CompactionType
from hms_bridge.model.ids import TxnId
from hms_bridge.model.properties import NO_CLEANUP
from hms_bridge.model.target import TableName
from hms_bridge.model.target_mark import TargetMark
from hms_bridge.model.txn import AbortedSince
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList


@dataclass(frozen=True, kw_only=True, slots=True)
class CleanerLists:
    """What may be judged: transactions as every open reader sees them, write ids as they are, and
    when those were opened that are aborted."""

    txns: ValidTxnList
    write_ids: ValidWriteIdList
    since: AbortedSince


def scope_of(entry: Compaction, target: CleaningTarget) -> CleaningScope:
    """An entry without a partition on a partitioned table may remove aborted writes only.

    It knows nothing of what was compacted in the partitions (HIVE-25502; docs/hive/compaction.md
    §17).
    """
    is_whole = target.table.is_partitioned and entry.target.partition is None
    if is_whole or entry.type is CompactionType.ABORT_TXN_CLEANUP:
        return CleaningScope.ABORTED_ONLY
    return CleaningScope.OBSOLETE_AND_ABORTED


def current_txns(metastore: LocalMetastore) -> ValidTxnList:
    """All transactions that are open or aborted now."""
    return metastore.get_open_txns(excluded_types=frozenset()).snapshot()


class CleaningPlanner:
    """Plans the cleaning of queue entries; nothing is changed."""

    def __init__(self, metastore: LocalMetastore, resolve: Resolver) -> None:
        self._metastore = metastore
        self._resolve = resolve

    def target(self, entry: Compaction) -> CleaningTarget:
        """What the entry points at. Raises NoSuchObjectError if that is gone, TargetChangedError
        while a rename moves it: a directory that seems empty would be recorded as cleaned."""
        (target,) = self.targets([entry])
        if isinstance(target, Exception):
            raise target
        return target

    def targets(
        self, entries: Sequence[Compaction]
    ) -> list[CleaningTarget | NoSuchObjectError | TargetChangedError]:
        """As :meth:`target`, of several at once."""
        marks = self.marks(entries)
        there = [
            entry
            for entry, mark in zip(entries, marks, strict=True)
            if isinstance(mark, TargetMark)
        ]
        tables = self._tables(there)
        return [
            self._target(entry, mark, tables) if isinstance(mark, TargetMark) else mark
            for entry, mark in zip(entries, marks, strict=True)
        ]

    def _tables(self, entries: Sequence[Compaction]) -> Mapping[tuple[str, str], Table]:
        """Those of several entries; of one, it is asked for where it is needed."""
        names: dict[str, set[str]] = defaultdict(set)
        for entry in entries if len(entries) > 1 else ():
            names[entry.target.database].add(entry.target.table)
        return {
            (database, table.name): table
            for database, of_database in names.items()
            for table in self._metastore.get_tables_by_names(database, sorted(of_database))
        }

    def _target(
        self, entry: Compaction, mark: TargetMark, tables: Mapping[tuple[str, str], Table]
    ) -> CleaningTarget | NoSuchObjectError:
        wanted = entry.target
        known = tables.get((wanted.database, wanted.table))
        try:
            table, partition = look_up(self._metastore, wanted, known)
        except NoSuchObjectError as error:
            return error
        return CleaningTarget(
            table=table,
            location=self._resolve(mark.location).uri,
            mark=mark,
            is_refused=any(
                owner.parameters.get(NO_CLEANUP, "").strip().lower() == "true"
                for owner in (table, partition or table)
            ),
        )

    def has_target_at(self, entry: Compaction, place: Location) -> bool:
        """Whether what the entry points at is there, and lies in a place or around it. Raises
        TargetChangedError as :meth:`target`."""
        try:
            target = self.target(entry)
        except NoSuchObjectError:
            return False
        return is_below(target.location, place.uri) or is_below(place.uri, target.location)

    def mark(self, entry: Compaction) -> TargetMark:
        """By what the entry's target is known now. Raises as :meth:`target`."""
        (mark,) = self.marks([entry])
        if isinstance(mark, Exception):
            raise mark
        return mark

    def marks(
        self, entries: Sequence[Compaction]
    ) -> list[TargetMark | NoSuchObjectError | TargetChangedError]:
        """As :meth:`mark`, of several at once."""
        marks = self._metastore.target_marks([entry.target for entry in entries])
        return [_settled(entry, mark) for entry, mark in zip(entries, marks, strict=True)]

    def is_replication_source(self, database: str) -> bool:
        """Whether replaced files of a database must be archived; not if it is gone.

        A database that is a source cannot be dropped.
        """
        try:
            return self._metastore.get_database(database).is_replication_source
        except NoSuchObjectError:
            return False

    def lists(self, target: CleaningTarget, *, is_for_everyone: bool = True) -> CleanerLists:
        """The lists under which a directory that is listed *afterwards* may be judged.

        `is_for_everyone` False: as a reader sees it who comes now (to explain what would go).
        """
        (lists,) = self.lists_of([target], is_for_everyone=is_for_everyone)
        return lists

    def lists_of(
        self, targets: Sequence[CleaningTarget], *, is_for_everyone: bool = True
    ) -> list[CleanerLists]:
        """As :meth:`lists`, of several at once."""
        names = [TableName(target.table.database_name, target.table.name) for target in targets]
        return [
            _lists(view, is_for_everyone=is_for_everyone)
            for view in self._metastore.cleaning_views(names)
        ]

    def plan(
        self, entry: Compaction, target: CleaningTarget, lists: CleanerLists | None = None
    ) -> EntryPlan:
        """What may go. With `lists`, the directory is listed anew under lists taken before.

        Raises AcidFormatError where the metastore is older than the table.
        """
        chosen = lists or self.lists(target)
        scope = scope_of(entry, target)
        places: tuple[Location, ...] = (self._resolve(target.location),)
        if target.table.is_partitioned and entry.target.partition is None:
            places = self._roots(target)
        roots = []
        for root in places:
            listing = list_acid_directory(
                root.volume, root.path, is_insert_only=target.table.is_insert_only
            )
            require_known_ids(self._metastore, target.table, listing, chosen.txns, chosen.write_ids)
            plan = plan_cleaning(
                listing,
                txns=chosen.txns,
                write_ids=chosen.write_ids,
                highest_write_id=entry.highest_write_id,
                scope=scope,
                since=chosen.since,
            )
            roots.append(RootPlan(location=root.uri, plan=plan))
        return EntryPlan(entry=entry, target=target, roots=tuple(roots))

    def _roots(self, target: CleaningTarget) -> tuple[Location, ...]:
        """Each directory with bases or deltas of a partitioned table: below its own, whether the
        metastore knows the partition or not, and where partitions lie elsewhere.

        A place that cannot be listed raises OSError: rows of aborted writes may be there.
        """
        table = target.table
        tops = [self._resolve(target.location)]
        for partition in self._metastore.get_partitions(table.database_name, table.name):
            place = self._resolve(partition.storage.location or target.location)
            if not any(place.is_below(top) for top in tops):
                tops.append(place)
        roots: dict[str, Location] = {}
        for top in tops:
            for path in find_acid_roots(top.volume, top.path):
                root = top.child(path[len(top.path) :].strip("/"))
                roots[root.uri] = root
        return tuple(roots.values())


def _settled(
    entry: Compaction, mark: TargetMark | None
) -> TargetMark | NoSuchObjectError | TargetChangedError:
    if mark is None:
        return NoSuchObjectError(f"{entry.target} is not there any more, or has no directory")
    if not mark.moves:
        return mark
    return TargetChangedError(
        f"{entry.target}: {mark.moves[0]} is being moved by a rename; the next pass goes on"
    )


def _lists(view: CleaningView, *, is_for_everyone: bool) -> CleanerLists:
    txns = view.txns
    if is_for_everyone:
        txns = txns.cleaner_view(view.watermark, _ended_late(view.ready, view.watermark))
    return CleanerLists(txns=txns, write_ids=view.write_ids, since=view.since)


def _ended_late(ready: Sequence[Compaction], watermark: TxnId) -> tuple[TxnId, ...]:
    """Compactions of the table that began before the oldest open reader and ended after.

    To that reader they are still open. An entry stays in the queue at least until the reader has
    gone, so the queue knows all of them.
    """
    return tuple(
        entry.txn_id
        for entry in ready
        if entry.txn_id is not None
        and entry.txn_id < watermark
        and (entry.next_txn_id is None or entry.next_txn_id >= watermark)
    )
