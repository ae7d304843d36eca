"""All rows of a table as its metastore and its files show them now, with row ids."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from changemanager.location import Resolver
from hms_bridge.directories.listing import list_acid_directory
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table
from hms_bridge.orc.timestamps import TimestampForm
from hms_bridge.rows.reader import Projection, has_raw_rows
from hms_bridge.session.transaction import current_snapshot
from hms_bridge.snapshot.plan import plan_read
from tests.support.golden_values import golden_rows, partition_value, table_type
from tests.support.plan_rows import read_plan


def acid_rows(
    metastore: Metastore, resolve: Resolver, database: str, name: str
) -> list[dict[str, Any]]:
    """Rows of a full-ACID ORC table as the goldens write them, ordered by partition and row id."""
    table = metastore.get_table(database, name)
    found = [
        {"row__id": row["row__id"], **row["values"], **partition}
        for location, partition in _roots(metastore, table)
        for row in _rows(metastore, resolve, table, location)
    ]
    return sorted(found, key=row_order)


def row_order(row: dict[str, Any]) -> str:
    """Rows of a table in one order, whatever the order in which they were read."""
    return repr(sorted((key, repr(value)) for key, value in row.items()))


def _roots(metastore: Metastore, table: Table) -> Iterator[tuple[str, dict[str, Any]]]:
    if not table.is_partitioned:
        yield str(table.storage.location), {}
        return
    nodes = table_type([(one.name, one.type) for one in table.partition_columns]).children
    for one in metastore.get_partitions(table.database_name, table.name):
        values = {
            column.name: partition_value(value, node)
            for column, value, node in zip(table.partition_columns, one.values, nodes, strict=True)
        }
        yield str(one.storage.location), values


def _rows(
    metastore: Metastore, resolve: Resolver, table: Table, location: str
) -> Iterator[dict[str, Any]]:
    place = resolve(location)
    volume = place.volume
    txns = current_snapshot(metastore)
    (write_ids,) = metastore.get_valid_write_ids([table.full_name], txns)
    listing = list_acid_directory(
        volume, place.path, has_raw_rows=functools.partial(has_raw_rows, volume)
    )
    plan = plan_read(
        listing, txns=txns, write_ids=write_ids, is_bucketed=bool(table.storage.bucket_columns)
    )
    row_type = table_type([(one.name, one.type) for one in table.storage.columns])
    projection = Projection(table=row_type, has_row_id=True, timestamps=TimestampForm.PARTS)
    for batch in read_plan(volume, plan, projection):
        yield from golden_rows(batch, row_type)
