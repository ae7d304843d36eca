"""Changes of an object's place (SET LOCATION), which replay only where no files are left behind."""

from __future__ import annotations

from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.repl.format.dump_metadata import DumpType
from hms_bridge.repl.format.event_payload import Payload
from hms_bridge.repl.format.external_list import external_target
from hms_bridge.repl.format.partition_places import require_usual_places
from hms_bridge.repl.format.passed_kinds import PLACES
from hms_bridge.repl.format.reader import DumpedEvent
from hms_bridge.repl.format.untrusted import DumpRules
from hms_bridge.repl.remedies import bring_anew
from hms_bridge.repl.target_objects import has_moved


def refuse_moved(event: DumpedEvent, rules: DumpRules) -> None:
    """Raises ReplError for a managed table or partition that was given another place. What is there
    no event says; the replica would go on showing the old rows."""
    payload = event.read(Payload)
    altered = _altered(event, payload)
    if altered is None:
        table = payload.table()
        if PLACES not in rules.passed_kinds:
            require_usual_places(table, payload.partitions(), event.where)
        return
    table, before, after = altered
    if table.is_external or not has_moved(before, after):
        return
    raise ReplError(
        f"{event.where}: {table.full_name} was given another place ({before.storage.location} to "
        f"{after.storage.location}), which no event carries. Nothing was changed on the target. "
        + bring_anew(table.database_name, [table.name])
    )


def moved_place(event: DumpedEvent, base: str | None) -> str | None:
    """Where an external object that was given another place is on the target; None for one that
    was not. Raises ReplError without a base directory for such data."""
    altered = _altered(event, event.read(Payload))
    if altered is None:
        return None
    table, before, after = altered
    if not has_moved(before, after):
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


def _altered(
    event: DumpedEvent, payload: Payload
) -> tuple[Table, Table | Partition, Table | Partition] | None:
    return payload.altered(is_table=event.type == DumpType.ALTER_TABLE.value)
