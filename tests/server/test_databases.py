"""Databases over a server of ours: what Hive's Java client asks, and a golden does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_bridge.errors import InvalidOperationError, NoSuchObjectError
from hms_bridge.wire.structs import hive
from tests.support.golden_fields import event_fields
from tests.support.odd_calls import table
from tests.support.served_metastore import served_metastore

USER, ROLE = 1, 2


@pytest.mark.parametrize(
    ("owner", "given", "kept"),
    [("ann", None, USER), ("ann", ROLE, ROLE), (None, None, None)],
    ids=["a user where no type is given", "the type that is given", "nobody"],
)
def test_type_of_an_owner(
    tmp_path: Path, owner: str | None, given: int | None, kept: int | None
) -> None:
    with served_metastore(tmp_path) as served:
        database = hive.Database(name="d", ownerName=owner, ownerType=given)
        served.call("create_database", database=database)
        assert served.call("get_database", name="d").ownerType == kept


@pytest.mark.parametrize("named", ["d", None])
@pytest.mark.parametrize("catalog", ["hive", None])
def test_an_alteration_is_of_the_catalog_of_the_old_name(
    tmp_path: Path, named: str | None, catalog: str | None
) -> None:
    """Java clients name it there alone; another catalog may have a database of that name."""
    other = hive.Catalog(name="c", locationUri=f"file:{tmp_path}/c")
    with served_metastore(tmp_path) as served:
        served.call("create_catalog", catalog=hive.CreateCatalogRequest(catalog=other))
        for of_database in (None, "c"):
            database = hive.Database(name="d", catalogName=of_database)
            served.call("create_database", database=database)
        wanted = hive.Database(name=named, catalogName=catalog, description="new")
        served.call("alter_database", dbname="@c#d", db=wanted)
        descriptions = [served.call("get_database", name=n).description for n in ("d", "@c#d")]
    assert descriptions == [None, "new"]


def test_a_soft_drop_that_would_delete_files_at_once_is_refused(tmp_path: Path) -> None:
    """Hive's readers without locks may still read such a table."""
    with served_metastore(tmp_path) as served:
        for name, soft in (("soft", {"soft_delete": "TRUE"}), ("plain", {})):
            served.call("create_database", database=hive.Database(name=name))
            parameters = {"transactional": "true", **soft}
            acid = table("t", dbName=name, tableType="MANAGED_TABLE", parameters=parameters)
            orc = "org.apache.hadoop.hive.ql.io.orc.Orc"
            acid.sd.inputFormat, acid.sd.outputFormat = f"{orc}InputFormat", f"{orc}OutputFormat"
            served.call("create_table", tbl=acid)

        def drop(name: str, **flags: bool) -> None:
            request = hive.DropDatabaseRequest(
                name=name, ignoreUnknownDb=False, cascade=True, txnId=5, **flags
            )
            served.call("drop_database_req", req=request)

        with pytest.raises(InvalidOperationError, match=r"soft\.t has soft_delete=true"):
            drop("soft", softDelete=True, deleteData=True)
        assert served.call("get_all_tables", db_name="soft") == ["t"]
        assert (served.warehouse / "soft.db" / "t").is_dir()
        drop("plain", softDelete=True, deleteData=True)
        drop("soft", softDelete=False, deleteData=True)
        for name in ("plain", "soft"):
            with pytest.raises(NoSuchObjectError):
                served.call("get_database", name=name)


def test_privileges_of_a_new_database_are_in_its_event(tmp_path: Path) -> None:
    """Of either form: Hive stores none of them."""
    with served_metastore(tmp_path) as served:
        rights = hive.PrincipalPrivilegeSet(userPrivileges={"ann": []})
        served.call("create_database", database=hive.Database(name="a", privileges=rights))
        request = hive.CreateDatabaseRequest(databaseName="b", privileges=rights)
        served.call("create_database_req", createDatabaseRequest=request)
        log = hive.NotificationEventRequest(lastEvent=0)
        events = served.call("get_next_notification", rqst=log).events
        sent = [event_fields(event)["message"]["dbJson"].get("5") for event in events]
        assert len(sent) == 2
        assert None not in sent
