"""Thrift structs: the published bindings plus Hive 4's additions, as classes of our own.

``hive.Table(tableName="t")`` makes one. The classes are derived from the ``thrift_spec`` tables
of the ``hive_metastore`` package and of :mod:`hms_bridge.wire.additions`; the package itself is
left as it is, so that other users of it in the same process see no difference. Two things differ
from generated code:

* A field that was not set reads as None, whatever default the interface declares for it. Java
  clients mean "unset" in many places where Python's generated code can only say "default"
  (LockComponent.isTransactional, CommitTxnRequest.exclWriteEnabled, …; docs/hive/metastore.md §4).
* Lists that are keys of maps are tuples, since lists cannot be hashed.
"""

from __future__ import annotations

from typing import Any, ClassVar, cast

from hive_metastore import ttypes as published_types
from thrift.protocol.TProtocol import TProtocolBase
from thrift.Thrift import TException, TType
from thrift.transport.TTransport import CReadableTransport

from hms_bridge.wire.additions import EXCEPTIONS, FIELDS, STRUCTS, Field

Spec = tuple[Any, ...]


class Struct:
    """A thrift struct; its own dictionary holds exactly the fields that were set."""

    thrift_spec: ClassVar[Spec] = ()

    def __init__(self, **fields: Any) -> None:
        self.__dict__ = fields

    # Only for the type checker: fields exist as class attributes with the value None.
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__} has no field {name}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and _set_fields(self) == _set_fields(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in _set_fields(self).items())
        return f"{type(self).__name__}({fields})"

    def read(self, protocol: TProtocolBase) -> None:
        """Read the fields; those of other generations are skipped."""
        if protocol._fast_decode is not None and isinstance(protocol.trans, CReadableTransport):
            protocol._fast_decode(self, protocol, [type(self), self.thrift_spec])
        else:
            protocol.readStruct(self, self.thrift_spec)

    def write(self, protocol: TProtocolBase) -> None:
        """Write the fields that were set."""
        if protocol._fast_encode is not None:
            protocol.trans.write(protocol._fast_encode(self, [type(self), self.thrift_spec]))
        else:
            protocol.writeStruct(self, self.thrift_spec)


class ThriftError(Struct, TException):  # type: ignore[misc]
    """A thrift exception; all of Hive's have one field, ``message``."""

    def __init__(self, **fields: Any) -> None:
        TException.__init__(self, fields.get("message"))
        self.__dict__ = fields

    __hash__ = TException.__hash__

    def __str__(self) -> str:
        return str(self.message)


def _set_fields(struct: object) -> dict[str, Any]:
    return {name: value for name, value in vars(struct).items() if value is not None}


_PRIMITIVES: dict[str, tuple[int, Any]] = {
    "bool": (TType.BOOL, None),
    "byte": (TType.BYTE, None),
    "i16": (TType.I16, None),
    "i32": (TType.I32, None),
    "i64": (TType.I64, None),
    "double": (TType.DOUBLE, None),
    "string": (TType.STRING, "UTF8"),
    "binary": (TType.STRING, "BINARY"),
}


class StructTypes:
    """Makes the class of a struct when it is asked for by name, and keeps it."""

    def __init__(self) -> None:
        self._references: dict[str, list[Any]] = {}

    def __getattr__(self, name: str) -> type[Struct]:
        return cast("type[Struct]", self.reference(name)[0])

    def reference(self, name: str) -> list[Any]:
        """``[class, spec]`` as specs refer to a struct; shared, since structs may be recursive.

        Raises AttributeError for a name that no interface has.
        """
        if name not in self._references:
            published: Any = getattr(published_types, name, None)
            if not (hasattr(published, "thrift_spec") or name in STRUCTS or name in EXCEPTIONS):
                raise AttributeError(f"no thrift struct is named {name}")
            is_error = name in EXCEPTIONS or name.endswith("Exception")
            cls: type[Struct] = type(name, (ThriftError if is_error else Struct,), {})
            reference: list[Any] = [cls, None]
            self._references[name] = reference
            set_spec(cls, self._spec(name, published))
            reference[1] = cls.thrift_spec
            setattr(self, name, cls)
        return self._references[name]

    def _spec(self, name: str, published: Any) -> Spec:
        if name in STRUCTS:
            return self.spec_of_fields(STRUCTS[name])
        if name in EXCEPTIONS:
            return self.spec_of_fields((Field(1, "message", "string"),))
        return self.own_spec(published.thrift_spec, FIELDS.get(name, ()))

    def own_spec(self, published: Spec, added: tuple[Field, ...] = ()) -> Spec:
        """A published spec with our classes in place of the published ones, without defaults,
        and with added fields."""
        own = tuple(
            entry and (entry[0], entry[1], entry[2], self._arguments(entry[1], entry[3]), None)
            for entry in published
        )
        return self._extended(own, added) if added else own

    def spec_of_fields(self, fields: tuple[Field, ...]) -> Spec:
        """A spec from declared fields."""
        return self._extended((), fields)

    def _extended(self, spec: Spec, fields: tuple[Field, ...]) -> Spec:
        entries: dict[int, Any] = {entry[0]: entry for entry in spec if entry}
        for field in fields:
            ttype, arguments = self._parse_type(field.type)
            entries[field.id] = (field.id, ttype, field.name, arguments, None)
        return tuple(entries.get(index) for index in range(max(entries, default=-1) + 1))

    def _arguments(self, ttype: int, arguments: Any, is_key: bool = False) -> Any:
        if ttype == TType.STRUCT:
            return self.reference(arguments[0].__name__)
        if ttype in (TType.LIST, TType.SET):
            return (arguments[0], self._arguments(arguments[0], arguments[1]), is_key)
        if ttype == TType.MAP:
            key = self._arguments(arguments[0], arguments[1], is_key=True)
            value = self._arguments(arguments[2], arguments[3])
            return (arguments[0], key, arguments[2], value, False)
        return arguments

    def _parse_type(self, text: str) -> tuple[int, Any]:
        if text in _PRIMITIVES:
            return _PRIMITIVES[text]
        if text.startswith("list<"):
            return TType.LIST, (*self._parse_type(text[5:-1]), False)
        if text.startswith("map<"):
            key, value = text[4:-1].split(",", 1)
            return TType.MAP, (*self._parse_type(key), *self._parse_type(value), False)
        return TType.STRUCT, self.reference(text)


def set_spec(cls: type[Struct], spec: Spec) -> None:
    """Give a class the fields of a spec."""
    for entry in spec:
        if entry:
            setattr(cls, entry[2], None)
    cls.thrift_spec = spec


hive = StructTypes()
"""Every struct and exception of the union of Hive's interfaces, by its thrift name."""
