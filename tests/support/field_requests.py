"""Requests that lead a handler to each of their fields, and which of them it read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from thrift.Thrift import TType

from hms_bridge.errors import HmsBridgeError, MetastoreError
from hms_bridge.model.catalog import Partition
from hms_bridge.server.dispatch import Dispatcher
from hms_bridge.server.ignored_fields import IGNORED
from hms_bridge.wire.methods import method
from hms_bridge.wire.structs import Struct, hive
from tests.support.filled_requests import dispatcher_of_filled
from tests.support.recorded_reads import RecordedReads
from tests.support.served_metastore import ServedMetastore

DEPTH_MAX, UNION_DEPTH_MAX = 7, 9
"""Of structs in structs: PrivilegeGrantInfo in Partition … in PartitionSpec in arguments; Decimal
in the union of statistics in such a partition."""
LEFT_OUT_DEPTH_MAX = 3
"""Of fields that a request is sent without."""

_NAMES = ("partName", "part_name", "partitionname", "partitionName", "partNames", "partitionNames",
          "part_names", "partitionnames")  # fmt: skip
_CATALOGS = ("catName", "catalogName", "catalog", "cat_name", "catalog_name")
TEXTS = {
    **dict.fromkeys(_CATALOGS, "hive"),
    **dict.fromkeys(_NAMES, "x=x"),
    "location": "/x",
    "filesAdded": "/x/x",
    "filter": 'x = "x"',
    "validWriteIdList": "x.x:1:9223372036854775807::",
    "validTxnList": "1:9223372036854775807::",
    "fieldList": "sd",
    "tableType": "EXTERNAL_TABLE",
    "new_pool_path": "y",
}
"""What a field's text is where a mere name leads nowhere."""

ODD_TEXTS = {
    "get_table_names_by_filter": {"filter": 'hive_filter_field_owner__ = "x"'},
    "get_config_value": {"name": "hive.x"},
    "get_partitions_by_names_req": {"names": "x=x"},
    "get_table_objects_by_name_req": {"fieldList": "owner"},
    "alter_wm_pool": {"poolPath": "default"},
}
"""The same where a method means something else by a name."""

Path = tuple[str, ...]
Field = tuple[str, str]
"""Of a struct by its name."""
_NOWHERE: frozenset[Field] = frozenset()


@dataclass(frozen=True)
class Shape:
    """How a request is filled: its texts, its numbers, and a field that is left out."""

    text: str
    number: int
    without: Path = ()
    only: str | None = None
    """The one field of a union that is set."""
    texts: Mapping[str, str] = field(default_factory=lambda: TEXTS)

    def below(self, name: str) -> Shape:
        is_there = bool(self.without) and self.without[0] == name
        return replace(self, without=self.without[1:] if is_there else ())

    def text_of(self, name: str) -> str:
        return self.texts.get(name, self.text) if self.text else ""


WHOLE = (*(Shape("x", number) for number in (1, 0, 2, 3, 5)), Shape("", 0))
_UNION = hive.ColumnStatisticsData


def unread_fields(
    served: ServedMetastore, name: str, known: AbstractSet[Field]
) -> frozenset[Field]:
    """The fields of a method's request that its handler never read, by their struct's name, but for
    those below one that it did not read either. The method's own arguments are of the struct "".
    Requests are tried until there are none but ``known`` ones."""
    arguments = method(name).arguments
    reads = RecordedReads()
    for number, shape in enumerate((*WHOLE, *_partial(arguments))):
        _ask(served, name, shape, reads)
        unread = frozenset(_unread(arguments, reads))
        if not unread or number >= len(WHOLE) - 1 and unread <= known:
            break
    return unread


def fields_of(name: str) -> frozenset[Field]:
    """All that a method's request may hold."""
    return frozenset(field for field, _ in _reachable(method(name).arguments))


def _ask(served: ServedMetastore, name: str, shape: Shape, reads: RecordedReads) -> None:
    own = replace(shape, texts={**TEXTS, **ODD_TEXTS.get(name, {})})
    depth = UNION_DEPTH_MAX if shape.only else DEPTH_MAX
    request = _filled(method(name).arguments, depth, own)
    with suppress(HmsBridgeError):
        answer = _prepared(served)._calls[name].answer(reads.recording(request))
        reads.send(answer)


def _prepared(served: ServedMetastore) -> Dispatcher:
    dispatcher = dispatcher_of_filled(served)
    with suppress(MetastoreError):
        table = served.metastore.get_table("x", "x")
        part = Partition(
            values=("x",), database_name="x", table_name="x",
            storage=replace(table.storage, location=None),
        )  # fmt: skip
        served.metastore.add_partitions("x", "x", [part], is_if_not_exists=True)
    with suppress(MetastoreError):
        plan = hive.WMCreateResourcePlanRequest(resourcePlan=hive.WMResourcePlan(name="x", ns="x"))
        served.call("create_resource_plan", request=plan)
    return dispatcher


def _partial(arguments: type[Struct]) -> Iterator[Shape]:
    """Without one field each, and with one field of a union each."""
    if any(struct == _UNION.__name__ for (struct, _), _ in _reachable(arguments)):
        for entry in filter(None, _UNION.thrift_spec):
            yield from (Shape("x", number, only=entry[2]) for number in (1, 0))
    for path in _paths(arguments, LEFT_OUT_DEPTH_MAX):
        for number in (1, 0):
            yield Shape("x", number, without=path)


def _unread(arguments: type[Struct], reads: RecordedReads) -> Iterator[Field]:
    own = arguments.__name__
    read = {("" if struct == own else struct, field) for struct, field in reads.fields}
    return (field for field, above in _reachable(arguments) if field not in read and above <= read)


def _reachable(
    struct: type[Struct], seen: set[type[Struct]] | None = None, above: frozenset[Field] = _NOWHERE
) -> Iterator[tuple[Field, frozenset[Field]]]:
    """Each field once, with those that it lies below."""
    name = "" if seen is None else struct.__name__
    seen = set() if seen is None else seen
    for entry in filter(None, struct.thrift_spec):
        own = (name, entry[2])
        yield own, above
        for inner in _structs(entry[1], entry[3]):
            if inner not in seen:
                seen.add(inner)
                yield from _reachable(inner, seen, above | {own})


def _paths(struct: type[Struct], depth: int) -> Iterator[Path]:
    for entry in filter(None, struct.thrift_spec):
        yield (entry[2],)
        if depth > 1:
            for inner in _structs(entry[1], entry[3]):
                yield from ((entry[2], *path) for path in _paths(inner, depth - 1))


def _structs(kind: int, details: Any) -> Iterator[type[Struct]]:
    """What a field of a type holds: a struct, or a container's."""
    if kind == TType.STRUCT:
        yield details[0]
    elif kind in (TType.LIST, TType.SET):
        yield from _structs(details[0], details[1])
    elif kind == TType.MAP:
        yield from _structs(details[2], details[3])


def _filled(struct: type[Struct], depth: int, shape: Shape) -> Struct:
    fields = {}
    for entry in filter(None, struct.thrift_spec):
        name = entry[2]
        is_too_deep = depth == 0 and any(_structs(entry[1], entry[3]))
        is_of_union = struct is not _UNION or shape.only in (None, name)
        if shape.without != (name,) and is_of_union and not is_too_deep:
            inner = shape.below(name)
            fields[name] = _value(entry[1], entry[3], depth - 1, shape.text_of(name), inner)
    return struct(**fields)


def _value(kind: int, details: Any, depth: int, text: str, shape: Shape) -> Any:
    if kind == TType.STRUCT:
        return _filled(details[0], depth, shape)
    if kind in (TType.LIST, TType.SET):
        return [_value(details[0], details[1], depth, text, shape)]
    if kind == TType.MAP:
        key = _value(details[0], details[1], depth, text, shape)
        key = tuple(key) if isinstance(key, list) else key
        return {key: _value(details[2], details[3], depth, text, shape)}
    if kind == TType.STRING:
        return text if details == "UTF8" else text.encode()
    number = shape.number
    return {TType.BOOL: bool(number), TType.DOUBLE: float(number)}.get(kind, number)


def ignored_fields(name: str) -> frozenset[Field]:
    """Those that the table of a method's ignored fields has."""
    rows = (row.partition("@") for names in IGNORED.values() for row in names.split())
    fields = (field.partition(".") for field, _, only in rows if only in ("", name))
    return frozenset((struct, field) for struct, _, field in fields) & fields_of(name)
