"""What is asked of constraints, which only a Hive on the same database can have made."""

from __future__ import annotations

from hms_bridge.backend.connection import Connection
from hms_bridge.catalog import constraints, tables
from hms_bridge.service.foundation import VerbFamily


class ConstraintVerbs(VerbFamily):
    """The ConstraintStore."""

    def get_constraint_names(self, database: str, table: str) -> tuple[str, ...]:
        """Raises NoSuchObjectError."""

        def work(connection: Connection) -> tuple[str, ...]:
            found = tables.require_table(connection, database.lower(), table.lower())
            return constraints.constraint_names(connection, found.id)

        return self._transactions.read(work)
