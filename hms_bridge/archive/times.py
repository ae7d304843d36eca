"""What the database knows of the time: its own clock, when something happened, and when nothing."""

from __future__ import annotations

import logging
from dataclasses import replace

from sqlalchemy import Connection, delete, func, insert, select, update

from changemanager.clock import span_text
from changemanager.plausible_time import (
    CLOCKS_APART_MS_MAX,
    KnownTimes,
    TimeGap,
    TimeJudgement,
    judge,
)
from hms_bridge.backend.dialect import is_sqlite
from hms_bridge.backend.schema.archive_tables import (
    HMSB_ARCHIVE_PIN,
    HMSB_ARCHIVE_TIME,
    HMSB_TIME_GAP,
)
from hms_bridge.backend.schema.notification_tables import NOTIFICATION_LOG
from hms_bridge.backend.schema.txn_tables import TXNS
from hms_bridge.backend.work import Work
from hms_bridge.clock import SystemClock

_SEEN = HMSB_ARCHIVE_TIME.c.SEEN_AT_MS
_GAP = HMSB_TIME_GAP.c
_IS_OPEN = _GAP.TRUSTED_AT_MS.is_(None)
_EVENT_TIME = NOTIFICATION_LOG.c.EVENT_TIME
_DAY_SECONDS = 86_400
_LOG = logging.getLogger(__name__)


def known_times(work: Work) -> KnownTimes:
    """See ArchiveTimes.known_times. Look-ups by index; a scan of events only before the first
    judgement, and after a day without a sign of life."""
    connection, now_ms = work.connection, work.now_ms
    t, n = TXNS.c, NOTIFICATION_LOG.c
    seen = connection.scalar(select(_SEEN))
    heard = connection.scalar(select(t.TXN_LAST_HEARTBEAT).order_by(t.TXN_ID.desc()).limit(1))
    event = connection.scalar(select(n.EVENT_TIME).order_by(n.EVENT_ID.desc()).limit(1))
    gaps = connection.execute(select(_GAP.BEFORE_MS, _GAP.AFTER_MS).where(_IS_OPEN))
    has_own_clock = not is_sqlite(connection) and isinstance(work.clock, SystemClock)
    known = KnownTimes(
        store_ms=now_ms if has_own_clock else None,
        seen_ms=int(seen or 0),
        signs_ms=(int(heard or 0), int(event or 0) * 1000),
        gaps=tuple(sorted(TimeGap(int(before), int(after)) for before, after in gaps)),
    )
    # Of a database that nobody judged yet all signs count: the newest may come after a jump.
    if not known.seen_ms or any(gap.is_doubted for gap in known.neighbours(now_ms)):
        days = _first_and_last_events(connection, known.seen_ms // 1000, now_ms // 1000)
        return replace(known, signs_ms=(*known.signs_ms, *days))
    return known


def _first_and_last_events(connection: Connection, after: int, until: int) -> list[int]:
    """When the first and the last event of each day happened, in milliseconds."""
    rows = connection.execute(
        select(func.min(_EVENT_TIME), func.max(_EVENT_TIME))
        .where(after < _EVENT_TIME, until >= _EVENT_TIME)
        .group_by(_EVENT_TIME // _DAY_SECONDS)
    )
    return [int(seconds) * 1000 for row in rows for seconds in row]


def note_time(work: Work, now_ms: int) -> TimeJudgement:
    """See ArchiveTimes.note_time."""
    connection = work.connection
    # Two judgements come one after the other: the second knows the gap that the first one found.
    connection.execute(select(_SEEN).with_for_update())
    known = known_times(work)
    judged = judge(now_ms, known)
    if judged.seen_ms != known.seen_ms:
        connection.execute(update(HMSB_ARCHIVE_TIME).values(SEEN_AT_MS=judged.seen_ms))
    if judged.gaps != known.gaps and not judged.refusal:
        connection.execute(delete(HMSB_TIME_GAP).where(_IS_OPEN))
        for gap in judged.gaps:
            connection.execute(
                insert(HMSB_TIME_GAP).values(BEFORE_MS=gap.before_ms, AFTER_MS=gap.after_ms)
            )
    for gap in judged.new_gaps:
        _LOG.warning(
            "nothing is known to have happened for %s: either nobody was here, or the clock is "
            "ahead. Nothing is deleted for this time until 'hms-bridge cm clock --trust' confirms "
            "that it went by",
            span_text(gap.after_ms - gap.before_ms),
        )
    if not judged.refusal:
        _widen_pins_of_the_future(connection, now_ms)
    return judged


def _widen_pins_of_the_future(connection: Connection, now_ms: int) -> None:
    """A dump that began by a clock that was ahead: its policy's pin would leave out all that is
    archived until that time comes. When it truly began nobody knows; what the next dump can name
    was archived after the oldest event of the log."""
    since = HMSB_ARCHIVE_PIN.c.ARCHIVED_SINCE_MS
    of_the_future = since > now_ms + CLOCKS_APART_MS_MAX
    if connection.scalar(select(since).where(of_the_future).limit(1)) is None:
        return
    oldest = connection.scalar(select(func.min(_EVENT_TIME)))
    began_ms = now_ms if oldest is None else min(now_ms, int(oldest) * 1000)
    began_ms -= CLOCKS_APART_MS_MAX  # events are stamped by the clocks of hosts
    connection.execute(
        update(HMSB_ARCHIVE_PIN).where(of_the_future).values(ARCHIVED_SINCE_MS=began_ms)
    )


def trust_time(work: Work, now_ms: int) -> tuple[TimeGap, ...]:
    """See ArchiveTimes.trust_time."""
    judged = note_time(work, now_ms)
    if judged.refusal:
        return ()
    work.connection.execute(update(HMSB_TIME_GAP).where(_IS_OPEN).values(TRUSTED_AT_MS=now_ms))
    return judged.gaps
