"""What is wrong between a source and its replica, found out without changing anything.

Dump and load are planned, as the next cycle would plan them; what they refuse is read for the way
out that it names. What no plan can know is added by whoever tried: the last cycle, or this repair.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from changemanager.location import Resolver
from hms_bridge.errors import EventGapError, MarkedError, ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.partition_name import parse_partition_name
from hms_bridge.model.properties import CHECKPOINT, INCOMPATIBLE, is_true
from hms_bridge.repl.compare.described import CompareReport, Finding, Verdict
from hms_bridge.repl.compare.repl_compare import ReplCompare
from hms_bridge.repl.compare.table_comparison import CompareRequest, Depth
from hms_bridge.repl.cycles.cycle import OpenCycle
from hms_bridge.repl.dump.discard import ReplDiscard
from hms_bridge.repl.dump.plan import DumpKind, DumpPlan
from hms_bridge.repl.format.directories import DumpDirectory, DumpState, list_dumps
from hms_bridge.repl.format.dump_metadata import DumpType
from hms_bridge.repl.format.reader import DumpReader
from hms_bridge.repl.format.untrusted import given_name
from hms_bridge.repl.format.verify import Reading
from hms_bridge.repl.load.handed_over import refuse_successor
from hms_bridge.repl.load.plan import LoadKind, LoadPlan
from hms_bridge.repl.lookup import if_there
from hms_bridge.repl.repair.plan import (
    Cure,
    RepairFacts,
    ReplicaState,
    Seen,
    Trouble,
    WaitingDump,
    asked,
    trouble_of,
    trouble_of_cycle,
    troubles_of_findings,
)
from hms_bridge.repl.target_objects import last_event_of


@dataclass(frozen=True, kw_only=True, slots=True)
class RepairSides:
    """Both sides, at hand. ``resolve`` reaches dumps and the files of both."""

    cycle: OpenCycle
    source: Metastore
    target: Metastore
    discarder: ReplDiscard
    comparer: ReplCompare
    resolve: Resolver


@dataclass(frozen=True, kw_only=True, slots=True)
class LastFailure:
    """What the last cycle failed with, and when it ended, in milliseconds since 1970."""

    message: str
    ended_at_ms: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RepairRequest:
    """What to repair. ``tables`` and ``patterns`` (regular expressions for whole names): bring
    these whole; none: what is found. ``partitions``: table and name of such as must be there at
    either side, by all of their keys or some; a dump has nothing smaller than their tables.
    ``is_bootstrap_allowed``: the replica may be dropped where nothing less helps. ``depth``: how
    tables are compared. ``last_failure``: of the policy."""

    tables: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    partitions: tuple[tuple[str, str], ...] = ()
    is_bootstrap_allowed: bool = False
    depth: Depth = field(default_factory=Depth)
    last_failure: LastFailure | None = None

    @property
    def is_named(self) -> bool:
        """Whether somebody says what to bring."""
        return bool(self.tables or self.patterns or self.partitions)


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """What a repair has done so far. ``refused``: what its own steps were refused with;
    ``brought``: tables that came whole; ``is_all_brought``: everything did; ``scope``: tables to
    compare, None: all."""

    refused: tuple[Trouble, ...] = ()
    brought: frozenset[str] = frozenset()
    is_all_brought: bool = False
    scope: frozenset[str] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RepairLook:
    """What was found. ``comparison`` None: nothing was compared."""

    facts: RepairFacts
    comparison: CompareReport | None = None

    @property
    def open_findings(self) -> tuple[Finding, ...]:
        """Differences, and what could not be decided."""
        if self.comparison is None:
            return ()
        of = self.comparison.of
        return (*of(Verdict.DIFFERENT), *of(Verdict.UNDECIDED))


class RepairLooking:
    """Looks at both sides. Changes nothing but for the read-only transactions of a comparison."""

    def __init__(self, sides: RepairSides) -> None:
        self._sides = sides
        self._source = sides.cycle.dump.database_name
        self._names = sides.cycle.load.names

    def require_partitions(self, request: RepairRequest) -> None:
        """Raises ReplError for a partition that is named and that neither side has: a typing error,
        whose table would be copied for nothing."""
        source, target = self._sides.source, self._sides.target
        places = ((source, self._source), (target, self._names.target_database))
        for table, partition in request.partitions:
            wanted = set(parse_partition_name(partition))
            names = {
                name
                for metastore, database in places
                for name in if_there(metastore.get_partition_names, database, table.lower()) or ()
            }
            if any(wanted.issubset(parse_partition_name(name)) for name in names):
                continue
            near = difflib.get_close_matches(partition, names, n=1)
            hint = f"did you mean {table}/{near[0]}?" if near else "look at its table and its name."
            raise ReplError(
                f"neither side has a partition {table}/{partition}; {hint} Nothing was changed. A "
                "table comes whole with --table, whatever partitions it has"
            )

    def look(self, request: RepairRequest, progress: Progress) -> RepairLook:
        """What is wrong now. Raises ReplError for a pattern that fits no table, for what is no
        pattern and no name, and where dumps cannot be listed."""
        dumps = list_dumps(self._sides.resolve, self._sides.cycle.dump.root, self._source)
        finished = [dump for dump in dumps if dump.state is not DumpState.UNFINISHED]
        waiting = self._waiting(finished)
        load, refused = self._load(waiting) if finished else (None, ())
        wanted = self._wanted(request)
        missing = frozenset() if progress.is_all_brought else wanted - progress.brought
        troubles = [*asked(missing), *refused, *progress.refused]
        if request.last_failure is not None and not self._is_over(request.last_failure, dumps):
            troubles.append(trouble_of_cycle(request.last_failure.message))
        replica = self._replica()
        if waiting is not None and load is not None and load.kind is LoadKind.INCREMENTAL:
            waiting = replace(waiting, anew=frozenset(load.tables))
        comparison = None
        if replica.stands_at is not None and not _is_bootstrap_due(troubles):
            comparison, differing = self._compared(request, progress, wanted)
            troubles += differing
        dump, refused = self._dump(waiting, troubles)
        troubles += refused
        facts = RepairFacts(
            source_database=self._source,
            replica=replica,
            waiting=waiting,
            has_dump=bool(finished),
            is_anything_new=_is_anything_new(dump, load),
            troubles=tuple(dict.fromkeys(troubles)),
        )
        return RepairLook(facts=facts, comparison=comparison)

    def _waiting(self, finished: Sequence[DumpDirectory]) -> WaitingDump | None:
        """The newest dump, if it is not loaded."""
        newest = next(iter(finished), None)
        if newest is None or newest.state is DumpState.LOADED:
            return None
        kind = None if newest.metadata is None else newest.metadata.type
        return WaitingDump(
            directory=newest.paths.root,
            checkpoint=newest.paths.hive,
            is_bootstrap=kind == DumpType.BOOTSTRAP.value,
            is_damaged=self._is_damaged(newest),
            is_followed=kind == DumpType.INCREMENTAL.value
            or any(dump.state is DumpState.LOADED and dump.metadata for dump in finished),
        )

    def _load(self, waiting: WaitingDump | None) -> tuple[LoadPlan | None, tuple[Trouble, ...]]:
        """What a load would do, or why it refuses to. By names: the load itself reads the bytes."""
        quick = replace(self._sides.cycle.load, preflight=Reading.NONE)
        try:
            return self._sides.cycle.loader.plan(quick), ()
        except ReplError as error:
            return None, (trouble_of_error(Seen.LOAD, error, is_dump_damaged=_is_damaged(waiting)),)

    def _is_damaged(self, dump: DumpDirectory) -> bool:
        """Whether a dump of ours lost what it had when it was finished. A loaded one may."""
        if dump.state is DumpState.DAMAGED:
            return True
        if dump.state is not DumpState.FINISHED:
            return False
        try:
            DumpReader(self._sides.resolve, dump.paths, self._sides.cycle.load.rules).check_texts()
        except ReplError:
            return True
        return False

    def _dump(
        self, waiting: WaitingDump | None, troubles: Sequence[Trouble]
    ) -> tuple[DumpPlan | None, tuple[Trouble, ...]]:
        """What a dump would do that brings the tables which are known to be due, and what it
        refuses: it names one table after the other."""
        refused: list[Trouble] = []
        names = _tables_due(troubles)
        while True:
            request = replace(self._sides.cycle.dump, tables_anew=tuple(sorted(names)))
            try:
                return self._sides.cycle.dumper.plan(request), tuple(refused)
            except ReplError as error:
                trouble = trouble_of_error(Seen.DUMP, error, is_dump_damaged=_is_damaged(waiting))
                refused.append(trouble)
                if trouble.cure is not Cure.TABLES or trouble.tables <= names:
                    return None, tuple(refused)
                names |= trouble.tables

    def _replica(self) -> ReplicaState:
        name = self._names.target_database
        database = if_there(self._sides.target.get_database, name)
        if database is None:
            return ReplicaState(name=name)
        refuse_successor(database)
        parameters = database.parameters
        return ReplicaState(
            name=name,
            is_there=True,
            stands_at=last_event_of(parameters),
            begun=parameters.get(CHECKPOINT),
            is_incompatible=is_true(parameters, INCOMPATIBLE),
            table_count=len(self._sides.target.get_tables(name)),
        )

    def _wanted(self, request: RepairRequest) -> frozenset[str]:
        """The tables that are asked for by name or pattern."""
        tables = (*request.tables, *(table for table, _ in request.partitions))
        names = {given_name(name, "table") for name in tables}
        there = self._sides.source.get_tables(self._source) if request.patterns else ()
        scope = self._sides.cycle.dump.scope
        if scope is not None:
            there = tuple(name for name in there if scope.contains(name))
        for pattern in request.patterns:
            fitting = _fitting(pattern, there)
            if not fitting:
                raise ReplError(
                    f"no table of {self._source} at the source is called as '{pattern}' says; a "
                    "pattern is a regular expression for the whole name"
                )
            names |= fitting
        return frozenset(names)

    def _is_over(self, failure: LastFailure, dumps: Sequence[DumpDirectory]) -> bool:
        """Whether something was loaded since a cycle failed: then it is mended, or fails again."""
        for dump in dumps:
            loaded = self._sides.resolve(dump.paths.finished_load).status()
            if loaded is not None and (loaded.mtime_ms or 0) >= failure.ended_at_ms:
                return True
        return False

    def _compared(
        self, request: RepairRequest, progress: Progress, wanted: Collection[str]
    ) -> tuple[CompareReport | None, tuple[Trouble, ...]]:
        """Of all tables; where somebody named some, of these, once they were brought."""
        names: frozenset[str] | None = progress.scope
        if request.is_named:
            names = frozenset(wanted) if progress.is_all_brought else progress.brought
        if names is not None:
            names &= self._known_names()
            if not names:
                return None, ()
        compare = CompareRequest(
            root=self._sides.cycle.dump.root,
            source_database=self._source,
            target_database=self._names.target_database,
            tables=tuple(sorted(names or ())),
            depth=request.depth,
            passed_kinds=self._sides.cycle.load.rules.passed_kinds,
            user=self._names.user,
            host=self._names.host,
        )
        try:
            report = self._sides.comparer.run(compare)
        except ReplError as error:
            return None, (trouble_of(Seen.COMPARE, str(error)),)
        troubles = troubles_of_findings(report.findings)
        return report, tuple(_if_still(trouble, progress) for trouble in troubles)

    def _known_names(self) -> frozenset[str]:
        sides = self._sides
        return frozenset(
            (
                *sides.source.get_tables(self._source),
                *sides.target.get_tables(self._names.target_database),
            )
        )


def trouble_of_error(seen: Seen, error: ReplError, *, is_dump_damaged: bool = False) -> Trouble:
    """What an error of a dump or a load asks for."""
    is_gap = isinstance(error, EventGapError | MarkedError)
    return trouble_of(seen, str(error), is_gap=is_gap, is_dump_damaged=is_dump_damaged)


def _if_still(trouble: Trouble, progress: Progress) -> Trouble:
    """What came whole and differs all the same is not mended by bringing it again."""
    is_brought = progress.is_all_brought or trouble.tables <= progress.brought
    if trouble.cure is not Cure.TABLES or not is_brought:
        return trouble
    text = f"{trouble.text}, though it was just brought whole"
    return Trouble(seen=trouble.seen, text=text, cure=Cure.BY_HAND)


def _is_damaged(waiting: WaitingDump | None) -> bool:
    return waiting is not None and waiting.is_damaged


def _fitting(pattern: str, names: Collection[str]) -> frozenset[str]:
    try:
        wanted = re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise ReplError(f"'{pattern}' is no regular expression: {error}") from error
    return frozenset(name for name in names if wanted.fullmatch(name))


def _tables_due(troubles: Sequence[Trouble]) -> frozenset[str]:
    return frozenset[str]().union(*(trouble.tables for trouble in troubles))


def _is_bootstrap_due(troubles: Sequence[Trouble]) -> bool:
    return any(trouble.cure is Cure.BOOTSTRAP for trouble in troubles)


def _is_anything_new(dump: DumpPlan | None, load: LoadPlan | None) -> bool:
    is_dumped = dump is not None and dump.kind not in (DumpKind.NOTHING, DumpKind.BLOCKED)
    return is_dumped or (load is not None and load.kind is not LoadKind.NOTHING)
