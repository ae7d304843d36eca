"""Managed tables without transactions: a client that logs no INSERT event writes to them unseen.

Spark is one. No event then names the files, and a replica would never have them. So each dump
notes what their directories hold, and the next one compares: what is other, and is not what an
event between the two named, stops it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from changemanager.errors import ChangeManagerError
from changemanager.location import Location, Resolver
from changemanager.uri import decode_uri
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.event import EventType, NotificationEvent
from hms_bridge.model.partition_name import partition_name
from hms_bridge.repl.dump.event_source import EventRange, is_of, read_events
from hms_bridge.repl.dump.external import places_of
from hms_bridge.repl.format.data_tree import visible_files
from hms_bridge.repl.format.event_payload import Payload
from hms_bridge.repl.format.hashed_texts import NotedTexts
from hms_bridge.repl.format.layout import DumpPaths
from hms_bridge.repl.format.passed_kinds import refusal
from hms_bridge.repl.format.side_texts import parsing
from hms_bridge.repl.format.texts import read_text_if_there
from hms_bridge.repl.lookup import if_there
from hms_bridge.repl.remedies import bring_anew

PLAIN_TABLES = "PLAIN_TABLES"
"""As a kind that may be let pass: writes to managed tables without transactions."""


_TEXT_BYTES_MAX = 256 << 20
_FORGETTING = frozenset(
    {
        EventType.DROP_TABLE.value,
        EventType.DROP_PARTITION.value,
        EventType.ALTER_PARTITION.value,
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlainPlace:
    """Hashes of the data files of a table or partition: by path, length and time (empty: only names
    are known), and by name."""

    files: str
    names: str


PlainPlaces = Mapping[str, PlainPlace]
"""By ``table`` or ``table/partition``."""


def plain_places(source: Metastore, resolve: Resolver, tables: Iterable[Table]) -> PlainPlaces:
    """What the directories of plain managed tables hold now."""
    return {
        name: _noted_files(resolve(location))
        for table in tables
        if not (table.is_transactional or table.is_external or table.is_any_view)
        for name, location in _locations(source, table)
    }


def write_plain(texts: NotedTexts, places: PlainPlaces) -> None:
    """Note them in a new dump; nothing for none."""
    if places:
        fields = {name: [place.files, place.names] for name, place in places.items()}
        texts.write({texts.paths.plain_tables: json.dumps(fields) + "\n"})


def read_plain(resolve: Resolver, paths: DumpPaths) -> PlainPlaces:
    """What an earlier dump noted; none if it did not, as Hive's. Raises ReplError if damaged."""
    text = read_text_if_there(resolve(paths.plain_tables), _TEXT_BYTES_MAX)
    with parsing("hashes of tables", paths.plain_tables, "dump --bootstrap"):
        return {
            str(name): PlainPlace(files=str(files), names=str(names))
            for name, (files, names) in json.loads(text or "{}").items()
        }


def require_reported(
    source: Metastore, database: str, before: PlainPlaces, now: PlainPlaces, wanted: EventRange
) -> None:
    """Raises ReplError for a place that changed between two dumps and is not as an event said."""
    known = dict(before)
    if not now:
        return
    for event in read_events(source, wanted):
        if is_of(event, database):
            _follow(event, known)
    for name, place in now.items():
        noted = known.get(name)
        # Nothing to compare with: it is new, or an event changed it without naming files.
        if noted is None or (place.names == noted.names and noted.files in ("", place.files)):
            continue
        raise refusal(
            f"database {database}",
            PLAIN_TABLES,
            f"a write to {name}, a managed table without transactions, of which no event tells "
            "(Spark logs none),",
            bring_anew(database, [name.partition("/")[0]]),
        )


def _follow(event: NotificationEvent, known: dict[str, PlainPlace]) -> None:
    """What an event says of files is known from then on; what it changes unsaid is not."""
    name = (event.table_name or "").lower()
    if event.type in (EventType.ALTER_TABLE.value, EventType.ALTER_PARTITIONS.value):
        payload = Payload.of(event)
        if payload.is_true("isTruncateOp") or _is_rename(event, payload):
            _forget(known, name)
    elif event.type in _FORGETTING:
        _forget(known, name)
    elif event.type in (EventType.CREATE_TABLE.value, EventType.ADD_PARTITION.value):
        for place, files in _reported(event):
            known[place] = PlainPlace(files="", names=_hash(files))


def _forget(known: dict[str, PlainPlace], table: str) -> None:
    for name in [place for place in known if place == table or place.startswith(f"{table}/")]:
        del known[name]


def _is_rename(event: NotificationEvent, payload: Payload) -> bool:
    if event.type != EventType.ALTER_TABLE.value:
        return False
    before, after = payload.altered_tables()
    return before.full_name != after.full_name


def _reported(event: NotificationEvent) -> Iterator[tuple[str, list[str]]]:
    payload = Payload.of(event)
    table = payload.table()
    if event.type == EventType.CREATE_TABLE.value:
        if not table.is_partitioned:
            yield table.name, _paths(payload, payload.texts("files"))
        return
    listed = {
        str(entry.get("partitionName")): entry.get("files") or []
        for entry in payload.fields.get("partitionFiles") or []
        if isinstance(entry, dict)
    }
    for partition in payload.partitions():
        name = partition_name(table.partition_columns, partition.values)
        yield f"{table.name}/{name}", _paths(payload, listed.get(name, ()))


def _paths(payload: Payload, files: Iterable[object]) -> list[str]:
    try:
        return [decode_uri(str(uri)).uri.rpartition("/")[2] for uri in files if uri]
    except ChangeManagerError as error:
        raise payload.wrong(str(error)) from error


def _locations(source: Metastore, table: Table) -> Iterator[tuple[str, str]]:
    for partition, location in if_there(places_of, source, table) or ():
        yield _place_name(table, partition), location


def _place_name(table: Table, partition: Partition | None) -> str:
    if partition is None:
        return table.name
    return f"{table.name}/{partition_name(table.partition_columns, partition.values)}"


def _noted_files(root: Location) -> PlainPlace:
    files = visible_files(root)
    return PlainPlace(
        files=_hash([f"{file.path} {file.size_bytes} {file.mtime_ms}" for file in files]),
        names=_hash([file.path.rpartition("/")[2] for file in files]),
    )


def _hash(texts: list[str]) -> str:
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()
