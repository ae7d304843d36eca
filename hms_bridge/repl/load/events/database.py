"""Replay of the database itself."""

from __future__ import annotations

from hms_bridge.repl.format.event_payload import Payload
from hms_bridge.repl.format.reader import DumpedEvent
from hms_bridge.repl.load.events.context import ReplayContext
from hms_bridge.repl.target_objects import altered_database
from hms_bridge.wire.object_json import database_from_json


def create_database(context: ReplayContext, event: DumpedEvent) -> None:
    """The bootstrap has created it."""


def alter_database(context: ReplayContext, event: DumpedEvent) -> None:
    """Take over owner, description and parameters; those of the replication stay."""
    payload = event.read(Payload)
    source = database_from_json(payload.text("dbObjAfterJson"))
    replica = context.replica
    existing = replica.database()
    changed = altered_database(existing, source)
    if changed != existing:
        replica.metastore.alter_database(replica.names.target_database, changed)
