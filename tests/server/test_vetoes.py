"""What a client over thrift gets whose change a hook refuses, and that nothing has become of it.

The client is thrift's own, over the structs that other programs use.
"""

from __future__ import annotations

import hashlib
from asyncio import CancelledError
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hive_metastore import ThriftHiveMetastore
from hive_metastore.ttypes import (
    CommitTxnRequest,
    Database,
    FieldSchema,
    Function,
    MetaException,
    OpenTxnRequest,
    Partition,
    Role,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from hms_bridge.config.settings import EventSettings
from hms_bridge.hooks.port import VetoError
from hms_bridge.model.hook import Change
from tests.support.served_metastore import ServedMetastore, served_metastore
from tests.support.stored_rows import all_rows

HERE = "tests.server.test_vetoes"
DIGEST = hashlib.sha256(b"id").hexdigest()
NAMED = f"pre-event hook {HERE}:Guard refuses"


class Guard:
    """Refuses what the tests write here."""

    refused: frozenset[str] = frozenset()

    def before_change(self, change: Change) -> None:
        if change.type in self.refused:
            raise VetoError("not before the audit is over")


class Failing:
    """Has a fault where the tests write it."""

    failing: frozenset[str] = frozenset()
    fault: BaseException = KeyError("its own fault")

    def before_change(self, change: Change) -> None:
        if change.type in self.failing:
            raise self.fault


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedMetastore]:
    events = EventSettings(pre_listeners=(f"{HERE}:Guard", f"{HERE}:Failing"))
    with served_metastore(tmp_path, events=events) as served:
        yield served


@contextmanager
def connected(served: ServedMetastore) -> Iterator[Any]:
    transport = TBufferedTransport(TSocket("127.0.0.1", served.port))
    with closing(transport):
        transport.open()
        yield ThriftHiveMetastore.Client(TBinaryProtocol(transport))


def storage(location: str | None = None) -> StorageDescriptor:
    return StorageDescriptor(
        cols=[FieldSchema("id", "int", "")],
        location=location,
        inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        serdeInfo=SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde"),
    )


def table(name: str = "t") -> Table:
    return Table(
        tableName=name,
        dbName="sales",
        sd=storage(),
        partitionKeys=[FieldSchema("p", "string", "")],
        parameters={},
        tableType="MANAGED_TABLE",
    )


def partition(value: str) -> Partition:
    return Partition(values=[value], dbName="sales", tableName="t", sd=storage(), parameters={})


def function() -> Function:
    return Function("f", "sales", "org.example.F", "hive", 1, 0, 1, [])


def altered(client: Any) -> None:
    changed = client.get_table("sales", "t")
    changed.parameters["a"] = "b"
    client.alter_table("sales", "t", changed)


CHANGES: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "create_database": ("CREATE_DATABASE", "other", lambda c: c.create_database(Database("other"))),
    "create_table": ("CREATE_TABLE", "sales.u", lambda c: c.create_table(table("u"))),
    "alter_table": ("ALTER_TABLE", "sales.t", altered),
    "drop_table": ("DROP_TABLE", "sales.t", lambda c: c.drop_table("sales", "t", True)),
    "add_partition": ("ADD_PARTITION", "sales.t", lambda c: c.add_partition(partition("2"))),
    "drop_partition": (
        "DROP_PARTITION", "sales.t", lambda c: c.drop_partition("sales", "t", ["1"], True),
    ),
    "create_function": ("CREATE_FUNCTION", "sales", lambda c: c.create_function(function())),
    "create_role": (
        "CHANGE_ROLE", "create analysts", lambda c: c.create_role(Role("analysts", 0, "ann")),
    ),
    "drop_database": (
        "DROP_DATABASE", "sales", lambda c: c.drop_database("sales", True, True),
    ),
}  # fmt: skip


def filled(client: Any) -> None:
    client.create_database(Database("sales"))
    client.create_table(table())
    client.add_partition(partition("1"))


@pytest.mark.parametrize("name", CHANGES)
def test_a_client_gets_what_refused_it_and_its_connection_goes_on(
    served: ServedMetastore, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, described, change = CHANGES[name]
    with connected(served) as client:
        filled(client)
        monkeypatch.setattr(Guard, "refused", frozenset({kind}))
        rows = all_rows(served.database_url)
        files = sorted(served.warehouse.rglob("*"))
        for _ in range(2):
            with pytest.raises(MetaException) as refused:
                change(client)
            assert type(refused.value) is MetaException
            expected = f"{NAMED} {kind} {described}: not before the audit is over"
            assert refused.value.message == expected
        assert all_rows(served.database_url) == rows
        assert sorted(served.warehouse.rglob("*")) == files
        monkeypatch.setattr(Guard, "refused", frozenset())
        change(client)
        assert all_rows(served.database_url) != rows, (
            "it was refused by the hook and by nothing else"
        )


@pytest.mark.parametrize("fault", [KeyError("its own fault"), SystemExit(1), CancelledError()])
def test_a_hook_with_a_fault_is_named_too(
    served: ServedMetastore, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    """Also one that would end the client's thread."""
    monkeypatch.setattr(Failing, "failing", frozenset({"CREATE_DATABASE"}))
    monkeypatch.setattr(Failing, "fault", fault)
    with connected(served) as client:
        with pytest.raises(MetaException) as refused:
            client.create_database(Database("sales"))
        assert f"pre-event hook {HERE}:Failing failed, so CREATE_DATABASE" in refused.value.message
        assert client.get_all_databases() == ["default"]


def test_a_method_that_declares_no_meta_exception_says_it_in_the_text(
    served: ServedMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Hive's clients get what a method does not declare: the connection lives on."""
    with connected(served) as client:
        opened = client.open_txns(OpenTxnRequest(1, "u", "h")).txn_ids[0]
        monkeypatch.setattr(Guard, "refused", frozenset({"COMMIT_TXN"}))
        rows = all_rows(served.database_url)
        with pytest.raises(TApplicationException) as refused:
            client.commit_txn(CommitTxnRequest(opened))
        assert refused.value.type == TApplicationException.INTERNAL_ERROR
        assert refused.value.message.startswith(f"MetaException: {NAMED} COMMIT_TXN")
        assert all_rows(served.database_url) == rows
        monkeypatch.setattr(Guard, "refused", frozenset({"CHANGE_TOKEN"}))
        with pytest.raises(TApplicationException) as refused:
            client.add_token("id", "secret")
        said = f"MetaException: {NAMED} CHANGE_TOKEN add sha256:{DIGEST}: not before"
        assert refused.value.message.startswith(said)
        assert all_rows(served.database_url) == rows
        monkeypatch.setattr(Guard, "refused", frozenset())
        client.commit_txn(CommitTxnRequest(opened))
        assert client.get_open_txns().open_txns == []
