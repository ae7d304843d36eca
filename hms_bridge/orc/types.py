"""Column types: ORC's type tree as a value, and the footer messages it is kept in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from hms_bridge.errors import AcidFormatError
from hms_bridge.orc import proto


class OrcKind(IntEnum):
    """Kinds of types; the value is what ORC stores."""

    BOOLEAN = 0
    BYTE = 1
    SHORT = 2
    INT = 3
    LONG = 4
    FLOAT = 5
    DOUBLE = 6
    STRING = 7
    BINARY = 8
    TIMESTAMP = 9
    LIST = 10
    MAP = 11
    STRUCT = 12
    UNION = 13
    DECIMAL = 14
    DATE = 15
    VARCHAR = 16
    CHAR = 17
    TIMESTAMP_INSTANT = 18

    @property
    def is_timestamp(self) -> bool:
        """Seconds and nanoseconds, with or without a zone."""
        return self in {OrcKind.TIMESTAMP, OrcKind.TIMESTAMP_INSTANT}


CHILD_COUNTS: Final = {OrcKind.LIST: 1, OrcKind.MAP: 2}
"""How many children the kinds with a fixed number of them have."""
_NESTED: Final = frozenset({OrcKind.LIST, OrcKind.MAP, OrcKind.STRUCT, OrcKind.UNION})

TYPE_DEPTH_MAX: Final = 100
"""Deeper nesting is refused (Hive's own tables stay far below)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrcType:
    """One node of the type tree; column ids are the places in `preorder`."""

    kind: OrcKind
    children: tuple[OrcType, ...] = ()
    names: tuple[str, ...] = ()
    """Of a struct's children."""
    maximum_length: int = 0
    """Of char and varchar, in characters."""
    precision: int = 0
    scale: int = 0
    attributes: tuple[tuple[str, str], ...] = ()

    def preorder(self) -> Iterator[OrcType]:
        """This node and all below it, in the order of ORC's column ids."""
        yield self
        for child in self.children:
            yield from child.preorder()

    @property
    def size(self) -> int:
        """How many column ids this node takes up."""
        return 1 + sum(child.size for child in self.children)

    def child_ids(self, own_id: int = 0) -> tuple[int, ...]:
        """Column ids of the children, given this node's own."""
        ids = []
        next_id = own_id + 1
        for child in self.children:
            ids.append(next_id)
            next_id += child.size
        return tuple(ids)

    def contains(self, *kinds: OrcKind) -> bool:
        """Whether this node or one below it is of one of these kinds."""
        return any(node.kind in kinds for node in self.preorder())


def struct_type(names: Sequence[str], children: Sequence[OrcType]) -> OrcType:
    """A struct of these fields."""
    return OrcType(kind=OrcKind.STRUCT, names=tuple(names), children=tuple(children))


def tree_of_messages(messages: Sequence[Any], path: str = "") -> OrcType:
    """The type tree of a footer's `types`; they must stand in preorder, as all writers put them."""
    if not messages:
        raise AcidFormatError("the file declares no types", path)
    next_id = 0

    def build(expected: int, depth: int) -> OrcType:
        nonlocal next_id
        if expected != next_id or expected >= len(messages) or depth > TYPE_DEPTH_MAX:
            raise AcidFormatError(f"type {expected} is not where the type tree has it", path)
        next_id += 1
        message = messages[expected]
        children = tuple(build(subtype, depth + 1) for subtype in message.subtypes)
        return _node_of_message(message, children, path)

    root = build(0, 0)
    if next_id != len(messages):
        raise AcidFormatError(f"{len(messages) - next_id} types belong to no column", path)
    return root


def _node_of_message(message: Any, children: tuple[OrcType, ...], path: str) -> OrcType:
    try:
        kind = OrcKind(message.kind)
    except ValueError as error:
        raise AcidFormatError(f"type kind {message.kind} is unknown", path) from error
    names = tuple(proto.text_of(name) for name in message.field_names)
    wanted = CHILD_COUNTS.get(kind, len(children) if kind in _NESTED else 0)
    if len(children) != wanted or (kind is OrcKind.STRUCT and len(names) != len(children)):
        raise AcidFormatError(f"type {kind.name} with {len(children)} children", path)
    is_decimal = kind is OrcKind.DECIMAL
    return OrcType(
        kind=kind,
        children=children,
        names=names,
        maximum_length=message.maximum_length,
        precision=message.precision if message.precision or not is_decimal else 38,
        scale=message.scale if message.precision or not is_decimal else 18,
        attributes=tuple(
            (proto.text_of(pair.key), proto.text_of(pair.value)) for pair in message.attributes
        ),
    )


def messages_of_tree(root: OrcType) -> list[Any]:
    """A footer's `types` for this tree."""
    messages: list[Any] = []
    for own_id, node in enumerate(root.preorder()):
        message = proto.Type(
            kind=int(node.kind), subtypes=node.child_ids(own_id), field_names=node.names
        )
        if node.kind in {OrcKind.CHAR, OrcKind.VARCHAR}:
            message.maximum_length = node.maximum_length
        if node.kind is OrcKind.DECIMAL:
            message.precision, message.scale = node.precision, node.scale
        for key, value in node.attributes:
            message.attributes.add(key=key, value=value)
        messages.append(message)
    return messages
