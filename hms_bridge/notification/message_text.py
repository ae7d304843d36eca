"""The text of a message: JSON, plain or zipped.

MESSAGE_FORMAT of each row says which one it is: ``json-0.2`` is plain JSON (Hive 3, and what
simple consumers read), ``gzip(json-2.0)`` is base64 of zipped JSON (Hive 4's default;
docs/hive/metastore.md §18).
"""

from __future__ import annotations

import binascii
import json
import zlib
from collections.abc import Mapping
from enum import Enum
from typing import Any


class MessageFormat(Enum):
    """How messages are written; the text is stored in NOTIFICATION_LOG.MESSAGE_FORMAT."""

    JSON = "json-0.2"
    ZIPPED_JSON = "gzip(json-2.0)"


Message = Mapping[str, Any]
"""A message: names as Hive's JSON classes have them, in their order."""


_GZIP = 16
"""Added to zlib's window bits: with gzip's header, in which no time stands, and its checksum."""
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def write_text(message: Message, message_format: MessageFormat) -> str:
    """A message as its row keeps it."""
    text = _JSON.encode(message)
    if message_format is MessageFormat.JSON:
        return text
    return binascii.b2a_base64(_zipped(text.encode()), newline=False).decode("ascii")


def _zipped(content: bytes) -> bytes:
    """As gzip does, but without the time, which would make the same message differ from one writing
    to the next. For a hundred bytes, to clear the memory that zlib takes takes ten times as long as
    all the rest: what is short gets less, with the same outcome."""
    if len(content) <= 200:
        window_bits, memory_level = 9, 3
    elif len(content) <= 1 << 12:
        window_bits, memory_level = 12, 5
    else:
        window_bits, memory_level = zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL
    zipper = zlib.compressobj(wbits=_GZIP + window_bits, memLevel=memory_level)
    return zipper.compress(content) + zipper.flush()
