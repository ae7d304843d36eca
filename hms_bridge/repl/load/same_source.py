"""Whether a dump is of the source that the replica is of.

Each metastore counts its events from 1, so that an incremental dump of another one, or of another
root, may fit by its numbers. The replica notes the event of its last whole load with the hash that
the dump has of it; the dump that follows begins at that event. Dumps of Hive have no hashes.
"""

from __future__ import annotations

from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Database
from hms_bridge.model.ids import EventId
from hms_bridge.repl.format.reader import DumpReader
from hms_bridge.repl.remedies import begin_anew
from hms_bridge.repl.target_objects import ORIGIN


def origin_note(reader: DumpReader) -> dict[str, str | None]:
    """The property that a load of the whole dump leaves; none where the dump does not name it."""
    event_id = reader.metadata.last_event_id
    noted = reader.origin().get(event_id)
    return {ORIGIN: None if noted is None else f"{event_id} {noted}"}


def require_same_source(reader: DumpReader, database: Database | None) -> None:
    """Raises ReplError if another event than the replica's has its number in the dump, or if the
    dump begins before the replica's last whole load and knows nothing of its end.

    A note that is older than the dump says nothing: something else has loaded since.
    """
    text = "" if database is None else database.parameters.get(ORIGIN, "")
    number, _, noted = text.partition(" ")
    hashes = reader.origin()
    if database is None or not (number.isascii() and number.isdecimal()) or not hashes:
        return
    event_id, metadata = EventId(int(number)), reader.metadata
    if event_id in hashes:
        is_other = hashes[event_id] != noted
    else:  # its own ends may be purged from the source's log before it is made
        is_other = event_id > metadata.from_event_id and event_id != metadata.to_event_id
    if is_other:
        raise ReplError(
            f"{reader.paths.root} is a dump of another source than that of database "
            f"{database.name}: what it knows of event {event_id}, at which the last load ended, is "
            "another event, or nothing. Look at --root and --metastore. If the source was replaced "
            "or restored from a backup: " + begin_anew(reader.source_database, database.name)
        )
