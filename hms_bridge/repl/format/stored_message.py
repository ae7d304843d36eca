"""Messages of events as the log keeps them, plain or packed, and what is read of them as they are.

A Hive dumps the message of a kind that it does not know as it is stored.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import zlib
from typing import Any

from hms_bridge.errors import ReplError
from hms_bridge.model.event import NotificationEvent

_BYTES_MAX = 256 << 20
"""A message that unpacks to more than this is refused: it is no message of a metastore."""

_GZIP_FORMAT = "gzip(json-2.0)"
_SAME_ROWS = frozenset({"MAJOR", "MINOR", "ABORT_TXN_CLEANUP"})
_COMPACTION = {"compactionId", "type", "dbname", "tableName"}


def event_text(event: NotificationEvent) -> str:
    """The event for messages: ``event 7 (DROP_TABLE)``."""
    return f"event {event.id} ({event.type})"


def message_json(event: NotificationEvent) -> str:
    """The message of an event as plain JSON. Raises ReplError if it cannot be unpacked."""
    if event.message_format != _GZIP_FORMAT:
        return event.message
    try:
        plain = _unpacked(event.message)
        if len(plain) > _BYTES_MAX:
            raise ReplError(
                f"event {event.id}: its message unpacks to more than {_BYTES_MAX} bytes"
            )
        return plain.decode()
    except ValueError:
        raise ReplError(f"{event_text(event)}: its message is no {_GZIP_FORMAT} text") from None


def _unpacked(message: str) -> bytes:
    """One byte more than is allowed at most. Raises ValueError."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(base64.b64decode(message, validate=True))) as stream:
            # Not all at once: a small message may unpack to many gigabytes.
            return stream.read(_BYTES_MAX + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError("no gzip") from error


def is_harmless_compaction(message: str | None) -> bool:
    """Whether an EVENT_UNKNOWN is of a compaction that changes no row and no row id: a rebalance
    does (docs/hive/compaction.md §11), and a kind of a later Hive may.

    Hive dumps the raw message (DefaultHandler; docs/hive/replication.md §15), without the kind: it
    is known by its fields.
    """
    fields = _fields(message or "")
    if fields is None or not fields.keys() >= _COMPACTION:
        return False
    is_committed = bool(fields.get("txnid")) and "errorMessage" not in fields
    return not is_committed or fields["type"] in _SAME_ROWS


def _fields(message: str) -> dict[str, Any] | None:
    """Of a message as stored; None for what is none."""
    try:
        fields = json.loads(message if message.startswith("{") else _unpacked(message))
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None
