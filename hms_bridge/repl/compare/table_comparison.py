"""One table of both sides, each read under a transaction that keeps its files (I3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from changemanager.location import Resolver
from hms_bridge.clock import Clock
from hms_bridge.errors import AcidFormatError, NotEnoughHistoryError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Partition, Storage, Table
from hms_bridge.model.constraint import ColumnConstraint
from hms_bridge.model.ids import EventId, WriteId
from hms_bridge.model.partition_name import partition_name
from hms_bridge.repl.compare.constraints import (
    ConstraintContext,
    constraints_definition,
    excused,
)
from hms_bridge.repl.compare.definitions import partition_definition, table_definition
from hms_bridge.repl.compare.described import (
    Circumstances,
    Compared,
    DescribedPlace,
    DescribedTable,
    Finding,
    Verdict,
    different,
)
from hms_bridge.repl.compare.judge import judge
from hms_bridge.repl.compare.later_events import LaterEvents
from hms_bridge.repl.compare.reading import ReadPlace, look, sum_rows, with_checksums
from hms_bridge.repl.compare.seen_write_ids import seen_at_event, seen_on_one_side
from hms_bridge.repl.compare.statistics import column_statistics
from hms_bridge.repl.dump.external import partitions_of
from hms_bridge.repl.dump.read_txn import open_read_txn
from hms_bridge.repl.dump.table_files import TableSnapshot
from hms_bridge.repl.file_pool import FilePool
from hms_bridge.repl.format.passed_kinds import PASSED_BY_DEFAULT
from hms_bridge.repl.load.constraints import has_key
from hms_bridge.repl.load.write_id_owner import has_no_owner
from hms_bridge.repl.lookup import if_there
from hms_bridge.repl.target_objects import last_event_of, on_target
from hms_bridge.repl.whole_lists import ids_text, whole_lists


@dataclass(frozen=True, kw_only=True, slots=True)
class Depth:
    """How closely to look. ``has_checksums``: at every byte of every file, also where the file
    system keeps no checksums; ``has_rows``: at every row; ``has_statistics``: at those of columns,
    which no load brings."""

    has_checksums: bool = False
    has_rows: bool = False
    has_statistics: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class CompareRequest:
    """What to compare. ``root``: where the source's dumps are, one of which may show that its log
    is another one. ``tables`` empty: all. ``passed_kinds``: of events that the replica does without
    (``hms.bridge.repl.passed.kinds``)."""

    root: str
    source_database: str
    target_database: str | None = None
    tables: tuple[str, ...] = ()
    depth: Depth = field(default_factory=Depth)
    passed_kinds: frozenset[str] = PASSED_BY_DEFAULT
    user: str = "hms-bridge"
    host: str = "localhost"

    @property
    def source_name(self) -> str:
        """The source's database, as metastores spell it."""
        return self.source_database.lower()

    @property
    def target_name(self) -> str:
        """The replica's database, as metastores spell it."""
        return (self.target_database or self.source_database).lower()


@dataclass(frozen=True, kw_only=True, slots=True)
class Sides:
    """Both metastores, and what is compared there."""

    source: Metastore
    target: Metastore
    resolve: Resolver
    clock: Clock
    request: CompareRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class _Side:
    """One side of a table, and its partitions by name ("": a table without)."""

    metastore: Metastore
    snapshot: TableSnapshot
    partitions: Mapping[str, Partition | None]

    @property
    def table(self) -> Table:
        return self.snapshot.table

    def storage(self, part: str) -> Storage:
        partition = self.partitions[part]
        return self.table.storage if partition is None else partition.storage

    def place(self, part: str) -> DescribedPlace:
        partition = self.partitions[part]
        definition = {} if partition is None else partition_definition(partition, self.table)
        return DescribedPlace(definition=definition)


@dataclass(frozen=True, kw_only=True, slots=True)
class _NotListed:
    """Why a place could not be looked at: for now, or because something is wrong there."""

    unread: str = ""
    fault: str = ""


_Listed = ReadPlace | _NotListed
_Pair = tuple[DescribedPlace, DescribedPlace]
_Constraints = tuple[ColumnConstraint, ...]


class TableComparison:
    """Compares tables as the source had them at an event."""

    def __init__(self, sides: Sides, log: LaterEvents, event_id: EventId) -> None:
        self._sides = sides
        self._request = sides.request
        self._log = log
        self._event_id = event_id

    def run(self, name: str) -> tuple[tuple[Finding, ...], Compared] | None:
        """The findings on a table, and how much was compared; None if the replica's is of a later
        event: a load is at work.

        Raises FileNotFoundError and NoSuchObjectError for what vanishes meanwhile.
        """
        source = if_there(self._sides.source.get_table, self._request.source_name, name)
        replica = if_there(self._sides.target.get_table, self._request.target_name, name)
        if source is None or replica is None:
            return tuple(_one_sided(name, source, replica)), Compared()
        if source.is_materialized_view:
            return (_not_compared(name, "table", "dumps leave materialized views out"),), Compared()
        if (last_event_of(replica.parameters) or 0) > self._event_id:
            return None
        with ExitStack() as stack:
            # Before anything is listed: cleaners wait for readers that are registered (I3).
            user, host = self._request.user, self._request.host
            for metastore, table in (
                (self._sides.source, source),
                (self._sides.target, replica),
            ):
                reader = stack.enter_context(
                    open_read_txn(metastore, self._sides.clock, user=user, host=host)
                )
                if table.is_transactional:
                    reader.register([table.full_name])
            findings, compared = self._compare(source, replica)
        return (*findings, *self._left_out(source)), compared

    def _compare(self, source: Table, replica: Table) -> tuple[tuple[Finding, ...], Compared]:
        ours = _snapshot(self._sides.source, source)
        theirs = _snapshot(self._sides.target, replica)
        # After the snapshot: whatever it shows, the log has by now.
        self._log.read_on()
        later = self._log.write_ids(self._event_id)
        if ours.write_ids is not None and later.unknown_txns:
            why = (
                f"transactions {ids_text(later.unknown_txns)} committed after event "
                f"{self._event_id}, and the log does not tell any more what they wrote; load, then "
                "compare again"
            )
            undecided = Finding(
                verdict=Verdict.UNDECIDED, table=source.name, what="write ids and rows", why=why
            )
            return (undecided,), Compared()
        if ours.write_ids is not None:
            at_event = seen_at_event(
                ours.write_ids, later=later.of(source.name), replica=theirs.write_ids
            )
            ours = replace(ours, write_ids=at_event)
        source_side = _side(self._sides.source, ours)
        replica_side = _side(self._sides.target, theirs)
        places = self._places(source_side, replica_side)
        of_source, of_replica = self._constraints(source, replica)
        if self._request.depth.has_statistics:
            places = _with_statistics(source_side, replica_side, places)
        self._log.read_on()  # a partition may have come since
        excuses = excused(of_source, of_replica, self._constraint_context())
        described_source = _described(
            source_side, {part: pair[0] for part, pair in places.items()}, of_source
        )
        described_replica = _described(
            replica_side, {part: pair[1] for part, pair in places.items()}, of_replica
        )
        return judge(
            source.name,
            described_source,
            described_replica,
            Circumstances(
                excused=excuses,
                changed_partitions=self._log.partition_changes(source.name, self._event_id),
                forgotten=_forgotten(source_side, replica_side),
                changed_statistics=self._log.statistics_change(source.name, self._event_id),
            ),
        )

    def _constraints(self, source: Table, replica: Table) -> tuple[_Constraints, _Constraints]:
        sides = self._sides
        ours = sides.source.get_constraints(source.database_name, source.name)
        theirs = sides.target.get_constraints(replica.database_name, replica.name)
        return on_target(ours, source.database_name, replica.database_name), tuple(theirs)

    def _constraint_context(self) -> ConstraintContext:
        return ConstraintContext(
            database=self._request.target_name,
            passed_kinds=self._request.passed_kinds,
            change_of=lambda table: self._log.table_change(table, self._event_id),
            has_key=lambda wanted: has_key(self._sides.target, wanted),
        )

    def _places(self, source: _Side, replica: _Side) -> dict[str, _Pair]:
        """What both have. Rows are read one place after the other: memory stays flat."""
        common = sorted(source.partitions.keys() & replica.partitions.keys())
        has_files = not (source.table.is_any_view or source.table.is_external)
        if not has_files:
            return {part: (source.place(part), replica.place(part)) for part in common}
        pairs: dict[str, _Pair] = {}
        with FilePool() as pool:
            looked = pool.each(lambda part: self._look(source, replica, part), common)
            for part, (ours, theirs) in zip(common, looked, strict=True):
                can_be_read = isinstance(ours, ReadPlace) and isinstance(theirs, ReadPlace)
                pairs[part] = (
                    self._described(source, part, ours, can_be_read=can_be_read),
                    self._described(replica, part, theirs, can_be_read=can_be_read),
                )
        return pairs

    def _look(self, source: _Side, replica: _Side, part: str) -> tuple[_Listed, _Listed]:
        ours, theirs = self._listed(source, part), self._listed(replica, part)
        if isinstance(ours, _NotListed) or isinstance(theirs, _NotListed):
            return ours, theirs
        has_own = all(
            place.root.volume.capabilities.has_native_checksum for place in (ours, theirs)
        )
        if self._request.depth.has_checksums or has_own:
            ours = with_checksums(ours)
            theirs = with_checksums(theirs, ours.found)
        return ours, theirs

    def _listed(self, side: _Side, part: str) -> _Listed:
        location = side.storage(part).location
        if location is None:
            return _NotListed(fault="has no location")
        try:
            return look(self._sides.resolve, side.snapshot, location)
        except NotEnoughHistoryError as error:
            why = f"compacted beyond event {self._event_id} ({error}); load, then compare again"
            return _NotListed(unread=why)
        except AcidFormatError as error:
            return _NotListed(fault=f"cannot be read: {error}")

    def _described(
        self, side: _Side, part: str, read: _Listed, *, can_be_read: bool
    ) -> DescribedPlace:
        """With its rows, where those of both sides can be read."""
        place = side.place(part)
        if isinstance(read, _NotListed):
            return replace(place, unread=read.unread, fault=read.fault)
        place = replace(place, found=read.found, strays=read.strays)
        if read.plan is None or not (can_be_read and self._request.depth.has_rows):
            return place
        try:
            return replace(place, rows=sum_rows(read, side.snapshot))
        except AcidFormatError as error:
            return replace(place, fault=f"cannot be read: {error}")

    def _left_out(self, table: Table) -> Iterator[Finding]:
        """What was not looked at, by name."""
        if table.is_external:
            why = "the files of an external table are somebody else's"
            yield _not_compared(table.name, "files and rows", why)
        elif not (table.is_full_acid or table.is_any_view) and self._request.depth.has_rows:
            why = "rows without ROW__ID are not read; --checksums compares their files' bytes"
            yield _not_compared(table.name, "rows", why)


def _one_sided(name: str, source: Table | None, replica: Table | None) -> Iterator[Finding]:
    if source is not None and source.is_materialized_view:
        yield _not_compared(name, "table", "dumps leave materialized views out")
    elif source is not replica:
        ours, theirs = (table.type if table else "missing" for table in (source, replica))
        yield different("table", ours, theirs, table=name)


def _not_compared(table: str, what: str, why: str) -> Finding:
    return Finding(verdict=Verdict.NOT_COMPARED, table=table, what=what, why=why)


def _snapshot(metastore: Metastore, table: Table) -> TableSnapshot:
    """Of a reader that starts now, up to the table's last write id."""
    txns = metastore.get_open_txns().snapshot()
    write_ids = None
    if table.is_transactional:
        (write_ids,) = whole_lists(metastore, [table.full_name], txns)
    return TableSnapshot(metastore=metastore, table=table, txns=txns, write_ids=write_ids)


def _side(metastore: Metastore, snapshot: TableSnapshot) -> _Side:
    table = snapshot.table
    partitions: dict[str, Partition | None] = {
        partition_name(table.partition_columns, partition.values): partition
        for partition in partitions_of(metastore, table)
    }
    if not table.is_partitioned:
        partitions[""] = None
    return _Side(metastore=metastore, snapshot=snapshot, partitions=partitions)


def _described(
    side: _Side, places: Mapping[str, DescribedPlace], constraints: _Constraints
) -> DescribedTable:
    every = {part: places.get(part) or side.place(part) for part in side.partitions}
    return DescribedTable(
        definition=table_definition(side.table),
        constraints=constraints_definition(constraints),
        write_ids=side.snapshot.write_ids,
        places=every,
    )


def _with_statistics(
    source: _Side, replica: _Side, places: Mapping[str, _Pair]
) -> dict[str, _Pair]:
    ours, theirs = (
        column_statistics(side.metastore, side.table, list(places)) for side in (source, replica)
    )
    return {
        part: (
            replace(of_source, statistics=ours.get(part, {})),
            replace(of_replica, statistics=theirs.get(part, {})),
        )
        for part, (of_source, of_replica) in places.items()
    }


def _forgotten(source: _Side, replica: _Side) -> frozenset[WriteId]:
    """Of the write ids that one side alone shows, those of which nobody knows that they were
    committed: the other side has them as aborted, or no transaction has them any more.

    A metastore lists what it has forgotten as committed. Hive forgets txn 20, aborted without
    components, after minutes; write id 8 of txn 20 stays while txn 19 is open.
    """
    ours, theirs = source.snapshot.write_ids, replica.snapshot.write_ids
    if ours is None or theirs is None:
        return frozenset()
    return frozenset(
        write_id
        for write_id in seen_on_one_side(ours, theirs)
        for side, hidden in [(source, theirs) if ours.is_valid(write_id) else (replica, ours)]
        if hidden.is_aborted(write_id)
        or has_no_owner(side.metastore, side.table.full_name, write_id)
    )
