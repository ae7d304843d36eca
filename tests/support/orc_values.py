"""Hypothesis strategies: ORC types, and Arrow rows of them."""

from __future__ import annotations

import math
import string
from functools import partial
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from hms_bridge.orc.arrow_types import arrow_type
from hms_bridge.orc.timestamps import TimestampForm
from hms_bridge.orc.types import OrcKind, OrcType, struct_type

_PLAIN = [
    kind
    for kind in OrcKind
    if kind
    not in {
        OrcKind.LIST,
        OrcKind.MAP,
        OrcKind.STRUCT,
        OrcKind.UNION,
        OrcKind.DECIMAL,
        OrcKind.CHAR,
        OrcKind.VARCHAR,
    }
]
_NAMES = st.text(string.ascii_letters + string.digits + "_ $", min_size=1, max_size=8).map(
    lambda text: f"n{text}x"
)


@st.composite
def _decimals(draw: st.DrawFn) -> OrcType:
    precision = draw(st.integers(1, 38))
    return OrcType(kind=OrcKind.DECIMAL, precision=precision, scale=draw(st.integers(0, precision)))


def orc_types(
    *, with_unions: bool = True, with_sized_texts: bool = True
) -> st.SearchStrategy[OrcType]:
    """Types of at most a few levels."""
    leaves = st.one_of(st.sampled_from(_PLAIN).map(lambda kind: OrcType(kind=kind)), _decimals())
    if with_sized_texts:
        leaves |= st.builds(
            lambda kind, length: OrcType(kind=kind, maximum_length=length),
            st.sampled_from([OrcKind.CHAR, OrcKind.VARCHAR]),
            st.integers(1, 12),
        )

    def nest(children: st.SearchStrategy[OrcType]) -> st.SearchStrategy[OrcType]:
        nested = (
            st.builds(lambda one: OrcType(kind=OrcKind.LIST, children=(one,)), children)
            | st.builds(lambda k, v: OrcType(kind=OrcKind.MAP, children=(k, v)), leaves, children)
            | st.lists(st.tuples(_NAMES, children), min_size=1, max_size=3).map(_struct)
        )
        if with_unions:
            nested |= st.lists(children, min_size=1, max_size=3).map(
                lambda ones: OrcType(kind=OrcKind.UNION, children=tuple(ones))
            )
        return nested

    return st.recursive(leaves, nest, max_leaves=5)


def _struct(fields: list[tuple[str, OrcType]]) -> OrcType:
    names = [f"{name}{at}" for at, (name, _) in enumerate(fields)]
    return struct_type(names, [child for _, child in fields])


_INTEGER_BITS = {OrcKind.BYTE: 8, OrcKind.SHORT: 16, OrcKind.INT: 32, OrcKind.LONG: 64}
_DAY_MIN, _DAY_MAX = -719_162, 2_932_896


def values(node: OrcType) -> st.SearchStrategy[Any]:
    """Values as Arrow takes them, timestamps by parts; null one time in some."""
    return st.none() | _present(node)


def _tagged(tag: int, value: Any) -> dict[str, Any]:
    return {"tag": tag, f"field{tag}": value}


def _present(node: OrcType) -> st.SearchStrategy[Any]:
    if node.kind in _INTEGER_BITS:
        limit = 2 ** (_INTEGER_BITS[node.kind] - 1)
        return st.integers(-limit, limit - 1)
    match node.kind:
        case OrcKind.BOOLEAN:
            return st.booleans()
        case OrcKind.FLOAT:
            return st.floats(width=32)
        case OrcKind.DOUBLE:
            return st.floats()
        case OrcKind.BINARY:
            return st.binary(max_size=20)
        case OrcKind.DATE:
            return st.integers(_DAY_MIN, _DAY_MAX)
        case OrcKind.TIMESTAMP | OrcKind.TIMESTAMP_INSTANT:
            return _timestamps()
        case OrcKind.DECIMAL:
            limit = 10**node.precision - 1
            return st.integers(-limit, limit).map(lambda n: _decimal(n, node.scale))
        case OrcKind.CHAR | OrcKind.VARCHAR:
            return st.text(max_size=node.maximum_length)
        case OrcKind.LIST:
            return st.lists(values(node.children[0]), max_size=3)
        case OrcKind.MAP:
            key, item = node.children
            return st.lists(st.tuples(_present(key), values(item)), max_size=3)
        case OrcKind.STRUCT:
            fields = [values(child) for child in node.children]
            return st.tuples(*fields).map(lambda row: dict(zip(node.names, row, strict=True)))
        case OrcKind.UNION:
            return st.one_of(
                [
                    values(child).map(partial(_tagged, tag))
                    for tag, child in enumerate(node.children)
                ]
            )
        case _:
            return st.text(max_size=20)


def _decimal(unscaled: int, scale: int) -> Any:
    from decimal import Context, Decimal

    return Decimal(unscaled).scaleb(-scale, context=Context(prec=60))


def _timestamps() -> st.SearchStrategy[dict[str, int]]:
    """All that ORC can hold: the last second before the epoch has no fractions in it."""
    whole = st.integers(_DAY_MIN * 86_400, _DAY_MAX * 86_400)
    nanos = st.sampled_from([0, 1, 999_999, 1_000_000, 500_000_000, 999_999_999])
    return st.tuples(whole | st.integers(-5, 5), nanos | st.integers(0, 999_999_999)).map(
        lambda pair: {"seconds": pair[0], "nanos": 0 if pair[0] == -1 else pair[1]}
    )


def as_array(rows: list[Any], node: OrcType) -> pa.Array:
    """An Arrow array of the type, timestamps by parts."""
    return pa.array(rows, arrow_type(node, TimestampForm.PARTS))


def comparable(value: Any) -> Any:
    """A value of to_pylist with NaN equal to itself."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, float):
        return (value, math.copysign(1, value))
    if isinstance(value, dict):
        return {key: comparable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [comparable(one) for one in value]
    return value
