"""The text of a message: JSON, plain or zipped.

MESSAGE_FORMAT of each row says which one it is: ``json-0.2`` is plain JSON (Hive 3, and what
simple consumers read), ``gzip(json-2.0)`` is base64 of zipped JSON (Hive 4's default;
docs/hive/metastore.md §18).
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from enum import Enum
from typing import Any


class MessageFormat(Enum):
    """How messages are written; the text is stored in NOTIFICATION_LOG.MESSAGE_FORMAT."""

    JSON = "json-0.2"
    ZIPPED_JSON = "gzip(json-2.0)"


Message = Mapping[str, Any]
"""A message: names as Hive's JSON classes have them, in their order."""


_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def write_text(message: Message, message_format: MessageFormat) -> str:
    """A message as its row keeps it."""
    text = _JSON.encode(message)
    if message_format is MessageFormat.JSON:
        return text
    # The time would make the same message differ from one writing to the next.
    zipped = gzip.compress(text.encode(), mtime=0)
    return base64.b64encode(zipped).decode("ascii")
