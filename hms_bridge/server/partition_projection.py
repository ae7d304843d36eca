"""Which fields of partitions a client of get_partitions_with_specs wants, and how they are packed.

Hive: PartitionProjectionEvaluator, MetaStoreServerUtils.getPartitionspecsGroupedByStorageDescriptor
(docs/hive/metastore.md §42).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.like_pattern import LikePattern, escaped_pattern
from hms_bridge.model.shortened import shortened
from hms_bridge.wire.structs import Struct, hive

_STORAGE = (
    "cols.name", "cols.type", "cols.comment", "location", "inputFormat", "outputFormat",
    "compressed", "numBuckets", "serdeInfo.name", "serdeInfo.serializationLib",
    "serdeInfo.parameters", "serdeInfo.description", "serdeInfo.serializerClass",
    "serdeInfo.deserializerClass", "serdeInfo.serdeType", "bucketCols", "sortCols.col",
    "sortCols.order", "parameters", "skewedInfo.skewedColNames", "skewedInfo.skewedColValues",
    "skewedInfo.skewedColValueLocationMaps",
)  # fmt: skip
_PRIVILEGES = ("userPrivileges", "groupPrivileges", "rolePrivileges")
_OF_THE_TABLE = frozenset({"dbName", "tableName", "catName"})
"""Said once, by the PartitionSpec."""
FIELDS = frozenset({
    *_OF_THE_TABLE, "createTime", "lastAccessTime", "values", "parameters", "writeId",
    *(f"sd.{name}" for name in _STORAGE), *(f"privileges.{name}" for name in _PRIVILEGES),
})  # fmt: skip
"""All that Hive knows; a beginning of one stands for all that begin so (``sd``)."""

PATTERN_LENGTH_MAX = 1000
"""In characters; a key has 256 at most."""

_SHOWN_MAX = 500

_ALWAYS: dict[type[Struct], dict[str, Any]] = {
    hive.Partition: {"createTime": 0, "lastAccessTime": 0, "writeId": -1},
    hive.StorageDescriptor: {"compressed": False, "numBuckets": 0},
    hive.Order: {"order": 0},
}
"""Numbers that Java's structs send though nobody set them."""


@dataclass(frozen=True)
class Projection:
    """``fields`` is None for all. A key of a partition's parameters has to be like ``include``,
    and not like ``exclude``, where they are given."""

    fields: frozenset[str] | None
    include: LikePattern | None
    exclude: LikePattern | None

    def applied(self, partition: Struct) -> Struct:
        """A struct with these fields alone."""
        chosen = self.parameters_of(partition.parameters or {})
        whole = hive.Partition(**vars(partition) | {"parameters": chosen})
        return whole if self.fields is None else _only(whole, self.fields - _OF_THE_TABLE)

    def parameters_of(self, parameters: Mapping[str, str]) -> dict[str, str]:
        """Those whose keys are wanted."""
        return {
            key: value
            for key, value in parameters.items()
            if (self.include is None or self.include.matches(key))
            and not (self.exclude is not None and self.exclude.matches(key))
        }


def narrowed(request: Struct, partitions: Sequence[Partition]) -> Sequence[Partition]:
    """Without their columns, and with those of their parameters, that a request asks for. Raises
    MetaError for a pattern that is none."""
    include, exclude = _like(request.includeParamKeyPattern), _like(request.excludeParamKeyPattern)
    if include is None and exclude is None and not request.skipColumnSchemaForPartition:
        return partitions
    chosen = Projection(None, include, exclude)
    return [
        replace(
            partition,
            parameters=chosen.parameters_of(partition.parameters),
            storage=replace(partition.storage, columns=())
            if request.skipColumnSchemaForPartition
            else partition.storage,
        )
        for partition in partitions
    ]


def projection_of(spec: Struct | None) -> Projection:
    """What was asked for. Raises MetaError for an unknown field, or a pattern that is none."""
    if spec is None:
        return Projection(None, None, None)
    wanted = tuple(dict.fromkeys(spec.fieldList or ()))  # a client may name one a million times
    fields = {name: _fields_of(name) for name in wanted}
    unknown = [name for name in wanted if not fields[name]]
    if unknown:
        shown = shortened(", ".join(unknown), _SHOWN_MAX)
        raise MetaError(f"Invalid partition fields in the projection spec[{shown}]")
    return Projection(
        frozenset().union(*fields.values()) if wanted else None,
        _like(spec.includeParamKeyPattern),
        _like(spec.excludeParamKeyPattern),
    )


def partition_specs(table: Table, partitions: Iterable[Struct]) -> list[Struct]:
    """Partitions whose storage is the same, but for where they lie below their table, share it;
    others are listed whole."""
    root = table.storage.location
    groups: dict[Any, tuple[Struct | None, list[Struct]]] = {}
    listed = []
    for partition in partitions:
        if _is_listed(partition.sd, root):
            listed.append(partition)
        else:
            shared = _shared(partition.sd, root)
            _, members = groups.setdefault(_key(shared), (shared, []))
            members.append(_without_storage(partition, root))
    specs = [_shared_spec(table, storage, members) for storage, members in groups.values()]
    if listed:
        specs.append(_spec(table, partitionList=hive.PartitionListComposingSpec(partitions=listed)))
    return specs


def _fields_of(name: str) -> set[str]:
    """The field of that name, or all whose names begin so; none for an unknown name."""
    return {name} if name in FIELDS else {field for field in FIELDS if field.startswith(name)}


def _only(struct: Struct, names: Iterable[str]) -> Struct:
    """The struct with the fields of these names; ``a.b`` is ``b`` in ``a``."""
    inner: dict[str, list[str]] = {}
    for name in names:
        head, _, rest = name.partition(".")
        inner.setdefault(head, []).extend([rest] if rest else ())
    cls = type(struct)
    kept = {name: _kept(getattr(struct, name), below) for name, below in inner.items()}
    return cls(**_ALWAYS.get(cls, {}) | {k: v for k, v in kept.items() if v is not None})


def _kept(value: Any, below: Sequence[str]) -> Any:
    """None for what is empty, as Hive leaves it unset where a table of it has no rows."""
    if not below:
        return None if isinstance(value, list | dict) and not value else value
    if isinstance(value, list):
        return [_only(item, below) for item in value] or None
    if value is None:
        return None
    only = _only(value, below)
    is_empty = isinstance(only, hive.SkewedInfo) and not any(vars(only).values())
    return None if is_empty else only


def _like(pattern: str | None) -> LikePattern | None:
    """None for no pattern. Not an expression that goes back and tries again: ``%a%a%a%b`` would
    hold up all that the server does for minutes, on one long key."""
    if not pattern:
        return None
    if len(pattern) > PATTERN_LENGTH_MAX:
        raise MetaError(
            f"a pattern of keys with {len(pattern)} characters, of {PATTERN_LENGTH_MAX} at most"
        )
    like = escaped_pattern(pattern)
    if like is None:
        raise MetaError(
            f"the pattern {pattern!r} of keys ends with a backslash, which stands before "
            "a character that is meant as it is; double it"
        )
    return like


def _is_listed(storage: Struct | None, root: str | None) -> bool:
    """Elsewhere than below its table, or skewed, which may name places."""
    if storage is None:
        return False
    skew = storage.skewedInfo
    if skew is not None and skew.skewedColNames:
        return True
    return storage.location is not None and _below(root, storage.location) is None


def _below(root: str | None, location: str) -> str | None:
    """The rest of a place that is the root or below it, to be put behind it; None for another."""
    if root is None or not location.startswith(root):
        return None
    rest = location[len(root) :]
    return rest if not rest or root.endswith("/") or rest.startswith("/") else None


def _shared(storage: Struct | None, root: str | None) -> Struct | None:
    if storage is None:
        return None
    place = {} if storage.location is None else {"location": root}
    return hive.StorageDescriptor(**vars(storage) | place)


def _key(value: Any) -> Any:
    """Equal for equal structs, and hashable."""
    if isinstance(value, Struct):
        value = vars(value)
    if isinstance(value, dict):
        return frozenset((_key(key), _key(item)) for key, item in value.items())
    return tuple(map(_key, value)) if isinstance(value, list | tuple) else value


def _without_storage(partition: Struct, root: str | None) -> Struct:
    place = None if partition.sd is None else partition.sd.location
    return hive.PartitionWithoutSD(
        values=partition.values,
        createTime=partition.createTime,
        lastAccessTime=partition.lastAccessTime,
        relativePath=None if place is None else _below(root, place),
        parameters=partition.parameters,
    )


def _shared_spec(table: Table, storage: Struct | None, partitions: list[Struct]) -> Struct:
    shared = storage or hive.StorageDescriptor(**_ALWAYS[hive.StorageDescriptor])
    return _spec(
        table,
        rootPath=shared.location,
        sharedSDPartitionSpec=hive.PartitionSpecWithSharedSD(partitions=partitions, sd=shared),
    )


def _spec(table: Table, **given: Any) -> Struct:
    return hive.PartitionSpec(
        dbName=table.database_name,
        tableName=table.name,
        catName=table.catalog_name,
        **given,
    )
