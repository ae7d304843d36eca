"""REPL DUMP: a bootstrap or the events since the last dump, in Hive 4's layout.

Dump and load alternate: a dump that is not loaded yet blocks the next one. The finish marker is
written last; without it nobody reads the dump (docs/format/dump.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial

from changemanager.errors import ChangeManagerError
from changemanager.uri import EncodedUri
from changemanager.whereabouts import locate
from hms_bridge.errors import ReplError, SourceFileMissingError
from hms_bridge.model.catalog import Database, Table
from hms_bridge.model.counted import counted
from hms_bridge.model.ids import EventId, TxnId
from hms_bridge.repl.bootstrap_dump import (
    BootstrapDump,
    require_no_functions,
    require_no_rename,
)
from hms_bridge.repl.dump_archive import named_archive
from hms_bridge.repl.dump_directories import DumpDirectory, DumpState, list_dumps, newest_finished
from hms_bridge.repl.dump_manifest import FinishMark
from hms_bridge.repl.dump_metadata import DumpType
from hms_bridge.repl.dump_texts import NotedTexts
from hms_bridge.repl.dump_verb import DumpVerb
from hms_bridge.repl.event_source import EventRange
from hms_bridge.repl.external_dump import external_list_text, list_external
from hms_bridge.repl.file_pool import FilePool
from hms_bridge.repl.incremental_dump import EventCounts, IncrementalDump, IncrementalRules
from hms_bridge.repl.layout import DumpPaths, database_directory
from hms_bridge.repl.lease import Lease, LeaseRules
from hms_bridge.repl.origin import require_same_log, write_origin
from hms_bridge.repl.pins import DumpPins
from hms_bridge.repl.plain_tables import (
    PLAIN_TABLES,
    plain_places,
    read_plain,
    require_told,
    write_plain,
)
from hms_bridge.repl.read_txn import ReadTxn
from hms_bridge.repl.remedies import begin_anew
from hms_bridge.repl.snapshot_wait import WaitRules, look, wait_for_snapshot
from hms_bridge.repl.target_objects import (
    FIRST_INCREMENTAL_PENDING,
    SOURCE_FOR,
    TARGET_FOR,
    is_replica,
    require_files_of_hive,
    with_parameters,
)
from hms_bridge.repl.texts import ensure_content
from hms_bridge.repl.untrusted import checked_name

_NAMED_IN_MESSAGE = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpRequest:
    """Dump a database below ``root``.

    ``cm_root`` is the archive that file references name; None without ChangeManager.
    ``is_archive_elsewhere_allowed``: it may be on another file system. ``policy`` becomes the value
    of ``repl.source.for`` if the database has none. ``is_bootstrap_forced`` begins anew although a
    dump exists. ``has_checksums`` False leaves checksums and archive out of file references: a real
    Hive that loads from a file system without checksums of its own (local, S3) takes a file whose
    reference has one for changed. Then only files at their source are found.
    ``external_base``: copy data of external tables to this place of the target, with each dump;
    None dumps their metadata only. ``is_previous_kept`` keeps older dumps.
    """

    root: str
    database: str
    cm_root: str | None = None
    is_archive_elsewhere_allowed: bool = False
    policy: str = "hms-bridge"
    is_bootstrap_forced: bool = False
    is_previous_kept: bool = False
    has_checksums: bool = True
    external_base: str | None = None
    wait: WaitRules = field(default_factory=WaitRules)
    lease: LeaseRules = field(default_factory=LeaseRules)
    events: IncrementalRules = field(default_factory=IncrementalRules)
    user: str = "hive"
    host: str = "localhost"

    @property
    def database_name(self) -> str:
        """The database in lower case. Raises ReplError for what is no name."""
        return checked_name(self.database, "database")


class DumpKind(Enum):
    """What a dump will do."""

    BOOTSTRAP = "bootstrap"
    INCREMENTAL = "incremental"
    NOTHING = "nothing"
    BLOCKED = "blocked"


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpPlan:
    """What a dump will do, found out without changing anything.

    ``previous``: the dump it follows on. ``tables``: names, for a bootstrap. ``events``: what an
    incremental dump holds now. ``removed``: older dump directories that go when it is finished.
    ``waits_for``: open writers that a bootstrap will have to wait for, in words.
    """

    kind: DumpKind
    request: DumpRequest
    reason: str
    previous: str | None = None
    after_event_id: EventId | None = None
    until_event_id: EventId | None = None
    tables: tuple[str, ...] = ()
    events: EventCounts = field(default_factory=EventCounts)
    removed: tuple[str, ...] = ()
    waits_for: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpReport:
    """What a dump did. ``directory`` and ``last_event_id`` are what REPL DUMP answers.

    ``idle_txn_ids``: transactions that were open at the bootstrap without a trace in the database.
    """

    kind: DumpKind
    reason: str
    directory: str | None = None
    from_event_id: EventId | None = None
    to_event_id: EventId | None = None
    last_event_id: EventId | None = None
    tables: Mapping[str, int] = field(default_factory=dict)
    events: EventCounts = field(default_factory=EventCounts)
    file_count: int = 0
    idle_txn_ids: tuple[TxnId, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _WrittenBootstrap:
    """The files that a bootstrap names, by table, and transactions without a trace in it."""

    files: Mapping[str, Sequence[EncodedUri]]
    idle_txn_ids: tuple[TxnId, ...]

    @property
    def all_files(self) -> list[EncodedUri]:
        return [file for files in self.files.values() for file in files]


class ReplDump(DumpVerb):
    """Dumps from one metastore."""

    def plan(self, request: DumpRequest) -> DumpPlan:
        """Choose between bootstrap, incremental and nothing. Changes nothing.

        Raises EventGapError if events are gone, ReplError if the database cannot be dumped.
        """
        try:
            return self._plan(request)
        except (OSError, ChangeManagerError) as error:
            raise _unreachable(request, error) from error

    def run(self, plan: DumpPlan) -> DumpReport:
        """Carry a plan out. Raises ReplError if dumps have come or gone since it was made, or if
        another dump of the database is at work.

        A dump that fails leaves an unfinished directory behind, which nobody reads and the next
        dump removes.
        """
        if plan.kind in (DumpKind.NOTHING, DumpKind.BLOCKED):
            return DumpReport(kind=plan.kind, reason=plan.reason, directory=plan.previous)
        try:
            with self._alone(plan.request) as lease:
                return self._run(plan, lease)
        except (OSError, ChangeManagerError) as error:
            raise _unreachable(plan.request, error) from error

    def _plan(self, request: DumpRequest) -> DumpPlan:
        name = request.database_name
        database = self._source.get_database(name)
        _require_source(database)
        request = self._with_archive(request, database)
        dumps = list_dumps(self._resolve, request.root, name)
        previous = newest_finished(dumps)
        if previous is not None and previous.state is DumpState.FINISHED:
            return DumpPlan(
                kind=DumpKind.BLOCKED,
                request=request,
                reason=(
                    f"{previous.paths.root} is not loaded yet; load it first (repl load), or, if "
                    f"nobody wants it, end it (repl dump {name} --discard); then dump again"
                ),
                previous=previous.paths.root,
            )
        removed = () if request.is_previous_kept else tuple(one.paths.root for one in dumps)
        if previous is None or request.is_bootstrap_forced:
            return self._plan_bootstrap(request, previous, removed)
        return self._plan_incremental(request, previous, removed)

    def _with_archive(self, request: DumpRequest, database: Database) -> DumpRequest:
        cm_root = named_archive(
            self._resolve,
            request.cm_root,
            database,
            is_elsewhere_allowed=request.is_archive_elsewhere_allowed or not request.has_checksums,
        )
        return replace(request, cm_root=cm_root)

    def _plan_bootstrap(
        self, request: DumpRequest, previous: DumpDirectory | None, removed: tuple[str, ...]
    ) -> DumpPlan:
        require_no_functions(self._source, request.database_name, request.events.passed_kinds)
        tables = self._tables(request.database_name)
        for table in tables:
            require_files_of_hive(table)
        _, writers = look(self._source, request.database_name, _transactional(tables))
        return DumpPlan(
            kind=DumpKind.BOOTSTRAP,
            request=request,
            reason="a bootstrap was asked for"
            if request.is_bootstrap_forced
            else "there is no earlier dump to go on from",
            previous=None if previous is None else previous.paths.root,
            tables=tuple(one.name for one in tables),
            removed=removed,
            waits_for="" if writers is None else writers.text,
        )

    def _plan_incremental(
        self, request: DumpRequest, previous: DumpDirectory, removed: tuple[str, ...]
    ) -> DumpPlan:
        if previous.metadata is None:
            raise ReplError(
                f"{previous.paths.metadata} is missing. " + begin_anew(request.database_name)
            )
        after = previous.metadata.last_event_id
        until = self._source.get_current_event_id()
        wanted = EventRange(after=after, until=until)
        require_same_log(self._source, self._resolve, previous, wanted)
        if until == after:
            return DumpPlan(
                kind=DumpKind.NOTHING,
                request=request,
                reason=f"no event since the last dump, which ended at {after}",
                previous=previous.paths.root,
                after_event_id=after,
                until_event_id=until,
            )
        dump = self._incremental(request, wanted)
        return DumpPlan(
            kind=DumpKind.INCREMENTAL,
            request=request,
            reason=f"events after {after}",
            previous=previous.paths.root,
            after_event_id=after,
            until_event_id=until,
            events=dump.count(),
            removed=removed,
        )

    def _incremental(self, request: DumpRequest, wanted: EventRange) -> IncrementalDump:
        return IncrementalDump(
            self._source,
            database_name=request.database_name,
            wanted=wanted,
            cm_root=request.cm_root,
            rules=request.events,
            has_checksums=request.has_checksums,
            manifest=self._manifest,
        )

    def _tables(self, database: str) -> tuple[Table, ...]:
        names = self._source.get_tables(database)
        return self._source.get_tables_by_names(database, names) if names else ()

    def _run(self, plan: DumpPlan, lease: Lease) -> DumpReport:
        request = plan.request
        name = request.database_name
        dumps = self._dumps_as_planned(plan)
        pins = self._pins(name)
        above = self._resolve(database_directory(request.root, name))
        pins.release_loaded(dumps, above.uri)
        began_at_ms = self._clock.now_ms()
        pins.begin()
        self._mark_source(request)
        paths = DumpPaths(above.child(self._new_name()).uri)
        texts = NotedTexts(self._resolve, paths)
        if plan.kind is DumpKind.BOOTSTRAP:
            report, files = self._run_bootstrap(plan, paths, texts)
        else:
            report, files = self._run_incremental(plan, paths, texts)
        self._secure(pins, paths, files)
        try:
            lease.check()
            self._dumps_as_planned(plan)
        except ReplError:
            pins.release(paths.root)
            raise
        newest_ms = max((one.time_ms for one in dumps), default=0)
        mark = FinishMark(
            manifest_digest=texts.manifest(len(files)),
            time_ms=max(self._clock.now_ms(), newest_ms + 1),
        )
        ensure_content(self._resolve(paths.finished_dump), mark.format().encode())
        pins.finish(began_at_ms)
        self._remove_older(name, plan.removed)
        return report

    def _dumps_as_planned(self, plan: DumpPlan) -> tuple[DumpDirectory, ...]:
        """All dumps. Raises ReplError if another one was finished since the plan.

        Asked again before this one is finished: the other took it for abandoned and removed what
        it had written so far, so that tables or events may be missing in it.
        """
        request = plan.request
        name = request.database_name
        dumps = list_dumps(self._resolve, request.root, name)
        newest = newest_finished(dumps)
        if (None if newest is None else newest.paths.root) != plan.previous:
            raise ReplError(f"dumps of {name} have changed since the plan; plan the dump again")
        return dumps

    def _mark_source(self, request: DumpRequest) -> None:
        """From now on replaced files of the database are archived (I4)."""
        database = self._source.get_database(request.database_name)
        _require_source(database)
        if not database.is_replication_source:
            self._source.alter_database(
                request.database_name, with_parameters(database, {SOURCE_FOR: request.policy})
            )

    def _run_bootstrap(
        self, plan: DumpPlan, paths: DumpPaths, texts: NotedTexts
    ) -> tuple[DumpReport, list[EncodedUri]]:
        """The event id comes before the snapshot: events between are in both, and may be."""
        request = plan.request
        name = request.database_name
        event_id = self._source.get_current_event_id()
        reader = ReadTxn(self._source, self._clock, user=request.user, host=request.host)
        try:
            written = self._write_bootstrap(request, paths, texts, event_id, reader)
            reader.check()
        except BaseException:
            reader.give_up()
            raise
        reader.end()
        until = self._source.get_current_event_id()
        require_no_rename(self._source, name, EventRange(after=event_id, until=until))
        write_origin(self._source, texts, paths, event_id, until)
        texts.write_metadata(DumpType.BOOTSTRAP, name, request.cm_root, event_id, until)
        files = written.all_files
        report = DumpReport(
            kind=plan.kind,
            reason=plan.reason,
            directory=paths.root,
            from_event_id=event_id,
            to_event_id=until,
            last_event_id=event_id,
            tables={table: len(named) for table, named in written.files.items()},
            file_count=len(files),
            idle_txn_ids=written.idle_txn_ids,
            removed=plan.removed,
        )
        return report, files

    def _write_bootstrap(
        self,
        request: DumpRequest,
        paths: DumpPaths,
        texts: NotedTexts,
        event_id: EventId,
        reader: ReadTxn,
    ) -> _WrittenBootstrap:
        """Register as a reader, then take the snapshot, then write what it sees (I3)."""
        name = request.database_name
        require_no_functions(self._source, name, request.events.passed_kinds)
        tables = self._tables(name)
        write_plain(texts, paths, plain_places(self._source, self._resolve, tables))
        reader.register(_transactional(tables))
        snapshot = wait_for_snapshot(
            self._source,
            self._clock,
            name,
            _transactional(tables),
            request.wait,
            keep_alive=reader.keep_alive,
        )
        dump = BootstrapDump(
            self._source,
            self._resolve,
            paths,
            texts,
            database_name=name,
            event_id=event_id,
            snapshot=snapshot,
            cm_root=request.cm_root if request.has_checksums else None,
            external_base=request.external_base,
        )
        dump.write_database()
        files: dict[str, Sequence[EncodedUri]] = {}
        for table in dump.write_tables(tables):
            files[table.table_name] = table.files
            reader.keep_alive()
        dump.write_external_list()
        return _WrittenBootstrap(files=files, idle_txn_ids=snapshot.idle_txn_ids)

    def _run_incremental(
        self, plan: DumpPlan, paths: DumpPaths, texts: NotedTexts
    ) -> tuple[DumpReport, list[EncodedUri]]:
        request = plan.request
        after = plan.after_event_id or EventId(0)
        now = plain_places(self._source, self._resolve, self._tables(request.database_name))
        write_plain(texts, paths, now)
        until = self._source.get_current_event_id()
        dump = self._incremental(request, EventRange(after=after, until=until))
        if plan.previous is not None and PLAIN_TABLES not in request.events.passed_kinds:
            before = read_plain(self._resolve, DumpPaths(plan.previous))
            wanted = EventRange(after=after, until=until)
            require_told(self._source, request.database_name, before, now, wanted)
        counts, files = dump.write(self._resolve, paths, texts)
        if request.external_base is not None:
            directories = list_external(
                self._source, self._resolve, request.database_name, request.external_base
            )
            texts.write(external_list_text(paths, directories))
        write_origin(self._source, texts, paths, after, until)
        name = request.database_name
        texts.write_metadata(DumpType.INCREMENTAL, name, request.cm_root, after, until)
        report = DumpReport(
            kind=plan.kind,
            reason=plan.reason,
            directory=paths.root,
            from_event_id=after,
            to_event_id=until,
            last_event_id=until,
            events=counts,
            file_count=len(files),
            removed=plan.removed,
        )
        return report, files

    def _secure(self, pins: DumpPins, paths: DumpPaths, files: list[EncodedUri]) -> None:
        """Pin first, then look: a dump whose files are gone already is no dump.

        Raises SourceFileMissingError. Real Hive finishes such a dump and loses the rows.
        """
        pins.hold(paths.root, files)
        find = partial(locate, resolve=self._resolve, is_content_checked=False)
        with FilePool() as pool:
            missing = [
                f"{found.file.uri} ({found.reason})"
                for found in pool.each(find, dict.fromkeys(files))
                if found.location is None
            ]
        if missing:
            pins.release(paths.root)
            raise SourceFileMissingError(
                f"lost: {counted(len(missing), 'file')} that the dump should name: "
                f"{'; '.join(missing[:_NAMED_IN_MESSAGE])}. Bring them back, or begin anew: "
                "drop the replica, then 'repl dump --bootstrap' and 'repl load'; dump more often "
                "than hive.repl.cm.retain",
                missing=tuple(missing),
            )


def _transactional(tables: Sequence[Table]) -> tuple[str, ...]:
    return tuple(one.full_name for one in tables if one.is_transactional)


def _require_source(database: Database) -> None:
    """Raises ReplError for a replica whose first incremental load has not come yet, or any."""
    if database.parameters.get(FIRST_INCREMENTAL_PENDING, "").lower() == "true":
        raise ReplError(
            f"database {database.name} was bootstrapped itself and waits for its first "
            "incremental load; load it, then dump"
        )
    if is_replica(database.parameters):
        raise ReplError(
            f"database {database.name} is a replica ({TARGET_FOR}); dump its source instead, or, "
            f"after a failover, make it a database of its own: repl end {database.name}"
        )


def _unreachable(request: DumpRequest, error: Exception) -> ReplError:
    return ReplError(
        f"dumping {request.database} below {request.root}: {error}. Check the file systems of the "
        "warehouse, the archive and the dump, then dump again"
    )
