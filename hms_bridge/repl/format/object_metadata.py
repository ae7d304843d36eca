"""`_metadata`: a database, a function, or a table with partitions, as a dump carries them.

One JSON object whose first key is ``version`` and whose values are texts; objects are thrift JSON
inside such a text. Keys follow the order of Hive's enum, so files that real Hive wrote come back
byte for byte. What its load needs: docs/hive/replication.md §12.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hms_bridge.errors import ReplError
from hms_bridge.model.ids import EventId
from hms_bridge.model.properties import LAST_EVENT
from hms_bridge.repl.format.texts import compact_json

_VERSION = "0.2"
_BOOTSTRAP_EVENT = "replv2"

SCOPE_ALL = "all"
SCOPE_METADATA = "metadata"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplicationSpec:
    """What a dumped object is for.

    ``event_id`` None: of a bootstrap dump. ``last_event_id``: the object is at least as new as this
    source event. ``valid_write_ids`` stands for transactional tables in bootstrap dumps only.
    """

    scope: str = SCOPE_ALL
    event_id: EventId | None = None
    last_event_id: EventId
    is_replace: bool
    is_noop: bool = False
    valid_write_ids: str | None = None
    valid_txns: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TableMetadata:
    """A table and partitions of it; ``table`` and ``partitions`` are thrift JSON texts."""

    spec: ReplicationSpec
    table: str
    partitions: tuple[str, ...] = ()

    def format(self) -> str:
        """The file's text, as Hive writes it."""
        spec = self.spec
        fields: dict[str, object] = {
            "version": _VERSION,
            "repl.scope": spec.scope,
            "repl.event.id": _BOOTSTRAP_EVENT if spec.event_id is None else str(spec.event_id),
            LAST_EVENT: str(spec.last_event_id),
            "repl.noop": _boolean(spec.is_noop),
            "repl.is.replace": _boolean(spec.is_replace),
        }
        if spec.valid_write_ids is not None:
            fields["repl.valid.writeid.list"] = spec.valid_write_ids
        if spec.valid_txns is not None:
            fields["repl.valid.txnid.list"] = spec.valid_txns
        fields["table"] = self.table
        fields["partitions"] = list(self.partitions)
        return compact_json(fields)

    @classmethod
    def parse(cls, text: str, path: str = "_metadata") -> TableMetadata:
        """Read the file's text. Raises ReplError, naming ``path``, if it is malformed."""
        fields = _object(text, path)
        event = _optional(fields, "repl.event.id", path)
        partitions = fields.get("partitions") or []
        if not isinstance(partitions, list):
            raise _damaged(path, "partitions is no list")
        return cls(
            spec=ReplicationSpec(
                scope=_optional(fields, "repl.scope", path) or "none",
                event_id=None if event in (None, _BOOTSTRAP_EVENT) else EventId(_int(event, path)),
                last_event_id=EventId(_int(_optional(fields, LAST_EVENT, path) or "0", path)),
                is_replace=_is_true(fields, "repl.is.replace", path),
                is_noop=_is_true(fields, "repl.noop", path),
                valid_write_ids=_optional(fields, "repl.valid.writeid.list", path),
                valid_txns=_optional(fields, "repl.valid.txnid.list", path),
            ),
            table=_required(fields, "table", path),
            partitions=tuple(_as_text(partition, "partitions", path) for partition in partitions),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class DatabaseMetadata:
    """A database; ``database`` is thrift JSON. Its ``repl.last.id`` is one of its parameters."""

    database: str

    def format(self) -> str:
        """The file's text, as Hive writes it."""
        return compact_json({"version": _VERSION, "db": self.database})

    @classmethod
    def parse(cls, text: str, path: str = "_metadata") -> DatabaseMetadata:
        """Read the file's text. Raises ReplError, naming ``path``, if it is malformed."""
        return cls(database=_required(_object(text, path), "db", path))


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionMetadata:
    """A function at an event; ``function`` is thrift JSON, whose files are encoded references."""

    last_event_id: EventId
    function: str

    def format(self) -> str:
        """The file's text, as Hive writes it."""
        return compact_json(
            {
                "version": _VERSION,
                "repl.scope": SCOPE_ALL,
                LAST_EVENT: str(self.last_event_id),
                "function": self.function,
            }
        )

    @classmethod
    def parse(cls, text: str, path: str = "_metadata") -> FunctionMetadata:
        """Read the file's text. Raises ReplError, naming ``path``, if it is malformed."""
        fields = _object(text, path)
        return cls(
            last_event_id=EventId(_int(_required(fields, LAST_EVENT, path), path)),
            function=_required(fields, "function", path),
        )


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _damaged(path: str, what: str) -> ReplError:
    return ReplError(f"{path}: {what}; it is damaged or of another version: dump again")


def _object(text: str, path: str) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise _damaged(path, "no JSON") from None
    if not isinstance(fields, dict):
        raise _damaged(path, "no JSON object")
    version = _required(fields, "version", path)
    if version.partition(".")[0] != _VERSION.partition(".")[0]:
        raise _damaged(path, f"version {version!r} where {_VERSION} is known")
    return fields


def _as_text(value: object, key: str, path: str) -> str:
    if not isinstance(value, str):
        raise _damaged(path, f"{key} is no text")
    return value


def _required(fields: dict[str, Any], key: str, path: str) -> str:
    if key not in fields:
        raise _damaged(path, f"{key} is missing")
    return _as_text(fields[key], key, path)


def _optional(fields: dict[str, Any], key: str, path: str) -> str | None:
    value = fields.get(key)
    return None if value is None else _as_text(value, key, path)


def _is_true(fields: dict[str, Any], key: str, path: str) -> bool:
    return (_optional(fields, key, path) or "").lower() == "true"


def _int(text: str | None, path: str) -> int:
    try:
        return int(text or "")
    except ValueError:
        raise _damaged(path, f"{text!r} stands where an event id is due") from None
