"""Replay of constraints: add, drop."""

from __future__ import annotations

from hms_bridge.repl.format.constraints import ADDED, added_constraints
from hms_bridge.repl.format.event_payload import Payload
from hms_bridge.repl.format.reader import DumpedEvent
from hms_bridge.repl.format.untrusted import checked_name
from hms_bridge.repl.load import constraints
from hms_bridge.repl.load.events.context import ReplayContext


def add_constraints(context: ReplayContext, event: DumpedEvent) -> None:
    """Put them in the place of what is there. A Hive reports a foreign key of another database's
    table here, if it refers to one of this database: that table is not ours."""
    payload = event.read(Payload)
    replica = context.replica
    for added in added_constraints(payload, ADDED[event.type]):
        if added.database_name != replica.names.source_database:
            continue
        table = context.table_or_gone(added.table_name, event)
        if table is not None and not replica.is_newer(table.parameters, event.id):
            constraints.put_constraints(replica, table, added)


def drop_constraint(context: ReplayContext, event: DumpedEvent) -> None:
    """Drop one, unless the table is of a later incarnation."""
    payload = event.read(Payload)
    replica = context.replica
    table = context.table_or_gone(checked_name(payload.text("tableName"), "table"), event)
    if table is not None and not replica.is_newer(table.parameters, event.id):
        constraints.drop_constraint(replica, table.name, payload.text("constraintName").lower())
