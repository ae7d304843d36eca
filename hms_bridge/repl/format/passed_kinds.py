"""Kinds of events that have no effect on a replica: what is not replayed, and not here, is refused.

Column statistics change no row, and a replica trusts none: they do not come along, and what the
source says of the rightness of its row counts is taken away (``target_objects``). Hive replays
their updates, but no commit that is replayed makes them wrong, nor does a deletion
(docs/hive/replication.md §31). RELOAD tells
caches to look again. A compaction writes the same rows anew, with the same ids; a rebalance does
not (docs/hive/compaction.md §11), nor may a kind of a later Hive.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any

from hms_bridge.config.settings import ReplSettings
from hms_bridge.errors import ReplError
from hms_bridge.repl.format.event_payload import PAYLOAD_BYTES_MAX

PLACES = "PARTITION_PLACES"
"""Changes of partitions of managed tables that do not lie below their table (SET LOCATION)."""

EMPTY_WRITES = "EMPTY_WRITES"
"""Writes without files in a Hive's dump that may have been an INSERT OVERWRITE of nothing."""

PASSED_BY_DEFAULT = ReplSettings().passed_kinds
"""As dumps name them, or (those that Hive dumps as EVENT_UNKNOWN) as the notification log does."""

SETTING = "hms.bridge.repl.passed.kinds"

_SAME_ROWS = frozenset({"MAJOR", "MINOR", "ABORT_TXN_CLEANUP"})
_COMPACTION = {"compactionId", "type", "dbname", "tableName"}


def refusal(
    where: str, kind: str, what: str, way_out: str = "else make a new bootstrap dump"
) -> ReplError:
    """The error for a kind that is neither replayed nor let pass."""
    return ReplError(
        f"{where}: {what} cannot be carried over to a replica, and leaving it out would be a "
        f"difference that nobody sees. If the replica can do without, add {kind} to {SETTING}; "
        + way_out
    )


def is_harmless_compaction(payload: str | None) -> bool:
    """Whether an EVENT_UNKNOWN is of a compaction that changes no row and no row id.

    Hive dumps the raw message (DefaultHandler; docs/hive/replication.md §15), without the kind: it
    is known by its fields.
    """
    fields = _message(payload or "")
    if fields is None or not fields.keys() >= _COMPACTION:
        return False
    is_committed = bool(fields.get("txnid")) and "errorMessage" not in fields
    return not is_committed or fields["type"] in _SAME_ROWS


def _message(payload: str) -> dict[str, Any] | None:
    """A message as stored, plain or packed; None for what is neither."""
    text: str | bytes = payload
    if not payload.startswith("{"):
        try:
            unpacked = zlib.decompressobj(zlib.MAX_WBITS | 16)
            text = unpacked.decompress(base64.b64decode(payload, validate=True), PAYLOAD_BYTES_MAX)
        except (binascii.Error, ValueError, zlib.error):
            return None
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None
