"""`_hms_bridge_progress/`: what an unfinished incremental dump of ours has written whole.

`range` says what the dump is of. Each other file lists events whose texts are all there, with their
hashes, so that the next run believes none that a kill or a loss of power has torn. The directory
goes before the dump is finished.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from changemanager.errors import EncodedUriError
from changemanager.uri import EncodedUri, decode_uri, encode_uri
from hms_bridge.errors import ReplError
from hms_bridge.model.ids import EventId
from hms_bridge.repl.format.side_texts import parsing

RANGE = "range"
_PLACE = re.compile(r"(events_batch_[0-9]+/)?([0-9]+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpRange:
    """What an unfinished dump is of. ``previous``: the dump it follows on; ``began_at_ms``: since
    when what is archived may be named by the next one; ``request``: what else its events' texts
    depend on."""

    previous: str
    after: EventId
    until: EventId
    began_at_ms: int
    request: str

    def format(self) -> str:
        """A line of JSON."""
        fields = {
            "previous": self.previous,
            "after": self.after,
            "until": self.until,
            "beganAtMs": self.began_at_ms,
            "request": self.request,
        }
        return json.dumps(fields) + "\n"

    @classmethod
    def parse(cls, text: str, path: str) -> DumpRange:
        """Raises ReplError, naming ``path``."""
        with parsing("range of an unfinished dump", path):
            fields = json.loads(text)
            return cls(
                previous=str(fields["previous"]),
                after=EventId(int(fields["after"])),
                until=EventId(int(fields["until"])),
                began_at_ms=int(fields["beganAtMs"]),
                request=str(fields["request"]),
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenEvent:
    """An event whose texts are written. ``kind``: as it is dumped; ``log_hash``: that of the event
    in the source's log; ``place``: its directory below ``hive/``; ``digests`` of its texts, by
    their paths below ``hive/``; ``files``: that it names."""

    event_id: EventId
    kind: str
    log_hash: str
    place: str
    digests: Mapping[str, str]
    files: tuple[EncodedUri, ...] = field(default=())

    def format(self) -> str:
        """A line of JSON."""
        fields = {
            "event": self.event_id,
            "kind": self.kind,
            "hash": self.log_hash,
            "place": self.place,
            "texts": dict(self.digests),
            "files": [encode_uri(file) for file in self.files],
        }
        return json.dumps(fields) + "\n"

    @classmethod
    def parse(cls, line: str, path: str) -> WrittenEvent:
        """Raises ReplError, naming ``path``, also for a text outside of its event's directory."""
        with parsing("list of written events", path):
            fields = json.loads(line)
            place = _PLACE.fullmatch(fields["place"])
            texts = {str(name): str(digest) for name, digest in fields["texts"].items()}
            if place is None or int(place[2]) != fields["event"] or not texts:
                raise ValueError
            if not all(_is_within(name, place[0]) for name in texts):
                raise ValueError
            return cls(
                event_id=EventId(fields["event"]),
                kind=str(fields["kind"]),
                log_hash=str(fields["hash"]),
                place=place[0],
                digests=texts,
                files=_files(fields["files"]),
            )


def format_written(events: Iterable[WrittenEvent]) -> str:
    """The text of a list."""
    return "".join(event.format() for event in events)


def parse_written(text: str, path: str) -> tuple[WrittenEvent, ...]:
    """Read a list. Raises ReplError, naming ``path``."""
    return tuple(WrittenEvent.parse(line, path) for line in text.splitlines())


def _is_within(name: str, place: str) -> bool:
    return name.startswith(f"{place}/") and ".." not in name.split("/")


def _files(texts: Iterable[str]) -> tuple[EncodedUri, ...]:
    try:
        return tuple(decode_uri(text) for text in texts)
    except EncodedUriError as error:
        raise ReplError(str(error)) from error
