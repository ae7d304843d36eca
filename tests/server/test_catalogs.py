"""Catalogs, and databases in them, over a server of ours (docs/hive/metastore.md §33)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.errors import (
    AlreadyExistsError,
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    MetastoreError,
    NoSuchObjectError,
)
from hms_bridge.model.catalog import Column, Database, Storage, Table
from hms_bridge.wire.convert_catalog import table_to_struct
from hms_bridge.wire.structs import hive
from tests.support.served_metastore import ServedMetastore, served_metastore

STORAGE = Storage(columns=(Column(name="a", type="int"),))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedMetastore]:
    """With catalog ``other``, in a directory of its own below the warehouse."""
    with served_metastore(tmp_path) as served:
        _create(served, "Other")
        yield served


def _create(served: ServedMetastore, called: str, **more: Any) -> None:
    place = f"file:{served.warehouse}/{called.lower()}"
    fields = {"name": called, "description": "d", "locationUri": place} | more
    request = hive.CreateCatalogRequest(catalog=hive.Catalog(**fields))
    served.call("create_catalog", catalog=request)


def _catalog(served: ServedMetastore, name: str) -> Any:
    return served.call("get_catalog", catName=hive.GetCatalogRequest(name=name)).catalog


def _drop(served: ServedMetastore, name: str, **more: Any) -> None:
    served.call("drop_catalog", catName=hive.DropCatalogRequest(name=name, **more))


def _make(served: ServedMetastore, name: str, **parameters: str) -> None:
    """A table in other.db."""
    table = Table(
        name=name, database_name="db", catalog_name="other", storage=STORAGE, parameters=parameters
    )
    served.call("create_table", tbl=table_to_struct(table))


def test_a_catalog_comes_with_its_default_database(served: ServedMetastore) -> None:
    assert served.call("get_catalogs").names == ["hive", "other"]
    catalog = _catalog(served, "OTHER")
    place = f"file:{served.warehouse}/other"
    assert (catalog.name, catalog.description, catalog.locationUri) == ("other", "d", place)
    assert catalog.createTime > 0
    assert served.metastore.get_database("default", "other").location == place
    assert (served.warehouse / "other").is_dir()
    assert _catalog(served, "hive").locationUri == f"file:{served.warehouse}"


def test_wrong_catalogs_are_refused(served: ServedMetastore) -> None:
    with pytest.raises(AlreadyExistsError, match="Catalog other already exists"):
        _create(served, "other")
    for wrong in ({"name": "a.b"}, {"name": "c" * 257}, {"locationUri": None},
                  {"locationUri": "/"}):  # fmt: skip
        with pytest.raises(InvalidObjectError):
            _create(served, "third", **wrong)
    with pytest.raises(MetaError, match="properties of catalogs are not kept"):
        _create(served, "third", parameters={"a": "b"})
    assert served.call("get_catalogs").names == ["hive", "other"]
    with pytest.raises(NoSuchObjectError, match="No catalog none"):
        served.metastore.create_database(Database(name="db", catalog_name="none"))


def test_a_catalog_is_altered_but_keeps_its_name(served: ServedMetastore) -> None:
    new = hive.Catalog(name="other", description="new")
    served.call("alter_catalog", rqst=hive.AlterCatalogRequest(name="Other", newCat=new))
    catalog = _catalog(served, "other")
    assert (catalog.description, catalog.locationUri) == ("new", f"file:{served.warehouse}/other")
    new.name = "third"
    with pytest.raises(InvalidOperationError, match="catalog other cannot be renamed"):
        served.call("alter_catalog", rqst=hive.AlterCatalogRequest(name="other", newCat=new))
    with pytest.raises(NoSuchObjectError):
        served.call("alter_catalog", rqst=hive.AlterCatalogRequest(name="third", newCat=new))


def test_databases_of_one_name_are_apart(served: ServedMetastore) -> None:
    """They lie in directories of their own, and a drop of one leaves the other alone."""
    served.metastore.create_database(Database(name="db"))
    served.metastore.create_table(Table(name="t", database_name="db", storage=STORAGE))
    served.metastore.create_database(Database(name="db", catalog_name="other"))
    _make(served, "t")
    places = [served.metastore.get_table("db", "t", c).storage.location for c in ("hive", "other")]
    assert places == [f"file:{served.warehouse}{at}" for at in ("/db.db/t", "/other/db.db/t")]
    for folder in ("db.db/t", "other/db.db/t"):
        (served.warehouse / folder / "rows").write_bytes(b"r")
    assert served.call("get_databases", pattern="@other#*") == ["db", "default"]
    served.call("drop_database", name="@other#db", deleteData=True, cascade=True)
    assert not (served.warehouse / "other/db.db").exists()
    assert (served.warehouse / "db.db/t/rows").exists()
    assert served.metastore.get_tables("db") == ("t",)


def test_transactional_tables_are_refused_outside_of_hives_own(served: ServedMetastore) -> None:
    served.metastore.create_database(Database(name="db", catalog_name="other"))
    with pytest.raises(MetaError, match="transactions know no catalogs"):
        _make(served, "t", transactional="true")
    _make(served, "t")
    struct = table_to_struct(served.metastore.get_table("db", "t", "other"))
    struct.parameters["transactional"] = "true"
    struct.sd.inputFormat = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
    struct.sd.outputFormat = "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"
    with pytest.raises(MetastoreError, match="transactions know no catalogs"):
        served.call("alter_table", dbname="@other#db", tbl_name="t", new_tbl=struct)


def test_a_catalog_is_dropped_when_it_is_empty(served: ServedMetastore) -> None:
    served.metastore.create_database(Database(name="db", catalog_name="other"))
    with pytest.raises(InvalidOperationError, match="non-default databases"):
        _drop(served, "other")
    served.call("drop_database", name="@other#db", deleteData=True)
    table = Table(name="t", database_name="default", catalog_name="other", storage=STORAGE)
    served.call("create_table", tbl=table_to_struct(table))
    with pytest.raises(InvalidOperationError, match="still objects in the default database"):
        _drop(served, "other")
    served.metastore.drop_table("default", "t", catalog="other")
    _drop(served, "OTHER")
    assert served.call("get_catalogs").names == ["hive"]
    assert served.metastore.get_databases(catalog="other") == ()
    assert not (served.warehouse / "other").exists()
    _drop(served, "other", ifExists=True)
    with pytest.raises(NoSuchObjectError, match="No catalog other"):
        _drop(served, "other")
    with pytest.raises(MetaError, match="Can not drop hive catalog"):
        _drop(served, "Hive")


def test_the_default_database_of_another_catalog_may_go(served: ServedMetastore) -> None:
    served.call("drop_database", name="@other#default", deleteData=True, cascade=False)
    assert served.metastore.get_databases(catalog="other") == ()
    with pytest.raises(MetaError, match="Can not drop default database"):
        served.call("drop_database", name="default", deleteData=False, cascade=False)


def test_the_log_says_of_which_catalog_the_database_was_that_went(
    served: ServedMetastore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    served.metastore.create_database(Database(name="plain"))
    _drop(served, "other")
    served.metastore.drop_database("plain")
    told = [vars(record) for record in caplog.records]
    gone = [one["facts"] for one in told if one.get("deed") == "database dropped"]
    assert [(facts.get("catalog"), facts["database"]) for facts in gone] == [
        ("other", "default"), (None, "plain"),
    ]  # fmt: skip
