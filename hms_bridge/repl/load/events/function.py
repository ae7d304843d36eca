"""Replay of functions: create, drop."""

from __future__ import annotations

from hms_bridge.repl.format.event_payload import Payload
from hms_bridge.repl.format.reader import DumpedEvent
from hms_bridge.repl.format.untrusted import checked_name
from hms_bridge.repl.load import functions
from hms_bridge.repl.load.events.context import ReplayContext


def create_function(context: ReplayContext, event: DumpedEvent) -> None:
    """Its files first. In the place of one that a bootstrap has brought."""
    functions.put_function(context.replica, context.reader.event_function(event))


def drop_function(context: ReplayContext, event: DumpedEvent) -> None:
    """Drop it if it is there."""
    payload = event.read(Payload)
    name = checked_name(payload.text("functionName"), "function")
    replica = context.replica
    if functions.find_function(replica, name) is not None:
        replica.metastore.drop_function(replica.names.target_database, name)
