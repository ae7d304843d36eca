"""Go on with an incremental dump that was killed while it was written.

What its events say does not change: the log has them, and the policy's pin holds the files that
they name as long as no later dump is finished. So its range stays as it was; what came since is for
the next dump. Only events of transactions are taken over, each if all its texts are there as they
were written, and the source's event is still the same; everything else is made anew.

A bootstrap begins anew: it is what one snapshot sees, and no snapshot outlives the one who took it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress

from changemanager.location import Resolver
from hms_bridge.errors import ReplError
from hms_bridge.model.ids import EventId
from hms_bridge.repl.dump.event_source import EventRange
from hms_bridge.repl.dump.plan import DumpRequest, ResumePlan
from hms_bridge.repl.file_pool import FilePool
from hms_bridge.repl.format.directories import DumpDirectory, DumpState
from hms_bridge.repl.format.layout import BATCH_PREFIX, DumpPaths, database_directory
from hms_bridge.repl.format.manifest import text_digest
from hms_bridge.repl.format.progress import RANGE, DumpRange, WrittenEvent, parse_written
from hms_bridge.repl.format.texts import child_directories, read_text_if_there, remove_tree

_TEXT_BYTES_MAX = 1 << 28
_TEXTS_OF = 1
"""Goes up when what a dump writes for an event changes: what an earlier version left is no use."""


def request_note(request: DumpRequest) -> str:
    """What of a request the texts of events depend on, and where the range ends."""
    rules = request.events
    return json.dumps(
        {
            "texts": _TEXTS_OF,
            "database": request.database_name,
            "archive": request.cm_root,
            "checksums": request.has_checksums,
            "batch": rules.batch_size,
            "filtered": rules.is_filtered,
            "unknown": rules.is_unknown_empty,
            "passed": sorted(rules.passed_kinds),
            "limit": request.event_limit,
            "scope": None if request.scope is None else request.scope.text,
        },
        sort_keys=True,
    )


def can_go_on(resolve: Resolver, request: DumpRequest) -> bool:
    """Whether a killed dump of this request may be gone on with.

    It goes on under another name, which it gets in one step: one that was only suspended, and
    wakes, goes on writing under the old one.
    """
    above = resolve(database_directory(request.root, request.database_name))
    return above.volume.capabilities.has_atomic_rename and not request.is_apart


def find_unfinished(
    resolve: Resolver,
    request: DumpRequest,
    dumps: tuple[DumpDirectory, ...],
    previous: DumpDirectory,
    wanted: EventRange,
) -> ResumePlan | None:
    """The newest unfinished dump of the same request that follows on the same dump; None if there
    is none of which anything is whole. ``wanted``: up to the newest event."""
    if previous.state is not DumpState.LOADED or not can_go_on(resolve, request):
        return None
    for dump in dumps:
        begun = _range_of(resolve, dump) if dump.state is DumpState.UNFINISHED else None
        if begun is None or begun.request != request_note(request):
            continue
        if (begun.previous, begun.after) != (previous.paths.root, wanted.after):
            continue
        written = whole_events(resolve, dump.paths)
        if written and begun.until <= wanted.until:
            return ResumePlan(
                directory=dump.paths.root,
                until=begun.until,
                began_at_ms=begun.began_at_ms,
                written=written,
            )
    return None


def whole_events(resolve: Resolver, paths: DumpPaths) -> Mapping[EventId, WrittenEvent]:
    """The events of an unfinished dump of which every text is there as it was written."""
    listed = tuple(_listed(resolve, paths))

    def is_whole(event: WrittenEvent) -> bool:
        return all(
            _digest(resolve, f"{paths.hive}/{name}") == digest
            for name, digest in event.digests.items()
        )

    with FilePool() as pool:
        checked = pool.each(is_whole, listed)
        return {
            event.event_id: event
            for event, is_there in zip(listed, checked, strict=True)
            if is_there
        }


def take_up(
    resolve: Resolver, plan: ResumePlan, paths: DumpPaths
) -> Mapping[EventId, WrittenEvent]:
    """Give the unfinished dump its new name, and remove what is not whole; what is.

    Raises ReplError if it is not there any more.
    """
    old, new = resolve(plan.directory), resolve(paths.root)
    try:
        old.volume.rename(old.path, new.path)
    except FileNotFoundError:
        raise ReplError(
            f"{plan.directory} was to be gone on with, and is not there any more; dump again"
        ) from None
    written = whole_events(resolve, paths)
    kept = {event.place for event in written.values()}
    hive = resolve(paths.hive)
    with suppress(FileNotFoundError):
        for child in hive.volume.children(hive.path):
            if child.name.startswith(BATCH_PREFIX):
                batch = hive.child(child.name)
                for name in child_directories(batch):
                    if f"{child.name}/{name}" not in kept:
                        remove_tree(batch.child(name))
            elif child.name not in kept:
                remove_tree(hive.child(child.name))
    return written


def _range_of(resolve: Resolver, dump: DumpDirectory) -> DumpRange | None:
    """None also for what cannot be read: such a dump is made anew."""
    path = f"{dump.paths.progress}/{RANGE}"
    with suppress(ReplError):
        text = read_text_if_there(resolve(path), _TEXT_BYTES_MAX)
        return None if text is None else DumpRange.parse(text, path)
    return None


def _listed(resolve: Resolver, paths: DumpPaths) -> Iterator[WrittenEvent]:
    place = resolve(paths.progress)
    try:
        names = sorted(child.name for child in place.volume.children(place.path))
    except FileNotFoundError:
        return
    for name in names:
        if name == RANGE or name.startswith("."):
            continue
        with suppress(ReplError):
            where = place.child(name)
            text = read_text_if_there(where, _TEXT_BYTES_MAX)
            yield from parse_written(text or "", where.uri)


def _digest(resolve: Resolver, path: str) -> str | None:
    """None for what is not there, or no text."""
    with suppress(ReplError):
        text = read_text_if_there(resolve(path), _TEXT_BYTES_MAX)
        return None if text is None else text_digest(text)
    return None
