"""The transaction calls of a real Hive 4.0.1 metastore, played again over the wire: the same
answers, word for word, and the same events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.errors import HmsBridgeError, MetaError
from hms_bridge.model.catalog import Column, Database
from hms_bridge.model.ids import TxnId
from hms_bridge.model.properties import TARGET_FOR
from hms_bridge.repl.target_objects import OPENED
from hms_bridge.wire.exceptions import error_from_exception
from hms_bridge.wire.methods import method
from hms_bridge.wire.structs import Struct
from tests.conformance import objects
from tests.support.golden import OWN
from tests.support.golden_wire import recorded_calls, request_of, response_of
from tests.support.served_metastore import ServedMetastore, served_metastore
from tests.support.simulated_clock import SimulatedClock

pytestmark = pytest.mark.golden

CALLS = [
    json.loads(line) for line in (OWN / "wire" / "txn-calls-4.0.1.jsonl").read_text().splitlines()
]
EVENTS = {call["n"]: call["events"] for call in CALLS}
RECORDED = {call.number: call for call in recorded_calls()}
SKIPPED = {
    490: "a lock in a committed transaction is granted (a fault of Hive's)",
    551: "an operation that was not told is refused; here it counts as an update",
    552: "an operation that was not told is refused; here it counts as an update",
    534: "the next seed sets this one back (a fault of Hive's), so only that is played",
    606: "mark_cleaned of an unpartitioned table fails on PostgreSQL (a fault of Hive's)",
    607: "mark_cleaned of an unpartitioned table fails on PostgreSQL (a fault of Hive's)",
}
TAKES_A_LOCK_ID = {490, 546}
"""Calls with which Hive used up a lock id and we do not."""
OURS_ALONE = {"REQUEST_COMPACTION", "FAIL_COMPACTION"}
"""Events that no Hive logs (model/event.py)."""
VOLATILE = {
    "startedTime",
    "lastHeartbeatTime",
    "lastheartbeat",
    "acquiredat",
    "start",
    "endTime",
    "enqueueTime",
    "commitTime",
}
UNSET = (None, "\0")
MISSING, THERE = "bogus", "ds=bogus/hr=1"
"""A partition that Hive queues a compaction of though it does not exist, and what it is here."""


def _play(folder: Path, sections: tuple[str, ...], seed: int | None = None) -> dict[int, str]:
    """The calls that were played; of those that Hive answered otherwise, how we did."""
    clock = SimulatedClock()
    with served_metastore(folder, clock=clock) as served:
        _make_tables(served)
        if seed is not None:
            served.metastore.seed_txn_id(TxnId(seed))
        outcomes = {}
        for number in (call["n"] for call in CALLS if call["section"] in sections):
            if number in TAKES_A_LOCK_ID:
                free = objects.request(objects.component("elsewhere"))
                served.metastore.unlock(served.metastore.lock(free).lock_id)
            if number not in SKIPPED:
                clock.advance_ms(1)
                outcomes[number] = _difference(served, number)
        return outcomes


def _make_tables(served: ServedMetastore) -> None:
    replica = {TARGET_FOR: "gdb", OPENED: "true"}
    served.metastore.create_database(Database(name="gdb", parameters=replica))
    keys = (Column(name="ds", type="string"), Column(name="hr", type="string"))
    for name in ("acid1", "mm1", "nope", "p1"):
        columns = keys if name == "p1" else ()
        objects.new_table(served.metastore, "gdb", name, partition_columns=columns)
    added = [objects.partition("gdb", "p1", day, "1") for day in ("2024-01-01", "bogus")]
    served.metastore.add_partitions("gdb", "p1", added)


def _difference(served: ServedMetastore, number: int) -> str:
    """Empty if our answer holds all that Hive's does, and the events are the same."""
    call = RECORDED[number]
    last = served.metastore.get_current_event_id()
    arguments = vars(request_of(call))
    for argument in arguments.values():
        if getattr(argument, "partitionname", None) == MISSING:
            argument.partitionname = THERE
    try:
        ours = _plain(served.call(call.method, **arguments))
    except HmsBridgeError as error:
        ours = f"{type(error).__name__}: {error}"
    logged = objects.events_after(served.metastore, last)
    events = [event.type for event in logged if event.type not in OURS_ALONE]
    is_same = _holds(ours, _answer_of_hive(number)) and events == EVENTS[number]
    return "" if is_same else f"{call.method}: {ours} {events}"


def _holds(ours: Any, theirs: Any) -> bool:
    if theirs is MetaError:
        return str(ours).startswith("MetaError: ")
    if isinstance(theirs, dict):
        return all(_holds(ours.get(name), field) for name, field in theirs.items())
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_holds, ours, theirs))
    return bool(ours == theirs)


def _answer_of_hive(number: int) -> Any:
    call = RECORDED[number]
    response = response_of(call)
    if response is None:
        return MetaError  # an internal error in Hive, a refusal that says why here
    for field in method(call.method).exceptions.values():
        thrown = getattr(response, field)
        if thrown is not None:
            error = error_from_exception(thrown)
            return f"{type(error).__name__}: {error}"
    return None if method(call.method).is_void else _plain(response.success)


def _plain(value: Any) -> Any:
    """What was set, but for times."""
    if isinstance(value, Struct):
        fields = {name: _plain(field) for name, field in vars(value).items()}
        return {
            name: field
            for name, field in fields.items()
            if field not in UNSET and name not in VOLATILE
        }
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return THERE if value == MISSING else value


def test_transactions_write_ids_and_locks(tmp_path: Path) -> None:
    outcomes = _play(tmp_path, ("txn", "txn-types", "lock"))
    different = {number: text for number, text in outcomes.items() if text}
    assert set(different) == {453, 466, 469, 503, 529, 530, 532}, different
    assert all("'agentInfo': 'agent'" in different[n] for n in (453, 503)), "Unknown in Hive"
    assert all("'writeIdHighWaterMark': 3" in different[n] for n in (466, 469)), "1 in Hive"
    assert "['OPEN_TXN', 'ABORT_TXN']" in different[529], "Hive tells nobody of the abort"
    assert "'writeIdHighWaterMark': 5" in different[530], "4 in Hive, which hides the last write"
    assert "has ids up to 41 already" in different[532], "a failed INSERT in Hive's words"
    assert len(outcomes) == 103


def test_compactions(tmp_path: Path) -> None:
    outcomes = _play(tmp_path, ("compaction",), seed=873)
    different = {number for number, text in outcomes.items() if text}
    assert different == {601}, "find_columns_with_stats: the table has none here"
    assert len(outcomes) == 25
