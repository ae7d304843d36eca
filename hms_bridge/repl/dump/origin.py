"""`_hms_bridge_origin`: which events a dump of ours begins and ends at, by hash.

Events are counted from 1 in every metastore. One that was restored from a backup counts again from
there, and another one that `--metastore` names by mistake has events of these numbers too: what
follows on the number alone would leave out what happened, without a word.
"""

from __future__ import annotations

import hashlib

from changemanager.location import Resolver
from hms_bridge.errors import EventGapError
from hms_bridge.metadata_store import NotificationStore
from hms_bridge.model.event import NotificationEvent
from hms_bridge.model.ids import EventId
from hms_bridge.repl.dump.event_source import EventRange, next_event
from hms_bridge.repl.format.directories import DumpDirectory
from hms_bridge.repl.format.hashed_texts import NotedTexts
from hms_bridge.repl.format.layout import DumpPaths
from hms_bridge.repl.format.side_texts import format_origin, parse_origin
from hms_bridge.repl.format.texts import read_text_if_there
from hms_bridge.repl.remedies import source_went_back

_TEXT_BYTES_MAX = 1 << 16


def write_origin(
    source: NotificationStore,
    texts: NotedTexts,
    first: EventId,
    last: EventId,
    previous: str | None = None,
) -> None:
    """Note the events in a new dump, as far as the log still has them; and what the previous one
    noted of later ones: one that was discarded went further, and may have been loaded in part."""
    later = parse_origin(previous, texts.paths.origin, "dump --bootstrap")
    hashes: dict[EventId, str | None] = {at: noted for at, noted in later.items() if at > last}
    hashes |= {event_id: _hash(source, event_id) for event_id in (first, last)}
    texts.write({texts.paths.origin: format_origin(hashes)})


def read_origin(resolve: Resolver, paths: DumpPaths) -> str | None:
    """The text, None in dumps of Hive and of earlier versions."""
    return read_text_if_there(resolve(paths.origin), _TEXT_BYTES_MAX)


def require_same_log(
    source: NotificationStore, resolve: Resolver, previous: DumpDirectory, wanted: EventRange
) -> None:
    """Raises EventGapError if the log ends before an event that a dump has seen, or has another one
    there.

    That is not only the event at which the next dump begins: a bootstrap has read tables up to a
    later one, and of a dump that was discarded a load may have brought files and write ids before
    it was stopped. An event that was purged since says nothing, nor does a dump that did not note
    it.
    """
    after, paths = wanted.after, previous.paths
    hashes = parse_origin(read_origin(resolve, paths), paths.origin, "dump --bootstrap")
    seen = {event_id: noted for event_id, noted in hashes.items() if event_id >= after}
    last = max((after, *seen))
    if wanted.until < last:
        raise EventGapError(
            f"the last dump ended at event {last}, the notification log at {wanted.until}: the "
            "metastore was restored or replaced. " + _went_back(previous)
        )
    for event_id, noted in seen.items():
        if _hash(source, event_id) not in (None, noted):
            raise EventGapError(
                f"event {event_id}, at which the last dump ended, is another one in this "
                "metastore: it is not the one that was dumped (look at --metastore), or it was "
                "restored from a backup. " + _went_back(previous)
            )


def require_reached(newest: EventId, stands_at: EventId, database: str) -> None:
    """Raises EventGapError if a source has not come to the event at which its replica stands."""
    if newest < stands_at:
        raise EventGapError(
            f"the source's newest event is {newest}, the replica stands at {stands_at}: the "
            f"source was restored from a backup, or is another one. {source_went_back(database)}"
        )


def _went_back(previous: DumpDirectory) -> str:
    scope = previous.scope
    return source_went_back(scope.database_name if scope else "DATABASE")


def _hash(source: NotificationStore, event_id: EventId) -> str | None:
    if event_id < 1:
        return None
    event = next_event(source, EventId(event_id - 1))
    if event is None or event.id != event_id:
        return None
    return event_hash(event)


def event_hash(event: NotificationEvent) -> str:
    """By which an event is known from another one of the same number."""
    return hashlib.sha256(f"{event.time_seconds} {event.type} {event.message}".encode()).hexdigest()
