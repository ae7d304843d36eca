"""``python -m integration.recorded.record``: asks a real Hive 4.0.1 and a real Hive 4.2.0, each
newly made on PostgreSQL, what no recording had, and writes tests/golden/wire/more-*.jsonl.gz.

Hive 4.0.1 says what its methods answer; as it is shipped it logs no events. Hive 4.2.0 says what
events the same calls leave, and what four methods answer that came after 4.0.1.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hms_bridge.wire.generations import NEW
from hms_bridge.wire.methods import method
from hms_bridge.wire.structs import hive
from integration.recorded import (
    catalog_calls,
    other_calls,
    partition_calls,
    txn_calls,
    workload_calls,
)
from integration.recorded.objects import Asked
from integration.referees.hive_schema import HiveSchemas
from integration.referees.java_metastore import Flavour, JavaMetastore, flavour_42, flavour_401
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import Workplace, temporary_workplace
from tests.support.golden_fields import event_fields
from tests.support.golden_wire import (
    FOLDER,
    MORE,
    MORE_42,
    moved_message,
    read_message,
    request_bytes,
)
from tests.support.wire_answers import WireClient

SECTIONS: tuple[Callable[[Asked], None], ...] = (
    other_calls.server,
    catalog_calls.databases,
    catalog_calls.connectors,
    catalog_calls.tables,
    catalog_calls.constraints,
    partition_calls.partitions,
    partition_calls.statistics,
    other_calls.packages,
    other_calls.functions,
    other_calls.roles,
    other_calls.privileges,
    other_calls.schedules,
    other_calls.master_keys,
    workload_calls.plans,
    workload_calls.pools,
    workload_calls.triggers,
    workload_calls.mappings,
    workload_calls.activation,
    txn_calls.write_ids,
    txn_calls.replayed,
    txn_calls.statistics_of_a_view,
    txn_calls.compactions,
    txn_calls.compaction_metrics,
    txn_calls.cleanups,
)
"""In the order in which they are asked."""


@dataclass(frozen=True)
class Recording:
    """Which metastore is asked, whether its log is read, the number of the first call, and what is
    not asked."""

    name: str
    flavour: Callable[[], Flavour]
    logs: bool
    first: int
    lacks: frozenset[str] = frozenset()


RECORDINGS = (
    Recording(MORE, flavour_401, logs=False, first=1001, lacks=NEW["4.2"]),
    Recording(MORE_42, flavour_42, logs=True, first=2001),
)

IMPATIENT = {"hive.hmshandler.retry.interval": "10ms"}
"""Hive tries ten times what its database refuses, with two seconds between."""


class Recorder:
    """Asks, and keeps what was sent and what came, with the places that recordings have."""

    def __init__(self, recording: Recording, client: WireClient, places: Mapping[str, str]) -> None:
        self.rows: list[dict[str, Any]] = []
        self._section = ""
        self._recording = recording
        self._client = client
        self._places = places
        self._last = 0

    def record(self, asked: Asked) -> list[dict[str, Any]]:
        self._section = "objects"
        asked.make()
        for section in SECTIONS:
            self._section = section.__name__
            section(asked)
        return self.rows

    def send(self, name: str, /, **arguments: Any) -> Any:
        if name in self._recording.lacks:
            return None
        request = method(name).arguments(**arguments)
        sent = request_bytes(name, request)
        assert read_message(sent, type(request))[2] == request, f"{name} has no such field"
        answer = self._client.call(name, request)
        assert self._client.received, f"{name}: the connection was closed ({answer.message})"
        row = {
            "n": self._recording.first + len(self.rows),
            "section": self._section,
            "method": name,
            "req": _text(moved_message(sent, self._places)),
            "resp": _text(moved_message(self._client.received, self._places)),
        }
        events = [self._moved(event) for event in self._logged()]
        self.rows.append(row | ({"events": events} if events else {}))
        return answer

    def _logged(self) -> Iterator[dict[str, Any]]:
        if not self._recording.logs:
            return
        arguments = hive.NotificationEventRequest(lastEvent=self._last)
        request = method("get_next_notification").arguments(rqst=arguments)
        for event in self._client.call("get_next_notification", request).events:
            self._last = event.eventId
            yield event_fields(event)

    def _moved(self, event: Mapping[str, Any]) -> dict[str, Any]:
        text = json.dumps(event)
        for place, moved in self._places.items():
            text = text.replace(place, moved)
        found: dict[str, Any] = json.loads(text)
        return found


def recorded(
    recording: Recording, workplace: Workplace, schemas: HiveSchemas
) -> list[dict[str, Any]]:
    """Rows of the file, of a metastore that is made for it."""
    flavour = recording.flavour()
    database = schemas.database(flavour.version, "recorded")
    server = JavaMetastore(workplace, flavour, database=database, settings=IMPATIENT)
    warehouse, external = str(server.warehouse), str(server.external_warehouse)
    places = {warehouse: "/warehouse/golden", external: "/warehouse/golden-ext"}
    try:
        with WireClient(server.port) as client:
            recorder = Recorder(recording, client, places)
            return recorder.record(Asked(recorder.send, warehouse, external))
    finally:
        server.stop()


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def write(name: str, rows: list[dict[str, Any]]) -> None:
    """The same bytes of the same rows."""
    text = "".join(f"{json.dumps(row, separators=(',', ':'))}\n" for row in rows)
    (FOLDER / name).write_bytes(gzip.compress(text.encode(), mtime=0))


def main() -> None:
    """Write all recordings."""
    with temporary_workplace() as workplace:
        schemas = HiveSchemas(PostgreSql(workplace))
        for recording in RECORDINGS:
            rows = recorded(recording, workplace, schemas)
            write(recording.name, rows)
            print(f"{recording.name}: {len(rows)} calls")


if __name__ == "__main__":
    main()
