"""Verbs of constraints: what a Hive on the same database made is told, nothing is made here."""

from __future__ import annotations

from hms_bridge.backend.connection import Connection
from hms_bridge.backend.work import sql
from hms_bridge.catalog import constraints, tables
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.constraint import ColumnConstraint
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import reads


def _get_column_constraints(
    connection: Connection, database: str, table: str, catalog: str = DEFAULT_CATALOG
) -> tuple[ColumnConstraint, ...]:
    stored = tables.find_table(connection, database.lower(), table.lower(), catalog.lower())
    return constraints.of_table(connection, stored.id) if stored is not None else ()


def _get_constraint_names(connection: Connection, database: str, table: str) -> tuple[str, ...]:
    found = tables.require_table(connection, database.lower(), table.lower())
    return constraints.constraint_names(connection, found.id)


class ConstraintVerbs(VerbFamily):
    """The ConstraintStore."""

    get_column_constraints = reads(sql(_get_column_constraints))
    get_constraint_names = reads(sql(_get_constraint_names))
