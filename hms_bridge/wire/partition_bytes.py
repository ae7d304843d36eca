"""Partitions as bytes (:mod:`hms_bridge.wire.struct_bytes`): tables have thousands, which differ in
their values, places, times and parameters. Names, columns and formats are encoded once for all that
have the same objects, as partitions of one statement do (:mod:`hms_bridge.catalog.storage`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter
from struct import Struct as BinaryLayout

from thrift.Thrift import TType

from hms_bridge.model.catalog import Partition, Storage
from hms_bridge.wire.convert_catalog import storage_to_struct
from hms_bridge.wire.struct_bytes import END, EncodedStructs, field_bytes, field_header
from hms_bridge.wire.structs import hive

_SHARED = attrgetter(*(field.name for field in fields(Storage) if field.name != "location"))
_LENGTH, _LONG = BinaryLayout("!i").pack, BinaryLayout("!q").pack
_TEXTS, _NAMED_TEXTS = BinaryLayout("!bi").pack, BinaryLayout("!bbi").pack
_TIMES = BinaryLayout("!3si3si3s").pack
"""Two numbers between headers."""
_CREATED, _ACCESSED, _STORAGE = (
    field_header(hive.Partition, name) for name in ("createTime", "lastAccessTime", "sd")
)
_VALUES, _PARAMETERS, _WRITE_ID = (
    field_header(hive.Partition, name) for name in ("values", "parameters", "writeId")
)
_LOCATION = field_header(hive.StorageDescriptor, "location")


def partitions_to_bytes(partitions: Sequence[Partition]) -> EncodedStructs:
    """Partition structs."""
    encoder = _Encoder()
    pieces: list[bytes] = []
    for partition in partitions:
        encoder.add(partition, pieces)
    return EncodedStructs(len(partitions), b"".join(pieces))


class _Encoder:
    """Keeps what partitions share. They must live as long as it does: it knows objects by id."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], bytes] = {}
        self._ends: dict[tuple[str, bool | None], tuple[bytes, bytes]] = {}
        self._storages: dict[tuple[int, ...], tuple[bytes, bytes]] = {}
        self._texts: dict[str, bytes] = {}

    def add(self, partition: Partition, pieces: list[bytes]) -> None:
        """The fields in the order of the interface."""
        values, storage, parameters = partition.values, partition.storage, partition.parameters
        pieces += (_VALUES, _TEXTS(TType.STRING, len(values)), *map(_text, values))
        pieces.append(self._names_of(partition.database_name, partition.table_name))
        created, accessed = partition.create_time, partition.last_access_time
        pieces.append(_TIMES(_CREATED, created, _ACCESSED, accessed, _STORAGE))
        before, after = self._around_location(storage)
        pieces.append(before)
        if storage.location is not None:
            pieces += (_LOCATION, _text(storage.location))
        pieces += (after, _PARAMETERS, _NAMED_TEXTS(TType.STRING, TType.STRING, len(parameters)))
        for name, value in parameters.items():
            pieces += (self._known_text(name), self._known_text(value))
        catalog, end = self._end_of(partition.catalog_name, partition.is_statistics_compliant)
        pieces += (catalog, _WRITE_ID, _LONG(partition.write_id), end)

    def _around_location(self, storage: Storage) -> tuple[bytes, bytes]:
        """What stands before and after the place, with the end."""
        key = tuple(map(id, _SHARED(storage)))
        shared = self._storages.get(key)
        if shared is None:
            values = dict(vars(storage_to_struct(storage)))
            values.pop("location", None)
            columns = hive.StorageDescriptor(cols=values.pop("cols"))
            others = hive.StorageDescriptor(**values)
            shared = self._storages[key] = (field_bytes(columns), field_bytes(others) + END)
        return shared

    def _known_text(self, text: str) -> bytes:
        encoded = self._texts.get(text)
        if encoded is None:
            encoded = self._texts[text] = _text(text)
        return encoded

    def _names_of(self, database: str, table: str) -> bytes:
        names = self._names.get((database, table))
        if names is None:
            names = field_bytes(hive.Partition(dbName=database, tableName=table))
            self._names[database, table] = names
        return names

    def _end_of(self, catalog: str, is_compliant: bool | None) -> tuple[bytes, bytes]:
        end = self._ends.get((catalog, is_compliant))
        if end is None:
            last = hive.Partition(isStatsCompliant=is_compliant)
            end = (field_bytes(hive.Partition(catName=catalog)), field_bytes(last) + END)
            self._ends[catalog, is_compliant] = end
        return end


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _LENGTH(len(encoded)) + encoded
