"""The tables of structs: each fits its record and its struct, and what goes out comes back."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import pkgutil
import types
import typing
from importlib import import_module
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TTransport import TMemoryBuffer

from hms_bridge import wire
from hms_bridge.errors import InvalidObjectError, MetaError
from hms_bridge.model.lock import DataOperation, LockComponent, LockResponse
from hms_bridge.model.target import Scope
from hms_bridge.wire import convert_catalog, convert_lock
from hms_bridge.wire.fields import Layout, both_ways
from hms_bridge.wire.structs import Struct, hive

MODULES = tuple(
    import_module(f"{wire.__name__}.{module.name}")
    for module in pkgutil.iter_modules(wire.__path__)
    if module.name.startswith("convert_")
)


def _layouts() -> dict[str, Layout[Any]]:
    """By struct: what each room of conversions declares as a table."""
    found = {}
    for module in MODULES:
        for value in vars(module).values():
            for way in value if isinstance(value, tuple) else (value,):
                layout = getattr(way, "__self__", way)
                if isinstance(layout, Layout):
                    found[layout._struct] = layout
    return found


LAYOUTS = _layouts()
UNSENT = {DataOperation.UNSET, DataOperation.COMPACT}
"""Operations that no request names."""


def _values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field, so that none of them stands for another: no empty text, no 0."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return st.one_of([_values(kind) for kind in inner])
    if origin is tuple:
        return st.lists(_values(inner[0]), min_size=1, max_size=3).map(tuple)
    if origin is frozenset:
        return st.frozensets(_values(inner[0]), max_size=3)
    if origin is collections.abc.Mapping:
        return st.dictionaries(_values(inner[0]), _values(inner[1]), max_size=2)
    kind = getattr(hint, "__supertype__", hint)
    if dataclasses.is_dataclass(kind):
        return _records(kind)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return st.sampled_from([member for member in kind if member not in UNSENT])
    return {
        types.NoneType: st.none(),
        bool: st.booleans(),
        int: st.integers(1, 2**31 - 1),
        str: st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True),
    }[kind]


def _records(record: type) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(record)
    fields = {f.name: f for f in dataclasses.fields(record)}
    given_ones = {
        name: _values(hints[name]) for name in fields if name not in ("sent", "creation", "sources")
    }
    if record is LockComponent:
        given_ones["scope"] = _records(Scope).filter(lambda scope: scope.database is not None)
    return st.builds(record, **given_ones)


def _over_the_wire(struct: Struct) -> Struct:
    buffer = TMemoryBuffer()
    struct.write(TBinaryProtocolAccelerated(buffer))
    found = type(struct)()
    found.read(TBinaryProtocolAccelerated(TMemoryBuffer(buffer.getvalue())))
    return found


@pytest.mark.parametrize("name", LAYOUTS)
@settings(max_examples=25)
@given(data=st.data())
def test_what_is_sent_comes_back(name: str, data: st.DataObject) -> None:
    layout = LAYOUTS[name]
    record = data.draw(_records(layout._record))
    found = layout.values_of(_over_the_wire(layout.to_struct(record)))
    names = [name.partition(".")[0] for name in layout._names]
    expected = {field: getattr(record, field) for field in names}
    for field in {"agent", "pool_name"} & found.keys():
        # Hive has a word for none.
        expected[field] = expected[field] or found[field]
    if name == "CompactionResponse":
        assume(record.is_accepted == (record.id is not None))
    if name == "HeartbeatTxnRangeResponse":
        expected = {field: tuple(sorted(set(ids))) for field, ids in expected.items()}
    assert found == expected


def test_the_conversions_are_tables() -> None:
    assert len(LAYOUTS) > 30


@pytest.mark.parametrize(
    ("struct", "entries"),
    [
        ("LockResponse", {"lock_id": "lockid", "no_such_field": "state"}),
        ("LockResponse", {"lock_id": "lockid", "state": "noSuchField"}),
    ],
)
def test_a_table_that_does_not_fit_is_an_error(struct: str, entries: dict[str, str]) -> None:
    with pytest.raises(TypeError, match=r"table of LockResponse: no field no_?[sS]uch_?[fF]ield"):
        Layout(LockResponse, struct, entries).require_fit()


def test_a_refusal_names_struct_and_field() -> None:
    with pytest.raises(MetaError, match=r"^LockComponent\.dbname was not sent or is empty; set"):
        convert_lock.lock_component_from_struct(hive.LockComponent(type=1, level=1))
    with pytest.raises(MetaError, match=r"^LockComponent\.type is 9, which is no lock type; send"):
        convert_lock.lock_request_from_struct(
            hive.LockRequest(component=[hive.LockComponent(type=9, level=1, dbname="d")])
        )
    with pytest.raises(InvalidObjectError, match=r"^Table\.tableName was not sent"):
        convert_catalog.table_from_struct(hive.Table(dbName="d"))
    with pytest.raises(MetaError, match="Table was not sent"):
        convert_catalog.table_from_struct(None)  # type: ignore[arg-type]


def test_a_table_is_made_for_a_struct_when_it_is_needed() -> None:
    to_struct, _ = both_ways(LockResponse, "NoSuchStruct", lock_id="lockid", state="state")
    with pytest.raises(AttributeError, match="no thrift struct is named NoSuchStruct"):
        to_struct(LockResponse(lock_id=1, state=1))  # type: ignore[arg-type]
