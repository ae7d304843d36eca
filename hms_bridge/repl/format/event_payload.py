"""Payloads of dumped events: the JSON messages of the notification log.

Transaction events are read and written whole; of the others only what a load needs is read, and
unknown keys are let pass, as Hive does. Arrays of a commit need not be parallel: ``writeIds`` and
``databases`` have an entry for each directory written, the others one for each table or partition
(docs/hive/replication.md §16).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self, TypedDict, TypeGuard

from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.event import NotificationEvent
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.target import Target
from hms_bridge.model.txn import TxnToWriteId, WriteEvent
from hms_bridge.repl.format.stored_message import event_text, message_json
from hms_bridge.repl.format.texts import compact_json
from hms_bridge.wire.object_json import partition_from_json, table_from_json

_FILE_SEPARATOR = "]"


class Message(ABC):
    """What the message of an event says."""

    __slots__ = ()

    @classmethod
    @abstractmethod
    def parse(cls, text: str | None, where: str) -> Self:
        """Read Hive's JSON. Raises ReplError, which begins with ``where``."""

    @classmethod
    def of(cls, event: NotificationEvent) -> Self:
        """Read the message of an event as its log has it. Raises ReplError."""
        return cls.parse(message_json(event), event_text(event))


@dataclass(frozen=True, kw_only=True, slots=True)
class Payload(Message):
    """The fields of a JSON message, read with errors that name where it came from."""

    fields: dict[str, Any]
    where: str

    @classmethod
    def parse(cls, text: str | None, where: str) -> Self:
        """Read any message. Raises ReplError if it is no JSON object."""
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
        if not _is_number(value):
            raise self.wrong(f"{key} is no number")
        return value

    def numbers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers; none if it is absent or null."""
        values = self._list(key)
        if not all(map(_is_number, values)):
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
        if not all(map(_are_texts, values)):
            raise self.wrong(f"{key} is no list of partition values")
        return tuple(values)

    def partition_values(self, key: str) -> dict[str, str]:
        """An object with text values that must be there."""
        value = self.fields.get(key)
        if not _are_texts(value):
            raise self.wrong(f"{key} holds no partition values")
        return value

    def table(self, key: str = "tableObjJson") -> Table:
        """A table that must be there. Raises InvalidObjectError for what is none."""
        return table_from_json(self.text(key))

    def partition(self, key: str) -> Partition:
        """A partition that must be there. Raises InvalidObjectError for what is none."""
        return partition_from_json(self.text(key))

    def partitions(self) -> list[Partition]:
        """The partitions of an event of several; of an old Hive some may be null."""
        return [partition_from_json(text) for text in self.partition_texts()]

    def partition_texts(self) -> list[str]:
        """The same as thrift JSON."""
        return [text for text in self.texts("partitionListJson") if text]

    def altered_tables(self) -> tuple[Table, Table]:
        """A table before and after its ALTER; they may have two names, in two databases."""
        return self.table("tableObjBeforeJson"), self.table("tableObjAfterJson")

    def altered_partitions(self) -> tuple[Partition, Partition] | None:
        """A partition before and after its ALTER. None: the event is of many, and has neither."""
        if "partitionObjBeforeJson" not in self.fields:
            return None
        return self.partition("partitionObjBeforeJson"), self.partition("partitionObjAfterJson")

    def altered(
        self, *, is_table: bool
    ) -> tuple[Table, Table | Partition, Table | Partition] | None:
        """The table of an ALTER_TABLE, else of an ALTER_PARTITION, and what was altered of it,
        before and after. None: the event is of many partitions, and says neither."""
        if is_table:
            before, after = self.altered_tables()
            return after, before, after
        partitions = self.altered_partitions()
        return None if partitions is None else (self.table(), *partitions)

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


class _Stamp(TypedDict):
    timestamp_seconds: int
    server: str
    service_principal: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TxnMessage(Message):
    """When and by which server something was done to transactions."""

    timestamp_seconds: int = 0
    server: str = ""
    service_principal: str = ""

    @abstractmethod
    def format(self) -> str:
        """The message without blanks, as Hive's JSONMessageEncoder names its fields."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenTxnPayload(TxnMessage):
    """Transactions that were opened. Hive writes either the list or the range."""

    txn_ids: tuple[TxnId, ...]
    is_range: bool = True

    def format(self) -> str:
        """Hive's JSON; a list where the ids have gaps, or where a list was read."""
        is_range = self.is_range and _is_run(self.txn_ids)
        return compact_json(
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
    def parse(cls, text: str | None, where: str, count_max: int = 1_000_000) -> Self:
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
            **_stamp(payload),
            is_range=is_range,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class AllocWriteIdPayload(TxnMessage):
    """Write ids of one table that transactions were given."""

    database_name: str
    table_name: str
    allocated: tuple[TxnToWriteId, ...]

    def format(self) -> str:
        """AllocWriteIdMessage: the lists of transactions and write ids are parallel."""
        return compact_json(
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
    def parse(cls, text: str | None, where: str) -> Self:
        """Raises ReplError, naming ``where``, unless both lists are equally long."""
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
            **_stamp(payload),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitTxnPayload(TxnMessage):
    """A commit, and what it wrote: one entry of ``writes`` for each table or partition.

    ``write_ids`` and ``databases`` are kept as they were read; None stands for null.
    """

    txn_id: TxnId
    write_ids: tuple[WriteId, ...] = ()
    databases: tuple[str, ...] = ()
    writes: tuple[WriteEvent, ...] | None = None

    def format(self) -> str:
        """CommitTxnMessage: parallel lists, one place for each write; null for no lists."""

        def of_each(field: Callable[[WriteEvent], str | None]) -> list[str | None] | None:
            return None if self.writes is None else [field(write) for write in self.writes]

        return compact_json(
            {
                "txnid": self.txn_id,
                "timestamp": self.timestamp_seconds,
                "server": self.server,
                "servicePrincipal": self.service_principal,
                "writeIds": list(self.write_ids),
                "databases": list(self.databases),
                "tables": of_each(lambda write: write.target.table),
                "partitions": of_each(lambda write: write.partition),
                "tableObjs": of_each(lambda write: write.table_object),
                "partitionObjs": of_each(lambda write: write.partition_object),
                "files": of_each(lambda write: _FILE_SEPARATOR.join(write.files)),
            }
        )

    @classmethod
    def parse(cls, text: str | None, where: str) -> Self:
        """Read Hive's JSON. Entries are matched from the end of ``writeIds`` and ``databases``:
        Hive puts the ids of directories without files before those of the written tables."""
        payload = Payload.parse(text, where)
        write_ids = tuple(WriteId(number) for number in payload.numbers("writeIds"))
        databases = tuple(name or "" for name in payload.texts("databases"))
        return cls(
            txn_id=TxnId(payload.number("txnid")),
            **_stamp(payload),
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
class AbortTxnPayload(TxnMessage):
    """An abort. The databases it wrote to are known from Hive 4 on."""

    txn_id: TxnId
    databases: tuple[str, ...] = ()
    write_ids: tuple[WriteId, ...] = ()

    def format(self) -> str:
        """AbortTxnMessage, with its databases and write ids."""
        return compact_json(
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
    def parse(cls, text: str | None, where: str) -> Self:
        """Raises ReplError, naming ``where``, if it is damaged."""
        payload = Payload.parse(text, where)
        return cls(
            txn_id=TxnId(payload.number("txnid")),
            **_stamp(payload),
            databases=tuple(name or "" for name in payload.texts("dbsUpdated")),
            write_ids=tuple(WriteId(number) for number in payload.numbers("writeIds")),
        )


def split_files(text: str | None) -> tuple[str, ...]:
    """The encoded URIs of one ``files`` entry (``]`` between them, blanks around it dropped)."""
    return tuple(part.strip() for part in (text or "").split(_FILE_SEPARATOR) if part.strip())


def _is_number(value: object) -> TypeGuard[int]:
    """JSON's true is an int in Python."""
    return isinstance(value, int) and not isinstance(value, bool)


def _are_texts(value: object) -> TypeGuard[dict[str, str]]:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _is_run(ids: Sequence[int]) -> bool:
    return bool(ids) and all(after == before + 1 for before, after in pairwise(ids))


def _stamp(payload: Payload) -> _Stamp:
    """What an old Hive does not write is empty."""
    seconds = payload.fields.get("timestamp")
    server, principal = (payload.fields.get(key) for key in ("server", "servicePrincipal"))
    return _Stamp(
        timestamp_seconds=seconds if _is_number(seconds) else 0,
        server=server if isinstance(server, str) else "",
        service_principal=principal if isinstance(principal, str) else "",
    )
