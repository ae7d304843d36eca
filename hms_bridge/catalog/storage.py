"""Storage descriptors: SDS, the column lists (CDS) and SerDes they use, and their small lists.

A table and those of its partitions that have the same columns share one column list, as in
Hive; a list that nobody uses any more is removed (docs/hive/metastore.md §30).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Row, delete, exists, insert, select, update

from hms_bridge.backend.batches import batches, insert_rows
from hms_bridge.backend.columns import Columns, Kept
from hms_bridge.backend.fixed_sql import put_rows
from hms_bridge.backend.schema import catalog_tables as t
from hms_bridge.backend.sequences import next_sequence_values
from hms_bridge.catalog.details import Details, Owners
from hms_bridge.catalog.parameters import insert_parameters
from hms_bridge.catalog.skew import delete_skew, insert_skew, load_skew
from hms_bridge.model.catalog import Column, SerDe, Skew, Storage

_MODEL = "org.apache.hadoop.hive.metastore.model"
COLUMN_LIST_SEQUENCE = f"{_MODEL}.MColumnDescriptor"
SERDE_SEQUENCE = f"{_MODEL}.MSerDeInfo"
STORAGE_SEQUENCE = f"{_MODEL}.MStorageDescriptor"

_ALIKE_COLUMNS = (
    t.SDS.c.CD_ID,
    t.SDS.c.INPUT_FORMAT,
    t.SDS.c.OUTPUT_FORMAT,
    t.SDS.c.IS_COMPRESSED,
    t.SDS.c.NUM_BUCKETS,
    t.SDS.c.IS_STOREDASSUBDIRECTORIES,
    t.SERDES.c.NAME.label("SERDE_NAME"),
    t.SERDES.c.SLIB,
    t.SERDES.c.DESCRIPTION,
    t.SERDES.c.SERIALIZER_CLASS,
    t.SERDES.c.DESERIALIZER_CLASS,
    t.SERDES.c.SERDE_TYPE,
)
"""Mostly the same in all partitions of a table."""
STORAGE_COLUMNS = (t.SDS.c.SD_ID, t.SDS.c.SERDE_ID, t.SDS.c.LOCATION, *_ALIKE_COLUMNS)
"""What a statement that joins SDS and SERDES selects last, for :func:`storage_from_row`."""


_STORAGE = Columns(
    Storage,
    input_format="INPUT_FORMAT",
    output_format="OUTPUT_FORMAT",
    is_compressed=Kept("IS_COMPRESSED", bool),
    location="LOCATION",
    bucket_count=Kept("NUM_BUCKETS", int),
    is_stored_as_subdirectories=Kept("IS_STOREDASSUBDIRECTORIES", bool),
)
_SERDE = Columns(
    SerDe,
    name="SERDE_NAME",
    library="SLIB",
    description="DESCRIPTION",
    serializer_class="SERIALIZER_CLASS",
    deserializer_class="DESERIALIZER_CLASS",
    type=Kept("SERDE_TYPE", lambda number: number or None, lambda number: number or 0),
)


_NO_SKEW = Skew()
_NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, kw_only=True, slots=True)
class StorageKey:
    """The rows that one storage descriptor is made of."""

    storage_id: int
    serde_id: int | None
    column_list_id: int | None


def storage_key(row: Row[*tuple[Any, ...]]) -> StorageKey | None:
    """The key in a row that has STORAGE_COLUMNS; None for a view without storage."""
    if row.SD_ID is None:
        return None
    return StorageKey(storage_id=row.SD_ID, serde_id=row.SERDE_ID, column_list_id=row.CD_ID)


def owners_of(keys: Collection[StorageKey]) -> Owners:
    """Whose details belong to these descriptors; each shared column list once."""
    return Owners(
        storages=[key.storage_id for key in keys],
        serdes=[key.serde_id for key in keys if key.serde_id is not None],
        column_lists=list(
            dict.fromkeys(k.column_list_id for k in keys if k.column_list_id is not None)
        ),
    )


def owners_in(rows: Sequence[Any]) -> Owners:
    """As :func:`owners_of`, of rows that have STORAGE_COLUMNS: lists of partitions are long."""
    stored = [row for row in rows if row.SD_ID is not None]
    lists = dict.fromkeys([row.CD_ID for row in stored])
    return Owners(
        storages=[row.SD_ID for row in stored],
        serdes=[row.SERDE_ID for row in stored if row.SERDE_ID is not None],
        column_lists=[key for key in lists if key is not None],
    )


def load_skews(connection: Connection, details: Details) -> Mapping[int, Skew]:
    """Skew of those descriptors that have skewed columns; nothing is asked if none has."""
    return load_skew(connection, details.skewed_columns) if details.skewed_columns else {}


def storage_from_row(
    row: Row[Any], details: Details, skews: Mapping[int, Skew], columns: tuple[Column, ...]
) -> Storage:
    """The record of a row that has STORAGE_COLUMNS."""
    if row.SD_ID is None:
        return Storage()
    serde = _SERDE.read(row, parameters=details.parameters["serdes"].get(row.SERDE_ID, {}))
    return _STORAGE.read(
        row,
        columns=columns,
        serde=serde,
        bucket_columns=tuple(details.bucket_columns.get(row.SD_ID, ())),
        sort_columns=tuple(details.sort_columns.get(row.SD_ID, ())),
        parameters=details.parameters["storages"].get(row.SD_ID, {}),
        skew=skews.get(row.SD_ID, _NO_SKEW),
    )


def alikeness(details: Details, skews: Mapping[int, Skew]) -> Callable[[Any], object]:
    """What is the same for rows whose records differ in nothing but their place."""
    serdes, storages = details.parameters["serdes"], details.parameters["storages"]
    buckets, sorts = details.bucket_columns, details.sort_columns
    described = {*storages, *buckets, *sorts}  # hardly any storage: most rows are done at once

    def of(row: Any) -> object:
        key = row.SD_ID
        columns = row[-len(_ALIKE_COLUMNS) :]
        parameters = tuple(serdes.get(row.SERDE_ID, _NOTHING).items())
        if key in skews:
            return key
        if key not in described:
            return columns, parameters
        return (
            columns,
            parameters,
            tuple(storages.get(key, _NOTHING).items()),
            tuple(buckets.get(key, ())),
            tuple(sorts.get(key, ())),
        )

    return of


def as_read_for_acid(storage: Storage) -> Storage:
    """What is answered about the storage of a full ACID table or its partitions.

    Hive reads neither sort columns nor parameters nor skew there, because nothing uses them
    (ObjectStore.convertToStorageDescriptor; docs/hive/metastore.md §30); its events show that. The
    rows stay until new values replace them.
    """
    return replace(
        storage,
        sort_columns=(),
        parameters={},
        skew=_NO_SKEW,
        serde=SerDe(name=storage.serde.name, library=storage.serde.library),
    )


def insert_column_list(connection: Connection, columns: Sequence[Column]) -> int:
    """A new column list; its CD_ID."""
    key = next_sequence_values(connection, COLUMN_LIST_SEQUENCE, 1)
    connection.execute(insert(t.CDS).values(CD_ID=key))
    rows = [
        {
            "CD_ID": key,
            "COLUMN_NAME": column.name.lower(),
            "TYPE_NAME": column.type,
            "COMMENT": column.comment,
            "INTEGER_IDX": place,
        }
        for place, column in enumerate(columns)
    ]
    insert_rows(connection, t.COLUMNS_V2, rows)
    return key


def insert_storages(
    connection: Connection, storages: Sequence[Storage], column_list_ids: Sequence[int]
) -> tuple[StorageKey, ...]:
    """New descriptors, each over a column list that exists; their keys in the same order."""
    if not storages:
        return ()
    first_serde = next_sequence_values(connection, SERDE_SEQUENCE, len(storages))
    first_storage = next_sequence_values(connection, STORAGE_SEQUENCE, len(storages))
    keys = tuple(
        StorageKey(
            storage_id=first_storage + place, serde_id=first_serde + place, column_list_id=list_id
        )
        for place, list_id in enumerate(column_list_ids)
    )
    pairs = list(zip(keys, storages, strict=True))
    put_rows(
        connection,
        t.SERDES,
        [{"SERDE_ID": key.serde_id, **_serde_values(storage.serde)} for key, storage in pairs],
    )
    put_rows(
        connection,
        t.SDS,
        [
            {
                "SD_ID": key.storage_id,
                "SERDE_ID": key.serde_id,
                "CD_ID": key.column_list_id,
                **_STORAGE.values(storage),
            }
            for key, storage in pairs
        ],
    )
    _insert_lists(connection, pairs)
    return keys


def _serde_values(serde: SerDe) -> dict[str, Any]:
    values = _SERDE.values(serde)
    return {"NAME": values.pop("SERDE_NAME"), **values}


def _insert_lists(connection: Connection, pairs: Sequence[tuple[StorageKey, Storage]]) -> None:
    serde_parameters = [(key.serde_id, storage.serde.parameters) for key, storage in pairs]
    insert_parameters(connection, t.SERDE_PARAMS, serde_parameters)
    parameters = [(key.storage_id, storage.parameters) for key, storage in pairs]
    insert_parameters(connection, t.SD_PARAMS, parameters)
    buckets = [
        {"SD_ID": key.storage_id, "BUCKET_COL_NAME": name.lower(), "INTEGER_IDX": place}
        for key, storage in pairs
        for place, name in enumerate(storage.bucket_columns)
    ]
    sorts = [
        {
            "SD_ID": key.storage_id,
            "COLUMN_NAME": column.name.lower(),
            "ORDER": column.order,
            "INTEGER_IDX": place,
        }
        for key, storage in pairs
        for place, column in enumerate(storage.sort_columns)
    ]
    # One statement a list, however many descriptors: partitions are added by the thousand.
    insert_rows(connection, t.BUCKETING_COLS, buckets)
    insert_rows(connection, t.SORT_COLS, sorts)
    for key, storage in pairs:
        if storage.skew.columns:
            insert_skew(connection, key.storage_id, storage.skew)


def update_storage(
    connection: Connection, key: StorageKey, old: Storage, new: Storage, column_list_id: int
) -> None:
    """Make a descriptor what ``new`` says; what did not change is not written."""
    if old == new and key.column_list_id == column_list_id:
        return
    connection.execute(
        update(t.SDS)
        .where(t.SDS.c.SD_ID == key.storage_id)
        .values(CD_ID=column_list_id, **_STORAGE.values(new))
    )
    connection.execute(
        update(t.SERDES)
        .where(t.SERDES.c.SERDE_ID == key.serde_id)
        .values(**_serde_values(new.serde))
    )
    _delete_lists(connection, [key])
    _insert_lists(connection, [(key, new)])


def delete_storages(connection: Connection, keys: Sequence[StorageKey]) -> None:
    """Remove descriptors and their SerDes; the caller has removed what refers to them."""
    for piece in batches(keys):
        _delete_lists(connection, piece)
        ids = [key.storage_id for key in piece]
        serdes = [key.serde_id for key in piece if key.serde_id is not None]
        connection.execute(delete(t.SDS).where(t.SDS.c.SD_ID.in_(ids)))
        connection.execute(delete(t.SERDES).where(t.SERDES.c.SERDE_ID.in_(serdes)))
    delete_unused_column_lists(
        connection, {key.column_list_id for key in keys if key.column_list_id is not None}
    )


def _delete_lists(connection: Connection, keys: Sequence[StorageKey]) -> None:
    ids = [key.storage_id for key in keys]
    serdes = [key.serde_id for key in keys if key.serde_id is not None]
    for table in (t.SD_PARAMS, t.BUCKETING_COLS, t.SORT_COLS):
        connection.execute(delete(table).where(table.c.SD_ID.in_(ids)))
    connection.execute(delete(t.SERDE_PARAMS).where(t.SERDE_PARAMS.c.SERDE_ID.in_(serdes)))
    delete_skew(connection, ids)


def delete_unused_column_lists(connection: Connection, ids: Collection[int]) -> None:
    """Remove those of these column lists that no descriptor uses."""
    for piece in batches(sorted(ids)):
        used = set(connection.scalars(select(t.SDS.c.CD_ID).where(t.SDS.c.CD_ID.in_(piece))))
        unused = [key for key in piece if key not in used]
        if not unused:
            continue
        connection.execute(delete(t.COLUMNS_V2).where(t.COLUMNS_V2.c.CD_ID.in_(unused)))
        # Asked again in the statement: another transaction may have begun to use one.
        connection.execute(
            delete(t.CDS).where(
                t.CDS.c.CD_ID.in_(unused),
                ~exists().where(t.SDS.c.CD_ID == t.CDS.c.CD_ID),
            )
        )
