"""What must hold of a side: as a master, what its model says; as a replica, what its load said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from tests.simulation.definitions import Definition
from tests.simulation.model import Tables
from tests.simulation.plain_reader import Rows, View
from tests.simulation.side import Side
from tests.simulation.story import Loaded, ViolationError


def check_master(side: Side) -> None:
    """I1, I8, I11 of a side whose clients' commits count."""
    _check_definitions(side)
    _check_rows(side)


def _check_definitions(side: Side) -> None:
    there, tables = side.table_ids(), side.story.model.tables
    for name, table in tables.items():
        if name in there and table.columns != side.columns(name):
            found = side.columns(name)
            raise ViolationError("I11", f"{name} has columns {found}, not {table.columns}")
    if set(there) != set(tables):
        raise ViolationError("I8", f"tables {sorted(there)}, not {sorted(tables)}")


def _check_rows(side: Side) -> None:
    for name, table in side.story.model.tables.items():
        view = side.view(name)
        places = side.places(name)
        if set(places) != set(table.partitions):
            raise ViolationError(
                "I1", f"{name} has partitions {sorted(places)}, not {sorted(table.partitions)}"
            )
        for partition, path in places.items():
            if side.is_moving(path):
                continue
            _compare(
                "I1",
                f"a new reader of {name} {partition}",
                _rows(side, path, view),
                table.partitions[partition],
            )


def check_readers(side: Side) -> None:
    """I2, I3 of who has a snapshot."""
    readers = side.story.readers
    for reader in list(readers.values()):
        if not side.is_held(reader.txn_id):
            del readers[reader.txn_id]
            continue
        for partition, path in reader.places.items():
            _compare(
                "I2",
                f"reader {reader.txn_id} of {reader.table} {partition}",
                _rows(side, path, reader.view),
                reader.rows[partition],
            )


def check_replica(side: Side) -> None:
    """I11: equal to the source at the event where the last load that said OK left it."""
    if side.story.loaded is not None:
        require_loaded(side, side.story.loaded)


def require_loaded(side: Side, loaded: Loaded) -> None:
    """Raises ViolationError unless a replica is what a load has made it."""
    found = {name: rows for name, rows in replica_rows(side).items() if name not in loaded.kept}
    choices = loaded.of_replica
    names = set().union(*choices)
    always = set(choices[0]).intersection(*choices[1:])
    if not always <= set(found) <= names:
        raise ViolationError("I11", f"the replica has {sorted(found)}, not {sorted(names)}")
    for name, partitions in found.items():
        wanted = [one[name] for one in choices if name in one]
        _check_definition(
            f"{name} at event {loaded.event_id}",
            side.definition(name),
            [one.definition for one in wanted if one.definition],
        )
        if not _is_one_of(partitions, [one.partitions for one in wanted]):
            raise ViolationError(
                "I11",
                f"{name} at event {loaded.event_id} is {partitions}, not {wanted[-1].partitions}",
            )


def replica_rows(side: Side) -> dict[str, dict[str, Any]]:
    """All rows of a side, by table and partition."""
    found: dict[str, dict[str, Any]] = {}
    for name in side.table_ids():
        view = side.view(name)
        try:
            found[name] = {part: side.rows(path, view) for part, path in side.places(name).items()}
        except Exception as error:
            raise ViolationError("I11", f"{side.name} {name}: {error}") from error
    return found


def rows_of(tables: Tables) -> dict[str, dict[str, Rows]]:
    """The same of a model."""
    return {name: table.partitions for name, table in tables.items()}


def _rows(side: Side, path: str, view: View) -> Any:
    try:
        return side.rows(path, view)
    except Exception as error:
        raise ViolationError("I1", f"{path}: {error}") from error


def _check_definition(what: str, found: Definition, wanted: Sequence[Definition]) -> None:
    """A bootstrap reads what the catalog says and what was written one after the other."""
    for field in fields(Definition):
        choices = [getattr(one, field.name) for one in wanted]
        there = getattr(found, field.name)
        if there not in choices:
            raise ViolationError("I11", f"{what}: {field.name} is {there}, not {choices[-1]}")


def _is_one_of(found: dict[str, Rows], wanted: Sequence[dict[str, Rows]]) -> bool:
    """Whether a table is as it was at one moment; or its rows are those of one moment, but its
    partitions those of a later one, as a bootstrap that reads its snapshot first may find them."""
    names = set().union(*wanted)
    always = names.intersection(*wanted)
    return found in wanted or (
        always <= set(found) <= names
        and any(all(rows == one.get(name, {}) for name, rows in found.items()) for one in wanted)
    )


def _compare(invariant: str, what: str, found: Any, wanted: Any) -> None:
    if found == wanted:
        return
    lost = {key: row for key, row in wanted.items() if found.get(key) != row}
    extra = {key: row for key, row in found.items() if wanted.get(key) != row}
    raise ViolationError(invariant, f"{what} misses {lost} and has {extra} besides")
