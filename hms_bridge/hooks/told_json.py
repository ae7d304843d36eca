"""An event as the hooks of this program pass it on: one JSON object."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from hms_bridge.model.hook import HookEvent
from hms_bridge.repl.format.stored_message import message_json

_HALF_OF_A_PAIR = re.compile("[\ud800-\udfff]")


def told_json(event: HookEvent) -> str:
    """In one line. ``message`` is an object, or a text where it is no JSON that is passed on: it is
    nested too deep, or has a number that is none. Whatever another metastore writes is passed on.

    Raises ReplError for a message that cannot be unpacked.
    """
    text = message_json(event)
    try:
        return _line(event, json.loads(text))
    except (ValueError, RecursionError):
        return _line(event, text)


def _line(event: HookEvent, message: object) -> str:
    fields = {
        "key": event.key,
        "event_id": event.id,
        "point_id": event.point_id,
        "time_seconds": event.time_seconds,
        "type": event.type,
        "catalog": event.catalog_name,
        "database": event.database_name,
        "table": event.table_name,
        "message": message,
    }
    line = _dumped(fields, ensure_ascii=False)
    # JSON may have what no encoding has: it stays written as an escape.
    return _dumped(fields, ensure_ascii=True) if _HALF_OF_A_PAIR.search(line) else line


def _dumped(fields: Mapping[str, object], *, ensure_ascii: bool) -> str:
    return json.dumps(fields, ensure_ascii=ensure_ascii, separators=(",", ":"), allow_nan=False)
