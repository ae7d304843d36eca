"""Data connectors, as HiveServer2 keeps them (docs/hive/metastore.md §37)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.errors import (
    AlreadyExistsError,
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
)
from hms_bridge.model.catalog import Database
from hms_bridge.wire.structs import Struct, hive
from tests.support.served_metastore import ServedMetastore, served_metastore
from tests.support.stored_rows import change_rows, rows_of


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedMetastore]:
    """With connector ``dc``."""
    with served_metastore(tmp_path) as served:
        served.call("create_dataconnector_req", connectorReq=_request(_connector("DC")))
        yield served


def _connector(name: str, **more: Any) -> Struct:
    fields = {
        "type": "mysql", "url": "jdbc:mysql://h", "description": "d", "ownerName": "ann",
        "ownerType": 1, "parameters": {"k": "v"},
    } | more  # fmt: skip
    return hive.DataConnector(name=name, **fields)


def _request(connector: Struct) -> Struct:
    return hive.CreateDataConnectorRequest(connector=connector)


def _get(served: ServedMetastore, name: str = "dc") -> Struct:
    request = hive.GetDataConnectorRequest(connectorName=name)
    connector: Struct = served.call("get_dataconnector_req", request=request)
    return connector


def _drop(served: ServedMetastore, name: str, **more: Any) -> None:
    request = hive.DropDataConnectorRequest(connectorName=name, **more)
    served.call("drop_dataconnector_req", dropDcReq=request)


def test_connectors_are_made_and_found(served: ServedMetastore) -> None:
    connector = _get(served, "Dc")
    assert connector.createTime > 0
    assert connector == _connector("dc", createTime=connector.createTime)
    served.call("create_dataconnector", connector=_connector("a"))
    assert served.call("get_dataconnectors") == ["a", "dc"]
    with pytest.raises(AlreadyExistsError, match="DataConnector dc already exists"):
        served.call("create_dataconnector", connector=_connector("dc"))
    with pytest.raises(NoSuchObjectError, match="Dataconnector named none does not exist"):
        _get(served, "none")
    for wrong in ({"name": "a.b"}, {"name": "n" * 129}, {"url": "u" * 4001}, {"type": "t" * 33},
                  {"url": None}, {"parameters": {"k" * 181: "v"}}):  # fmt: skip
        with pytest.raises(InvalidObjectError):
            connector = _connector("b")
            vars(connector).update(wrong)
            served.call("create_dataconnector", connector=connector)


def test_connectors_are_altered(served: ServedMetastore) -> None:
    new = _connector("x", type="other", url="jdbc:x", description=None, parameters={"l": "w"})
    request = hive.AlterDataConnectorRequest(connectorName="DC", newConnector=new)
    served.call("alter_dataconnector_req", alterReq=request)
    connector = _get(served)
    assert (connector.type, connector.url, connector.description) == ("mysql", "jdbc:x", "d")
    assert connector.parameters == {"l": "w"}
    served.call("alter_dataconnector", name="dc", connector=_connector("dc", ownerName="bob"))
    assert _get(served).ownerName == "bob"
    with pytest.raises(NoSuchObjectError):
        served.call("alter_dataconnector", name="none", connector=new)


def test_connectors_go_with_their_privileges(served: ServedMetastore) -> None:
    of = hive.HiveObjectRef(objectType=6, objectName="DC")
    privilege = hive.HiveObjectPrivilege(
        hiveObject=of, principalName="ann", principalType=1, authorizer="SQL",
        grantInfo=hive.PrivilegeGrantInfo(privilege="ALL", grantor="hive", grantorType=1),
    )  # fmt: skip
    bag = hive.PrivilegeBag(privileges=[privilege])
    assert served.call("grant_privileges", privileges=bag) is True
    (found,) = served.call("list_privileges", hiveObject=of)
    assert found.hiveObject == hive.HiveObjectRef(objectType=6, objectName="dc", catName="hive")
    served.metastore.create_database(Database(name="db"))
    over = {"TYPE": "REMOTE", "DATACONNECTOR_NAME": "dc"}
    change_rows(served.database_url, "DBS", {"NAME": "db"}, **over)
    with pytest.raises(InvalidOperationError, match="that of database db"):
        _drop(served, "dc")
    served.metastore.drop_database("db")
    _drop(served, "DC")
    assert served.call("get_dataconnectors") == []
    assert rows_of(served.database_url, "DC_PRIVS") == []
    assert rows_of(served.database_url, "DATACONNECTOR_PARAMS") == []
    _drop(served, "dc", ifNotExists=True)
    with pytest.raises(NoSuchObjectError):
        _drop(served, "dc")


def test_no_database_is_made_over_one(served: ServedMetastore) -> None:
    """It would be one of the warehouse, and its tables empty."""
    remote = {"type": 2, "connector_name": "dc", "remote_dbname": "r"}
    with pytest.raises(MetaError, match="databases over data connectors are not kept"):
        served.call("create_database", database=hive.Database(name="far", connector_name="dc"))
    with pytest.raises(MetaError, match="databases over data connectors are not kept"):
        served.call("create_database", database=hive.Database(name="r", **remote))
    request = hive.CreateDatabaseRequest(databaseName="r", type=2, dataConnectorName="dc")
    with pytest.raises(MetaError, match="databases over data connectors are not kept"):
        served.call("create_database_req", createDatabaseRequest=request)
    assert served.metastore.get_databases() == ("default",)
