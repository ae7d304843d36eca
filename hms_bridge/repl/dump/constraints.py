"""Write the constraints of tables that a dump brings whole."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hms_bridge.metastore import Metastore
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind
from hms_bridge.model.target import TableName
from hms_bridge.repl.format.constraints import (
    FOREIGN_PREFIX,
    OWN_PREFIX,
    format_constraints,
)
from hms_bridge.repl.format.hashed_texts import NotedTexts
from hms_bridge.repl.format.layout import DumpPaths


def write_constraints(
    source: Metastore,
    texts: NotedTexts,
    paths: DumpPaths,
    database: str,
    names: Collection[str],
    others: Iterable[str],
    now_seconds: int,
) -> None:
    """Those of the tables ``names``; of ``others`` the foreign keys to them, which a replica loses
    when it replaces what they refer to."""
    for name in names:
        constraints = source.get_constraints(database, name)
        own = [part for part in constraints if part.kind is not ConstraintKind.FOREIGN_KEY]
        foreign = [part for part in constraints if part.kind is ConstraintKind.FOREIGN_KEY]
        for prefix, chosen in ((OWN_PREFIX, own), (FOREIGN_PREFIX, foreign)):
            _write(texts, paths, TableName(database, name), prefix, chosen, now_seconds)
    for name in others:
        constraints = source.get_constraints(database, name)
        referring = [part for part in constraints if _refers_to(part, database, names)]
        _write(texts, paths, TableName(database, name), FOREIGN_PREFIX, referring, now_seconds)


def _write(
    texts: NotedTexts,
    paths: DumpPaths,
    table: TableName,
    prefix: str,
    constraints: Iterable[ColumnConstraint],
    now_seconds: int,
) -> None:
    text = format_constraints(table, constraints, now_seconds)
    if text:
        texts.write({f"{paths.constraints(table.database)}/{prefix}{table.table}": text})


def _refers_to(constraint: ColumnConstraint, database: str, names: Collection[str]) -> bool:
    referred = constraint.refers_to
    return (
        referred is not None and referred.database_name == database and referred.table_name in names
    )
