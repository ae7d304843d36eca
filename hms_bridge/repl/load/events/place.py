"""Changes of an object's place (SET LOCATION), which replay only where no files are left behind."""

from __future__ import annotations

from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.repl.format.dump_metadata import DumpType
from hms_bridge.repl.format.event_payload import Payload
from hms_bridge.repl.format.external_list import external_target
from hms_bridge.repl.format.passed_kinds import PLACES
from hms_bridge.repl.format.reader import DumpedEvent
from hms_bridge.repl.format.untrusted import DumpRules
from hms_bridge.repl.partition_places import require_usual_places
from hms_bridge.repl.remedies import bring_anew
from hms_bridge.repl.target_objects import has_moved
from hms_bridge.wire.object_json import partition_from_json, table_from_json


def refuse_moved(event: DumpedEvent, rules: DumpRules) -> None:
    """Raises ReplError for a managed table or partition that was given another place. What is there
    no event tells; the replica would go on showing the old rows."""
    table, before, after = _objects(event)
    if before is None and PLACES not in rules.passed_kinds:
        payload = Payload.parse(event.payload, event.where)
        texts = (text for text in payload.texts("partitionListJson") if text)
        require_usual_places(table, map(partition_from_json, texts), event.where)
    if before is None or after is None or table.is_external or not has_moved(before, after):
        return
    raise ReplError(
        f"{event.where}: {table.full_name} was given another place ({before.storage.location} to "
        f"{after.storage.location}), which no event carries. Nothing was changed on the target. "
        + bring_anew(table.database_name, [table.name])
    )


def moved_place(event: DumpedEvent, base: str | None) -> str | None:
    """Where an external object that was given another place is on the target; None for one that
    was not. Raises ReplError without a base directory for such data."""
    table, before, after = _objects(event)
    if before is None or after is None or not has_moved(before, after):
        return None
    if not table.is_external or after.storage.location is None:
        return None
    if base is None:
        raise ReplError(
            f"{event.where}: the external {table.full_name} was given another place: say where its "
            "data goes on the target (--external-base, or "
            "hive.repl.replica.external.table.base.dir), then load again"
        )
    return external_target(base, after.storage.location)


def _objects(
    event: DumpedEvent,
) -> tuple[Table, Table | Partition | None, Table | Partition | None]:
    """The table; what changed of it, before and after. Events of many partitions tell neither."""
    payload = Payload.parse(event.payload, event.where)
    if event.type == DumpType.ALTER_TABLE.value:
        after = table_from_json(payload.text("tableObjAfterJson"))
        return after, table_from_json(payload.text("tableObjBeforeJson")), after
    table = table_from_json(payload.text("tableObjJson"))
    if "partitionObjBeforeJson" not in payload.fields:
        return table, None, None
    return (
        table,
        partition_from_json(payload.text("partitionObjBeforeJson")),
        partition_from_json(payload.text("partitionObjAfterJson")),
    )
