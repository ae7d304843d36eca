"""Hive and hms-bridge at full work on one database and warehouse, both cleaners on.

How long: HMS_BRIDGE_STORM_SECONDS (90; the ten minutes of a release: 600).
"""

from __future__ import annotations

import functools
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from hms_bridge.connect import connected
from hms_bridge.model.event import NotificationEvent, NotificationRequest
from hms_bridge.model.ids import EventId
from hms_bridge.repl.format.stored_message import message_json
from integration.comparison.engine import CompactorThread
from integration.comparison.storm import TABLES, CleanerTurns, Turns, Writer
from integration.referees.beside import Beside
from integration.referees.hive42 import HiveSession
from integration.referees.ours import OurSession

SECONDS = float(os.environ.get("HMS_BRIDGE_STORM_SECONDS", "90"))
OFTEN = "'transactional'='true', 'compactorthreshold.hive.compactor.delta.num.threshold'='4'"
# Of each writer, or nothing was shown: a busy machine gets seven more minutes for it.
FEWEST = max(5, int(SECONDS / 18))
LATEST_SECONDS = SECONDS + 420
QUIET_SECONDS = 180
# With fewer statements, on a machine that is busy otherwise, no table may have needed a compaction.
ENOUGH = 60
MADE = (
    "create database storm",
    f"create table storm.shared (id int, v string, owner string) stored as orc "
    f"tblproperties({OFTEN})",
    f"create table storm.parts (id int, v string) partitioned by (owner string) stored as orc "
    f"tblproperties({OFTEN})",
)


@pytest.mark.timeout(SECONDS + 900)
def test_both_at_full_work_lose_nothing(
    hive42_beside: Beside, our_session: Callable[[str], OurSession]
) -> None:
    beside = hive42_beside
    for statement in MADE:
        beside.hive.main.sql(statement)
    ours = our_session(beside.ours.uri)
    cleaner_turns = CleanerTurns()
    make_writer = functools.partial(
        Writer,
        database="storm",
        cleaner_turns=cleaner_turns,
        taken_for_empty=beside.hive.reads_taken_for_empty,
    )
    writers = [
        make_writer("a", beside.hive.session().sql, is_hive=True, can_merge=True, seed=1),
        make_writer("b", beside.on_ours.sql, is_hive=True, can_merge=True, seed=2),
        make_writer("c", ours.sql, is_hive=False, can_merge=False, seed=3),
    ]
    first = _last_event(beside)
    daemons = beside.daemons()
    names: tuple[CompactorThread, ...] = ("Initiator", "Worker", "Cleaner")
    sessions = {name: beside.hive.session(_EAGER) for name in names}
    turns = [
        lambda session=session, name=name: _take_turn(beside, session, name, cleaner_turns)
        for name, session in sessions.items()
    ]
    now = time.monotonic()
    limits = {"fewest": FEWEST, "latest": now + LATEST_SECONDS}
    threads = [
        threading.Thread(target=writer.work, args=(now + SECONDS,), kwargs=limits)
        for writer in writers
    ]
    with Turns(turns) as hives:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    _wait_until_quiet(beside)
    daemons.stop()
    print(_told(beside, writers))
    assert [one for writer in writers for one in writer.wrong] == []
    assert hives.errors == []
    assert min(writer.done.total() for writer in writers) >= FEWEST
    for run in (beside.hive.main.sql, writers[1].run, ours.sql):
        for writer in writers:
            for table in TABLES:
                assert writer.read(run, table) == writer.expected(table), (writer.name, table)
    _check_events(beside, first)
    _check_compactions(beside)
    if sum(writer.done.total() for writer in writers) > ENOUGH:
        assert _by_state(beside)["s"] > 0, "nothing was compacted and cleaned"


_EAGER = {"hive.compactor.delta.num.threshold": "4", "hive.compactor.initiator.on": "true"}
_ABORTED = 'select count(*) as n from "TXNS" where "TXN_STATE" = \'a\''


def _take_turn(
    beside: Beside, session: HiveSession, name: CompactorThread, cleaner_turns: CleanerTurns
) -> None:
    """One pass of a thread of Hive's. Its Cleaner stands still while there are aborted writes: it
    then deletes what open transactions wrote (docs/safer-than-hive.md, `g25`)."""
    if name != "Cleaner":
        session.run(name)
    elif not beside.store.query(_ABORTED)[0]["n"]:
        with cleaner_turns.turn():
            session.run(name)


def _last_event(beside: Beside) -> EventId:
    with connected(beside.store.sqlalchemy_url) as metastore:
        return metastore.get_current_event_id()


def _wait_until_quiet(beside: Beside) -> None:
    """No lock, no reader, no open transaction is left by anybody."""
    deadline = time.monotonic() + QUIET_SECONDS
    while left := _left(beside):
        assert time.monotonic() < deadline, left
        time.sleep(0.5)


def _left(beside: Beside) -> dict[str, int]:
    """Hive's leader election holds locks on tables of its own for good."""
    asked = {
        "locks": 'select count(*) as n from "HIVE_LOCKS" where "HL_DB" = \'storm\'',
        "readers": 'select count(*) as n from "MIN_HISTORY_WRITE_ID"',
        "transactions": 'select count(*) as n from "TXNS" where "TXN_STATE" = \'o\'',
        "compactions": 'select count(*) as n from "COMPACTION_QUEUE" where "CQ_STATE" = \'w\'',
    }
    found = {name: int(beside.store.query(text)[0]["n"]) for name, text in asked.items()}
    return {name: count for name, count in found.items() if count}


def _by_state(beside: Beside) -> Counter[str]:
    rows = beside.store.query(
        'select "CC_STATE" as s, count(*) as n from "COMPLETED_COMPACTIONS" '
        "where \"CC_DATABASE\" = 'storm' group by 1"
    )
    return Counter({row["s"]: row["n"] for row in rows})


def _told(beside: Beside, writers: list[Writer]) -> str:
    lines = [f"{w.name}: done {dict(w.done)}, undone {dict(w.failed)}" for w in writers]
    workers = beside.store.query(
        'select "CC_WORKER_VERSION" as v, "CC_STATE" as s, count(*) as n '
        'from "COMPLETED_COMPACTIONS" where "CC_DATABASE" = \'storm\' group by 1, 2 order by 1, 2'
    )
    lines += [f"compactions by {row['v']}: {row['n']} in state {row['s']}" for row in workers]
    return "\n".join(lines)


def _check_events(beside: Beside, first: EventId) -> None:
    """Gap-free, and no write id of a table was given twice (I8)."""
    with connected(beside.store.sqlalchemy_url) as metastore:
        events = metastore.get_next_notification(NotificationRequest(last_event_id=first))
        last = metastore.get_current_event_id()
    assert [event.id for event in events] == list(range(first + 1, last + 1))
    given = Counter(one for event in events for one in _write_ids(event))
    assert given
    assert [one for one, count in given.items() if count > 1] == []


_TARGET = '"{0}DATABASE" as d, "{0}TABLE" as t, "{0}PARTITION" as p'
_ENTRIES = (
    f'select "CQ_ID" as id, "CQ_STATE" as state, "CQ_START" as began, "CQ_COMMIT_TIME" as ended, '
    f'{_TARGET.format("CQ_")} from "COMPACTION_QUEUE" union all '
    f'select "CC_ID", "CC_STATE", "CC_START", "CC_COMMIT_TIME", {_TARGET.format("CC_")} '
    'from "COMPLETED_COMPACTIONS"'
)


def _check_compactions(beside: Beside) -> None:
    """No entry was given twice, nor does a target wait twice; and none was compacted by two at
    once, whichever side they were of (I9)."""
    entries = beside.store.query(_ENTRIES)
    assert [one for one, count in Counter(e["id"] for e in entries).items() if count > 1] == []
    targets: dict[tuple[str, str, str | None], list[dict[str, Any]]] = {}
    for entry in entries:
        targets.setdefault((entry["d"], entry["t"], entry["p"]), []).append(entry)
    for target, of_it in targets.items():
        waiting = [entry["id"] for entry in of_it if entry["state"] in ("i", "w")]
        assert len(waiting) <= 1, (target, waiting)
        done = sorted(
            (entry for entry in of_it if entry["began"] and entry["ended"]),
            key=lambda entry: int(entry["began"]),
        )
        for earlier, later in pairwise(done):
            assert earlier["ended"] <= later["began"], (target, earlier, later)


def _write_ids(event: NotificationEvent) -> list[tuple[str, int]]:
    if not event.type.startswith("ALLOC_WRITE_ID"):
        return []
    message = json.loads(message_json(event))
    table = f"{message['dbName']}.{message['tableName']}".lower()
    return [(table, int(one)) for one in message["writeIdList"]]
