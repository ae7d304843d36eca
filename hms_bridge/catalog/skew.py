"""Skewed columns: which values have, or may have, a directory of their own.

Each value tuple is a row of SKEWED_STRING_LIST; two tables point to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection, delete, insert, select

from hms_bridge.backend.batches import batches, insert_rows
from hms_bridge.backend.schema import catalog_tables as t
from hms_bridge.backend.sequences import next_sequence_values
from hms_bridge.model.catalog import Skew

STRING_LIST_SEQUENCE = "org.apache.hadoop.hive.metastore.model.MStringList"


def load_skew(connection: Connection, columns: Mapping[int, Sequence[str]]) -> Mapping[int, Skew]:
    """The skew of storage descriptors whose skewed columns are known, by SD_ID."""
    skews: dict[int, Skew] = {}
    for piece in batches(list(columns)):
        values = connection.execute(
            select(t.SKEWED_VALUES.c.SD_ID_OID, t.SKEWED_VALUES.c.STRING_LIST_ID_EID)
            .where(t.SKEWED_VALUES.c.SD_ID_OID.in_(piece))
            .order_by(t.SKEWED_VALUES.c.INTEGER_IDX)
        ).all()
        locations = connection.execute(
            select(
                t.SKEWED_COL_VALUE_LOC_MAP.c.SD_ID,
                t.SKEWED_COL_VALUE_LOC_MAP.c.STRING_LIST_ID_KID,
                t.SKEWED_COL_VALUE_LOC_MAP.c.LOCATION,
            ).where(t.SKEWED_COL_VALUE_LOC_MAP.c.SD_ID.in_(piece))
        ).all()
        lists = _string_lists(connection, {row[1] for row in (*values, *locations)})
        for key in piece:
            skews[key] = Skew(
                columns=tuple(columns[key]),
                values=tuple(lists[row[1]] for row in values if row[0] == key),
                locations={lists[row[1]]: row[2] or "" for row in locations if row[0] == key},
            )
    return skews


def _string_lists(connection: Connection, keys: Collection[int]) -> Mapping[int, tuple[str, ...]]:
    texts: dict[int, list[str]] = defaultdict(list)
    table = t.SKEWED_STRING_LIST_VALUES
    for piece in batches(sorted(keys)):
        rows = connection.execute(
            select(table.c.STRING_LIST_ID, table.c.STRING_LIST_VALUE)
            .where(table.c.STRING_LIST_ID.in_(piece))
            .order_by(table.c.INTEGER_IDX)
        )
        for key, value in rows:
            texts[key].append(value or "")
    return {key: tuple(texts.get(key, ())) for key in keys}


def insert_skew(connection: Connection, storage_id: int, skew: Skew) -> None:
    """Store the skew of one descriptor that has none yet."""
    connection.execute(
        insert(t.SKEWED_COL_NAMES),
        [
            {"SD_ID": storage_id, "SKEWED_COL_NAME": name, "INTEGER_IDX": place}
            for place, name in enumerate(skew.columns)
        ],
    )
    tuples = (*skew.values, *skew.locations)
    if not tuples:
        return
    first = next_sequence_values(connection, STRING_LIST_SEQUENCE, len(tuples))
    connection.execute(
        insert(t.SKEWED_STRING_LIST),
        [{"STRING_LIST_ID": first + place} for place in range(len(tuples))],
    )
    texts = [
        {"STRING_LIST_ID": first + place, "STRING_LIST_VALUE": text, "INTEGER_IDX": index}
        for place, values in enumerate(tuples)
        for index, text in enumerate(values)
    ]
    insert_rows(connection, t.SKEWED_STRING_LIST_VALUES, texts)
    values = [
        {"SD_ID_OID": storage_id, "STRING_LIST_ID_EID": first + place, "INTEGER_IDX": place}
        for place in range(len(skew.values))
    ]
    insert_rows(connection, t.SKEWED_VALUES, values)
    locations = [
        {
            "SD_ID": storage_id,
            "STRING_LIST_ID_KID": first + len(skew.values) + place,
            "LOCATION": location,
        }
        for place, location in enumerate(skew.locations.values())
    ]
    insert_rows(connection, t.SKEWED_COL_VALUE_LOC_MAP, locations)


def delete_skew(connection: Connection, storage_ids: Sequence[int]) -> None:
    """Remove the skew of descriptors, and the value tuples that only they used."""
    table, where_at = t.SKEWED_VALUES, t.SKEWED_COL_VALUE_LOC_MAP
    deleted = connection.execute(
        delete(t.SKEWED_COL_NAMES).where(t.SKEWED_COL_NAMES.c.SD_ID.in_(storage_ids))
    )
    if not deleted.rowcount:
        return
    keys = set(
        connection.scalars(
            select(table.c.STRING_LIST_ID_EID).where(table.c.SD_ID_OID.in_(storage_ids))
        )
    ) | set(
        connection.scalars(
            select(where_at.c.STRING_LIST_ID_KID).where(where_at.c.SD_ID.in_(storage_ids))
        )
    )
    connection.execute(delete(table).where(table.c.SD_ID_OID.in_(storage_ids)))
    connection.execute(delete(where_at).where(where_at.c.SD_ID.in_(storage_ids)))
    for piece in batches(sorted(keys)):
        for lists in (t.SKEWED_STRING_LIST_VALUES, t.SKEWED_STRING_LIST):
            connection.execute(delete(lists).where(lists.c.STRING_LIST_ID.in_(piece)))
