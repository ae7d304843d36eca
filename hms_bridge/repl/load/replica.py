"""The target side of a load: the replicated database, its progress, its objects, its files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from changemanager.containment import ResolverWithin
from changemanager.location import Location, Resolver
from hms_bridge.errors import MetaError, ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Database, Partition, Table
from hms_bridge.model.ids import EventId, TxnId
from hms_bridge.model.properties import FIRST_INCREMENTAL_PENDING, LAST_EVENT, is_true
from hms_bridge.model.txn import (
    AbortReason,
    AbortTxnRequest,
    AllocateWriteIdsRequest,
    OpenTxnsRequest,
    TableWriteIdState,
    TxnToWriteId,
    TxnType,
)
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.repl.format.untrusted import DumpedFile
from hms_bridge.repl.load.copy import Copier, Copies, CopyGroup, CopyPlace
from hms_bridge.repl.load.file_copy import CopyReport
from hms_bridge.repl.load.own_source import is_same_place
from hms_bridge.repl.lookup import find_partition, if_there
from hms_bridge.repl.remedies import begin_anew, bring_anew
from hms_bridge.repl.target_objects import (
    FIRST_INCREMENTAL_TABLES,
    foreign_view_note,
    last_event_of,
    with_parameters,
)

_OPEN_TOGETHER_MAX = 500
"""Below the batch limit of any metastore (hive.txn.max.open.batch is 1000)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplicaNames:
    """Who replicates what into what. ``external_base`` is where data of external tables goes,
    ``functions_root`` where files of functions do."""

    source_database: str
    target_database: str
    external_base: str | None = None
    functions_root: str | None = None
    user: str
    host: str

    @property
    def policy(self) -> str:
        """The name under which Hive maps the source's transactions to the target's."""
        return replay_policy(self.target_database)


class Replica:
    """The target of one load. ``sources`` resolves what the load may read of its source; None:
    nothing."""

    def __init__(
        self,
        metastore: Metastore,
        resolve: Resolver,
        names: ReplicaNames,
        check_lease: Callable[[], None] = lambda: None,
        copier: Copies | None = None,
        sources: Resolver | None = None,
    ) -> None:
        self._metastore = metastore
        self._check_lease = check_lease
        self.names = names
        self.resolve = resolve
        self.sources: Resolver = sources or ResolverWithin(resolve, ())
        self.copier: Copies = copier or Copier(self.sources, before_each=check_lease)
        self._opened: set[TxnId] = set()
        self._targets: dict[TxnId, TxnId] = {}
        self._allocated: set[tuple[str, TxnToWriteId]] = set()
        self._is_first_incremental = False
        self._first_tables: frozenset[str] | None = None
        self._recorded: EventId | None = None
        self._reached: EventId | None = None
        self.copied = CopyReport()
        self.notes: list[str] = []

    def check_lease(self) -> None:
        """Raises ReplError if this is not the only load any more."""
        self._check_lease()

    @property
    def metastore(self) -> Metastore:
        """The target's metastore, for one call: whoever takes it is still the only load (or
        ReplError is raised), so no write of a load that lost its lease reaches the target."""
        self._check_lease()
        return self._metastore

    @property
    def begin_anew(self) -> str:
        """The commands for a replica that cannot go on."""
        return begin_anew(self.names.source_database, self.names.target_database)

    def bring_anew(self, table: str) -> str:
        """The commands for a table that cannot go on."""
        return bring_anew(self.names.source_database, [table], self.names.target_database)

    def note(self, defined: Table) -> None:
        """Keep what there is to say of an object of the source that is defined here."""
        text = foreign_view_note(defined, self.names.target_database)
        if text is not None:
            self.add_note(text)

    def add_note(self, text: str) -> None:
        """Keep what differs from the source all the same; once."""
        if text not in self.notes:
            self.notes.append(text)

    def find_database(self) -> Database | None:
        """The target database; None before the bootstrap."""
        return if_there(self.database)

    def database(self) -> Database:
        """The target database. Raises NoSuchObjectError."""
        return self.metastore.get_database(self.names.target_database)

    def set_parameters(self, changes: Mapping[str, str | None]) -> None:
        """Set parameters of the target database, or remove them (None), in one step.

        Raises ReplError where that would set ``repl.last.id`` back.
        """
        database = self.database()
        stands_at, wanted = last_event_of(database.parameters), last_event_of(_set_only(changes))
        if stands_at is not None and wanted is not None and wanted < stands_at:
            raise ReplError(
                f"database {database.name} stands at source event {stands_at}, beyond {wanted} "
                "that this load has come to: somebody else moved it on. Let other loads end, then "
                "load again"
            )
        changed = with_parameters(database, changes)
        if changed != database:
            self.metastore.alter_database(self.names.target_database, changed)

    def stands_at(self, event_id: EventId) -> None:
        """The event that the database stands at when the load begins, or since a commit moved its
        ``repl.last.id`` in the same database transaction."""
        self._recorded = event_id
        self._reached = max(event_id, self._reached or event_id)

    @property
    def recorded(self) -> EventId:
        """The event that the database stands at, as its ``repl.last.id`` says."""
        return self._recorded or EventId(0)

    def reached(self, event_id: EventId) -> None:
        """An event is applied; it is recorded later, as it may be applied again without harm."""
        self._reached = event_id

    def record(self) -> None:
        """Write down how far the load has come."""
        if self._reached is not None and self._reached != self._recorded:
            self.set_parameters({LAST_EVENT: str(self._reached)})
            self._recorded = self._reached

    def find_table(self, name: str) -> Table | None:
        """A table of the target; None if it is not there."""
        return if_there(self.metastore.get_table, self.names.target_database, name)

    def require_own_place(self, table: Table, source: Table) -> None:
        """Raises ReplError if a table that this load made lies where its source does, links
        followed, and takes it back: compacting, cleaning or dropping the replica would take the
        source's files."""
        if not self.owns_files(table) or not is_same_place(table, source, self.resolve):
            return
        database = self.names.target_database
        self.metastore.drop_table(database, table.name, is_data_deleted=False)
        raise self._one_warehouse(table)

    def make_table(self, table: Table, source: Table) -> None:
        """Make a table of the source here. Raises MetaError where files lie at its place; ReplError
        if these may be the source's."""
        try:
            self.metastore.create_table(table)
        except MetaError:
            database = self.metastore.get_database(self.names.target_database)
            above = (database.managed_location or database.location or "").rstrip("/")
            location = table.storage.location or f"{above}/{table.name}"
            there = replace(table, storage=replace(table.storage, location=location))
            if self.owns_files(there) and is_same_place(there, source, self.resolve):
                raise self._one_warehouse(there) from None
            raise

    def _one_warehouse(self, table: Table) -> ReplError:
        database = self.names.target_database
        return ReplError(
            f"table {table.full_name} of the replica would lie where the source's is, in "
            f"{table.storage.location}: both sides have one warehouse. No file was touched. Give "
            "the replica's metastore a hive.metastore.warehouse.dir of its own (with sqlite: and "
            f"other database URLs: --set), drop the empty database {database} there, load again"
        )

    def find_partition(self, table: Table, name: str) -> Partition | None:
        """A partition of the target, by its name; None if it is not there."""
        return find_partition(self.metastore, self.names.target_database, table.name, name)

    def is_newer(self, parameters: Mapping[str, str], event_id: EventId) -> bool:
        """Whether an object is of a later incarnation than an event."""
        last = last_event_of(parameters)
        return last is not None and last >= event_id

    def has_opened(self, source_txn_ids: Iterable[TxnId]) -> bool:
        """Whether this load has opened them all, or found them open."""
        return self._opened.issuperset(source_txn_ids)

    def open_ahead(self, groups: Iterable[Sequence[TxnId]]) -> None:
        """Open several groups of transactions that the source opened together, in few calls.

        Where a call finds one open already, nothing is known of the others: none of them counts as
        opened then. No group is split, so each is open as a whole or not at all.
        """
        for txn_ids in _calls_of(groups):
            if len(self._open(txn_ids)) == len(txn_ids):
                self._opened.update(txn_ids)

    def open_together(self, source_txn_ids: Sequence[TxnId]) -> None:
        """Open transactions for those that the source opened together.

        If any of them is open here the others are not opened: they have ended here already.
        """
        for start in range(0, len(source_txn_ids), _OPEN_TOGETHER_MAX):
            txn_ids = tuple(source_txn_ids[start : start + _OPEN_TOGETHER_MAX])
            opened = self._open(txn_ids)
            self._opened.update(txn_ids)
            if len(txn_ids) == 1:
                self._targets[txn_ids[0]] = opened[0]

    def _open(self, source_txn_ids: Sequence[TxnId]) -> tuple[TxnId, ...]:
        return self.metastore.open_txns(
            OpenTxnsRequest(
                count=len(source_txn_ids),
                user=self.names.user,
                host=self.names.host,
                type=TxnType.REPL_CREATED,
                repl_policy=self.names.policy,
                repl_source_txn_ids=tuple(source_txn_ids),
            )
        )

    def begin_write_ids(
        self, name: str, ids: ValidWriteIdList, partitions: tuple[str, ...] | None = None
    ) -> None:
        """The source's write ids become those of a table here, which need not be there yet; nothing
        where the name has some. Of ids that are aborted a compaction of these partitions is due."""
        names = self.names
        self.metastore.repl_table_write_id_state(
            TableWriteIdState(
                valid_write_ids=replace(ids, table=f"{names.target_database}.{name}").format(),
                user=names.user,
                host=names.host,
                database_name=names.target_database,
                table_name=name,
                partition_names=partitions,
            )
        )

    def ensure_open(self, source_txn_ids: Iterable[TxnId]) -> None:
        """Every source transaction has an open one here; those that have one keep it.

        One by one: of several, a metastore opens none if any has one.
        """
        for source_txn_id in source_txn_ids:
            if source_txn_id not in self._opened:
                self.open_together([source_txn_id])

    def target_txn(self, source_txn_id: TxnId) -> TxnId:
        """The open transaction here for one of the source's, opened if it has none."""
        if source_txn_id not in self._targets:
            self.open_together([source_txn_id])
        return self._targets[source_txn_id]

    def abort(self, source_txn_id: TxnId) -> None:
        """Abort the transaction here for one of the source's; nothing if there is none open."""
        abort_replay(self.metastore, self.names.target_database, source_txn_id)

    def end_replays(self, source_txn_ids: Collection[TxnId]) -> None:
        """Abort those of them that are open here: nothing that comes ends them.

        A dump that brings tables whole says nothing of who wrote to them; a load of the dump in
        whose place it was made may have opened their transactions before it was stopped.
        """
        if source_txn_ids:
            replayed = self.metastore.get_replayed_txns(self.names.policy)
            for source_txn_id in sorted(replayed.keys() & source_txn_ids):
                self.abort(source_txn_id)

    def allocate_write_ids(
        self, table: str, pairs: Sequence[TxnToWriteId]
    ) -> tuple[TxnToWriteId, ...]:
        """Give the source's write ids to its transactions, all open here; what the metastore
        answers, with ids of the target's transactions."""
        given = self.metastore.allocate_table_write_ids(
            AllocateWriteIdsRequest(
                database_name=self.names.target_database,
                table_name=table,
                repl_policy=self.names.policy,
                repl_source=tuple(pairs),
            )
        )
        if {pair.write_id for pair in given} == {pair.write_id for pair in pairs}:
            self._allocated.update((table, pair) for pair in pairs)
        return given

    def has_allocated(self, table: str, pair: TxnToWriteId) -> bool:
        """Whether this load itself gave the source's write id to its transaction."""
        return (table, pair) in self._allocated

    def is_first_incremental(self, table: str) -> bool:
        """Whether nothing was loaded into a table since a dump brought it whole."""
        if self._first_tables is None:
            parameters = self.database().parameters
            self._is_first_incremental = is_true(parameters, FIRST_INCREMENTAL_PENDING)
            self._first_tables = frozenset(parameters.get(FIRST_INCREMENTAL_TABLES, "").split(","))
        return self._is_first_incremental or table in self._first_tables

    def copy(self, files: tuple[DumpedFile, ...], directory: str | None, what: str) -> None:
        """Copy files below a table's or partition's directory, verified. Nothing for no files."""
        self.copy_places(self.places(files, directory, what))

    def copy_places(self, places: Sequence[CopyPlace]) -> None:
        """Copy files below their directories, all together, verified."""
        if places:
            self.copy_groups([CopyGroup(places=tuple(places))])

    def copy_groups(self, groups: Iterable[CopyGroup]) -> None:
        """Copy files group by group, verified, and publish each group once it is there."""
        self.copied += self.copier.copy(groups)

    def places(
        self, files: tuple[DumpedFile, ...], directory: str | None, what: str
    ) -> tuple[CopyPlace, ...]:
        """Where files go; nothing for no files. Raises ReplError for files without a directory."""
        if not files:
            return ()
        if directory is None:
            raise ReplError(f"{what} has no location on the target; give it one and load again")
        return ((files, self.resolve(directory)),)

    def table_root(self, table: Table) -> Location:
        """The directory of a table that has files. Raises ReplError for one without."""
        if table.storage.location is None:
            raise ReplError(f"{table.full_name} has no location on the target")
        return self.resolve(table.storage.location)

    def owns_files(self, table: Table) -> bool:
        """Whether files of the table are copied by its events (not those of external tables)."""
        return not table.is_external and table.storage.location is not None


def abort_replay(metastore: Metastore, database: str, source_txn_id: TxnId) -> None:
    """Abort a replica's transaction for one of its source's; nothing if there is none open."""
    metastore.abort_txn(
        AbortTxnRequest(
            txn_id=source_txn_id,
            repl_policy=replay_policy(database),
            type=TxnType.REPL_CREATED,
            reason=AbortReason.REPL_DEFAULT,
        )
    )


def replay_policy(database: str) -> str:
    """Under which name a metastore keeps which transactions a replica's replay."""
    return f"{database}.*"


def _calls_of(groups: Iterable[Sequence[TxnId]]) -> Iterator[list[TxnId]]:
    """Whole groups, as many together as one call may open; one that is larger is left out."""
    together: list[TxnId] = []
    for group in groups:
        if len(group) > _OPEN_TOGETHER_MAX:
            continue
        if together and len(together) + len(group) > _OPEN_TOGETHER_MAX:
            yield together
            together = []
        together.extend(group)
    if together:
        yield together


def _set_only(changes: Mapping[str, str | None]) -> Mapping[str, str]:
    return {key: value for key, value in changes.items() if value is not None}
