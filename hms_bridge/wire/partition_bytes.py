"""Partitions as bytes (:mod:`hms_bridge.wire.struct_bytes`): tables have thousands, which differ in
their values, places, times and parameters. Names are encoded once, and columns and formats once for
all that are stored alike (:class:`hms_bridge.model.partition_list.PartitionRow`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from struct import Struct as BinaryLayout

from thrift.Thrift import TType

from hms_bridge.model.catalog import Partition, Storage
from hms_bridge.model.partition_list import PartitionList, PartitionRow, lists_of
from hms_bridge.wire.convert_catalog import storage_to_struct
from hms_bridge.wire.struct_bytes import (
    END,
    EncodedStructs,
    field_bytes,
    field_header,
    text_bytes,
)
from hms_bridge.wire.structs import hive

_AT_ONCE = 64
"""Of so many partitions a piece is made at once, while the client reads the piece before."""

_LONG = BinaryLayout("!q").pack
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
_ENDS = {
    is_compliant: field_bytes(hive.Partition(isStatsCompliant=is_compliant)) + END
    for is_compliant in (None, False, True)
}


def partitions_to_bytes(partitions: Iterable[Partition]) -> EncodedStructs:
    """Partition structs."""
    lists = lists_of(partitions)
    return EncodedStructs(sum(map(len, lists)), _pieces(lists))


def _pieces(lists: Iterable[PartitionList]) -> Iterator[bytes]:
    encoder = _Encoder()
    for of_table in lists:
        database, table = of_table.database_name, of_table.table_name
        names = field_bytes(hive.Partition(dbName=database, tableName=table))
        catalog = field_bytes(hive.Partition(catName=of_table.catalog_name)) + _WRITE_ID
        rows = iter(of_table.rows)
        while some := list(islice(rows, _AT_ONCE)):
            yield b"".join(encoder.pieces(some, names, catalog))


class _Encoder:
    """Keeps what partitions share."""

    def __init__(self) -> None:
        self._storages: dict[int, tuple[bytes, bytes]] = {}
        self._known_storages: list[Storage] = []
        self._texts: dict[str, bytes] = {}

    def pieces(self, rows: Sequence[PartitionRow], names: bytes, catalog: bytes) -> list[bytes]:
        """The fields in the order of the interface."""
        pieces: list[bytes] = []
        known, storages = self._texts, self._storages
        for row in rows:
            values, created, accessed, storage, location, parameters, write_id, compliant = row
            before, after = storages.get(id(storage)) or self._around_location(storage)
            place = b"" if location is None else _LOCATION + text_bytes(location)
            pieces += (
                _VALUES, _TEXTS(TType.STRING, len(values)), *map(text_bytes, values),
                names, _TIMES(_CREATED, created, _ACCESSED, accessed, _STORAGE),
                before, place, after, _NAMED_TEXTS(TType.STRING, TType.STRING, len(parameters)),
            )  # fmt: skip
            for name, value in parameters.items():
                pieces += (
                    known.get(name) or self._known_text(name),
                    known.get(value) or self._known_text(value),
                )
            pieces += (catalog, _LONG(write_id), _ENDS[compliant])
        return pieces

    def _around_location(self, storage: Storage) -> tuple[bytes, bytes]:
        """What stands before and after the place, up to the parameters."""
        values = dict(vars(storage_to_struct(storage)))
        columns = hive.StorageDescriptor(cols=values.pop("cols"))
        others = hive.StorageDescriptor(**values)
        shared = (field_bytes(columns), field_bytes(others) + END + _PARAMETERS)
        self._storages[id(storage)] = shared
        self._known_storages.append(storage)  # else another one may get its id
        return shared

    def _known_text(self, text: str) -> bytes:
        encoded = self._texts[text] = text_bytes(text)
        return encoded
