"""Verbs of constraints: what a Hive on the same database made is told, nothing is made here."""

from __future__ import annotations

from hms_bridge.backend.connection import Connection
from hms_bridge.catalog import constraints, tables
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.constraint import ColumnConstraint
from hms_bridge.service.foundation import VerbFamily


class ConstraintVerbs(VerbFamily):
    """The ConstraintStore."""

    def get_column_constraints(
        self, database: str, table: str, catalog: str = DEFAULT_CATALOG
    ) -> tuple[ColumnConstraint, ...]:
        """None for an unknown table, as Hive."""
        key = database.lower(), table.lower(), catalog.lower()

        def work(connection: Connection) -> tuple[ColumnConstraint, ...]:
            stored = tables.find_table(connection, *key)
            return constraints.of_table(connection, stored.id) if stored is not None else ()

        return self._transactions.read(work)

    def get_constraint_names(self, database: str, table: str) -> tuple[str, ...]:
        """Raises NoSuchObjectError."""

        def work(connection: Connection) -> tuple[str, ...]:
            found = tables.require_table(connection, database.lower(), table.lower())
            return constraints.constraint_names(connection, found.id)

        return self._transactions.read(work)
