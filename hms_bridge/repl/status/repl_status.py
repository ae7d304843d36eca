"""REPL STATUS, and more: how far a replica is behind, and when that becomes a loss."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from changemanager.budget import budget_ends_ms
from changemanager.location import Resolver
from changemanager.manifest import ArchiveManifest, Pin
from changemanager.plausible_time import judge
from hms_bridge.cleaning_store import FigureStore
from hms_bridge.clock import Clock
from hms_bridge.errors import (
    DumpIncompleteError,
    EventGapError,
    MarkedError,
    NoSuchObjectError,
    ReplError,
)
from hms_bridge.metastore import Metastore
from hms_bridge.model.counted import counted
from hms_bridge.model.event_block import budget_ends_seconds
from hms_bridge.model.ids import EventId
from hms_bridge.model.properties import CHECKPOINT, FIRST_INCREMENTAL_PENDING, INCOMPATIBLE, is_true
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.repl.dump.backlog import Backlog, bytes_to_copy, find_backlog
from hms_bridge.repl.dump.event_source import EventRange, next_event
from hms_bridge.repl.dump.origin import require_reached, require_same_log
from hms_bridge.repl.format.directories import (
    DumpDirectory,
    DumpState,
    list_dumps,
    newest_finished,
    newest_known,
)
from hms_bridge.repl.format.texts import is_there
from hms_bridge.repl.format.verify import verify_dump
from hms_bridge.repl.lease import LeaseKind, lease_seen
from hms_bridge.repl.load.admission import RootsNote, SourcePlaces
from hms_bridge.repl.load.known_places import (
    KnownPlaces,
    UnlookedFiles,
    asked_places,
    unlooked_files,
)
from hms_bridge.repl.lookup import if_there
from hms_bridge.repl.pins import dump_holder, given_up_text, policy_pin
from hms_bridge.repl.remedies import begin_anew, taken_over
from hms_bridge.repl.status.report import DumpStatus, StatusReport, StatusRequest
from hms_bridge.repl.successor import successor_text
from hms_bridge.repl.target_objects import has_taken_over, known_scope, last_event_of


class ReplStatus:
    """Looks at both sides, as far as they are given; ``manifest`` is that of the source. Files of
    dumps are looked for where ``note``, the replica's, and ``places`` say, too. Changes nothing."""

    def __init__(
        self,
        resolve: Resolver,
        clock: Clock,
        *,
        source: Metastore | None = None,
        target: Metastore | None = None,
        manifest: ArchiveManifest | None = None,
        figures: FigureStore | None = None,
        note: RootsNote | None = None,
        places: SourcePlaces | None = None,
    ) -> None:
        self._figures = figures
        self._note = note
        self._places = places
        self._resolve = resolve
        self._clock = clock
        self._source = source
        self._target = target
        self._manifest = manifest

    def look(self, request: StatusRequest) -> StatusReport:
        """The status now. Raises ReplError if a dump is damaged, NoSuchObjectError for a name of
        which neither side, as far as they are given, nor a dump knows."""
        source = request.source_database.lower()
        dumps = list_dumps(self._resolve, request.root, source)
        parameters = self._target_parameters(request)
        self._require_known(request, dumps)
        last = None if parameters is None else last_event_of(parameters)
        loaded = last if last is not None else _until(_loaded(dumps))
        dumped = _until(dumps)
        waiting = next((dump for dump in dumps if dump.state is DumpState.FINISHED), None)
        pins = self._known_pins()
        is_pinned = False if waiting is None else _is_pinned(pins, source, waiting)
        policy = policy_pin((pins or {}).values(), source, self._resolve(request.root).uri)
        own_pins = _own_pins(pins, policy, source, waiting)
        expiry_ms, missing, unlooked = self._archive_expiry(request, waiting)
        current = None if self._source is None else self._source.get_current_event_id()
        scope = known_scope(parameters or {}, source, dumps)
        is_promoted = has_taken_over(parameters or {})
        backlog, gap = (
            (None, taken_over(request.target_database or source))
            if is_promoted
            else self._backlog(scope, loaded, dumps, current)
        )
        is_incompatible = is_true(parameters or {}, INCOMPATIBLE)
        return StatusReport(
            source_database=source,
            target_database=request.target_database,
            last_event_id=last,
            source_event_id=current,
            backlog=backlog,
            rpo_seconds=None if backlog is None else self._age_seconds(backlog.oldest_ms),
            bytes_to_copy=self._bytes_to_copy(request, scope, backlog),
            scope=scope,
            is_first_incremental_pending=is_true(parameters or {}, FIRST_INCREMENTAL_PENDING),
            is_incompatible=is_incompatible,
            dumps=tuple(self._describe(dump) for dump in dumps),
            events_expire_in_seconds=self._seconds_until(
                self._events_end_ms(request, dumped, is_pinned=policy is not None)
            ),
            # What is pinned does not expire; its budget is the limit then.
            archive_expires_in_seconds=None if is_pinned else self._seconds_until(expiry_ms),
            budget_ends_in_seconds=self._seconds_until(self._budget_ends_ms(request, own_pins)),
            missing_files=missing,
            unlooked=unlooked,
            is_pinned=is_pinned,
            unfinished_load=self._unfinished_load(request, parameters or {}, waiting),
            last_success_ms=request.last_success_ms,
            is_promoted=is_promoted,
            time_doubt=self._time_doubt(max(request.retain_ms, request.event_ttl_ms)),
            troubles=_without_empty(
                gap,
                self._not_there(request, dumps),
                None if is_promoted else self._successor(source),
                _marked(dumps),
                _lost_files(missing),
                *(given_up_text(pin, source) for pin in own_pins),
                _not_compatible(source, is_incompatible),
            ),
        )

    def _time_doubt(self, keep_ms: int) -> str:
        if self._manifest is None:
            return ""
        return judge(self._clock.now_ms(), self._manifest.known_times()).within(keep_ms).doubt

    def _backlog(
        self,
        scope: ReplScope,
        loaded: EventId | None,
        dumps: Sequence[DumpDirectory],
        current: EventId | None,
    ) -> tuple[Backlog | None, str | None]:
        """What is lacking after an event, and why that cannot be brought any more."""
        source = self._source
        if source is None or loaded is None or current is None:
            return None, None
        # A dump that is not loaded has what the log may have lost: only what comes after it counts.
        newest = next((dump for dump in dumps if dump.metadata is not None), None)
        dumped = _until(dumps) or loaded
        try:
            if newest is not None:
                since_dump = EventRange(after=dumped, until=current)
                require_same_log(source, self._resolve, newest, since_dump)
            require_reached(current, loaded, scope.database_name)
            later = EventRange(after=max(loaded, dumped), until=current)
            undumped = find_backlog(source, later, scope)
        except EventGapError as error:
            return None, str(error)
        if dumped <= loaded:
            return undumped, None
        try:
            return find_backlog(source, EventRange(after=loaded, until=current), scope), None
        except EventGapError:
            return None, None  # a dump has those events; what they were, the log says no more

    def _require_known(self, request: StatusRequest, dumps: Sequence[DumpDirectory]) -> None:
        """Raises NoSuchObjectError for what is mistyped: nothing would look like all being well."""
        sides = {
            "the source": (self._source, request.source_database),
            "the replica's metastore": (self._target, self._target_name(request)),
        }
        given = {
            where: (store, name) for where, (store, name) in sides.items() if store is not None
        }
        if dumps or not given or not all(_is_absent(store, name) for store, name in given.values()):
            return
        lacks = " and ".join(f"no {name} in {where}" for where, (_, name) in given.items())
        raise NoSuchObjectError(
            f"nothing is known of database {request.source_database}: there is {lacks}, and no "
            f"dump of it below {request.root}; look at the name, --root and the metastores"
        )

    def _not_there(self, request: StatusRequest, dumps: Sequence[DumpDirectory]) -> str | None:
        """Dumps are loaded, but where the replica is looked for it is not."""
        is_loaded = any(dump.state is DumpState.LOADED for dump in dumps)
        is_dropped = bool(dumps) and is_there(self._resolve(dumps[0].paths.dropped))
        name = self._target_name(request)
        if not is_loaded or is_dropped or not _is_absent(self._target, name):
            return None
        return (
            f"dumps of {request.source_database} are loaded, but there is no database {name} in "
            "the replica's metastore: look at --metastore and --into. If it is gone: "
            + begin_anew(request.source_database, name)
        )

    def _target_name(self, request: StatusRequest) -> str:
        return (request.target_database or request.source_database).lower()

    def _successor(self, database: str) -> str | None:
        """Who took the source's place, if anybody did."""
        if self._source is None:
            return None
        try:
            return successor_text(self._source.get_database(database))
        except NoSuchObjectError:
            return None  # the next dump names the drop
        except ReplError as error:
            return str(error)

    def _unfinished_load(
        self,
        request: StatusRequest,
        parameters: Mapping[str, str],
        waiting: DumpDirectory | None,
    ) -> str | None:
        if self._target is None:
            return None
        name = self._target_name(request)
        seen = lease_seen(self._target, LeaseKind.LOAD, name)
        reached = _reached_text(parameters, waiting)
        if seen is None and reached is None:
            return None
        if seen is None:
            state = "was stopped"
        elif seen.has_ended:
            state = f"was killed ({seen.who}; that process is gone)"
        else:
            state = f"is at work, or was killed ({seen.who})"
        return (
            f"a load into {name} {state}; {reached or 'nothing of it is there yet'}. If it was "
            "stopped, the next 'repl run' or 'repl load' goes on from there"
        )

    def _bytes_to_copy(
        self, request: StatusRequest, scope: ReplScope, backlog: Backlog | None
    ) -> int | None:
        if self._source is None or backlog is None or not request.are_bytes_counted:
            return None
        return bytes_to_copy(self._source, self._resolve, backlog.txns, scope)

    def _target_parameters(self, request: StatusRequest) -> dict[str, str] | None:
        if self._target is None:
            return None
        database = if_there(self._target.get_database, self._target_name(request))
        return {} if database is None else dict(database.parameters)

    def _event_time_ms(self, after: EventId | None) -> int | None:
        """When the first event after this one happened; None if there is none."""
        if self._source is None or after is None:
            return None
        event = next_event(self._source, after)
        return None if event is None else event.time_seconds * 1000

    def _events_end_ms(
        self, request: StatusRequest, dumped: EventId | None, *, is_pinned: bool
    ) -> int | None:
        """When the log purges the first event that no dump has; None if there is none."""
        oldest_ms = self._event_time_ms(dumped)
        if oldest_ms is None or dumped is None or not is_pinned:
            return _sum(oldest_ms, request.event_ttl_ms)
        # A pin of the policy keeps them beyond their time to live, as far as the budgets go.
        ends = [oldest_ms + max(request.event_ttl_ms, request.event_budget_ms)]
        if self._figures is not None and request.event_budget_bytes is not None:
            keep_seconds = request.event_ttl_ms // 1000
            blocks, budget = self._figures.event_blocks(), request.event_budget_bytes
            end = budget_ends_seconds(blocks, budget, dumped, keep_seconds)
            ends += [] if end is None else [max(end * 1000, oldest_ms + request.event_ttl_ms)]
        return min(ends)

    def _age_seconds(self, time_ms: int | None) -> int:
        return 0 if time_ms is None else max(0, (self._clock.now_ms() - time_ms) // 1000)

    def _seconds_until(self, time_ms: int | None) -> int | None:
        return None if time_ms is None else (time_ms - self._clock.now_ms()) // 1000

    def _archive_expiry(
        self, request: StatusRequest, waiting: DumpDirectory | None
    ) -> tuple[int | None, int, UnlookedFiles | None]:
        if waiting is None:
            return None, 0, None
        known = KnownPlaces(
            resolve=self._resolve,
            roots=request.roots,
            asked=asked_places(self._note, self._places, request.target_database),
        )
        report = verify_dump(
            self._resolve,
            waiting.paths.root,
            retain_ms=request.retain_ms,
            own_archive=request.own_archive,
            rules=request.rules,
            sources_for=known.within,
            is_quick=True,
        )
        return report.load_before_ms, len(report.missing), unlooked_files(report)

    def _known_pins(self) -> Mapping[str, Pin] | None:
        """By holder; None where the source's own database is not looked at."""
        if self._manifest is None:
            return None
        return {pin.holder: pin for pin in self._manifest.pins()}

    def _budget_ends_ms(self, request: StatusRequest, pins: Sequence[Pin]) -> int | None:
        ends = [
            budget_ends_ms(
                pin,
                self._manifest.held_files(pin.holder),
                request.archive_budget,
                request.retain_ms,
            )
            for pin in pins
            if self._manifest is not None
        ]
        return min((end_ms for end_ms in ends if end_ms is not None), default=None)

    def _describe(self, dump: DumpDirectory) -> DumpStatus:
        loaded = self._resolve(dump.paths.finished_load).status()
        return DumpStatus(
            directory=dump.paths.root,
            state=dump.state,
            finished_ms=None if dump.metadata is None else dump.time_ms,
            loaded_ms=None if loaded is None else loaded.mtime_ms,
        )


def _without_empty(*texts: str | None) -> tuple[str, ...]:
    return tuple(text for text in texts if text)


def _reached_text(parameters: Mapping[str, str], waiting: DumpDirectory | None) -> str | None:
    """How far a load of the dump that waits has come; None if nothing shows that one has begun."""
    last = last_event_of(parameters)
    if last is None:
        if CHECKPOINT not in parameters:
            return None
        return "a bootstrap has made the database, and some or all of its tables are not whole"
    metadata = None if waiting is None else waiting.metadata
    if metadata is None or not metadata.from_event_id < last < metadata.to_event_id:
        return None
    return f"the replica has come to event {last} of {metadata.to_event_id}"


def _is_absent(store: Metastore | None, database: str) -> bool:
    """Whether a metastore, if there is one, has no such database."""
    return store is not None and if_there(store.get_database, database.lower()) is None


def _own_pins(
    pins: Mapping[str, Pin] | None, policy: Pin | None, database: str, waiting: DumpDirectory | None
) -> tuple[Pin, ...]:
    """Of the way from dump to dump, and of the dump that waits."""
    holder = None if waiting is None else dump_holder(database, waiting.paths.root)
    dump = None if pins is None or holder is None else pins.get(holder)
    return tuple(pin for pin in (policy, dump) if pin is not None)


def _is_pinned(pins: Mapping[str, Pin] | None, database: str, dump: DumpDirectory) -> bool | None:
    return None if pins is None else dump_holder(database, dump.paths.root) in pins


def _loaded(dumps: Iterable[DumpDirectory]) -> Iterator[DumpDirectory]:
    return (dump for dump in dumps if dump.state is DumpState.LOADED)


def _until(dumps: Iterable[DumpDirectory]) -> EventId | None:
    newest = newest_known(dumps)
    return None if newest is None else newest.last_event_id


def _marked(dumps: Sequence[DumpDirectory]) -> str | None:
    """What stops dump and load, whatever the events say."""
    try:
        newest_finished(dumps)
    except MarkedError as error:
        return str(error)
    except DumpIncompleteError:
        pass  # its state says so
    return None


def _lost_files(count: int) -> str | None:
    if count == 0:
        return None
    return f"the waiting dump has lost {counted(count, 'file')}: see repl verify"


def _not_compatible(database: str, is_incompatible: bool) -> str | None:
    if not is_incompatible:
        return None
    return f"{database} is marked {INCOMPATIBLE}. {begin_anew(database)}"


def _sum(time_ms: int | None, more_ms: int) -> int | None:
    return None if time_ms is None else time_ms + more_ms
