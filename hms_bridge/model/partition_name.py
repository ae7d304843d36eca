"""Partition names: ``key=value/key=value`` with Hive's escaping (FileUtils.escapePathName;
docs/hive/acid.md §21)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import DEFAULT_PARTITION_VALUE, Column

_ESCAPED = frozenset(chr(code) for code in range(0x20)) | frozenset("\"#%'*/:=?\\\x7f{[]^")
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")


def escape(text: str) -> str:
    """Escape what cannot stand in a directory name; an empty value is the default partition."""
    if not text:
        return DEFAULT_PARTITION_VALUE
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED else c for c in text)


def unescape(text: str) -> str:
    """The inverse of :func:`escape`; a stray ``%`` stays as it is."""
    return _ESCAPE.sub(lambda m: chr(int(m.group(1), 16)), text)


def partition_name(columns: Sequence[Column], values: Sequence[str]) -> str:
    """``a=1/b=x`` for the partition columns of a table and one value each.

    Raises MetaError if their numbers differ.
    """
    if len(columns) != len(values):
        raise MetaError(
            f"{len(values)} partition values given for the {len(columns)} partition columns "
            f"({', '.join(c.name for c in columns)}); give one value for each"
        )
    return "/".join(f"{escape(c.name.lower())}={escape(v)}"
                    for c, v in zip(columns, values, strict=True))  # fmt: skip


def with_lower_keys(name: str) -> str:
    """``DS=Ab/HR=1`` as ``ds=Ab/hr=1`` (docs/hive/metastore.md §23)."""
    parts = (part.partition("=") for part in name.split("/"))
    return "/".join(f"{key.lower()}{equals}{value}" for key, equals, value in parts)


def target_name(table: str, partition: str | None) -> str:
    """``database.table`` or ``database.table/partition``, for messages."""
    return table if partition is None else f"{table}/{partition}"


def parse_partition_name(name: str) -> tuple[tuple[str, str], ...]:
    """``a=1/b=x`` to ``(("a", "1"), ("b", "x"))``. Raises MetaError for anything else."""
    pairs = []
    for part in name.strip("/").split("/"):
        key, separator, value = part.partition("=")
        if not separator or not key or not value:
            raise MetaError(f"'{name}' is no partition name; write it as key=value/key=value")
        pairs.append((unescape(key).lower(), unescape(value)))
    return tuple(pairs)
