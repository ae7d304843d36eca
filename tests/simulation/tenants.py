"""Others on the same disk: a database of somebody else, and files that no metastore knows (I12)."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from hms_bridge.acid.names import DirectoryName
from hms_bridge.errors import HmsBridgeError
from hms_bridge.model.catalog import Database, Table, TableType
from hms_bridge.model.txn import AllocateWriteIdsRequest, CommitTxnRequest, OpenTxnsRequest
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.orc.types import struct_type
from hms_bridge.rows.writer import DeltaTarget
from tests.simulation.disk import Directory, File
from tests.simulation.foreign_files import write_bucket
from tests.simulation.plain_reader import Rows, events_of

if TYPE_CHECKING:
    from tests.simulation.cluster import Cluster

OTHER, OTHER_TABLE = "oth", "u"
_HIDDEN_FILES = (".keep", "_notes", "_export/data.csv")


@dataclass
class Foreign:
    """A file of somebody else. `is_movable`: it goes where a table's directory goes, and away when
    that table or partition is dropped."""

    path: str
    file: File
    data: bytes
    is_movable: bool


def make_other_database(cluster: Cluster, table: Table) -> Rows:
    """A tenant with one table of two rows beside the source's. The rows."""
    store = cluster.source.metastore
    store.create_database(Database(name=OTHER))
    store.create_table(replace(table, database_name=OTHER, name=OTHER_TABLE))
    (txn_id,) = store.open_txns(OpenTxnsRequest(user="o", host="h"))
    (given,) = store.allocate_table_write_ids(
        AllocateWriteIdsRequest(database_name=OTHER, table_name=OTHER_TABLE, txn_ids=(txn_id,))
    )
    root = f"/source/{OTHER}.db/{OTHER_TABLE}"
    columns = [(column.name, parse_hive_type(column.type)) for column in table.storage.columns]
    target = DeltaTarget(
        table=struct_type([name for name, _ in columns], [kind for _, kind in columns]),
        write_id=given.write_id,
        statement_id=0,
    )
    arrays = [pa.array([-1, -2], pa.int32()), pa.array(["x", "y"])]
    batch = pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in columns])
    name, token = DirectoryName.delta(given.write_id, given.write_id, 0), f"write_v{txn_id:07d}"
    write_bucket(cluster.volume, root, name, target, token, lambda it: it.insert(0, batch))
    store.commit_txn(CommitTxnRequest(txn_id=txn_id))
    return {
        row_id: row
        for path, file in cluster.disk.files(root)
        if path.rpartition("/")[2].startswith("bucket_")
        for _, _, row_id, row in events_of(file.data)
        if row is not None
    }


class Tenants:
    """What others do with the disk, each a method that an actor runs to its end."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def plant_file(self, dice: random.Random) -> None:
        """Somebody puts a file into the directory of a table or partition, or what is left of one
        that was dropped."""
        disk = self.cluster.disk
        tables = self.cluster.model.tables
        found = [
            place
            for name in sorted(tables)
            for _, place in sorted(self.cluster.source.places(name).items())
        ]
        gone = sorted(self.cluster.dropped.keys() - tables.keys())
        found += [f"{self.cluster.source.directory}/{name}" for name in gone]
        found = [place for place in found if isinstance(disk.find(place), Directory)]
        if not found:
            return
        place = dice.choice(found)
        path = f"{place}/{dice.choice(_HIDDEN_FILES)}"
        self._plant(path, b"foreign", is_movable=True)

    def plant_table(self, dice: random.Random) -> None:
        """An external table of another database, in an odd place."""
        tables = sorted(self.cluster.model.tables)
        number = len(self.cluster.foreign)
        above = [self.cluster.source.directory, "/elsewhere", "/source"]
        above += [self.cluster.source.table_location(one).removeprefix("file:") for one in tables]
        location = f"{dice.choice(above)}/_x{number}"
        table = replace(
            self.cluster.table(f"x{number}", is_partitioned=False),
            database_name=OTHER,
            type=TableType.EXTERNAL_TABLE.value,
            parameters={"EXTERNAL": "TRUE"},
        )
        storage = replace(table.storage, location=f"file:{location}")
        try:
            self.cluster.source.metastore.create_table(replace(table, storage=storage))
        except (HmsBridgeError, OSError):
            return
        self._plant(f"{location}/data.csv", b"external", is_movable=False)

    def _plant(self, path: str, data: bytes, *, is_movable: bool) -> None:
        disk = self.cluster.disk
        if disk.find(path) is not None:
            return
        disk.make_directories(path.rpartition("/")[0])
        disk.put(path, data, is_new=True)
        disk.sync_file(path)
        disk.settle_names_above(path)
        disk.version += 1
        self.cluster.foreign.append(Foreign(path, disk.file(path), data, is_movable))


def files(cluster: Cluster) -> list[Foreign]:
    """Of the other database."""
    root = f"/source/{OTHER}.db/{OTHER_TABLE}"
    return [
        Foreign(f"{root}/{path}", file, file.data, is_movable=False)
        for path, file in cluster.disk.files(root)
    ]


def missing(cluster: Cluster) -> Foreign | None:
    """A file of somebody else that is not where it was, or not what it was."""
    for foreign in cluster.foreign:
        there = cluster.disk.find(foreign.path)
        is_there = there is foreign.file
        if not is_there and foreign.is_movable:
            is_there = _is_somewhere(cluster, foreign)
        if not is_there or foreign.file.data != foreign.data:
            return foreign
    return None


def _is_somewhere(cluster: Cluster, foreign: Foreign) -> bool:
    return any(
        file is foreign.file
        for above in ("source", "target", "elsewhere")
        for _, file in cluster.disk.files(f"/{above}")
    )


def forget(cluster: Cluster, table: str, partitions: Collection[str]) -> None:
    """A table or partition is dropped or renamed: what lay in it goes with it."""
    is_whole = set(partitions) >= set(cluster.model.tables[table].partitions)
    cluster.foreign = [
        one
        for one in cluster.foreign
        if not one.is_movable
        or f"/{table}/" not in one.path
        or not (is_whole or any(f"/{name}/" in one.path for name in partitions))
    ]
