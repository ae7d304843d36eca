"""The text of a message: written as JSON, plain or zipped, and read back in either form.

MESSAGE_FORMAT of each row says which one it is: ``json-0.2`` is plain JSON (Hive 3, and what
simple consumers read), ``gzip(json-2.0)`` is base64 of zipped JSON (Hive 4's default;
docs/hive/metastore.md §18).
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import zlib
from collections.abc import Mapping
from enum import Enum
from typing import Any

from hms_bridge.errors import MetaError
from hms_bridge.model.event import NotificationEvent


class MessageFormat(Enum):
    """How messages are written; the text is stored in NOTIFICATION_LOG.MESSAGE_FORMAT."""

    JSON = "json-0.2"
    ZIPPED_JSON = "gzip(json-2.0)"


Message = Mapping[str, Any]
"""A message: names as Hive's JSON classes have them, in their order."""


def write_text(message: Message, message_format: MessageFormat) -> str:
    """A message as its row keeps it."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    if message_format is MessageFormat.JSON:
        return text
    # The time would make the same message differ from one writing to the next.
    zipped = gzip.compress(text.encode(), mtime=0)
    return base64.b64encode(zipped).decode("ascii")


def plain_text(event: NotificationEvent) -> str:
    """The JSON text of an event's message, unzipped if it is zipped.

    Raises MetaError for a format that is unknown, or a text that is not in it.
    """
    if event.message_format.startswith("gzip("):
        try:
            return gzip.decompress(base64.b64decode(event.message, validate=True)).decode()
        except (binascii.Error, OSError, EOFError, zlib.error, ValueError) as error:
            raise MetaError(
                f"event {event.id} ({event.type}): its message is no zipped text: {error}"
            ) from error
    if event.message_format.startswith("json"):
        return event.message
    raise MetaError(
        f"event {event.id} ({event.type}): unknown message format '{event.message_format}'; "
        f"known are {', '.join(f.value for f in MessageFormat)}"
    )


def read_message(event: NotificationEvent) -> dict[str, Any]:
    """The message of an event. Raises MetaError for a text that is no JSON object."""
    try:
        message = json.loads(plain_text(event))
    except json.JSONDecodeError as error:
        raise MetaError(
            f"event {event.id} ({event.type}): its message is no JSON: {error}"
        ) from error
    if not isinstance(message, dict):
        raise MetaError(f"event {event.id} ({event.type}): its message is no JSON object")
    return message
