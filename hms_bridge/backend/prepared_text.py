"""The text of a statement as PostgreSQL keeps it for a connection, and what is asked of one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, Protocol

_NUMBERS = count(1)


class PreparedText:
    """One statement with ``$1``, ``$2`` for its values; the name is its own in this process."""

    __slots__ = ("name", "sql")

    def __init__(self, sql: str) -> None:
        self.sql = sql.encode()
        self.name = b"hmsb_%d" % next(_NUMBERS)


class Answer(Protocol):
    """What a statement gives. To look at it may send it, and raises what it failed with."""

    @property
    def rows(self) -> Sequence[tuple[Any, ...]]:
        """In the order of the selected columns; empty for no row."""

    @property
    def count(self) -> int:
        """How many rows a statement that returns none has changed."""
