"""Properties of a compaction as one text: Hive's StringableMap, in CQ_TBLPROPERTIES and on the
wire.

``count:`` and for each entry ``length:key`` ``length:value`` without separators; lengths count
UTF-16 units, as Java does; None has the length 0 (docs/hive/metastore.md §14).
"""

from __future__ import annotations

from collections.abc import Mapping

from hms_bridge.errors import MetaError


def format_properties(properties: Mapping[str, str]) -> str:
    """The text; ``0:`` for none."""
    parts = [f"{_length(part)}:{part}" for pair in properties.items() for part in pair]
    return f"{len(properties)}:{''.join(parts)}"


def parse_properties(text: str | None) -> dict[str, str]:
    """The inverse of :func:`format_properties`; none for no text. Raises MetaError."""
    if not text:
        return {}
    try:
        rest = text.encode("utf-16-le")
        count, rest = _number(rest)
        properties: dict[str, str] = {}
        for _ in range(count):
            key, rest = _part(rest)
            properties[key], rest = _part(rest)
    except (ValueError, IndexError) as error:
        raise MetaError(
            f"compaction properties {text!r} are malformed; write them as count:length:key"
            "length:value"
        ) from error
    return properties


def _length(part: str) -> int:
    return len(part.encode("utf-16-le")) // 2


def _number(data: bytes) -> tuple[int, bytes]:
    digits, colon, _ = data.decode("utf-16-le", errors="replace").partition(":")
    if not colon:
        raise ValueError(digits)
    return int(digits), data[2 * (len(digits) + 1) :]


def _part(data: bytes) -> tuple[str, bytes]:
    length, rest = _number(data)
    if len(rest) < 2 * length or length < 0:
        raise ValueError(length)
    return rest[: 2 * length].decode("utf-16-le"), rest[2 * length :]
