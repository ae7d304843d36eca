"""Properties of a compaction as one text: Hive's StringableMap, in CQ_TBLPROPERTIES and on the
wire.

``count:`` and for each entry ``length:key`` ``length:value`` without separators; lengths count
UTF-16 units, as Java does; None has the length 0 (docs/hive/metastore.md §14).
"""

from __future__ import annotations

from collections.abc import Mapping

from hms_bridge.errors import MetaError

_COLON = ":".encode("utf-16-le")


def format_properties(properties: Mapping[str, str]) -> str:
    """The text; ``0:`` for none."""
    parts = [f"{_length(part)}:{part}" for pair in properties.items() for part in pair]
    return f"{len(properties)}:{''.join(parts)}"


def parse_properties(text: str | None) -> dict[str, str]:
    """The inverse of :func:`format_properties`; none for no text. Raises MetaError."""
    if not text:
        return {}
    properties: dict[str, str] = {}
    try:
        data = text.encode("utf-16-le")
        count, position = _number_at(data, 0)
        for _ in range(count):
            key, position = _part_at(data, position)
            properties[key], position = _part_at(data, position)
    except ValueError as error:
        raise MetaError(
            f"compaction properties {text!r} are malformed; write them as 1:3:key5:value"
        ) from error
    return properties


def _length(part: str) -> int:
    return len(part.encode("utf-16-le")) // 2


def _number_at(data: bytes, start: int) -> tuple[int, int]:
    """The number that begins there, and where what follows its colon begins."""
    end = data.index(_COLON, start)
    return int(data[start:end].decode("utf-16-le")), end + len(_COLON)


def _part_at(data: bytes, start: int) -> tuple[str, int]:
    length, begin = _number_at(data, start)
    end = begin + 2 * length
    if length < 0 or end > len(data):
        raise ValueError(length)
    return data[begin:end].decode("utf-16-le"), end
