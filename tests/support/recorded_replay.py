"""All recorded calls of a real Hive, in order, over one server's socket; what came of each."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import update

from hms_bridge.backend.engine import open_database
from hms_bridge.backend.schema.notification_tables import NOTIFICATION_SEQUENCE
from hms_bridge.backend.schema.txn_tables import NEXT_LOCK_ID, NEXT_WRITE_ID
from hms_bridge.config.settings import CompactorSettings
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.ids import TxnId
from hms_bridge.model.properties import TARGET_FOR
from hms_bridge.model.target import Target
from hms_bridge.repl.target_objects import OPENED
from hms_bridge.wire.methods import method
from hms_bridge.wire.structs import Struct, hive
from tests.conformance import objects
from tests.support.golden_differences import WITHOUT_ORDER
from tests.support.golden_fields import (
    Difference,
    differences,
    event_fields,
    message_of,
    sorted_by_name,
)
from tests.support.golden_wire import (
    MORE,
    MORE_42,
    RecordedCall,
    bodies,
    lines,
    recorded_calls,
    request_of,
    struct_of,
)
from tests.support.served_metastore import ServedMetastore, served_metastore
from tests.support.wire_answers import CLOSED, Thrown, WireClient, answer_in

INSIDE = {
    "/warehouse/golden/f1": "/warehouse/golden/gdb.db/acid1/f1",
    "/warehouse/golden/f2": "/warehouse/golden-ext/gdb.db/ext1/f2",
}
"""A file that a write or an insertion names has to lie in the directory of its table here."""
MISSING, THERE = "bogus", "ds=bogus/hr=1"
"""A partition that Hive queues a compaction of though it does not exist, and what it is here."""
FROM_HERE_LISTED, TO_HERE_LISTED = 592, 614


@dataclass(frozen=True)
class Outcome:
    """Of one call: what Hive and we answered (a Thrown, or a value), and logged."""

    call: RecordedCall
    theirs: Any
    ours: Any
    their_events: tuple[dict[str, Any], ...] = ()
    our_events: tuple[dict[str, Any], ...] = ()
    prepared_events: tuple[dict[str, Any], ...] = ()
    """What was logged since the call before, by a preparation."""
    used: set[str] = field(default_factory=set)
    """The masks of times and ids that were needed, once differences are known."""

    @property
    def is_answered(self) -> bool:
        return not isinstance(self.theirs, Thrown) and not isinstance(self.ours, Thrown)

    @property
    def kinds(self) -> tuple[str, str]:
        """Of both answers: the class that was thrown, or "answered"; of a MetaException of ours
        that says another one's name, that, too: its method declares no such exception."""
        theirs, ours = self.theirs, self.ours
        named = re.match(r"\w+Exception(?=: )", ours.message) if isinstance(ours, Thrown) else None
        says = f" {named[0]}" if named and ours.cls == "MetaException" else ""
        return (
            theirs.cls if isinstance(theirs, Thrown) else "answered",
            f"{ours.cls}{says}" if isinstance(ours, Thrown) else "answered",
        )

    def differences(self) -> Iterator[tuple[str, Difference]]:
        """What of the answer, by the method, and of events, by their types."""
        for found in self._of_answers() if self.is_answered else ():
            yield self.call.method, found
        types, ours = (
            [event["eventType"] for event in events]
            for events in (self.their_events, self.our_events)
        )
        if types != ours:
            yield self.call.method, Difference("events", types, ours)
        for theirs, event in self.pairs():
            for found in differences(theirs, event, self.used):
                yield event["eventType"], found

    def pairs(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Events of both sides that stand for each other: of the same kinds, in order."""
        their_events, our_events = self.their_events, self.our_events
        if self.call.method == "drop_database":  # of its tables in any order
            their_events, our_events = (
                tuple(sorted(events, key=lambda event: str(event.get("tableName") or "")))
                for events in (their_events, our_events)
            )
        kinds = ([event["eventType"] for event in events] for events in (their_events, our_events))
        matcher = SequenceMatcher(None, *kinds, autojunk=False)
        for theirs, ours, size in matcher.get_matching_blocks():
            yield from zip(
                their_events[theirs : theirs + size], our_events[ours : ours + size], strict=True
            )

    def _of_answers(self) -> list[Difference]:
        found = differences(self.theirs, self.ours, self.used)
        if not found or self.call.method not in WITHOUT_ORDER:
            return found
        self.used.add(f"order of {self.call.method}")
        return differences(sorted_by_name(self.theirs), sorted_by_name(self.ours), self.used)


class Replay:
    """Plays calls to a server whose tables lie in a folder."""

    def __init__(self, served: ServedMetastore, client: WireClient, folder: Path) -> None:
        self._served = served
        self._client = client
        self._folder = folder
        self._last = self._event_id()

    def play(self, call: RecordedCall) -> Outcome:
        prepare = PREPARATIONS.get(call.number)
        if prepare is not None:
            prepare(self._served)
        prepared = tuple(self._logged())
        ours = self._client.call(call.method, self._moved(request_of(call), call))
        rows = recorded_events().get(call.number, ())
        return Outcome(
            call,
            theirs=self._moved(recorded_answer(call), call),
            ours=ours,
            their_events=tuple(self._moved(row, call) for row in rows),
            our_events=tuple(self._logged()) if call.has_log else (),
            prepared_events=prepared,
        )

    def _event_id(self) -> int:
        arguments = hive_arguments("get_current_notificationEventId")
        found: int = self._client.call("get_current_notificationEventId", arguments).eventId
        return found

    def _logged(self) -> Iterator[dict[str, Any]]:
        """What was logged since, as a client of the log reads it."""
        request = hive.NotificationEventRequest(lastEvent=self._last)
        arguments = hive_arguments("get_next_notification", rqst=request)
        for event in self._client.call("get_next_notification", arguments).events:
            self._last = event.eventId
            yield event_fields(event)

    def _moved(self, value: Any, call: RecordedCall) -> Any:
        """With locations below the test's own folder."""
        if isinstance(value, str):
            if value == MISSING and FROM_HERE_LISTED < call.number <= TO_HERE_LISTED:
                return THERE
            for outside, inside in INSIDE.items():
                value = value.replace(outside, inside)
            return value.replace("/warehouse/golden", f"{self._folder}/warehouse")
        if isinstance(value, Thrown):
            return Thrown(value.cls, self._moved(value.message, call))
        if isinstance(value, hive.NotificationEvent):
            return self._moved(event_fields(value), call)
        if isinstance(value, Struct):
            moved = {name: self._moved(item, call) for name, item in vars(value).items()}
            return type(value)(**moved)
        if isinstance(value, list):
            return [self._moved(item, call) for item in value]
        if isinstance(value, dict):
            return {key: self._moved(item, call) for key, item in value.items()}
        return value


def replayed(folder: Path, apart: Sequence[int]) -> list[Outcome]:
    """Every recorded call in order, each recording on a server of its own, as those apart."""
    main = recorded_calls()
    return [
        *_played(folder / "main", [call for call in main if call.number not in apart]),
        *_played(folder / "apart", [call for call in main if call.number in apart]),
        *_played(folder / "more", recorded_calls(MORE)),
        *_played(folder / "more42", recorded_calls(MORE_42)),
    ]


def _played(folder: Path, calls: Sequence[RecordedCall]) -> Iterator[Outcome]:
    folder.mkdir()
    beside = CompactorSettings(has_hive_workers=True)  # as the recorded metastores had
    with (
        served_metastore(folder, compactor=beside) as served,
        WireClient(served.port) as client,
    ):
        replay = Replay(served, client, folder)
        for call in calls:
            yield replay.play(call)


@cache
def recorded_events() -> Mapping[int, Sequence[dict[str, Any]]]:
    """The rows of the log that each call caused."""
    events = defaultdict(list)
    for row in lines("notifications-4.0.1.jsonl.gz"):
        fields = {name: item for name, item in row.items() if name not in ("call", "method")}
        events[row["call"]].append(fields | {"message": message_of(row["message"])})
    for row in lines(MORE_42):
        events[row["n"]].extend(row.get("events", ()))
    return events


def recorded_answer(call: RecordedCall) -> Any:
    if call.response:
        return answer_in(call.response)
    body = bodies()[call.number]
    if "error" in body:
        return Thrown(CLOSED, body["error"]["message"])
    return struct_of(body["result"])


def hive_arguments(name: str, **given: Any) -> Struct:
    return method(name).arguments(**given)


def _drop_acid0(served: ServedMetastore) -> None:
    """Hive refused this table, which 80 makes here; no later answer has it."""
    served.metastore.drop_table("gdb", "acid0")


def _take_a_lock_id(served: ServedMetastore) -> None:
    """The call before used up a lock id in Hive, and does not here."""
    free = objects.request(objects.component("elsewhere"))
    served.metastore.unlock(served.metastore.lock(free).lock_id)


def _count_on(served: ServedMetastore) -> None:
    """Between 554 and 555 transactions ran that were not recorded (lock-matrix, write-conflict)."""
    served.metastore.seed_txn_id(TxnId(866))
    database = open_database(served.database_url)
    with database.transaction(write=True) as connection:
        for statement in (
            update(NEXT_LOCK_ID).values(NL_NEXT=775),
            update(NEXT_WRITE_ID).where(NEXT_WRITE_ID.c.NWI_TABLE == "acid1").values(NWI_NEXT=40),
            update(NEXT_WRITE_ID).where(NEXT_WRITE_ID.c.NWI_TABLE == "p1").values(NWI_NEXT=218),
            update(NOTIFICATION_SEQUENCE).values(NEXT_EVENT_ID=1885),
        ):
            connection.execute(statement)
    database.close()


def _make_a_replica(served: ServedMetastore) -> None:
    """What a load tells is taken by a replica only; Hive takes it from anybody."""
    database = served.metastore.get_database("gdb")
    parameters = {**database.parameters, TARGET_FOR: "gdb", OPENED: "true"}
    served.metastore.alter_database("gdb", replace(database, parameters=parameters))


def _end_the_replica(served: ServedMetastore) -> None:
    database = served.metastore.get_database("gdb")
    parameters = {k: v for k, v in database.parameters.items() if k not in (TARGET_FOR, OPENED)}
    served.metastore.alter_database("gdb", replace(database, parameters=parameters))


def _queue_nope(served: ServedMetastore) -> None:
    """591 queued a compaction of a table that is not there, which is refused here: now it is."""
    objects.new_table(served.metastore, "gdb", "nope")
    served.metastore.compact(
        CompactionRequest(target=Target("gdb", "nope"), type=CompactionType.MAJOR)
    )


def _queue_bogus(served: ServedMetastore) -> None:
    """592 queued one of a partition that is not there; so another stands for it (MISSING)."""
    day, hour = (part.partition("=")[2] for part in THERE.split("/"))
    served.metastore.add_partitions("gdb", "p1", [objects.partition("gdb", "p1", day, hour)])
    served.metastore.compact(
        CompactionRequest(target=Target("gdb", "p1", THERE), type=CompactionType.MAJOR)
    )


def _drop_what_was_queued(served: ServedMetastore) -> None:
    """As before 592 and 593."""
    served.metastore.drop_table("gdb", "nope")
    served.metastore.drop_partitions("gdb", "p1", [THERE])


PREPARATIONS: dict[int, Callable[[ServedMetastore], None]] = {
    81: _drop_acid0,
    491: _take_a_lock_id,
    517: _make_a_replica,
    530: _end_the_replica,
    592: _queue_nope,
    593: _queue_bogus,
    615: _drop_what_was_queued,
    547: _take_a_lock_id,
    555: _count_on,
}
"""What is done before a call, with its reason."""
