"""What the recorded calls are about: a database with an external table and an ACID table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hms_bridge.wire.structs import Struct, hive

Send = Callable[..., Any]
"""Sends a method by its name and its arguments by theirs; what it answers."""

DATABASE, T, A = "more", "t", "a"
_ORC = "org.apache.hadoop.hive.ql.io.orc"
_CAPABILITIES = [
    "EXTWRITE", "EXTREAD", "HIVEBUCKET2", "HIVEFULLACIDREAD", "HIVEFULLACIDWRITE",
    "HIVEMANAGESTATS", "HIVEMANAGEDINSERTWRITE", "HIVEMANAGEDINSERTREAD", "HIVESQL", "HIVEMQT",
]  # fmt: skip
"""Of a client, without which Hive makes no ACID table."""


@dataclass(frozen=True)
class Asked:
    """A metastore that is asked: ``send``, and where its databases and external tables lie."""

    send: Send
    warehouse: str
    external: str

    def __call__(self, name: str, /, **arguments: Any) -> Any:
        return self.send(name, **arguments)

    def table(self, name: str, keys: Sequence[str] = (), **fields: Any) -> Struct:
        """An external one."""
        return hive.Table(**{
            "dbName": DATABASE, "tableName": name, "owner": "ann", "tableType": "EXTERNAL_TABLE",
            "sd": storage(f"file:{self.external}/{name}"),
            "partitionKeys": [hive.FieldSchema(name=key, type="string") for key in keys],
            "parameters": {"EXTERNAL": "TRUE"}, **fields,
        })  # fmt: skip

    def partition(self, value: str, table: str = T, **fields: Any) -> Struct:
        place = f"file:{self.external}/{table}/ds={value}"
        return hive.Partition(**{
            "catName": "hive", "dbName": DATABASE, "tableName": table, "values": [value],
            "sd": storage(place), "parameters": {"v": value}, **fields,
        })  # fmt: skip

    def make(self) -> None:
        """The database and its tables."""
        place = f"file:{self.warehouse}/{DATABASE}.db"
        self("create_database", database=hive.Database(
            name=DATABASE, locationUri=place, ownerName="ann", ownerType=1, parameters={}
        ))  # fmt: skip
        self("create_table", tbl=self.table(T, ("ds",)))
        acid = self.table(
            A, sd=storage(f"{place}/{A}"), tableType="MANAGED_TABLE",
            parameters={"transactional": "true", "transactional_properties": "insert_only"},
        )  # fmt: skip
        request = hive.CreateTableRequest(table=acid, processorCapabilities=_CAPABILITIES)
        self("create_table_req", request=request)

    def open(self) -> int:
        """A transaction."""
        request = hive.OpenTxnRequest(num_txns=1, user="u", hostname="h")
        found: int = self("open_txns", rqst=request).txn_ids[0]
        return found

    def allocate(self, txn: int, table: str = A) -> int:
        request = hive.AllocateTableWriteIdsRequest(
            dbName=DATABASE, tableName=table, txnIds=[txn]
        )  # fmt: skip
        answer = self("allocate_table_write_ids", rqst=request)
        found: int = answer.txnToWriteIds[0].writeId
        return found


def storage(location: str) -> Struct:
    return hive.StorageDescriptor(
        cols=[hive.FieldSchema(name="c", type="int"), hive.FieldSchema(name="d", type="string")],
        location=location, inputFormat=f"{_ORC}.OrcInputFormat",
        outputFormat=f"{_ORC}.OrcOutputFormat", compressed=False, numBuckets=-1,
        serdeInfo=hive.SerDeInfo(
            serializationLib=f"{_ORC}.OrcSerde", parameters={"serialization.format": "1"}
        ),
        bucketCols=[], sortCols=[], parameters={},
    )  # fmt: skip


def context(**properties: str) -> Struct:
    return hive.EnvironmentContext(properties=properties)
