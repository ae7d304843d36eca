"""Messages of events, read as Hive's consumers read them."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

from hms_bridge.model.event import NotificationEvent


def read_message(event: NotificationEvent) -> dict[str, Any]:
    """The message, unzipped if its format says so (docs/hive/metastore.md §18)."""
    text = event.message
    if event.message_format.startswith("gzip("):
        text = gzip.decompress(base64.b64decode(text, validate=True)).decode()
    else:
        assert event.message_format.startswith("json"), event
    message = json.loads(text)
    assert isinstance(message, dict), event
    return message
