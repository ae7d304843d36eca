"""Calls of each family of the metastore, whose traces in the database bear the name that they were
given.

A writing verb is called with names of its own; its query finds the names of which something is
there, and how many rows of each. So whoever calls them can say of each call whether it was done,
and whether it was done as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hive_metastore import ttypes
from sqlalchemy import Select, func, select

from hms_bridge.backend.schema.catalog_tables import (
    CTLGS,
    DBS,
    PARTITION_PARAMS,
    PARTITIONS,
    TABLE_PARAMS,
    TBLS,
)
from hms_bridge.backend.schema.connector_tables import DATACONNECTORS
from hms_bridge.backend.schema.function_tables import FUNC_RU, FUNCS
from hms_bridge.backend.schema.mark_tables import PARTITION_EVENTS
from hms_bridge.backend.schema.plan_tables import WM_RESOURCEPLAN
from hms_bridge.backend.schema.privilege_tables import ROLES, TBL_PRIVS
from hms_bridge.backend.schema.token_tables import DELEGATION_TOKENS
from hms_bridge.backend.schema.txn_tables import COMPACTION_QUEUE, HIVE_LOCKS, TXNS

DATABASE = "families"
CALLS_MAX = 200
"""Of one verb."""
NOTE = "n" * 1500


@dataclass(frozen=True, kw_only=True, slots=True)
class WritingVerb:
    """``call`` does it, under a name; ``names`` finds the rows that it makes by that name, and
    ``rows`` says how many they are. Rows of transactions that have ended go: what ends one gives
    its id, and ``event`` is what is logged of it."""

    name: str
    call: Callable[[Any, str], Any]
    names: Select[Any] | None = None
    rows: int = 1
    event: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadingVerb:
    """``call`` asks it."""

    name: str
    call: Callable[[Any], object]


def prepare(client: Any, place: str) -> None:
    """A database and a table with partitions, of which all verbs are."""
    client.create_database(ttypes.Database(name=DATABASE, locationUri=f"{place}/families.db"))
    client.create_table(_table("t", place, keys=("ds",)))
    client.create_table(_table("plain", place))
    client.add_partitions([_partition(f"p{number}", place) for number in range(CALLS_MAX)])


def _storage(place: str) -> Any:
    return ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema(name=f"c{n}", type="int") for n in range(2)],
        location=place, inputFormat="x", outputFormat="x", parameters={},
        serdeInfo=ttypes.SerDeInfo(serializationLib="x", parameters={"serialization.format": "1"}),
        bucketCols=[], sortCols=[],
    )  # fmt: skip


def _table(name: str, place: str, keys: tuple[str, ...] = ()) -> Any:
    return ttypes.Table(
        dbName=DATABASE, tableName=name, sd=_storage(f"{place}/{name}"),
        partitionKeys=[ttypes.FieldSchema(name=key, type="string") for key in keys],
        parameters={"EXTERNAL": "TRUE", "note": NOTE}, tableType="EXTERNAL_TABLE",
    )  # fmt: skip


def _partition(value: str, place: str) -> Any:
    return ttypes.Partition(
        dbName=DATABASE, tableName="t", values=[value], sd=_storage(f"{place}/t/ds={value}"),
        parameters={"of": value},
    )  # fmt: skip


def open_txns(client: Any, user: str, count: int = 1) -> list[int]:
    """Transactions of a user, by whose name they are found."""
    request = ttypes.OpenTxnRequest(num_txns=count, user=user, hostname="h")
    ids: list[int] = client.open_txns(request).txn_ids
    return ids


def committed(client: Any, user: str) -> int:
    """A transaction that wrote, from its opening to its commit; its id."""
    (txn,) = open_txns(client, user)
    client.allocate_table_write_ids(
        ttypes.AllocateTableWriteIdsRequest(dbName=DATABASE, tableName="t", txnIds=[txn])
    )
    _lock(client, user, txn)
    client.heartbeat(ttypes.HeartbeatRequest(txnid=txn))
    client.commit_txn(ttypes.CommitTxnRequest(txnid=txn))
    return txn


def _aborted(client: Any, user: str) -> int:
    (txn,) = open_txns(client, user)
    client.abort_txn(ttypes.AbortTxnRequest(txnid=txn))
    return txn


def _lock(client: Any, user: str, txn: int = 0, tables: tuple[str, ...] = ("t",)) -> int:
    parts = [
        ttypes.LockComponent(
            type=ttypes.LockType.SHARED_READ, level=ttypes.LockLevel.TABLE, dbname=DATABASE,
            tablename=table, isTransactional=True, operationType=ttypes.DataOperationType.SELECT,
        ) for table in tables
    ]  # fmt: skip
    request = ttypes.LockRequest(component=parts, txnid=txn, user=user, hostname="h")
    number: int = client.lock(request).lockid
    return number


def _alter_partition(client: Any, name: str, place: str) -> None:
    """Each adds a key to those that are there."""
    partition = _partition("p0", place)
    was = client.get_partition(DATABASE, "t", ["p0"]).parameters
    partition.parameters = {**was, name: "1"}
    client.alter_partition(DATABASE, "t", partition)


def _alter_table(client: Any, name: str) -> None:
    table = client.get_table(DATABASE, "plain")
    table.parameters[name] = "1"
    client.alter_table(DATABASE, "plain", table)


def _add_partitions(client: Any, name: str, place: str) -> None:
    client.add_partitions([_partition(f"{name}-{part}", place) for part in "abc"])


def _function(name: str, place: str) -> Any:
    uris = [ttypes.ResourceUri(resourceType=1, uri=f"{place}/{part}.jar") for part in "ab"]
    return ttypes.Function(
        functionName=name, dbName=DATABASE, className="x", ownerName="u", ownerType=1,
        functionType=1, resourceUris=uris,
    )  # fmt: skip


def _grant(client: Any, name: str) -> None:
    def bag(privilege: str) -> Any:
        return ttypes.HiveObjectPrivilege(
            hiveObject=ttypes.HiveObjectRef(
                objectType=ttypes.HiveObjectType.TABLE, dbName=DATABASE, objectName="t"
            ),
            principalName=name, principalType=1, authorizer="a",
            grantInfo=ttypes.PrivilegeGrantInfo(
                privilege=privilege, createTime=1, grantor="g", grantorType=1, grantOption=False
            ),
        )  # fmt: skip

    client.grant_privileges(ttypes.PrivilegeBag([bag("select"), bag("insert")]))


def _compact(client: Any, name: str) -> None:
    client.compact2(
        ttypes.CompactionRequest(
            dbname=DATABASE, tablename="t", partitionname=f"ds=p{name.rpartition('_')[2]}",
            type=ttypes.CompactionType.MAJOR, runas=name,
        )
    )  # fmt: skip


def _mark(client: Any, name: str) -> None:
    client.markPartitionForEvent(DATABASE, "t", {"ds": name}, 1)


def writing_verbs(place: str) -> list[WritingVerb]:
    """Of each family; ``place``: where their tables are."""
    return [
        WritingVerb(
            name="create_database",
            call=lambda client, name: client.create_database(
                ttypes.Database(name=name, locationUri=f"{place}/{name}.db", parameters={"a": "b"})
            ),
            names=select(DBS.c.NAME),
        ),
        WritingVerb(
            name="create_table",
            call=lambda client, name: client.create_table(_table(name, place)),
            names=select(TBLS.c.TBL_NAME).join(
                TABLE_PARAMS, (TABLE_PARAMS.c.TBL_ID == TBLS.c.TBL_ID)
                & TABLE_PARAMS.c.PARAM_KEY.in_(("EXTERNAL", "note")), isouter=True,
            ),
            rows=2,
        ),
        WritingVerb(name="alter_table", call=_alter_table, names=select(TABLE_PARAMS.c.PARAM_KEY)),
        WritingVerb(
            name="add_partitions",
            call=lambda client, name: _add_partitions(client, name, place),
            names=select(func.substr(PARTITIONS.c.PART_NAME, 4)),
            rows=3,
        ),
        WritingVerb(
            name="alter_partition",
            call=lambda client, name: _alter_partition(client, name, place),
            names=select(PARTITION_PARAMS.c.PARAM_KEY),
        ),
        WritingVerb(
            name="create_function",
            call=lambda client, name: client.create_function(_function(name, place)),
            names=select(FUNCS.c.FUNC_NAME).join(
                FUNC_RU, FUNC_RU.c.FUNC_ID == FUNCS.c.FUNC_ID, isouter=True
            ),
            rows=2,
        ),
        WritingVerb(
            name="create_role",
            call=lambda client, name: client.create_role(ttypes.Role(roleName=name, ownerName="o")),
            names=select(ROLES.c.ROLE_NAME),
        ),
        WritingVerb(
            name="grant_privileges", call=_grant, names=select(TBL_PRIVS.c.PRINCIPAL_NAME), rows=2
        ),
        WritingVerb(
            name="create_catalog",
            call=lambda client, name: client.create_catalog(
                ttypes.CreateCatalogRequest(ttypes.Catalog(name=name, locationUri=f"{place}/c"))
            ),
            names=select(CTLGS.c.NAME),
        ),
        WritingVerb(
            name="create_dataconnector",
            call=lambda client, name: client.create_dataconnector(
                ttypes.DataConnector(name=name, type="x", url="y")
            ),
            names=select(DATACONNECTORS.c.NAME),
        ),
        WritingVerb(
            name="create_resource_plan",
            call=lambda client, name: client.create_resource_plan(
                ttypes.WMCreateResourcePlanRequest(ttypes.WMResourcePlan(name=name))
            ),
            names=select(WM_RESOURCEPLAN.c.NAME),
        ),
        WritingVerb(
            name="add_token",
            call=lambda client, name: client.add_token(name, "x"),
            names=select(DELEGATION_TOKENS.c.TOKEN_IDENT),
        ),
        WritingVerb(
            name="open_txns",
            call=lambda client, name: open_txns(client, name, 3),
            names=select(TXNS.c.TXN_USER),
            rows=3,
        ),
        WritingVerb(name="commit_txn", call=committed, event="COMMIT_TXN"),
        WritingVerb(name="abort_txn", call=_aborted, event="ABORT_TXN"),
        WritingVerb(
            name="lock",
            call=lambda client, name: _lock(client, name, tables=("t", "plain")),
            names=select(HIVE_LOCKS.c.HL_USER).where(HIVE_LOCKS.c.HL_TXNID == 0),
            rows=2,
        ),
        WritingVerb(
            name="compact2", call=_compact, names=select(COMPACTION_QUEUE.c.CQ_RUN_AS)
        ),
        WritingVerb(
            name="mark_partition", call=_mark,
            names=select(PARTITION_EVENTS.c.PARTITION_NAME),
        ),
    ]  # fmt: skip


def reading_verbs() -> list[ReadingVerb]:
    """Of each family."""
    first = ttypes.NotificationEventRequest(lastEvent=0, maxEvents=10)
    write_ids = ttypes.GetValidWriteIdsRequest(fullTableNames=[f"{DATABASE}.t"])
    calls: dict[str, Callable[[Any], object]] = {
        "get_all_databases": lambda client: client.get_all_databases(),
        "get_table": lambda client: client.get_table(DATABASE, "t"),
        "get_tables": lambda client: client.get_tables(DATABASE, "*"),
        "get_partitions": lambda client: client.get_partitions(DATABASE, "t", 5),
        "get_partition": lambda client: client.get_partition(DATABASE, "t", ["p0"]),
        "get_functions": lambda client: client.get_functions(DATABASE, "*"),
        "get_role_names": lambda client: client.get_role_names(),
        "get_open_txns": lambda client: client.get_open_txns(),
        "get_valid_write_ids": lambda client: client.get_valid_write_ids(write_ids),
        "show_locks": lambda client: client.show_locks(ttypes.ShowLocksRequest(dbname="none")),
        "show_compact": lambda client: client.show_compact(ttypes.ShowCompactRequest()),
        "get_next_notification": lambda client: client.get_next_notification(first),
        "get_catalogs": lambda client: client.get_catalogs(),
        "get_current_notificationEventId": (
            lambda client: client.get_current_notificationEventId()
        ),
    }
    return [ReadingVerb(name=name, call=call) for name, call in calls.items()]
