"""Places of partitions in events that are of many at once, and of none what it was before."""

from __future__ import annotations

from collections.abc import Iterable

from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.partition_name import partition_name
from hms_bridge.repl.format.passed_kinds import PLACES, refusal
from hms_bridge.repl.remedies import bring_anew


def require_usual_places(table: Table, partitions: Iterable[Partition], where: str) -> None:
    """Raises ReplError for a managed partition that does not lie below its table.

    ALTER_PARTITIONS (JSONAlterPartitionsMessage) has partitions as they are after the change only.
    One that is where its table would put it has not been given another place; any other may have,
    just now, and its files would stay behind.
    """
    if table.is_external or table.storage.location is None:
        return
    root = table.storage.location.rstrip("/")
    for partition in partitions:
        try:
            name = partition_name(table.partition_columns, partition.values)
        except MetaError:
            name = "/".join(partition.values)
        if (partition.storage.location or "").rstrip("/") != f"{root}/{name}":
            raise refusal(
                where,
                PLACES,
                f"partition {name} of {table.full_name} at {partition.storage.location} may have "
                "been given this place just now, which",
                bring_anew(table.database_name, [table.name]),
            )
