"""Fixed statements about the rows of keys that are texts: digests, ids, places."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Executable, bindparam

from hms_bridge.backend.batches import batches, is_among_texts, texts_text
from hms_bridge.backend.dialect import is_postgresql
from hms_bridge.backend.fixed_sql import FixedSql
from hms_bridge.backend.prepared_text import Answer


class TextKeyedSql:
    """A statement about the rows of some keys that are texts: fixed for one, and for any number on
    PostgreSQL; elsewhere for two, four … of them, the last of which is repeated until they fit.
    ``make``: the statement for a condition."""

    def __init__(
        self, key: ColumnElement[str], make: Callable[[ColumnElement[bool]], Executable]
    ) -> None:
        self._key, self._make = key, make
        self._fixed: dict[int, FixedSql] = {}
        self.several = FixedSql(make(is_among_texts(key, "keys")))

    def later(
        self, connection: Connection, keys: Sequence[str], /, **values: Any
    ) -> Sequence[Answer]:
        """As :meth:`FixedSql.read_later`: an answer for each piece of the keys."""
        return [self._ask(connection, piece, values) for piece in batches(keys)]

    def all(
        self, connection: Connection, keys: Sequence[str], /, **values: Any
    ) -> list[tuple[Any, ...]]:
        """All rows; of none for no keys."""
        return [row for answer in self.later(connection, keys, **values) for row in answer.rows]

    def _ask(
        self, connection: Connection, keys: Sequence[str], values: Mapping[str, Any]
    ) -> Answer:
        if len(keys) > 1 and is_postgresql(connection):
            return self.several.read_later(connection, keys=texts_text(keys), **values)
        fixed = self.of(len(keys))
        count = 1 << (len(keys) - 1).bit_length()
        filled = [*keys, *[keys[-1]] * (count - len(keys))]
        given = {f"key{place}": key for place, key in enumerate(filled)}
        return fixed.read_later(connection, **given, **values)

    def of(self, key_count: int) -> FixedSql:
        """The statement for so many keys; their parameters are ``key0``, ``key1`` …"""
        count = 1 << (key_count - 1).bit_length()
        fixed = self._fixed.get(count)
        if fixed is None:
            asked = [bindparam(f"key{place}", type_=self._key.type) for place in range(count)]
            fixed = self._fixed[count] = FixedSql(self._make(self._key.in_(asked)))
        return fixed
