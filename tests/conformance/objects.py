"""Objects that the behaviour suites make, and small questions that they ask."""

from __future__ import annotations

import itertools
import os

from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import (
    ORC_INPUT_FORMAT,
    ORC_OUTPUT_FORMAT,
    ORC_SERDE,
    Column,
    Database,
    Partition,
    SerDe,
    Storage,
    Table,
    TableType,
)
from hms_bridge.model.event import NotificationEvent, NotificationRequest
from hms_bridge.model.ids import NO_TXN, EventId, TxnId, WriteId
from hms_bridge.model.lock import DataOperation, LockComponent, LockLevel, LockRequest, LockType
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import (
    AbortTxnRequest,
    AllocateWriteIdsRequest,
    CommitTxnRequest,
    OpenTxnsRequest,
    TxnType,
)

_COUNTER = itertools.count(1)

ACID = {"transactional": "true"}
COLUMNS = (Column(name="id", type="int"), Column(name="name", type="string", comment="who"))
DS = (Column(name="ds", type="string"),)
DS_HR = (*DS, Column(name="hr", type="int"))


def unique(prefix: str) -> str:
    """A name that no other test of this or another run uses."""
    return f"{prefix}_{os.getpid()}_{next(_COUNTER)}"


def new_database(metastore: Metastore, **given: object) -> str:
    name = unique("db")
    metastore.create_database(Database(name=name, **given))  # type: ignore[arg-type]
    return name


def orc_storage(columns: tuple[Column, ...] = COLUMNS, **given: object) -> Storage:
    values: dict[str, object] = {
        "columns": columns,
        "input_format": ORC_INPUT_FORMAT,
        "output_format": ORC_OUTPUT_FORMAT,
        "serde": SerDe(library=ORC_SERDE, parameters={"serialization.format": "1"}),
    } | given
    return Storage(**values)  # type: ignore[arg-type]


def acid_table(database: str, name: str = "t", **given: object) -> Table:
    values: dict[str, object] = {
        "name": name, "database_name": database, "owner": "hive", "storage": orc_storage(),
        "parameters": dict(ACID), "type": TableType.MANAGED_TABLE.value,
    } | given  # fmt: skip
    return Table(**values)  # type: ignore[arg-type]


def new_table(metastore: Metastore, database: str, name: str = "t", **given: object) -> Table:
    metastore.create_table(acid_table(database, name, **given))
    return metastore.get_table(database, name)


def partition(database: str, table: str, *values: str, **given: object) -> Partition:
    made: dict[str, object] = {"storage": orc_storage()} | given
    return Partition(
        values=values, database_name=database, table_name=table, **made  # type: ignore[arg-type]
    )  # fmt: skip


def open_txn(metastore: Metastore, kind: TxnType = TxnType.DEFAULT) -> TxnId:
    (txn,) = metastore.open_txns(OpenTxnsRequest(user="u", host="h", type=kind))
    return txn


def commit(metastore: Metastore, txn: TxnId, **given: object) -> None:
    metastore.commit_txn(CommitTxnRequest(txn_id=txn, **given))  # type: ignore[arg-type]


def abort(metastore: Metastore, txn: TxnId) -> None:
    metastore.abort_txn(AbortTxnRequest(txn_id=txn))


def write_id(metastore: Metastore, txn: TxnId, database: str, table: str = "t") -> WriteId:
    (given,) = metastore.allocate_table_write_ids(
        AllocateWriteIdsRequest(database_name=database, table_name=table, txn_ids=(txn,))
    )
    assert given.txn_id == txn
    return given.write_id


def component(
    database: str,
    table: str | None = "t",
    kind: LockType = LockType.SHARED_READ,
    operation: DataOperation | None = DataOperation.SELECT,
    partition_name: str | None = None,
) -> LockComponent:
    level = LockLevel.DB if table is None else LockLevel.TABLE
    return LockComponent(
        type=kind,
        level=LockLevel.PARTITION if partition_name else level,
        scope=Scope(database, table, partition_name),
        operation=operation,
        is_transactional=True,
    )


def request(*components: LockComponent, txn: TxnId = NO_TXN, **given: object) -> LockRequest:
    return LockRequest(
        components=components, txn_id=txn, user="u", host="h", **given  # type: ignore[arg-type]
    )  # fmt: skip


def write(
    metastore: Metastore,
    database: str,
    table: str = "t",
    *,
    operation: DataOperation = DataOperation.INSERT,
    txn: TxnId | None = None,
) -> tuple[TxnId, WriteId]:
    """A transaction with a write id and a lock, still open."""
    txn = open_txn(metastore) if txn is None else txn
    given = write_id(metastore, txn, database, table)
    kind = LockType.SHARED_READ if operation is DataOperation.INSERT else LockType.SHARED_WRITE
    metastore.lock(request(component(database, table, kind, operation), txn=txn))
    return txn, given


def events_after(metastore: Metastore, last: int) -> tuple[NotificationEvent, ...]:
    return metastore.get_next_notification(NotificationRequest(last_event_id=EventId(last)))
