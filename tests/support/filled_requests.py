"""Thrift requests with something in every field."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from thrift.Thrift import TType

from hms_bridge.errors import AlreadyExistsError
from hms_bridge.model.catalog import Column, Database, Storage, Table
from hms_bridge.server.dispatch import Dispatcher
from hms_bridge.server.serve import dispatcher_of
from hms_bridge.wire.structs import Struct
from tests.support.served_metastore import ServedMetastore

DEPTH_MAX = 4
"""Of structs in structs: StorageDescriptor in Partition in a request, in arguments."""


def dispatcher_of_filled(served: ServedMetastore) -> Dispatcher:
    """Of a metastore that has a table of the name that requests are filled with."""
    storage = Storage(columns=(Column(name="c", type="int"),))
    keys = (Column(name="x", type="string"),)
    table = Table(database_name="x", name="x", storage=storage, partition_columns=keys)
    with suppress(AlreadyExistsError):
        served.metastore.create_database(Database(name="x"))
    with suppress(AlreadyExistsError):
        served.metastore.create_table(table)
    return dispatcher_of(served.metastore)


def with_one_text(struct: type[Struct], text: str, odd: str, number: int) -> Iterator[Struct]:
    """Filled ones, each with one odd text: an argument, or a field of a struct in one."""
    for path in _text_paths(struct, DEPTH_MAX - 1):
        whole = filled(struct, DEPTH_MAX, text, number)
        holder = whole
        for field in path[:-1]:
            holder = getattr(holder, field)
        was = getattr(holder, path[-1])
        setattr(holder, path[-1], [odd] if isinstance(was, list) else odd)
        yield whole


def _text_paths(struct: type[Struct], depth: int) -> Iterator[tuple[str, ...]]:
    for entry in filter(None, struct.thrift_spec):
        is_text = entry[1] == TType.STRING and entry[3] == "UTF8"
        is_list = entry[1] in (TType.LIST, TType.SET) and entry[3][:2] == (TType.STRING, "UTF8")
        if is_text or is_list:
            yield (entry[2],)
        elif entry[1] == TType.STRUCT and depth > 1:
            yield from ((entry[2], *inner) for inner in _text_paths(entry[3][0], depth - 1))


def filled(struct: type[Struct], depth: int, text: str, number: int) -> Struct:
    """With every field set down to a depth, where structs are empty."""
    if depth == 0:
        return struct()
    fields = {}
    for entry in filter(None, struct.thrift_spec):
        value = _value(entry[1], entry[3], depth - 1, text, number)
        if value is not None:
            fields[entry[2]] = value
    return struct(**fields)


def _value(kind: int, details: Any, depth: int, text: str, number: int) -> Any:
    if kind == TType.STRUCT:
        return filled(details[0], depth, text, number)
    if kind in (TType.LIST, TType.SET):
        item = _value(details[0], details[1], depth, text, number)
        return [] if item is None else [item]
    if kind == TType.MAP:
        return {}
    if kind == TType.STRING:
        return text if details == "UTF8" else text.encode()
    return {TType.BOOL: bool(number), TType.DOUBLE: float(number)}.get(kind, number)
