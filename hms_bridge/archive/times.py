"""What the database knows of the time: its own clock, and the newest of what happened."""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from changemanager.manifest import KnownTimes
from hms_bridge.backend.dialect import is_sqlite
from hms_bridge.backend.schema.archive_tables import HMSB_ARCHIVE_TIME
from hms_bridge.backend.schema.notification_tables import NOTIFICATION_LOG
from hms_bridge.backend.schema.txn_tables import TXNS
from hms_bridge.backend.work import Work
from hms_bridge.clock import SystemClock

_SEEN = HMSB_ARCHIVE_TIME.c.SEEN_AT_MS


def known_times(work: Work) -> KnownTimes:
    """See ArchiveTimes.known_times. Three look-ups by index, no scan."""
    connection = work.connection
    t, n = TXNS.c, NOTIFICATION_LOG.c
    seen = connection.scalar(select(_SEEN))
    heard = connection.scalar(select(t.TXN_LAST_HEARTBEAT).order_by(t.TXN_ID.desc()).limit(1))
    event = connection.scalar(select(n.EVENT_TIME).order_by(n.EVENT_ID.desc()).limit(1))
    has_own_clock = not is_sqlite(connection) and isinstance(work.clock, SystemClock)
    return KnownTimes(
        store_ms=work.now_ms if has_own_clock else None,
        newest_ms=max(int(seen or 0), int(heard or 0), int(event or 0) * 1000),
    )


def note_time(connection: Connection, now_ms: int) -> None:
    """See ArchiveTimes.note_time."""
    connection.execute(update(HMSB_ARCHIVE_TIME).where(_SEEN < now_ms).values(SEEN_AT_MS=now_ms))
