"""The dumps of a database: which are finished, which are loaded, which comes next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from changemanager.location import Resolver
from hms_bridge.errors import DumpIncompleteError, MarkedError
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.repl.format.dump_metadata import DumpMetadata
from hms_bridge.repl.format.layout import DumpPaths, database_directory, database_of
from hms_bridge.repl.format.manifest import FailureMark, FinishMark
from hms_bridge.repl.format.texts import child_directories, is_there, read_text_if_there

_METADATA_BYTES_MAX = 1 << 20


class DumpState(Enum):
    """How far a dump has come."""

    UNFINISHED = "unfinished"
    FINISHED = "finished"
    LOADED = "loaded"
    NON_RECOVERABLE = "non-recoverable"
    DAMAGED = "damaged"


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpDirectory:
    """One dump. ``metadata`` is None while it is unfinished; ``time_ms`` orders dumps.
    ``failure``: what its mark says, if it has one."""

    paths: DumpPaths
    state: DumpState
    time_ms: int
    metadata: DumpMetadata | None = None
    failure: str = ""

    @property
    def scope(self) -> ReplScope | None:
        """The tables that it is of, if it says so."""
        return None if self.metadata is None else self.metadata.scope


def list_dumps(resolve: Resolver, root: str, database: str) -> tuple[DumpDirectory, ...]:
    """All dumps of a database, newest first.

    Dumps of ours say in their finish marker when they were finished. Hive goes by the directory's
    modification time (docs/hive/replication.md §10), which an object store does not have; for its
    dumps it is the marker's. Between dumps of one moment the event range decides.
    """
    above = resolve(database_directory(root, database))
    dumps = [
        _describe(resolve, DumpPaths(above.child(name).uri))
        for name in child_directories(above)
        if not name.startswith((".", "_"))
    ]
    return tuple(sorted(dumps, key=_age, reverse=True))


def _age(dump: DumpDirectory) -> tuple[int, int, str]:
    last = dump.metadata.to_event_id if dump.metadata else -1
    return (dump.time_ms, last, dump.paths.root)


def _state(resolve: Resolver, paths: DumpPaths, *, is_finished: bool) -> DumpState:
    if is_there(resolve(paths.non_recoverable)):
        return DumpState.NON_RECOVERABLE
    if not is_finished:
        return DumpState.UNFINISHED
    if not is_there(resolve(paths.metadata)):
        return DumpState.DAMAGED
    return DumpState.LOADED if is_there(resolve(paths.finished_load)) else DumpState.FINISHED


def _describe(resolve: Resolver, paths: DumpPaths) -> DumpDirectory:
    marker = resolve(paths.finished_dump)
    status = marker.status()
    state = _state(resolve, paths, is_finished=status is not None)
    failure = FailureMark()
    if state is DumpState.NON_RECOVERABLE:
        text = read_text_if_there(resolve(paths.non_recoverable), _METADATA_BYTES_MAX)
        failure = FailureMark.parse(text or "")
    if status is None:
        status = resolve(paths.root).status()
        mtime_ms = (status.mtime_ms or 0) if status else 0
        return DumpDirectory(
            paths=paths,
            state=state,
            time_ms=mtime_ms if failure.time_ms is None else failure.time_ms,
            failure=failure.text,
        )
    where = resolve(paths.metadata)
    mark = FinishMark.parse(read_text_if_there(marker, _METADATA_BYTES_MAX) or "", marker.uri)
    text = read_text_if_there(where, _METADATA_BYTES_MAX)
    return DumpDirectory(
        paths=paths,
        state=state,
        time_ms=(status.mtime_ms or 0) if mark.time_ms is None else mark.time_ms,
        metadata=None if text is None else DumpMetadata.parse(text, where.uri),
        failure=failure.text,
    )


def newest_finished(
    dumps: Sequence[DumpDirectory], *, is_mark_ignored: bool = False
) -> DumpDirectory | None:
    """The newest dump that is finished, loaded or not; not a marked one where ``is_mark_ignored``.

    Raises MarkedError for a mark that blocks (40011 of Hive), DumpIncompleteError for a dump that
    lost what it holds."""
    for dump in dumps:
        if dump.state is DumpState.NON_RECOVERABLE:
            if is_mark_ignored:
                continue
            raise MarkedError(
                f"{dump.paths.non_recoverable} marks an error that no further try ends"
                f"{f' ({dump.failure})' if dump.failure else ''}. Repair the cause and remove the "
                f"file, or end this dump at the source: {_discard_command(dump.paths)}"
            )
        if dump.state is DumpState.DAMAGED:
            raise DumpIncompleteError(
                f"{dump.paths.metadata} is missing, though the dump was finished: it was removed "
                "by half, or a copy lost it. Copy it again, or end it at the source "
                f"({_discard_command(dump.paths)}) and dump again"
            )
        if dump.state is not DumpState.UNFINISHED:
            return dump
    return None


def _discard_command(paths: DumpPaths) -> str:
    """What ends a dump where it was made; its place says of which database it is."""
    root, encoded, name = paths.root.rsplit("/", 2)
    database = database_of(encoded) or "DATABASE"
    return f"'hms-bridge repl dump {database} --root {root} --discard {name}'"


def newest_known(dumps: Iterable[DumpDirectory]) -> DumpMetadata | None:
    """What the newest dump is that says so. ``dumps``: newest first."""
    return next((dump.metadata for dump in dumps if dump.metadata is not None), None)


def later_than(dumps: Iterable[DumpDirectory], now_ms: int) -> int:
    """When a new dump is finished or marked: dumps are ordered by these times, so neither a clock
    that was set back nor those of file systems must count."""
    return max(now_ms, max((dump.time_ms for dump in dumps), default=0) + 1)
