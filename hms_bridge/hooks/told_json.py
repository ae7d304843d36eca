"""An event as the hooks of this program pass it on: one JSON object."""

from __future__ import annotations

import json
from typing import Any

from hms_bridge.model.hook import HookEvent
from hms_bridge.repl.format.stored_message import message_json


def told_json(event: HookEvent) -> str:
    """In one line. ``message`` is an object, or a text where it is not JSON.

    Raises ReplError for a message that cannot be unpacked.
    """
    text = message_json(event)
    message: Any
    try:
        message = json.loads(text)
    except ValueError:
        message = text
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
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
