"""What of two answers, or two messages of events, is not the same, field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from hms_bridge.wire.structs import Struct

TIMES = frozenset({
    "createTime", "lastAccessTime", "transient_lastDdlTime", "grantTime", "lastAnalyzed",
    "acquiredat", "startedTime", "lastHeartbeatTime", "materializationTime", "timestamp",
})  # fmt: skip
IDS = frozenset({"id", "tableId"})
_SOURCE = "16.rec.7.lst.1.rec"
"""A table that a materialized view reads."""
_TABLE = ("4", "25", "16.rec.6", f"{_SOURCE}.4", f"{_SOURCE}.25")
_IN_JSON = {"dbJson": ("9",), "dbObjBeforeJson": ("9",), "dbObjAfterJson": ("9",),
    "tableObj": _TABLE, "tableObjJson": _TABLE, "tableObjBeforeJson": _TABLE,
    "tableObjAfterJson": _TABLE, "partitionListJson": ("4",),
    "partitionObjBeforeJson": ("4",), "partitionObjAfterJson": ("4",),
    "functionObjJson": ("6",), "colStatsJson": ("1.rec.5",),
}  # fmt: skip
"""Of objects in messages, which name fields by their numbers: times and ids."""
ABSENT = "absent"


class Difference(NamedTuple):
    """Where, and what stands there; ABSENT for nothing. Elements of lists share a place."""

    place: str
    theirs: Any
    ours: Any


def differences(theirs: Any, ours: Any) -> list[Difference]:
    """A time differs only from no time, an id from no id; names in a list have no order."""
    return list(_compared(_plain(theirs), _plain(ours), ""))


def message_of(text_or_fields: Any) -> Any:
    """A message, with the objects in it as structures, not texts."""
    return _opened(text_or_fields, ())


def _plain(value: Any, name: str = "") -> Any:
    if isinstance(value, Struct):
        value = {key: field for key, field in vars(value).items() if field is not None}
    if isinstance(value, dict):
        return {str(key): _plain(field, str(key)) for key, field in value.items()}
    if isinstance(value, list | tuple):
        items = [_plain(item) for item in value]
        return sorted(items, key=_order) if all(map(_is_named, items)) else items
    if name in _IN_JSON and isinstance(value, str):
        return _opened(value, _IN_JSON[name])
    if name in TIMES and value not in (0, "0", None):
        return "a time"
    if name in IDS and isinstance(value, int) and value > 0:
        return "an id"
    return value


def _is_named(item: Any) -> bool:
    return isinstance(item, str) or (isinstance(item, dict) and _name(item) is not None)


def _name(item: dict[str, Any]) -> Any:
    return item.get("tableName") or item.get("tblName")


def _order(item: Any) -> str:
    return item if isinstance(item, str) else f"{_name(item)} {item.get('values')}"


def _compared(theirs: Any, ours: Any, place: str) -> Iterator[Difference]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in sorted({*theirs, *ours}):
            yield from _compared(
                theirs.get(name, ABSENT), ours.get(name, ABSENT), f"{place}.{name}".lstrip(".")
            )
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for one, other in zip(theirs, ours, strict=True):
            yield from _compared(one, other, place)
    elif theirs != ours or type(theirs) is not type(ours):
        yield Difference(place, theirs, ours)


def _opened(value: Any, volatile: tuple[str, ...], place: str = "") -> Any:
    if place and place in volatile:
        return "a time or an id"
    if isinstance(value, dict):
        return {
            name: _opened(field, _IN_JSON[name])
            if name in _IN_JSON
            else _opened(field, volatile, f"{place}.{name}".lstrip("."))
            for name, field in value.items()
        }
    if isinstance(value, list):
        return [_opened(item, volatile, place) for item in value if not _is_count(item, value)]
    if isinstance(value, str) and value[:1] in ("{", "["):
        return _opened(json.loads(value), volatile, place)
    return value


def _is_count(item: Any, items: list[Any]) -> bool:
    """TJSONProtocol: a map is ["str", "str", how many, {…}]; its entries are compared."""
    return isinstance(item, int) and len(items) == 4 and items[:2] == ["str", "str"]
