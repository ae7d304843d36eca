"""Replay of functions: drop. Making one is refused: its code would have to come along."""

from __future__ import annotations

from hms_bridge.errors import NoSuchObjectError
from hms_bridge.repl.format.event_payload import Payload
from hms_bridge.repl.format.reader import DumpedEvent
from hms_bridge.repl.format.untrusted import checked_name
from hms_bridge.repl.load.events.context import ReplayContext


def drop_function(context: ReplayContext, event: DumpedEvent) -> None:
    """Drop it if it is there: somebody made it by hand, since no dump brings functions."""
    payload = Payload.parse(event.payload, event.where)
    name = checked_name(payload.text("functionName"), "function")
    replica = context.replica
    try:
        replica.metastore.drop_function(replica.names.target_database, name)
    except NoSuchObjectError:
        return
