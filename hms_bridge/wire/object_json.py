"""Catalog objects as texts: thrift's JSON protocol, field numbers as keys, without blanks.

Hive writes such texts into notification messages, dumps and TXN_WRITE_NOTIFICATION_LOG, and
needs them in exactly this form: ``{"1":{"str":"t"},"4":{"i32":0},"8":{"lst":["rec",0]}}``. A load
of a real Hive refuses a table without field 12 (its type), and storage without bucket and sort
columns (facts findings E8); the records always give them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from thrift.protocol.TJSONProtocol import TJSONProtocol
from thrift.Thrift import TException, TType
from thrift.transport.TTransport import TMemoryBuffer

from hms_bridge.errors import InvalidObjectError
from hms_bridge.model.catalog import Database, Partition, Table
from hms_bridge.wire.convert_catalog import (
    database_from_struct,
    database_to_struct,
    partition_from_struct,
    partition_to_struct,
    table_from_struct,
    table_to_struct,
)
from hms_bridge.wire.structs import Spec, Struct, hive

_TAGS = {
    TType.BOOL: "tf",
    TType.BYTE: "i8",
    TType.I16: "i16",
    TType.I32: "i32",
    TType.I64: "i64",
    TType.DOUBLE: "dbl",
    TType.STRING: "str",
    TType.STRUCT: "rec",
    TType.MAP: "map",
    TType.SET: "set",
    TType.LIST: "lst",
}
_SCALARS: dict[int, Callable[[Any], Any]] = {TType.BOOL: bool, TType.DOUBLE: float}


def table_to_json(table: Table, like: str | None = None) -> str:
    """A table's text. Fields of ``like`` (the text it was read from) that a record does not
    hold, such as access types, are kept (not with skewed locations, whose text is no JSON)."""
    return _to_json(table_to_struct(table), like)


def table_from_json(text: str) -> Table:
    """Raises InvalidObjectError for a text that is no table."""
    return table_from_struct(struct_from_json("Table", text))


def database_to_json(database: Database, like: str | None = None) -> str:
    """A database's text; ``like`` as for tables."""
    return _to_json(database_to_struct(database), like)


def database_from_json(text: str) -> Database:
    """Raises InvalidObjectError for a text that is no database."""
    return database_from_struct(struct_from_json("Database", text))


def partition_to_json(partition: Partition, like: str | None = None) -> str:
    """A partition's text; ``like`` as for tables."""
    return _to_json(partition_to_struct(partition), like)


def partition_from_json(text: str) -> Partition:
    """Raises InvalidObjectError for a text that is no partition."""
    return partition_from_struct(struct_from_json("Partition", text))


def struct_to_json(struct: Struct) -> str:
    """The text of any struct, e.g. a Function."""
    return _to_json(struct, None)


def struct_from_json(type_name: str, text: str) -> Struct:
    """Any struct, by its thrift name. Raises InvalidObjectError for a text that is none."""
    cls = getattr(hive, type_name)
    try:
        try:
            return _decode_struct(cls, json.loads(text))
        except json.JSONDecodeError:
            # Thrift writes lists as keys of maps (skewed locations), which JSON does not have.
            struct: Struct = cls()
            struct.read(TJSONProtocol(TMemoryBuffer(text.encode())))
            return struct
    except (TException, EOFError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise InvalidObjectError(
            f"no {type_name} in thrift's JSON form: {text[:200]!r}; check where it was read from"
        ) from error


def _to_json(struct: Struct, like: str | None) -> str:
    if _has_list_keys(struct):
        buffer = TMemoryBuffer()
        struct.write(TJSONProtocol(buffer))
        return str(buffer.getvalue().decode())
    fields = _encode_struct(struct, struct.thrift_spec)
    if like is not None:
        known = _encode_struct(struct_from_json(type(struct).__name__, like), struct.thrift_spec)
        held = _record_fields(struct)
        fields.update({key: value for key, value in known.items() if key not in held})
        fields = dict(sorted(fields.items(), key=lambda item: int(item[0])))
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def _record_fields(struct: Struct) -> frozenset[str]:
    """Numbers of the fields that our conversion sets, be it to None."""
    return frozenset(
        str(entry[0]) for entry in struct.thrift_spec if entry and entry[2] in vars(struct)
    )


def _has_list_keys(struct: Struct) -> bool:
    storage = struct.sd if isinstance(struct, (hive.Table, hive.Partition)) else None
    skew = storage.skewedInfo if storage is not None else None
    return bool(skew is not None and skew.skewedColValueLocationMaps)


def _encode_struct(struct: Struct, spec: Spec) -> dict[str, Any]:
    fields = {}
    for entry in spec:
        if entry:
            value = getattr(struct, entry[2])
            if value is not None:
                ttype = entry[1]
                fields[str(entry[0])] = {_TAGS[ttype]: _encode(value, ttype, entry[3])}
    return fields


def _encode(value: Any, ttype: int, arguments: Any) -> Any:
    if ttype == TType.STRING:
        if arguments != "BINARY":
            return value
        return base64.b64encode(value).decode().rstrip("=")
    if ttype == TType.STRUCT:
        return _encode_struct(value, arguments[1])
    if ttype in (TType.LIST, TType.SET):
        element, element_arguments, _ = arguments
        return [_TAGS[element], len(value),
                *(_encode(item, element, element_arguments) for item in value)]  # fmt: skip
    if ttype == TType.MAP:
        key, _, item, item_arguments, _ = arguments
        entries = {str(k): _encode(v, item, item_arguments) for k, v in value.items()}
        return [_TAGS[key], _TAGS[item], len(value), entries]
    return int(value) if ttype == TType.BOOL else value


def _decode_struct(cls: type[Struct], fields: dict[str, Any]) -> Struct:
    spec = cls.thrift_spec
    values = {}
    for key, tagged in fields.items():
        number = int(key)
        entry = spec[number] if number < len(spec) else None
        if entry is None or _TAGS[entry[1]] not in tagged:
            continue  # another generation's field
        values[entry[2]] = _decode(tagged[_TAGS[entry[1]]], entry[1], entry[3])
    return cls(**values)


def _decode(value: Any, ttype: int, arguments: Any) -> Any:
    if ttype == TType.STRING:
        if arguments != "BINARY":
            return str(value)
        return base64.b64decode(value + "=" * (-len(value) % 4))
    if ttype == TType.STRUCT:
        return _decode_struct(arguments[0], value)
    if ttype in (TType.LIST, TType.SET):
        element, element_arguments, _ = arguments
        items = [_decode(item, element, element_arguments) for item in value[2:]]
        return set(items) if ttype == TType.SET else items
    if ttype == TType.MAP:
        key, _, item, item_arguments, _ = arguments
        decode_key = str if key == TType.STRING else int
        return {decode_key(k): _decode(v, item, item_arguments) for k, v in value[3].items()}
    return _SCALARS.get(ttype, int)(value)
