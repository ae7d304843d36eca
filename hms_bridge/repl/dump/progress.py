"""Note what an incremental dump has written, for the run that goes on with it after a kill."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from changemanager.location import Resolver
from hms_bridge.model.event import EventType, NotificationEvent
from hms_bridge.model.ids import EventId
from hms_bridge.repl.dump.events import EventTexts
from hms_bridge.repl.dump.origin import event_hash
from hms_bridge.repl.format.hashed_texts import NotedTexts
from hms_bridge.repl.format.layout import DumpPaths, EventPaths
from hms_bridge.repl.format.progress import RANGE, DumpRange, WrittenEvent, format_written
from hms_bridge.repl.format.texts import DUMP_MODE_MAX, ensure_content, remove_tree

_TAKEN_OVER = frozenset(
    {
        EventType.OPEN_TXN.value,
        EventType.ALLOC_WRITE_ID.value,
        EventType.COMMIT_TXN.value,
        EventType.ABORT_TXN.value,
    }
)
"""Kinds of which the log and the write log say all, then and now. Others list directories as they
are, or functions, and must fit what the dump says of these at its end."""


class DumpProgress:
    """``begun`` None: nothing is noted. ``written``: what an earlier run has left whole, None if
    there was none; ``each``: after so many events a note is taken, so that a dump of fewer costs
    nothing."""

    def __init__(
        self,
        texts: NotedTexts,
        begun: DumpRange | None = None,
        written: Mapping[EventId, WrittenEvent] | None = None,
        each: int = 1,
    ) -> None:
        self._texts = texts
        self._begun = begun
        self._written = dict(written or {})
        self._each = each
        self._is_begun = written is not None
        self._waiting: list[WrittenEvent] = []

    def take_over(self, event: NotificationEvent, place: EventPaths) -> WrittenEvent | None:
        """What is there of an event, whose texts count as written now; None if it must be made."""
        written = self._written.pop(event.id, None)
        if written is None:
            return None
        if (written.place, written.log_hash) != (self._below(place), event_hash(event)):
            self._remove(written)
            return None
        self._texts.adopt(written.digests)
        return written

    def add(
        self,
        event: NotificationEvent,
        place: EventPaths,
        texts: EventTexts,
        digests: Mapping[str, str],
    ) -> None:
        """An event is written whole, with texts of these hashes."""
        if self._begun is None or event.type not in _TAKEN_OVER:
            return
        self._waiting.append(
            WrittenEvent(
                event_id=event.id,
                kind=texts.type,
                log_hash=event_hash(event),
                place=self._below(place),
                digests=digests,
                files=texts.files,
            )
        )
        if len(self._waiting) >= self._each:
            if not self._is_begun:
                self._put(RANGE, self._begun.format())
                self._is_begun = True
            # The name of the dump's own directory: a run that goes on has another one.
            name = self._texts.paths.root.rpartition("/")[2]
            self._put(f"{event.id}_{name}", format_written(self._waiting))
            self._waiting = []

    def end(self) -> None:
        """All is written: remove what an earlier run wrote and this one did not take over."""
        for written in self._written.values():
            self._remove(written)
        self._written = {}

    def _remove(self, written: WrittenEvent) -> None:
        remove_tree(self._texts.resolve(f"{self._texts.paths.hive}/{written.place}"))

    def _below(self, place: EventPaths) -> str:
        return place.root.removeprefix(f"{self._texts.paths.hive}/")

    def _put(self, name: str, text: str) -> None:
        where = self._texts.resolve(f"{self._texts.paths.progress}/{name}")
        ensure_content(where, text.encode(), limit=DUMP_MODE_MAX)


def forget_progress(resolve: Resolver, paths: DumpPaths) -> None:
    """The dump is as good as finished, or cannot be: nobody goes on with it from here.

    What it is of goes last, so that a run that is killed meanwhile is gone on with all the same.
    """
    place = resolve(paths.progress)
    with suppress(FileNotFoundError):
        for child in place.volume.children(place.path):
            if child.name != RANGE:
                remove_tree(place.child(child.name))
        remove_tree(place)
