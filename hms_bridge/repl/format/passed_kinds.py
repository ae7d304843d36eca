"""Kinds of events that have no effect on a replica: what is not replayed, and not here, is refused.

Column statistics change no row, and a replica trusts none: they do not come along, and what the
source says of the rightness of its row counts is taken away (``target_objects``). Hive replays
their updates, but no commit that is replayed makes them wrong, nor does a deletion
(docs/hive/replication.md §31). RELOAD says
caches to look again. A compaction writes the same rows anew, with the same ids; a rebalance does
not (docs/hive/compaction.md §11), nor may a kind of a later Hive.
"""

from __future__ import annotations

from hms_bridge.config.repl import ReplSettings
from hms_bridge.errors import ReplError

PLACES = "PARTITION_PLACES"
"""Changes of partitions of managed tables that do not lie below their table (SET LOCATION)."""

EMPTY_WRITES = "EMPTY_WRITES"
"""Writes without files in a dump of Hive that may have been an INSERT OVERWRITE of nothing."""

PASSED_BY_DEFAULT = ReplSettings().passed_kinds
"""As dumps name them, or (those that Hive dumps as EVENT_UNKNOWN) as the notification log does."""

SETTING = "hms.bridge.repl.passed.kinds"


def refusal(
    where: str, kind: str, what: str, way_out: str = "else make a new bootstrap dump"
) -> ReplError:
    """The error for a kind that is neither replayed nor let pass."""
    return ReplError(
        f"{where}: {what} cannot be carried over to a replica, and leaving it out would be a "
        f"difference that nobody sees. If the replica can do without, add {kind} to {SETTING}; "
        + way_out
    )
