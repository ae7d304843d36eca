"""Compare a replica with its source while both live, at the event at which the replica stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from changemanager.location import Resolver
from hms_bridge.clock import Clock
from hms_bridge.errors import NoSuchObjectError, ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Database
from hms_bridge.model.ids import EventId
from hms_bridge.model.properties import CHECKPOINT
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.repl.compare.definitions import database_definition, differing
from hms_bridge.repl.compare.described import Compared, CompareReport, Finding, Verdict, different
from hms_bridge.repl.compare.functions import FunctionComparison
from hms_bridge.repl.compare.later_events import LaterEvents
from hms_bridge.repl.compare.table_comparison import CompareRequest, Sides, TableComparison
from hms_bridge.repl.dump.event_source import EventRange
from hms_bridge.repl.dump.origin import require_reached, require_same_log
from hms_bridge.repl.format.directories import list_dumps
from hms_bridge.repl.remedies import begin_anew
from hms_bridge.repl.storage import explained_refusals
from hms_bridge.repl.target_objects import known_scope, last_event_of

_TRIES = 3
"""How often a table is looked at again that a load changes meanwhile."""


class ReplCompare:
    """Looks at both sides. Changes nothing but for its own read-only transactions."""

    def __init__(
        self,
        resolve: Resolver,
        clock: Clock,
        *,
        source: Metastore,
        target: Metastore,
        on_table: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._resolve = resolve
        self._clock = clock
        self._source = source
        self._target = target
        self._on_table = on_table

    def run(self, request: CompareRequest) -> CompareReport:
        """Compare now. Raises NoSuchObjectError for a database that is not there, EventGapError for
        a source whose log is not the one that was replicated or does not go back far enough,
        ReplError for a replica into which nothing was loaded or for tables that no side has."""
        with explained_refusals(
            lambda error: (
                f"{request.source_database} cannot be compared: {error}. The files of "
                "both sides must be readable from here; mend that, then compare again"
            )
        ):
            return self._run(request)

    def _run(self, request: CompareRequest) -> CompareReport:
        stands_at = self._require_comparable(request)
        scope = self._scope(request)
        log = LaterEvents(self._source, request.source_name, stands_at)
        log.read_on()
        functions = self._functions(request, log)
        findings = [*self._database(request, log), *functions]
        compared = Compared(
            functions=sum(finding.verdict is Verdict.EQUAL for finding in functions)
        )
        for name in self._names(request, scope):
            self._on_table(name)
            of_table, amount = self._table(request, log, name)
            findings += of_table
            compared += amount
        return CompareReport(
            source_database=request.source_name,
            target_database=request.target_name,
            event_id=self._stands_at(request),
            source_event_id=log.until,
            findings=tuple(findings),
            compared=compared,
            scope=scope,
        )

    def _scope(self, request: CompareRequest) -> ReplScope:
        """The tables that the replica has, as its loads noted; else what was dumped last."""
        target = self._target.get_database(request.target_name)
        dumps = list_dumps(self._resolve, request.root, request.source_name)
        return known_scope(target.parameters, request.source_name, dumps)

    def _require_comparable(self, request: CompareRequest) -> EventId:
        """The event that the replica stands at."""
        source = self._source.get_database(request.source_name)
        target = self._target.get_database(request.target_name)
        stands_at = last_event_of(target.parameters)
        if stands_at is None:
            raise _never_loaded(source, target)
        current = self._source.get_current_event_id()
        require_reached(current, stands_at, request.source_name)
        dumps = list_dumps(self._resolve, request.root, request.source_name)
        newest = next((dump for dump in dumps if dump.metadata is not None), None)
        if newest is not None and newest.metadata is not None:
            since = EventRange(after=newest.metadata.last_event_id, until=current)
            require_same_log(self._source, self._resolve, newest, since)
        return stands_at

    def _stands_at(self, request: CompareRequest) -> EventId:
        """Raises ReplError if the replica was dropped, or is loaded anew."""
        target = self._target.get_database(request.target_name)
        stands_at = last_event_of(target.parameters)
        if stands_at is None:
            raise ReplError(
                f"database {target.name} was made anew while it was compared; compare again once "
                "it is loaded"
            )
        return stands_at

    def _database(self, request: CompareRequest, log: LaterEvents) -> Iterator[Finding]:
        stands_at = self._stands_at(request)
        source = self._source.get_database(request.source_name)
        target = self._target.get_database(request.target_name)
        ours, theirs = database_definition(source), database_definition(target)
        if "owner" not in ours:
            theirs = {what: text for what, text in theirs.items() if what != "owner"}
        unequal = tuple(differing(ours, theirs))
        if not unequal:
            return
        log.read_on()
        changed = log.table_change("", stands_at)
        if changed is not None or self._stands_at(request) != stands_at:
            yield Finding(
                verdict=Verdict.UNDECIDED,
                what="definition of the database",
                why=_changed_since(changed or "a load"),
            )
            return
        yield from (different(*difference) for difference in unequal)

    def _functions(self, request: CompareRequest, log: LaterEvents) -> tuple[Finding, ...]:
        stands_at = self._stands_at(request)
        source = self._source.get_functions(request.source_name)
        replica = self._target.get_functions(request.target_name)
        log.read_on()
        has_moved = self._stands_at(request) != stands_at
        comparison = FunctionComparison(
            resolve=self._resolve,
            passed_kinds=request.passed_kinds,
            change_of=lambda name: "a load" if has_moved else log.function_change(name, stands_at),
        )
        return tuple(comparison.findings(source, replica))

    def _names(self, request: CompareRequest, scope: ReplScope) -> Sequence[str]:
        """Of both sides, as far as the replica is to have them, or those asked for."""
        there = {
            *self._source.get_tables(request.source_name),
            *self._target.get_tables(request.target_name),
        }
        wanted = {name.lower() for name in request.tables}
        unknown = sorted(wanted - there)
        if unknown:
            raise ReplError(
                f"neither {request.source_name} of the source nor {request.target_name} of the "
                f"replica has a table {', '.join(unknown)}; look at the names given by --table"
            )
        outside = sorted(name for name in wanted if not scope.contains(name))
        if outside:
            raise ReplError(
                f"{', '.join(outside)} is outside of {scope.text}, which is what is replicated"
            )
        return sorted(wanted or filter(scope.contains, there))

    def _table(
        self, request: CompareRequest, log: LaterEvents, name: str
    ) -> tuple[tuple[Finding, ...], Compared]:
        """Again if a load changes it meanwhile; a cleaner may have taken files away as well."""
        sides = Sides(
            source=self._source,
            target=self._target,
            resolve=self._resolve,
            clock=self._clock,
            request=request,
        )
        for _ in range(_TRIES):
            stands_at = self._stands_at(request)
            newest = self._target.get_current_event_id()
            here = LaterEvents(self._target, request.target_name, newest)
            try:
                outcome = TableComparison(sides, log, stands_at).run(name)
            except (FileNotFoundError, NoSuchObjectError):
                continue
            log.read_on()
            here.read_on()
            has_moved = self._stands_at(request) != stands_at or here.table_change(name, newest)
            if outcome is None or has_moved:
                continue
            changed = log.table_change(name, stands_at)
            if changed is None:
                return outcome
            return (_undecided(name, _changed_since(changed)),), Compared()
        why = "a load is at work, or was stopped before its end; load to its end, compare again"
        return (_undecided(name, why),), Compared()


def _undecided(table: str, why: str) -> Finding:
    return Finding(verdict=Verdict.UNDECIDED, table=table, what="table", why=why)


def _changed_since(what: str) -> str:
    return f"changed since the event at which the replica stands, by {what}; load, compare again"


def _never_loaded(source: Database, target: Database) -> ReplError:
    if last_event_of(source.parameters) is not None:
        return ReplError(
            f"database {target.name} behind --metastore is no replica, but {source.name} behind "
            "--source is one: give --source the source's metastore, --metastore the replica's"
        )
    if CHECKPOINT in target.parameters:
        return ReplError(
            f"the bootstrap of database {target.name} is not loaded to its end, so there is no "
            f"event to compare at: 'repl load {source.name}' again, then compare"
        )
    return ReplError(
        f"database {target.name} behind --metastore is no replica: nothing was ever loaded into "
        f"it. Give the replica's metastore and --into its database. {begin_anew(source.name)}"
    )
