"""Stored procedures and packages, as HPL/SQL keeps them (docs/hive/metastore.md §38)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.errors import InvalidOperationError, MetastoreError, NoSuchObjectError
from hms_bridge.model.catalog import Database
from hms_bridge.wire.structs import Struct, hive
from tests.support.served_metastore import ServedMetastore, served_metastore

DB = {"catName": "hive", "dbName": "DB"}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedMetastore]:
    with served_metastore(tmp_path) as served:
        served.metastore.create_database(Database(name="db"))
        yield served


def _procedure(name: str = "P", **more: Any) -> Struct:
    fields = DB | {"ownerName": "ann", "source": "begin end"} | more
    return hive.StoredProcedure(name=name, **fields)


def _package(name: str = "P", **more: Any) -> Struct:
    fields = DB | {"ownerName": "ann", "header": "h", "body": "b"} | more
    return hive.AddPackageRequest(packageName=name, **fields)


def test_procedures_are_put_found_and_dropped(served: ServedMetastore) -> None:
    served.call("create_stored_procedure", proc=_procedure())
    served.call("create_stored_procedure", proc=_procedure(source="begin; end"))
    served.call("create_stored_procedure", proc=_procedure("A"))
    of_p = hive.StoredProcedureRequest(procName="P", **DB)
    found = served.call("get_stored_procedure", request=of_p)
    assert found == _procedure(source="begin; end", dbName="db")
    listing = hive.ListStoredProcedureRequest(**DB)
    assert served.call("get_all_stored_procedures", request=listing) == ["A", "P"]
    with pytest.raises(InvalidOperationError, match="stored procedures exist"):
        served.metastore.drop_database("db")
    served.call("drop_stored_procedure", request=of_p)
    served.call("drop_stored_procedure", request=of_p)
    with pytest.raises(NoSuchObjectError, match=r"db\.P does not exist"):
        served.call("get_stored_procedure", request=of_p)
    served.metastore.drop_database("db", is_cascade=True)
    assert served.call("get_all_stored_procedures", request=listing) == []


def test_packages_are_put_found_and_dropped(served: ServedMetastore) -> None:
    served.call("add_package", request=_package())
    served.call("add_package", request=_package(body="c"))
    served.call("add_package", request=_package("A"))
    of_p = hive.GetPackageRequest(packageName="P", **DB)
    fields = {"packageName": "P", "ownerName": "ann", "header": "h", "body": "c"}
    found = served.call("find_package", request=of_p)
    assert found == hive.Package(**fields, catName="hive", dbName="db")
    listing = hive.ListPackageRequest(**DB)
    assert served.call("get_all_packages", request=listing) == ["A", "P"]
    for _ in range(2):
        served.call("drop_package", request=hive.DropPackageRequest(packageName="P", **DB))
    with pytest.raises(NoSuchObjectError):
        served.call("find_package", request=of_p)
    assert served.call("get_all_packages", request=listing) == ["A"]


def test_what_does_not_fit_is_refused(served: ServedMetastore) -> None:
    for wrong in (_procedure("n" * 257), _procedure(ownerName="o" * 129), _procedure(""),
                  _procedure(dbName="none"), _procedure(dbName=None)):  # fmt: skip
        with pytest.raises(MetastoreError):
            served.call("create_stored_procedure", proc=wrong)
    for wrong in (_package("n" * 257), _package(dbName="none")):
        with pytest.raises(MetastoreError):
            served.call("add_package", request=wrong)
