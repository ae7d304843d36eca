"""End a dump that nobody wants: its pins go, its directory goes, the next dump may be made.

Nothing but a dump is removed: a directory of its database below the root of dumps, which holds what
dumps hold and nothing else. What an incremental dump followed on is not lost with it: where no
older dump names it any more, a loaded dump without events takes its place, so that the next dump
begins where this one began. Stopped anywhere, it can be asked for again.
"""

from __future__ import annotations

from dataclasses import dataclass

from changemanager.location import Location
from hms_bridge.errors import ReplError
from hms_bridge.model.ids import EventId
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.repl.dump.going_on import write_position_notes
from hms_bridge.repl.dump.origin import read_origin
from hms_bridge.repl.dump.verb import DumpVerb, what_is_strange
from hms_bridge.repl.format.directories import (
    DumpDirectory,
    DumpState,
    later_than,
    list_dumps,
)
from hms_bridge.repl.format.dump_metadata import DumpMetadata, DumpType
from hms_bridge.repl.format.hashed_texts import NotedTexts
from hms_bridge.repl.format.layout import DumpPaths, database_directory
from hms_bridge.repl.format.manifest import FinishMark
from hms_bridge.repl.format.replays import Replays
from hms_bridge.repl.format.scope_note import read_scope_note
from hms_bridge.repl.format.texts import child_directories, ensure_content, write_text
from hms_bridge.repl.lease import Lease, LeaseRules
from hms_bridge.repl.pins import DumpPins, dump_holder


@dataclass(frozen=True, kw_only=True, slots=True)
class DiscardRequest:
    """Which dump: its directory, or its name below the database's; None: the newest."""

    root: str
    database_name: str
    dump: str | None = None
    user: str = "hive"
    host: str = "localhost"
    lease: LeaseRules


@dataclass(frozen=True, kw_only=True, slots=True)
class DiscardPlan:
    """What will go. ``resume_at``: the event that the next dump follows on; None: a bootstrap.

    ``is_position_written``: a dump without events is to name it. ``pin``: the holder, if any.
    """

    request: DiscardRequest
    directory: str
    state: DumpState
    metadata: DumpMetadata | None
    resume_at: EventId | None
    is_position_written: bool
    pin: str | None


class ReplDiscard(DumpVerb):
    """Discards dumps of one source."""

    def plan(self, request: DiscardRequest) -> DiscardPlan:
        """Changes nothing. Raises ReplError for what is no dump of the database, is loaded, or
        holds what no dump holds."""
        name = request.database_name
        dumps = list_dumps(self._resolve, request.root, name)
        dump = self._wanted(request, dumps)
        root = dump.paths.root
        if dump.state is DumpState.LOADED:
            raise ReplError(
                f"{root} is loaded already: the next dump follows on it and removes it. Dump with "
                "--bootstrap to begin anew"
            )
        self._require_dump(self._resolve(root))
        loaded = (
            other.metadata.last_event_id
            for other in dumps
            if other.state is DumpState.LOADED and other.metadata and other.paths.root != root
        )
        loaded_until = next(loaded, None)
        resume_at = loaded_until
        if dump.metadata is not None and dump.metadata.type == DumpType.INCREMENTAL.value:
            resume_at = dump.metadata.from_event_id
        return DiscardPlan(
            request=request,
            directory=root,
            state=dump.state,
            metadata=dump.metadata,
            resume_at=resume_at,
            is_position_written=resume_at not in (None, loaded_until),
            pin=self._pin(name, root),
        )

    def run(self, plan: DiscardPlan) -> None:
        """Carry a plan out. Raises ReplError if the world has changed since, or a dump is made."""
        request = plan.request
        with self._alone(request, request.database_name) as lease:
            self._news(request.database_name, request.root).settle(is_alone=True)
            self._run(plan, lease)

    def _run(self, plan: DiscardPlan, lease: Lease) -> None:
        request = plan.request
        if self.plan(request) != plan:
            raise ReplError(
                f"dumps of {request.database_name} have changed since the plan; discard again"
            )
        pins = self._pins(request.database_name, request.root)
        if plan.is_position_written and plan.resume_at is not None:
            self._write_position(plan, plan.resume_at, pins)
        lease.check()
        paths = DumpPaths(plan.directory)
        # Without this marker nobody loads what is left of it, whatever happens now.
        marker = self._resolve(paths.finished_dump)
        if marker.status() is not None:
            marker.volume.remove_file(marker.path)
        pins.release(plan.directory)
        self._remove(request.database_name, plan.directory, reason="it was discarded")

    def _write_position(self, plan: DiscardPlan, at: EventId, pins: DumpPins) -> None:
        """A loaded dump without events. What the next dump may name stays in the archive."""
        request = plan.request
        since_ms = self._needed_since_ms(at)
        if since_ms is not None:
            pins.hold_since(since_ms)
        above = self._resolve(database_directory(request.root, request.database_name))
        paths = DumpPaths(above.child(self._new_name()).uri)
        old, discarded = plan.metadata, DumpPaths(plan.directory)
        metadata = DumpMetadata(
            type=DumpType.INCREMENTAL.value,
            from_event_id=at,
            to_event_id=at,
            cm_root=None if old is None else old.cm_root,
            scope=self._scope_before(plan),
        )
        origin = read_origin(self._resolve, discarded)
        if origin is not None:
            write_text(self._resolve(paths.origin), origin)
        write_text(self._resolve(paths.metadata), metadata.format())
        ended_at = at if old is None else old.to_event_id
        write_position_notes(NotedTexts(self._resolve, paths), discarded, ended_at)
        replays = Replays.read(self._resolve, discarded)
        write_text(self._resolve(paths.replays), Replays(opened=replays.all).format())
        write_text(self._resolve(paths.load_metadata), f"{at}\n")
        write_text(self._resolve(paths.finished_load), "")
        dumps = list_dumps(self._resolve, request.root, request.database_name)
        mark = FinishMark(time_ms=later_than(dumps, self._clock.now_ms()))
        ensure_content(self._resolve(paths.finished_dump), mark.format().encode())

    def _scope_before(self, plan: DiscardPlan) -> ReplScope | None:
        """What the replica has, from which the next dump goes on."""
        scope = None if plan.metadata is None else plan.metadata.scope
        if scope is None:
            return None
        return read_scope_note(self._resolve, DumpPaths(plan.directory), scope).before

    def _wanted(self, request: DiscardRequest, dumps: tuple[DumpDirectory, ...]) -> DumpDirectory:
        above = self._resolve(database_directory(request.root, request.database_name))
        if request.dump is None:
            if not dumps:
                raise ReplError(
                    f"there is no dump of {request.database_name} below {above.uri}, so there is "
                    "nothing to discard; look at the name and at --root"
                )
            return dumps[0]
        is_name = "/" not in request.dump
        place = above.child(request.dump) if is_name else self._resolve(request.dump)
        chosen = next((dump for dump in dumps if dump.paths.root == place.uri), None)
        if chosen is None:
            raise ReplError(
                f"{place.uri} is no dump of {request.database_name}; its dumps are below "
                f"{above.uri}: {', '.join(child_directories(above)) or 'none'}"
            )
        return chosen

    def _require_dump(self, place: Location) -> None:
        """Raises ReplError for a directory that holds what dumps do not, or nothing of a dump."""
        strange = what_is_strange(place)
        if strange:
            raise ReplError(
                f"{place.uri} does not look like a dump ({strange}), so it is left alone; move "
                "away what is yours, or remove it by hand"
            )

    def _pin(self, database: str, directory: str) -> str | None:
        holder = dump_holder(database, directory)
        pins = () if self._manifest is None else self._manifest.pins()
        return holder if any(pin.holder == holder for pin in pins) else None
