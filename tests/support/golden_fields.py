"""What of two answers, or two messages of events, is not the same, field by field.

Times and ids are masked where both sides have one; each mask is named, with its reason, and a test
finds one that masks nothing.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from hms_bridge.wire.structs import Struct, hive

TIMES = {
    "createTime": "when an object was made: of a row, or of an argument that gave none",
    "transient_lastDdlTime": "when a table or partition was last changed, as a text",
    "lastAnalyzed": "when statistics were stored",
    "acquiredat": "when a lock was granted",
    "grantTime": "when a role was granted",
    "startedTime": "when a transaction was opened",
    "lastHeartbeatTime": "when a transaction was last heard of",
    "lastheartbeat": "when a lock was last heard of",
    "materializationTime": "when a materialized view was made",
    "timestamp": "when an event was written, in its message",
    "eventTime": "when an event was written, in its row",
    "enqueueTime": "when a compaction was asked for",
    "start": "when a worker took a compaction",
    "endTime": "when a compaction ended",
    "commitTime": "when a compaction committed",
}
IDS = {
    "id": "Hive's sequence gives ids in blocks of one object store, ours by one row",
    "eventId": "an event more or less before it moves all later ones; their order is compared",
    "eventIds": "as eventId",
}
_SOURCE = "16.rec.7.lst.1.rec"
"""A table that a materialized view reads."""
_TABLE = {"4": "createTime", "25": "id"}
_VIEW = {
    **_TABLE,
    "16.rec.6": "materializationTime",
    f"{_SOURCE}.4": "createTime",
    f"{_SOURCE}.25": "id",
}
IN_JSON = {
    "dbJson": {"9": "createTime"},
    "dbObjBeforeJson": {"9": "createTime"},
    "dbObjAfterJson": {"9": "createTime"},
    "tableObj": _TABLE,
    "tableObjJson": _VIEW,
    "tableObjBeforeJson": _TABLE,
    "tableObjAfterJson": _TABLE,
    "partitionListJson": {"4": "createTime"},
    "partitionObjBeforeJson": {"4": "createTime"},
    "partitionObjAfterJson": {"4": "createTime"},
    "functionObjJson": {"6": "createTime"},
    "colStatsJson": {"1.rec.5": "lastAnalyzed"},
}
"""Objects in messages, which name fields by their numbers: which of them are times and ids."""
ABSENT = "absent"


class Difference(NamedTuple):
    """Where, and what stands there; ABSENT for nothing. Elements of lists share a place."""

    place: str
    theirs: Any
    ours: Any


class Place(NamedTuple):
    """A field: its whole path, and within the JSON text that it stands in, that one's name."""

    path: str = ""
    text: str | None = None
    inner: str = ""

    def of(self, name: str) -> Place:
        path = f"{self.path}.{name}".lstrip(".")
        if name in IN_JSON:
            return Place(path, name)
        return Place(path, self.text, f"{self.inner}.{name}".lstrip(".") if self.text else "")

    @property
    def mask(self) -> str | None:
        """The name of the mask that may stand here: of a field, or of one in a text's object."""
        number = self.inner.rpartition(".")[0]
        if self.text is not None and number in IN_JSON[self.text]:
            return f"{self.text} {number}"
        name = self.path.rpartition(".")[2]
        return name if name in TIMES or name in IDS else None


def all_masks() -> frozenset[str]:
    return frozenset(
        {*TIMES, *IDS, *(f"{text} {number}" for text, found in IN_JSON.items() for number in found)}
    )


def differences(theirs: Any, ours: Any, used: set[str] | None = None) -> list[Difference]:
    """A time differs only from no time, an id from no id. ``used``: which masks were needed."""
    found: set[str] = set()
    result = list(_compared(_plain(theirs), _plain(ours), Place(), found))
    if used is not None:
        used |= found
    return result


def sorted_by_name(answer: Any) -> Any:
    """An answer that is a list of names, or a struct with one of things that have a name, in the
    order of names."""
    if isinstance(answer, list):
        return sorted(answer, key=_name)
    inner = {
        name: sorted_by_name(field)
        for name, field in vars(answer).items()
        if name in _LISTED or isinstance(field, Struct)
    }
    return type(answer)(**vars(answer) | inner)


def _name(item: Any) -> str:
    if isinstance(item, str):
        return item
    named = (vars(item).get(name) for name in _NAMES)
    return next(name for name in named if name)


_LISTED = ("tables", "pools", "triggers", "mappings")
_NAMES = ("tableName", "tblName", "triggerName", "entityName", "poolPath")


def message_of(text_or_fields: Any) -> Any:
    """A message, with the objects in it as structures, not texts."""
    return _opened(text_or_fields)


def event_fields(event: Any) -> dict[str, Any]:
    """A row of the log as it came over the wire, its message decoded."""
    fields = {name: field for name, field in vars(event).items() if field is not None}
    text = fields["message"]
    if fields["messageFormat"].startswith("gzip("):
        text = gzip.decompress(base64.b64decode(text)).decode()
    return fields | {"message": message_of(json.loads(text))}


def _plain(value: Any, name: str = "") -> Any:
    if isinstance(value, hive.NotificationEvent):
        return _plain(event_fields(value))
    if isinstance(value, Struct):
        value = {key: field for key, field in vars(value).items() if field is not None}
    if isinstance(value, dict):
        return {str(key): _plain(field, str(key)) for key, field in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, name) for item in value]
    if name in IN_JSON and isinstance(value, str):
        return _opened(value)
    return value


def _compared(theirs: Any, ours: Any, place: Place, used: set[str]) -> Iterator[Difference]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in sorted({*theirs, *ours}):
            of_theirs, of_ours = theirs.get(name, ABSENT), ours.get(name, ABSENT)
            yield from _compared(of_theirs, of_ours, place.of(name), used)
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for one, other in zip(theirs, ours, strict=True):
            yield from _compared(one, other, place, used)
    elif theirs != ours or type(theirs) is not type(ours):
        if place.mask is not None and type(theirs) is type(ours) and _is_set(theirs, ours):
            used.add(place.mask)
        else:
            yield Difference(place.path, theirs, ours)


def _is_set(*values: Any) -> bool:
    return all(str(value).isdigit() and int(value) > 0 for value in values)


def _opened(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _opened(field) for name, field in value.items()}
    if isinstance(value, list):
        return [_opened(item) for item in value if not _is_count(item, value)]
    if isinstance(value, str) and value[:1] in ("{", "["):
        return _opened(json.loads(value))
    return value


def _is_count(item: Any, items: list[Any]) -> bool:
    """TJSONProtocol: a map is ["str", "str", how many, {…}]; its entries are compared."""
    return isinstance(item, int) and len(items) == 4 and items[:2] == ["str", "str"]
