"""Catalog objects as texts: thrift's JSON protocol, field numbers as keys, without blanks.

Hive writes such texts into notification messages, dumps and TXN_WRITE_NOTIFICATION_LOG, and
needs them in exactly this form: ``{"1":{"str":"t"},"4":{"i32":0},"8":{"lst":["rec",0]}}``. A load
of a real Hive refuses a table without field 12 (its type), and storage without bucket and sort
columns (docs/hive/metastore.md §20); the records always give them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from json.encoder import encode_basestring
from typing import Any

from thrift.protocol.TJSONProtocol import TJSONProtocol
from thrift.Thrift import TException, TType
from thrift.transport.TTransport import TMemoryBuffer

from hms_bridge.errors import InvalidObjectError
from hms_bridge.model.catalog import Database, Partition, SentFields, Table
from hms_bridge.wire.convert_catalog import (
    database_from_struct,
    database_to_struct,
    partition_from_struct,
    partition_to_struct,
    table_from_struct,
    table_to_struct,
)
from hms_bridge.wire.structs import Struct, hive

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
_NO_WRITE_ID = -1
_Writer = Callable[[Any], str]
_Plan = tuple[tuple[int, str, str, _Writer], ...]
"""Of each field: its number, its name, how its text begins, and what writes its value."""

_PLANS: dict[str, _Plan] = {}
_SCALARS: dict[int, Callable[[Any], Any]] = {TType.BOOL: bool, TType.DOUBLE: float}


def table_to_json(table: Table, like: str | None = None) -> str:
    """A table's text. Fields of ``like`` (the text it was read from) that a record does not
    hold, such as access types, are kept; so are those that a client sent with it."""
    return _to_json(table_to_struct(table), like, table.sent)


def table_from_json(text: str) -> Table:
    """Raises InvalidObjectError for a text that is no table."""
    return table_from_struct(struct_from_json("Table", text))


def database_to_json(database: Database, like: str | None = None) -> str:
    """A database's text; ``like`` as for tables."""
    return _to_json(database_to_struct(database), like, database.sent)


def database_from_json(text: str) -> Database:
    """Raises InvalidObjectError for a text that is no database."""
    return database_from_struct(struct_from_json("Database", text))


def partition_to_json(partition: Partition, like: str | None = None) -> str:
    """A partition's text; ``like`` as for tables."""
    return _to_json(partition_to_struct(partition), like, partition.sent)


def partition_from_json(text: str) -> Partition:
    """Raises InvalidObjectError for a text that is no partition."""
    return partition_from_struct(struct_from_json("Partition", text))


def struct_to_json(struct: Struct) -> str:
    """The text of any struct, e.g. a Function."""
    return _to_json(struct, None, None)


def sent_fields(struct: Struct, held: Struct, optional: Iterable[str]) -> SentFields:
    """How what a client sent differs from ``held``, the same object made of its record.

    ``optional`` are the fields that Hive leaves out where the client did.
    """
    texts, known = _field_texts(struct), _field_texts(held)
    return SentFields(
        others={number: text for number, text in texts.items() if number not in known},
        absent=frozenset(path for path in optional if _inner(struct, path) is None),
    )


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
    except (
        TException,
        EOFError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
    ) as error:
        raise InvalidObjectError(
            f"no {type_name} in thrift's JSON form: {text[:200]!r}; check where it was read from"
        ) from error


def _to_json(struct: Struct, like: str | None, sent: SentFields | None) -> str:
    if sent is not None:
        for path in sent.absent:
            _leave_out_if_empty(struct, path)
    fields = _field_texts(struct)
    if like is not None:
        held = {entry[0] for entry in struct.thrift_spec if entry and entry[2] in vars(struct)}
        known = _field_texts(struct_from_json(type(struct).__name__, like))
        fields.update({number: text for number, text in known.items() if number not in held})
    if sent is not None:
        fields = {**sent.others, **fields}
    return "{" + ",".join(text for _, text in sorted(fields.items())) + "}"


def _inner(struct: Struct | None, path: str) -> Any:
    value: Any = struct
    for name in path.split("."):
        value = None if value is None else getattr(value, name)
    return value


def _leave_out_if_empty(struct: Struct, path: str) -> None:
    """A field that a client left out stays out, unless the service gave it a value."""
    outer, _, name = path.rpartition(".")
    owner = _inner(struct, outer) if outer else struct
    value = None if owner is None else getattr(owner, name)
    is_empty = not any(vars(value).values()) if isinstance(value, Struct) else not value
    if owner is not None and (is_empty or value == _NO_WRITE_ID):
        setattr(owner, name, None)


def _plan(cls: type[Struct]) -> _Plan:
    """How to write the fields of a struct; made once."""
    name = cls.__name__
    if name not in _PLANS:
        _PLANS[name] = tuple(
            (entry[0], entry[2], f'"{entry[0]}":{{"{_TAGS[entry[1]]}":',
             _writer(entry[1], entry[3]))
            for entry in cls.thrift_spec
            if entry
        )  # fmt: skip
    return _PLANS[name]


def _field_texts(struct: Struct) -> dict[int, str]:
    texts = {}
    for number, name, start, write in _plan(type(struct)):
        value = getattr(struct, name)
        if value is not None:
            texts[number] = start + write(value) + "}"
    return texts


def _struct_text(struct: Struct) -> str:
    return "{" + ",".join(_field_texts(struct).values()) + "}"


def _writer(ttype: int, arguments: Any) -> _Writer:
    if ttype in (TType.LIST, TType.SET):
        return _list_writer(arguments[0], arguments[1])
    if ttype == TType.MAP:
        return _map_writer(*arguments[:4])
    if ttype == TType.STRING and arguments == "BINARY":
        return _binary_text
    return _SCALAR_WRITERS[ttype]


def _list_writer(element: int, arguments: Any) -> _Writer:
    tag, write = _TAGS[element], _writer(element, arguments)
    return lambda items: (
        f'["{tag}",{len(items)},{",".join(map(write, items))}]' if items else f'["{tag}",0]'
    )


def _map_writer(key: int, key_arguments: Any, item: int, item_arguments: Any) -> _Writer:
    start = f'["{_TAGS[key]}","{_TAGS[item]}",'
    write_item, write = _writer(item, item_arguments), _writer(key, key_arguments)
    # Numbers are keys in quotes; lists stay lists, as thrift has it.
    write_key = write if key in (TType.STRING, TType.LIST) else lambda k: f'"{write(k)}"'
    return lambda entries: (
        f"{start}{len(entries)},{{"
        + ",".join(f"{write_key(k)}:{write_item(v)}" for k, v in entries.items())
        + "}]"
    )


def _binary_text(value: bytes) -> str:
    return '"' + base64.b64encode(value).decode().rstrip("=") + '"'


_SCALAR_WRITERS: dict[int, _Writer] = {
    TType.BOOL: lambda value: "1" if value else "0",
    TType.BYTE: str,
    TType.I16: str,
    TType.I32: str,
    TType.I64: str,
    TType.DOUBLE: json.dumps,
    TType.STRING: encode_basestring,
    TType.STRUCT: _struct_text,
}


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
