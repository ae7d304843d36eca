"""Payloads of dumped events: the JSON messages of the notification log.

Transaction events are read and written whole; of the others only what a load needs is read, and
unknown keys are let pass, as Hive does. Arrays of a commit need not be parallel: ``writeIds`` and
``databases`` have an entry for each directory written, the others one for each table or partition
(docs/hive/replication.md §16).
"""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hms_bridge.errors import ReplError
from hms_bridge.model.event import NotificationEvent
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.target import Target
from hms_bridge.model.txn import TxnToWriteId, WriteEvent

PAYLOAD_BYTES_MAX = 256 << 20
"""A message that unpacks to more than this is refused: it is no message of a metastore."""

_GZIP_FORMAT = "gzip(json-2.0)"
_FILE_SEPARATOR = "]"


def message_json(event: NotificationEvent) -> str:
    """The message of an event as plain JSON. Raises ReplError if it cannot be unpacked."""
    if event.message_format != _GZIP_FORMAT:
        return event.message
    try:
        packed = base64.b64decode(event.message, validate=True)
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
            # Not all at once: a small message may unpack to many gigabytes.
            plain = stream.read(PAYLOAD_BYTES_MAX + 1)
        if len(plain) > PAYLOAD_BYTES_MAX:
            raise ReplError(
                f"event {event.id}: its message unpacks to more than {PAYLOAD_BYTES_MAX} bytes"
            )
        return plain.decode()
    except (binascii.Error, OSError, EOFError, zlib.error, UnicodeDecodeError):
        raise ReplError(
            f"event {event.id} ({event.type}): its message is no {_GZIP_FORMAT} text"
        ) from None


@dataclass(frozen=True, kw_only=True, slots=True)
class Payload:
    """The fields of a JSON message, read with errors that name where it came from."""

    fields: dict[str, Any]
    where: str

    @classmethod
    def parse(cls, text: str | None, where: str) -> Payload:
        """Read a message. Raises ReplError if it is no JSON object."""
        try:
            fields = json.loads(text or "")
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            raise ReplError(f"{where}: the payload is no JSON object; it is damaged: dump again")
        return cls(fields=fields, where=where)

    def wrong(self, what: str) -> ReplError:
        """The error that says what is wrong with this payload."""
        return ReplError(f"{self.where}: {what}; the payload is damaged: dump again")

    def text(self, key: str) -> str:
        """A text that must be there."""
        value = self.fields.get(key)
        if not isinstance(value, str):
            raise self.wrong(f"{key} is no text")
        return value

    def number(self, key: str) -> int:
        """A whole number that must be there."""
        value = self.fields.get(key)
        # JSON's true is an int in Python.
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong(f"{key} is no number")
        return value

    def numbers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers; none if it is absent or null."""
        values = self._list(key)
        if not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
            raise self.wrong(f"{key} is no list of numbers")
        return tuple(values)

    def texts(self, key: str) -> tuple[str | None, ...]:
        """A list of texts and nulls; none if it is absent or null."""
        values = self._list(key)
        if not all(value is None or isinstance(value, str) for value in values):
            raise self.wrong(f"{key} is no list of texts")
        return tuple(values)

    def objects(self, key: str) -> tuple[dict[str, str], ...]:
        """A list of objects with text values, such as ``[{"p": "1"}]``."""
        values = self._list(key)
        for item in values:
            if not isinstance(item, dict) or not all(
                isinstance(value, str) for value in item.values()
            ):
                raise self.wrong(f"{key} is no list of partition values")
        return tuple(values)

    def partition_values(self, key: str) -> dict[str, str]:
        """An object with text values that must be there."""
        value = self.fields.get(key)
        if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
            raise self.wrong(f"{key} holds no partition values")
        return value

    def is_true(self, key: str) -> bool:
        """A boolean, or Hive's text of one; absent is false."""
        value = self.fields.get(key)
        return value is True or (isinstance(value, str) and value.lower() == "true")

    def _list(self, key: str) -> list[Any]:
        value = self.fields.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.wrong(f"{key} is no list")
        return value


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenTxnPayload:
    """Transactions that were opened. Hive writes either the list or the range."""

    txn_ids: tuple[TxnId, ...]
    timestamp_seconds: int = 0
    server: str = ""
    service_principal: str = ""
    is_range: bool = True

    def format(self) -> str:
        """Hive's JSON; a list where the ids have gaps, or where a list was read."""
        is_range = self.is_range and _is_run(self.txn_ids)
        return _dumps(
            {
                "txnIds": None if is_range else list(self.txn_ids),
                "timestamp": self.timestamp_seconds,
                "fromTxnId": self.txn_ids[0] if is_range else None,
                "toTxnId": self.txn_ids[-1] if is_range else None,
                "server": self.server,
                "servicePrincipal": self.service_principal,
            }
        )

    @classmethod
    def parse(cls, text: str | None, where: str, count_max: int = 1_000_000) -> OpenTxnPayload:
        """Read Hive's JSON. Raises ReplError for more than ``count_max`` ids."""
        payload = Payload.parse(text, where)
        ids: Sequence[int] = payload.numbers("txnIds")
        is_range = not ids
        if is_range:
            first, last = payload.number("fromTxnId"), payload.number("toTxnId")
            # Each id of the range becomes one in memory: a forged range would fill it.
            if not 0 <= last - first < count_max:
                raise payload.wrong(f"the transactions {first} to {last} are no sensible range")
            ids = range(first, last + 1)
        return cls(
            txn_ids=tuple(TxnId(txn_id) for txn_id in ids),
            timestamp_seconds=_timestamp(payload),
            server=_or_empty(payload, "server"),
            service_principal=_or_empty(payload, "servicePrincipal"),
            is_range=is_range,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class AllocWriteIdPayload:
    """Write ids of one table that transactions were given."""

    database_name: str
    table_name: str
    allocated: tuple[TxnToWriteId, ...]
    timestamp_seconds: int = 0
    server: str = ""
    service_principal: str = ""

    def format(self) -> str:
        """Hive's JSON."""
        return _dumps(
            {
                "server": self.server,
                "servicePrincipal": self.service_principal,
                "dbName": self.database_name,
                "tableName": self.table_name,
                "txnIdList": [pair.txn_id for pair in self.allocated],
                "writeIdList": [pair.write_id for pair in self.allocated],
                "timestamp": self.timestamp_seconds,
            }
        )

    @classmethod
    def parse(cls, text: str | None, where: str) -> AllocWriteIdPayload:
        """Read Hive's JSON."""
        payload = Payload.parse(text, where)
        txn_ids, write_ids = payload.numbers("txnIdList"), payload.numbers("writeIdList")
        if len(txn_ids) != len(write_ids):
            raise payload.wrong(f"{len(txn_ids)} transactions have {len(write_ids)} write ids")
        return cls(
            database_name=payload.text("dbName").lower(),
            table_name=payload.text("tableName").lower(),
            allocated=tuple(
                TxnToWriteId(txn_id=TxnId(txn_id), write_id=WriteId(write_id))
                for txn_id, write_id in zip(txn_ids, write_ids, strict=True)
            ),
            timestamp_seconds=_timestamp(payload),
            server=_or_empty(payload, "server"),
            service_principal=_or_empty(payload, "servicePrincipal"),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitTxnPayload:
    """A commit, and what it wrote: one entry of ``writes`` for each table or partition.

    ``write_ids`` and ``databases`` are kept as they were read; None stands for null.
    """

    txn_id: TxnId
    timestamp_seconds: int = 0
    server: str = ""
    service_principal: str = ""
    write_ids: tuple[WriteId, ...] = ()
    databases: tuple[str, ...] = ()
    writes: tuple[WriteEvent, ...] | None = None

    def format(self) -> str:
        """Hive's JSON."""
        writes = self.writes
        return _dumps(
            {
                "txnid": self.txn_id,
                "timestamp": self.timestamp_seconds,
                "server": self.server,
                "servicePrincipal": self.service_principal,
                "writeIds": list(self.write_ids),
                "databases": list(self.databases),
                "tables": None if writes is None else [write.target.table for write in writes],
                "partitions": None if writes is None else [write.partition for write in writes],
                "tableObjs": None if writes is None else [write.table_object for write in writes],
                "partitionObjs": (
                    None if writes is None else [write.partition_object for write in writes]
                ),
                "files": (
                    None
                    if writes is None
                    else [_FILE_SEPARATOR.join(write.files) for write in writes]
                ),
            }
        )

    @classmethod
    def parse(cls, text: str | None, where: str) -> CommitTxnPayload:
        """Read Hive's JSON. Entries are matched from the end of ``writeIds`` and ``databases``:
        Hive puts the ids of directories without files before those of the written tables."""
        payload = Payload.parse(text, where)
        write_ids = tuple(WriteId(number) for number in payload.numbers("writeIds"))
        databases = tuple(name or "" for name in payload.texts("databases"))
        return cls(
            txn_id=TxnId(payload.number("txnid")),
            timestamp_seconds=_timestamp(payload),
            server=_or_empty(payload, "server"),
            service_principal=_or_empty(payload, "servicePrincipal"),
            write_ids=write_ids,
            databases=databases,
            writes=_parse_writes(payload, write_ids, databases),
        )


def _parse_writes(
    payload: Payload, write_ids: Sequence[WriteId], databases: Sequence[str]
) -> tuple[WriteEvent, ...] | None:
    if payload.fields.get("tables") is None:
        return None
    tables = payload.texts("tables")
    partitions, files = payload.texts("partitions"), payload.texts("files")
    objects, parts = payload.texts("tableObjs"), payload.texts("partitionObjs")
    count = len(tables)
    lengths = {len(partitions), len(files), len(objects)} | ({len(parts)} if parts else set())
    if lengths - {count} or len(write_ids) < count or len(databases) < count:
        raise payload.wrong("tables, partitions, objects and files are not parallel")
    return tuple(
        WriteEvent(
            write_id=write_ids[len(write_ids) - count + at],
            target=Target(
                databases[len(databases) - count + at].lower(),
                (tables[at] or "").lower(),
                partitions[at] or None,
            ),
            table_object=objects[at] or "",
            partition_object=parts[at] if parts else None,
            files=split_files(files[at]),
        )
        for at in range(count)
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class AbortTxnPayload:
    """An abort. The databases it wrote to are known from Hive 4 on."""

    txn_id: TxnId
    timestamp_seconds: int = 0
    server: str = ""
    service_principal: str = ""
    databases: tuple[str, ...] = ()
    write_ids: tuple[WriteId, ...] = ()

    def format(self) -> str:
        """Hive's JSON."""
        return _dumps(
            {
                "txnid": self.txn_id,
                "timestamp": self.timestamp_seconds,
                "server": self.server,
                "servicePrincipal": self.service_principal,
                "dbsUpdated": list(self.databases),
                "writeIds": list(self.write_ids),
            }
        )

    @classmethod
    def parse(cls, text: str | None, where: str) -> AbortTxnPayload:
        """Read Hive's JSON."""
        payload = Payload.parse(text, where)
        return cls(
            txn_id=TxnId(payload.number("txnid")),
            timestamp_seconds=_timestamp(payload),
            server=_or_empty(payload, "server"),
            service_principal=_or_empty(payload, "servicePrincipal"),
            databases=tuple(name or "" for name in payload.texts("dbsUpdated")),
            write_ids=tuple(WriteId(number) for number in payload.numbers("writeIds")),
        )


def split_files(text: str | None) -> tuple[str, ...]:
    """The encoded URIs of one ``files`` entry (``]`` between them, blanks around it dropped)."""
    return tuple(part.strip() for part in (text or "").split(_FILE_SEPARATOR) if part.strip())


def _is_run(ids: Sequence[int]) -> bool:
    return bool(ids) and all(after == before + 1 for before, after in pairwise(ids))


def _timestamp(payload: Payload) -> int:
    value = payload.fields.get("timestamp")
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _or_empty(payload: Payload, key: str) -> str:
    value = payload.fields.get(key)
    return value if isinstance(value, str) else ""


def _dumps(fields: object) -> str:
    return json.dumps(fields, separators=(",", ":"))
