"""Hive 4.0.1's Java client says the same to a metastore of its release and to ours, and hears the
same answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from integration.referees.java_client import Answer, JavaClient, JavaClients
from integration.referees.java_metastore import JavaMetastore
from integration.referees.ours import OurServer
from integration.referees.processes import Workplace

CLOCK = ("createTime", "transient_lastDdlTime", "lastHeartbeat", "enqueueTime", "acquiredat")
"""Fields that tell when something was done."""
LEFT_OUT = ("id", "numFiles", "totalSize", "numFilesErasureCoded")
"""Keys of rows, which are those of one database alone, and what a metastore counts in the directory
of a new table since Hive 4.1."""
UNSET_WRITE_ID = -1
APART: dict[str, tuple[Answer, Answer]] = {
    "what is not there is not compacted": (
        {"value": "accepted"},
        {"error": "TApplicationException"},
    ),
    "who updates what another one has updated meanwhile is refused": (
        {"value": None},
        {"error": "TxnAbortedException"},
    ),
}
"""Where ours is another answer on purpose: Hive's, and ours."""


class Conversation:
    """What is said to one metastore, and what it answered."""

    def __init__(self, client: JavaClient, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self.answers: list[tuple[str, Answer]] = []
        self.apart: dict[str, Answer] = {}

    def ask(self, method: str, *arguments: object) -> Any:
        """The value that a method returned, None if it raised."""
        answer = self.client.ask(method, *arguments)
        self.answers.append((method, _masked(answer, self.folder)))
        return answer.get("value")

    def ask_apart(self, reason: str, method: str, *arguments: object) -> None:
        """What is answered otherwise on purpose."""
        answer = self.client.ask(method, *arguments)
        self.apart[reason] = {"value": "accepted"} if answer.get("value") else answer

    def quiet(self, method: str, *arguments: object) -> Any:
        """The same for what cannot be compared: ids of that metastore alone."""
        return self.client.ask(method, *arguments)["value"]


def _masked(value: Any, folder: Path) -> Any:
    if isinstance(value, dict):
        return {
            key: "*" if key in CLOCK else _masked(item, folder)
            for key, item in value.items()
            if key not in LEFT_OUT and (key, item) != ("writeId", UNSET_WRITE_ID)
        }
    if isinstance(value, list):
        return [_masked(item, folder) for item in value]
    return value.replace(str(folder), "FOLDER") if isinstance(value, str) else value


@pytest.fixture(scope="module")
def own(workplace: Workplace) -> Iterator[OurServer]:
    server = OurServer(workplace, f"sqlite:///{workplace.folder('sqlite')}/metastore.db")
    yield server
    server.stop()


def _same(
    clients: JavaClients,
    hive: JavaMetastore,
    own: OurServer,
    say: Callable[[Conversation], None],
) -> None:
    """Say it to Hive's metastore and to ours, and compare."""
    theirs = Conversation(clients.at(hive.uri), hive.external_warehouse)
    ours = Conversation(clients.at(own.uri), own.warehouse)
    for conversation in (theirs, ours):
        with closing(conversation.client):
            say(conversation)
    assert [method for method, _ in ours.answers] == [method for method, _ in theirs.answers]
    differing = [
        f"{method}: {our_answer}, theirs {their_answer}"
        for (method, our_answer), (_, their_answer) in zip(
            ours.answers, theirs.answers, strict=True
        )
        if our_answer != their_answer
    ]
    assert not differing, "\n".join(differing)
    for reason, answer in theirs.apart.items():
        assert (answer, ours.apart[reason]) == APART[reason], reason


def _columns(client: JavaClient, *names: str) -> list[Any]:
    return [
        client.record("FieldSchema", {"name": name, "type": "string", "comment": ""})
        for name in names
    ]


def _storage(client: JavaClient, location: str) -> Any:
    serde = {
        "name": "t",
        "serializationLib": "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
        "parameters": {"serialization.format": "1"},
    }
    return client.record(
        "StorageDescriptor",
        {
            "cols": _columns(client, "a", "b"),
            "location": location,
            "inputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
            "outputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
            "compressed": False,
            "numBuckets": -1,
            "serdeInfo": client.record("SerDeInfo", serde),
            "bucketCols": [],
            "sortCols": [],
            "parameters": {},
        },
    )


def _make_database(said: Conversation, name: str) -> None:
    fields = {"name": name, "locationUri": f"file:{said.folder}/{name}", "ownerName": "ann"}
    said.ask("createDatabase", said.client.record("Database", fields))


def _table(said: Conversation, database: str, name: str, *keys: str) -> Any:
    return said.client.record(
        "Table",
        {
            "tableName": name,
            "dbName": database,
            "owner": "ann",
            "sd": _storage(said.client, f"file:{said.folder}/{database}/{name}"),
            "partitionKeys": _columns(said.client, *keys),
            "parameters": {"EXTERNAL": "TRUE"},
            "tableType": "EXTERNAL_TABLE",
        },
    )


def _partition(said: Conversation, database: str, table: str, value: str) -> Any:
    location = f"file:{said.folder}/{database}/{table}/ds={value}"
    return said.client.record(
        "Partition",
        {
            "values": [value],
            "dbName": database,
            "tableName": table,
            "sd": _storage(said.client, location),
            "parameters": {"k": value},
        },
    )


def _catalog(said: Conversation) -> None:
    _make_database(said, "java_catalog")
    _make_database(said, "java_catalog")
    said.ask("getDatabase", "java_catalog")
    said.ask("getDatabase", "java_nowhere")
    said.ask("getDatabases", "java_cat*")
    said.ask("createTable", _table(said, "java_catalog", "t"))
    said.ask("createTable", _table(said, "java_catalog", "t"))
    said.ask("createTable", _table(said, "java_nowhere", "t"))
    said.ask("getTable", "java_catalog", "t")
    said.ask("getTable", "java_catalog", "nothing")
    said.ask("tableExists", "java_catalog", "t")
    said.ask("tableExists", "java_catalog", "nothing")
    said.ask("getAllTables", "java_catalog")
    said.ask("getTables", "java_catalog", "t*")
    said.ask("getTableMeta", "java_catalog", "*", ["EXTERNAL_TABLE"])
    said.ask("getTableObjectsByName", "java_catalog", ["t", "nothing"])
    said.ask("getFields", "java_catalog", "t")
    said.ask("getSchema", "java_catalog", "t")
    table = _table(said, "java_catalog", "t")
    table.getSd().addToCols(_columns(said.client, "c")[0])
    said.ask("alter_table", "java_catalog", "t", table)
    said.ask("getSchema", "java_catalog", "t")
    said.ask("listTableNamesByFilter", "java_catalog", 'hive_filter_field_owner__ = "ann"', 10)
    said.ask("dropDatabase", "java_catalog", False, False, False)
    said.ask("dropTable", "java_catalog", "t", False, False)
    said.ask("dropTable", "java_catalog", "t", False, False)
    said.ask("dropTable", "java_catalog", "t", False, True)
    said.ask("dropDatabase", "java_catalog", True, False, False)
    said.ask("dropDatabase", "java_catalog", True, False, False)


def test_databases_and_tables(
    java_clients: JavaClients, hms401: JavaMetastore, own: OurServer
) -> None:
    _same(java_clients, hms401, own, _catalog)


def _partitions(said: Conversation) -> None:
    _make_database(said, "java_parts")
    said.ask("createTable", _table(said, "java_parts", "p", "ds"))
    # Its answer is the record that was sent, in ours as it is stored.
    said.quiet("add_partition", _partition(said, "java_parts", "p", "1"))
    said.ask("add_partition", _partition(said, "java_parts", "p", "1"))
    more = [_partition(said, "java_parts", "p", value) for value in ("2", "3")]
    said.ask("add_partitions", more)
    said.ask("add_partitions", more, True, True)
    said.ask("appendPartition", "java_parts", "p", ["4"])
    said.ask("getPartition", "java_parts", "p", ["1"])
    said.ask("getPartition", "java_parts", "p", ["9"])
    said.ask("getPartition", "java_parts", "p", "ds=2")
    said.ask("listPartitionNames", "java_parts", "p", 10)
    said.ask("listPartitions", "java_parts", "p", 2)
    said.ask("listPartitions", "java_parts", "p", ["3"], 10)
    said.ask("listPartitionsByFilter", "java_parts", "p", 'ds = "2" or ds > "3"', 10)
    said.ask("listPartitionsByFilter", "java_parts", "p", 'nokey = "2"', 10)
    said.ask("getNumPartitionsByFilter", "java_parts", "p", 'ds < "3"')
    said.ask("getPartitionsByNames", "java_parts", "p", ["ds=1", "ds=9"])
    changed = _partition(said, "java_parts", "p", "1")
    changed.putToParameters("k", "changed")
    said.ask("alter_partition", "java_parts", "p", changed)
    said.ask("getPartition", "java_parts", "p", ["1"])
    said.ask("renamePartition", "java_parts", "p", ["4"], _partition(said, "java_parts", "p", "5"))
    said.ask("listPartitionNames", "java_parts", "p", 10)
    said.ask("dropPartition", "java_parts", "p", ["5"], True)
    said.ask("dropPartition", "java_parts", "p", ["5"], True)
    said.ask("dropPartition", "java_parts", "p", "ds=3", True)
    said.ask("listPartitionNames", "java_parts", "p", 10)
    said.ask("partitionNameToSpec", "ds=a%2Fb")
    said.ask("partitionNameToVals", "ds=a%2Fb")
    said.ask("dropDatabase", "java_parts", True, False, True)


def test_partitions(java_clients: JavaClients, hms401: JavaMetastore, own: OurServer) -> None:
    _same(java_clients, hms401, own, _partitions)


def _write(said: Conversation, txn_id: int, table: str, operation: str = "INSERT") -> Any:
    """A lock of a writer."""
    component = {
        "type": said.client.member("LockType", "SHARED_WRITE"),
        "level": said.client.member("LockLevel", "TABLE"),
        "dbname": "java_txns",
        "tablename": table,
        "operationType": said.client.member("DataOperationType", operation),
        "isTransactional": True,
    }
    request = {
        "component": [said.client.record("LockComponent", component)],
        "txnid": txn_id,
        "user": "ann",
        "hostname": "here",
    }
    return said.client.ask("lock", said.client.record("LockRequest", request))["value"]


def _transactions(said: Conversation) -> None:
    _make_database(said, "java_txns")
    said.ask("createTable", _table(said, "java_txns", "t"))
    first, second = (said.quiet("openTxn", "ann") for _ in range(2))
    said.answers.append(("ids follow each other", {"value": second - first}))
    said.ask("allocateTableWriteId", first, "java_txns", "t")
    said.ask("allocateTableWriteId", second, "java_txns", "t")
    said.ask("allocateTableWriteId", second, "java_txns", "t")
    said.ask("getMaxAllocatedWriteId", "java_txns", "t")
    locks = [_write(said, txn_id, "t") for txn_id in (first, second)]
    said.answers.append(("states", {"value": [lock["state"] for lock in locks]}))
    checked = said.quiet("checkLock", locks[0]["lockid"])
    said.answers.append(("checked", {"value": checked["state"]}))
    said.ask("heartbeat", first, locks[0]["lockid"])
    unknown = said.quiet("heartbeatTxnRange", second + 1000, second + 1000)
    said.answers.append(("unknown", {"value": [len(ids) for ids in unknown.values()]}))
    said.ask("unlock", locks[0]["lockid"])
    said.ask("commitTxn", first)
    said.ask("commitTxn", second)
    said.ask("commitTxn", second)
    said.ask("rollbackTxn", second)
    third = said.quiet("openTxn", "ann")
    said.ask("allocateTableWriteId", third, "java_txns", "t")
    said.ask("rollbackTxn", third)
    said.ask("heartbeat", third, 0)
    said.ask("commitTxn", third)
    said.ask("commitTxn", third + 1000)
    said.ask("getValidWriteIds", "java_txns.t")
    updates = [said.quiet("openTxn", "ann") for _ in range(2)]
    for txn_id in updates:
        said.ask("allocateTableWriteId", txn_id, "java_txns", "t")
        _write(said, txn_id, "t", "UPDATE")
    said.ask("commitTxn", updates[0])
    said.ask_apart(
        "who updates what another one has updated meanwhile is refused", "commitTxn", updates[1]
    )
    conflicting = said.quiet("getLatestTxnIdInConflict", third)
    said.answers.append(("conflicting", {"value": conflicting and conflicting - first}))
    said.ask("dropDatabase", "java_txns", True, False, True)


def test_transactions_locks_and_write_ids(
    java_clients: JavaClients, hms401: JavaMetastore, own: OurServer
) -> None:
    _same(java_clients, hms401, own, _transactions)


def _compactions(said: Conversation) -> None:
    _make_database(said, "java_compact")
    table = _table(said, "java_compact", "t")
    said.ask("createTable", table)
    minor = said.client.member("CompactionType", "MINOR")
    asked = said.quiet("compact2", "java_compact", "t", None, minor, {})
    again = said.quiet("compact2", "java_compact", "t", None, minor, {})
    said.answers.append(
        ("compact2", {"value": [asked["state"], asked["accepted"], again["accepted"]]})
    )
    shown = said.quiet("showCompactions")["compacts"]
    mine = [each for each in shown if each["dbname"] == "java_compact"]
    wanted = ("dbname", "tablename", "type", "state", "partitionname")
    said.answers.append(
        ("showCompactions", {"value": [{key: each.get(key) for key in wanted} for each in mine]})
    )
    said.ask_apart(
        "what is not there is not compacted", "compact2",
        "java_compact", "nothing", None, minor, {},
    )  # fmt: skip
    said.ask("dropDatabase", "java_compact", True, False, True)


def test_compactions(java_clients: JavaClients, hms401: JavaMetastore, own: OurServer) -> None:
    _same(java_clients, hms401, own, _compactions)


def _functions_and_roles(said: Conversation) -> None:
    _make_database(said, "java_more")
    user = said.client.member("PrincipalType", "USER")
    function = {
        "functionName": "f",
        "dbName": "java_more",
        "className": "org.example.F",
        "ownerName": "ann",
        "ownerType": user,
        "createTime": 1,
        "functionType": said.client.member("FunctionType", "JAVA"),
        "resourceUris": [],
    }
    said.ask("createFunction", said.client.record("Function", function))
    said.ask("createFunction", said.client.record("Function", function))
    said.ask("getFunction", "java_more", "f")
    said.ask("getFunctions", "java_more", "*")
    said.ask("getFunction", "java_more", "g")
    said.ask("dropFunction", "java_more", "f")
    said.ask("dropFunction", "java_more", "f")
    said.ask("create_role", said.client.record("Role", {"roleName": "java_r", "ownerName": "ann"}))
    said.ask("grant_role", "java_r", "bob", user, "ann", user, False)
    said.ask("list_roles", "bob", user)
    said.ask("revoke_role", "java_r", "bob", user, False)
    said.ask("list_roles", "bob", user)
    said.ask("drop_role", "java_r")
    said.ask("drop_role", "java_r")
    said.ask("getCatalogs")
    said.ask("getConfigValue", "hive.exec.default.partition.name", "none")
    said.ask("addMasterKey", "key")
    said.ask("addToken", "java", "token")
    said.ask("getToken", "java")
    said.ask("removeToken", "java")
    said.ask("dropDatabase", "java_more", True, False, True)


def test_functions_roles_and_the_rest(
    java_clients: JavaClients, hms401: JavaMetastore, own: OurServer
) -> None:
    _same(java_clients, hms401, own, _functions_and_roles)


def test_log_of_events(java_clients: JavaClients, own: OurServer) -> None:
    """Of ours alone, as that release logs events only by a jar that is not shipped with it."""
    said = Conversation(java_clients.at(own.uri), own.warehouse)
    before = said.quiet("getCurrentNotificationEventId")["eventId"]
    _make_database(said, "java_events")
    said.ask("createTable", _table(said, "java_events", "t"))
    said.ask("dropDatabase", "java_events", True, False, True)
    found = said.quiet("getNextNotification", before, 10, None)["events"]
    kinds = [event["eventType"] for event in found]
    assert kinds == ["CREATE_DATABASE", "CREATE_TABLE", "DROP_TABLE", "DROP_DATABASE"]
    assert [event["eventId"] for event in found] == [before + at for at in range(1, 5)]
    assert {event["messageFormat"] for event in found} == {"gzip(json-2.0)"}
