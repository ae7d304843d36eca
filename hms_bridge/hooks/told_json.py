"""An event as the hooks of this program pass it on: one JSON object."""

from __future__ import annotations

import json
from typing import Any

from changemanager.masking import masked_message, masked_raw
from hms_bridge.errors import ReplError
from hms_bridge.model.hook import HookEvent
from hms_bridge.repl.format.stored_message import message_json


def told_json(event: HookEvent) -> str:
    """In one line, which every reader of JSON takes. ``message`` is an object, or a text where it
    is no JSON that all of them take: whoever writes to the log beside us may write anything, and a
    hook would stand still before it. What cannot be unpacked is passed on as it is stored.

    Secrets of tables (``hive.sql.dbcp.password``) are masked: files and receivers are read by more
    people than the metastore's database. Dumps carry them (I11)."""
    try:
        text = message_json(event)
    except ReplError:
        text = event.message
    try:
        line = _line(event, masked_message(json.loads(text)))
        line.encode()
    except (ValueError, RecursionError):
        return _line(event, masked_raw(text.encode(errors="backslashreplace").decode()))
    return line


def _line(event: HookEvent, message: Any) -> str:
    """Raises ValueError for a number that JSON has not, RecursionError for what is too deep."""
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
    return json.dumps(fields, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
