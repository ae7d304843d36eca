"""Ids as types of their own, so that mypy refuses a transaction id where a write id is due."""

from __future__ import annotations

from typing import NewType

TxnId = NewType("TxnId", int)
"""One transaction of the whole metastore."""

WriteId = NewType("WriteId", int)
"""One write of one table; stands in directory names and rows."""

LockId = NewType("LockId", int)
"""One lock request (all of its components)."""

EventId = NewType("EventId", int)
"""One notification event; gap-free and in commit order."""

CompactionId = NewType("CompactionId", int)
"""One entry of the compaction queue."""

NO_TXN = TxnId(0)
MAX_ID = 2**63 - 1
"""What Hive prints for "none" in the place of a lowest open id (Java's Long.MAX_VALUE)."""

SEED_MAX = 2**62
"""The highest id from which a client may let ids go on: as many again must be able to follow."""
