"""Loads into a database that changes places with its source, or did."""

from __future__ import annotations

from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Database
from hms_bridge.repl.format.reader import DumpReader
from hms_bridge.repl.load.replica import ReplicaNames
from hms_bridge.repl.remedies import bring_anew, taken_over
from hms_bridge.repl.target_objects import HANDOVER, diverged_tables, has_taken_over


def refuse_successor(database: Database | None) -> None:
    """Raises ReplError for a replica that takes its source's place, or has."""
    if database is None or HANDOVER not in database.parameters:
        return
    if has_taken_over(database.parameters):
        raise ReplError(taken_over(database.name))
    raise ReplError(
        f"database {database.name} is being promoted: 'repl promote POLICY' again, which goes on; "
        "nothing is loaded into it any more"
    )


def require_whole(names: ReplicaNames, reader: DumpReader, database: Database) -> None:
    """Raises ReplError where a dump does not bring those tables whole that a former source has
    otherwise."""
    diverged = diverged_tables(database)
    lacking = sorted(diverged - reader.names_anew)
    if lacking:
        raise ReplError(
            f"{', '.join(lacking)} of database {database.name} changed here alone when it was a "
            f"source, and {reader.paths.root} does not bring that whole: 'repl failback' does. "
            + bring_anew(names.source_database, sorted(diverged), names.target_database)
        )
