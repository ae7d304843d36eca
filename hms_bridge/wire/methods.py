"""Every method of the union of Hive's interfaces, 2 to 4."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from fb303 import FacebookService
from hive_metastore import ThriftHiveMetastore
from thrift.Thrift import TType

from hms_bridge.wire.additions import METHODS, THROWS, Field, MethodAddition
from hms_bridge.wire.generations import GONE
from hms_bridge.wire.structs import Spec, Struct, hive, set_spec

SUCCESS = "success"

OLDER_METHODS = tuple(sorted(GONE["3.1"]))
"""Methods of Hive 2 that Hive 3 dropped, and so are not in the published bindings; refused."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method's structs. ``result`` is None for a oneway method, which has no answer;
    ``exceptions`` has the declared exceptions with the result's field for each."""

    name: str
    arguments: type[Struct]
    result: type[Struct] | None
    exceptions: dict[str, str]

    @property
    def is_void(self) -> bool:
        """Whether success carries no value."""
        return self.result is not None and not _has_success(self.result)


@cache
def all_names() -> tuple[str, ...]:
    """Every method of every generation, sorted."""
    published = {name for name in dir(ThriftHiveMetastore.Iface) if not name.startswith("_")}
    return tuple(sorted(published | {addition.name for addition in METHODS} | set(OLDER_METHODS)))


@cache
def method(name: str) -> Method:
    """The structs of a method. Raises KeyError for one of OLDER_METHODS, or for none."""
    addition = next((added for added in METHODS if added.name == name), None)
    if addition is not None:
        return _added_method(addition)
    for module in (ThriftHiveMetastore, FacebookService):
        arguments: Any = getattr(module, f"{name}_args", None)
        if arguments is not None:
            result: Any = getattr(module, f"{name}_result", None)
            return _method(
                name,
                hive.own_spec(arguments.thrift_spec or ()),
                None
                if result is None
                else hive.own_spec(result.thrift_spec or (), THROWS.get(name, ())),
            )
    raise KeyError(name)


def _added_method(addition: MethodAddition) -> Method:
    returns = () if addition.returns is None else (Field(0, SUCCESS, addition.returns),)
    throws = tuple(
        Field(number, field, exception)
        for number, (field, exception) in enumerate(addition.throws, start=1)
    )
    return _method(
        addition.name,
        hive.spec_of_fields(addition.arguments),
        hive.spec_of_fields(returns + throws),
    )


def _method(name: str, arguments: Spec, result: Spec | None) -> Method:
    return Method(
        name=name,
        arguments=_class(f"{name}_args", arguments),
        result=None if result is None else _class(f"{name}_result", result),
        exceptions={
            entry[3][0].__name__: entry[2]
            for entry in result or ()
            if entry and entry[0] > 0 and entry[1] == TType.STRUCT
        },
    )


def _class(name: str, spec: Spec) -> type[Struct]:
    cls: type[Struct] = type(name, (Struct,), {})
    set_spec(cls, spec)
    return cls


def _has_success(result: type[Struct]) -> bool:
    return any(entry and entry[0] == 0 for entry in result.thrift_spec)
