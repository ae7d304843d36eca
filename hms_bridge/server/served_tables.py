"""What only the server asks of tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hms_bridge.model.catalog import Table
from hms_bridge.model.constraint import ColumnConstraint


class ServedTables(Protocol):
    """Tables that are made with what others add afterwards."""

    def create_constrained_table(
        self,
        table: Table,
        constraints: Sequence[ColumnConstraint],
        *,
        trusted_columns: Sequence[str] = (),
    ) -> None:
        """Create a table with its constraints, or neither; their events come after its own, kind by
        kind. Raises what ``create_table`` and ``add_constraints`` raise."""
        ...
