"""Who may do what with which object, as a server answers it over its own database
(docs/hive/metastore.md §32)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.errors import MetaError, MetastoreError
from hms_bridge.model.catalog import Column, Database, Storage, Table
from hms_bridge.wire.convert_catalog import partition_to_struct, table_to_struct
from hms_bridge.wire.structs import Struct, hive
from tests.conformance.objects import partition
from tests.support.served_metastore import ServedMetastore, served_metastore
from tests.support.stored_rows import rows_of

USER, ROLE, GROUP = 1, 2, 3
GLOBAL, DATABASE, TABLE, PARTITION, COLUMN, CONNECTOR = range(1, 7)
EVERYTHING = hive.HiveObjectRef(objectType=GLOBAL)
DB = hive.HiveObjectRef(objectType=DATABASE, dbName="DB")
T = hive.HiveObjectRef(objectType=TABLE, dbName="db", objectName="T")
A = hive.HiveObjectRef(objectType=COLUMN, dbName="db", objectName="t", columnName="A")
P1 = hive.HiveObjectRef(objectType=PARTITION, dbName="db", objectName="p", partValues=["1"])
P1_A = hive.HiveObjectRef(
    objectType=COLUMN, dbName="db", objectName="p", partValues=["1"], columnName="a"
)
OBJECTS = (EVERYTHING, DB, T, A, P1, P1_A)
STORAGE = Storage(columns=(Column(name="a", type="int"),))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedMetastore]:
    """Tables db.t, and db.p with partitions p=1 and p=2; role r."""
    keys = (Column(name="p", type="string"),)
    plain = Table(name="t", database_name="db", storage=STORAGE, owner="bob")
    parted = Table(name="p", database_name="db", storage=STORAGE, partition_columns=keys)
    with served_metastore(tmp_path) as served:
        served.metastore.create_database(Database(name="db"))
        for table in (plain, parted):
            served.metastore.create_table(table)
        served.metastore.add_partitions("db", "p", [partition("db", "p", n) for n in "12"])
        served.call("create_role", role=hive.Role(roleName="r"))
        yield served


def _privilege(
    target: Struct, name: str = "ann", kind: int = USER, privilege: str = "SELECT", **more: Any
) -> Struct:
    info = {"grantor": "hive", "grantorType": USER, "grantOption": False} | more
    return hive.HiveObjectPrivilege(
        hiveObject=target, principalName=name, principalType=kind, authorizer="SQL",
        grantInfo=hive.PrivilegeGrantInfo(privilege=privilege, **info),
    )  # fmt: skip


def _bag(*privileges: Struct) -> Struct:
    return hive.PrivilegeBag(privileges=list(privileges))


def _grant(served: ServedMetastore, *privileges: Struct) -> None:
    assert served.call("grant_privileges", privileges=_bag(*privileges)) is True


def _list(served: ServedMetastore, target: Struct, name: str | None = "ann") -> list[str]:
    found = served.call(
        "list_privileges", principal_name=name, principal_type=USER, hiveObject=target
    )
    return [one.grantInfo.privilege for one in found]


def _set(served: ServedMetastore, target: Struct, **who: Any) -> Struct:
    found: Struct = served.call("get_privilege_set", hiveObject=target, **who)
    return found


@pytest.mark.parametrize("target", OBJECTS, ids=str)
def test_what_is_granted_is_listed_and_revoked(served: ServedMetastore, target: Struct) -> None:
    _grant(served, _privilege(target, privilege="SELECT,INSERT"))
    assert _list(served, target) == ["SELECT", "INSERT"]
    assert _list(served, target, "eve") == []
    (info, _) = _set(served, target, user_name="ann").userPrivileges["ann"]
    assert (info.privilege, info.grantor, info.grantorType) == ("SELECT", "hive", USER)
    assert info.createTime > 0
    with pytest.raises(MetaError, match="INSERT is already granted on .* by HIVE"):
        _grant(served, _privilege(target, privilege="INSERT", grantor="HIVE"))
    _grant(served, _privilege(target, privilege="INSERT", grantor="bob"))
    revoked = _bag(_privilege(target, privilege="SELECT"))
    assert served.call("revoke_privileges", privileges=revoked) is True
    assert _list(served, target) == ["INSERT", "INSERT"]
    with pytest.raises(MetaError, match=r"No grant \(SELECT\) found"):
        served.call("revoke_privileges", privileges=revoked)


def test_what_is_listed_names_its_object(served: ServedMetastore) -> None:
    _grant(served, *(_privilege(target) for target in OBJECTS))
    nothing = hive.HiveObjectRef()
    found = served.call(
        "list_privileges", principal_name="ann", principal_type=USER, hiveObject=nothing
    )
    assert [one.hiveObject for one in found] == [
        hive.HiveObjectRef(objectType=GLOBAL, catName="hive"),
        hive.HiveObjectRef(objectType=DATABASE, dbName="db", catName="hive"),
        hive.HiveObjectRef(objectType=TABLE, dbName="db", objectName="t", catName="hive"),
        hive.HiveObjectRef(objectType=PARTITION, dbName="db", objectName="p", partValues=["1"],
                           catName="hive"),
        hive.HiveObjectRef(objectType=COLUMN, dbName="db", objectName="t", columnName="a",
                           catName="hive"),
        hive.HiveObjectRef(objectType=COLUMN, dbName="db", objectName="p", partValues=["1"],
                           columnName="a", catName="hive"),
    ]  # fmt: skip
    assert _list(served, hive.HiveObjectRef(objectType=TABLE)) == ["SELECT"]
    assert _list(served, T, None) == ["SELECT"]
    with pytest.raises(MetaError, match="neither a principal nor an object"):
        served.call("list_privileges", hiveObject=nothing)


def test_a_call_grants_all_or_nothing(served: ServedMetastore) -> None:
    missing = hive.HiveObjectRef(objectType=TABLE, dbName="db", objectName="none")
    for wrong in (
        _privilege(missing), _privilege(T, "none", ROLE), _privilege(T, privilege=""),
        _privilege(hive.HiveObjectRef(objectType=CONNECTOR, objectName="none")),
        _privilege(hive.HiveObjectRef(objectType=COLUMN, dbName="db", objectName="t")),
        _privilege(hive.HiveObjectRef(objectType=PARTITION, dbName="db", objectName="p")),
        _privilege(hive.HiveObjectRef(objectType=PARTITION, dbName="db", objectName="p",
                                      partValues=["3"])),
        _privilege(T, "a" * 129), _privilege(hive.HiveObjectRef(objectType=9)),
    ):  # fmt: skip
        with pytest.raises(MetastoreError):
            _grant(served, _privilege(DB), wrong)
    assert _list(served, DB) == []


def test_the_option_goes_before_the_privilege(served: ServedMetastore) -> None:
    _grant(served, _privilege(T, grantOption=True), _privilege(DB))
    request = hive.GrantRevokePrivilegeRequest(
        requestType=2, privileges=_bag(_privilege(T)), revokeGrantOption=True
    )
    assert served.call("grant_revoke_privileges", request=request).success is True
    assert _set(served, T, user_name="ann").userPrivileges["ann"][0].grantOption is False
    with pytest.raises(MetaError, match="does not have grant option with privilege SELECT"):
        served.call("grant_revoke_privileges", request=request)
    request.revokeGrantOption = None
    assert served.call("grant_revoke_privileges", request=request).success is True
    assert _list(served, T) == []
    request.requestType = 1
    assert served.call("grant_revoke_privileges", request=request).success is True
    assert _list(served, T) == ["SELECT"]


def test_a_set_has_groups_and_roles_of_roles(served: ServedMetastore) -> None:
    served.call("create_role", role=hive.Role(roleName="above"))
    for role, name, kind in (("r", "g", GROUP), ("above", "r", ROLE)):
        served.call("grant_role", role_name=role, principal_name=name, principal_type=kind)
    _grant(served, _privilege(T, "above", ROLE), _privilege(T, "g", GROUP, "INSERT"))
    found = _set(served, T, user_name="ann", group_names=["g", "h"])
    assert found.userPrivileges == {"ann": []}
    assert _names(found.groupPrivileges) == {"g": ["INSERT"], "h": []}
    assert _names(found.rolePrivileges) == {"above": ["SELECT"], "public": [], "r": []}
    served.call("drop_role", role_name="above")
    assert _list(served, T, None) == ["INSERT"]


def test_an_owner_may_use_a_table_that_nobody_was_given(served: ServedMetastore) -> None:
    owner = _set(served, T, user_name="bob").userPrivileges["bob"]
    assert [info.privilege for info in owner] == ["DELETE", "INSERT", "SELECT", "UPDATE"]
    _grant(served, _privilege(T))
    assert _set(served, T, user_name="bob").userPrivileges == {"bob": []}


@pytest.mark.parametrize("kind", [ROLE, GROUP])
def test_a_user_of_the_name_of_an_owning_role_is_no_owner(
    served: ServedMetastore, kind: int
) -> None:
    """ALTER TABLE … SET OWNER ROLE bob."""
    table = served.call("get_table", dbname="db", tbl_name="t")
    table.ownerType = kind
    served.call("alter_table", dbname="db", tbl_name="t", new_tbl=table)
    assert _set(served, T, user_name="bob").userPrivileges == {"bob": []}


def test_privileges_come_with_a_new_table(served: ServedMetastore) -> None:
    struct = table_to_struct(Table(name="n", database_name="db", storage=STORAGE, owner="bob"))
    info = hive.PrivilegeGrantInfo(privilege="SELECT", grantor="bob", grantorType=USER)
    struct.privileges = hive.PrincipalPrivilegeSet(
        userPrivileges={"bob": [info, info]}, rolePrivileges={"not_there": [info]}
    )
    served.call("create_table", tbl=struct)
    target = hive.HiveObjectRef(objectType=TABLE, dbName="db", objectName="n")
    found = served.call("list_privileges", hiveObject=target)
    assert [(one.principalName, one.grantInfo.privilege, one.authorizer) for one in found] == [
        ("bob", "SELECT", "SQL"), ("not_there", "SELECT", "SQL")]  # fmt: skip


def test_privileges_go_with_their_object_and_follow_its_new_name(served: ServedMetastore) -> None:
    _grant(served, *(_privilege(target) for target in OBJECTS))
    table = served.metastore.get_table("db", "t")
    struct = table_to_struct(table)
    struct.tableName = "u"
    served.call("alter_table", dbname="db", tbl_name="t", new_tbl=struct)
    moved = hive.HiveObjectRef(objectType=TABLE, dbName="db", objectName="u")
    assert (_list(served, T), _list(served, moved)) == ([], ["SELECT"])
    renaming = hive.RenamePartitionRequest(
        dbName="db", tableName="p", partVals=["1"],
        newPart=partition_to_struct(partition("db", "p", "9")),
    )  # fmt: skip
    served.call("rename_partition_req", req=renaming)
    renamed = hive.HiveObjectRef(
        objectType=PARTITION, dbName="db", objectName="p", partValues=["9"]
    )
    assert _list(served, renamed) == ["SELECT"]
    served.metastore.drop_partitions("db", "p", ["p=9"])
    served.metastore.drop_table("db", "u")
    assert _kept(served) == {"DB_PRIVS": 1, "GLOBAL_PRIVS": 2}
    served.metastore.drop_database("db", is_cascade=True)
    assert _kept(served) == {"GLOBAL_PRIVS": 2}


def test_what_an_authorizer_wrote_is_replaced(served: ServedMetastore) -> None:
    _grant(served, _privilege(T), _privilege(T, "bob"))
    other = _privilege(T, "eve")
    other.authorizer = "OTHER"
    _grant(served, other)
    before = _ids(served)
    for _ in range(2):
        request = hive.GrantRevokePrivilegeRequest(
            privileges=_bag(_privilege(T), _privilege(T, "cid"))
        )
        answer = served.call(
            "refresh_privileges", objToRefresh=T, authorizer="SQL", grantRequest=request
        )
        assert answer.success is True
    found = served.call("list_privileges", hiveObject=T)
    assert [one.principalName for one in found] == ["ann", "eve", "cid"]
    assert _ids(served)[:1] == before[:1], "what stays the same keeps its row"
    columns = hive.HiveObjectRef(objectType=COLUMN, dbName="db", objectName="t")
    request = hive.GrantRevokePrivilegeRequest(privileges=_bag(_privilege(A)))
    served.call("refresh_privileges", objToRefresh=columns, authorizer="SQL", grantRequest=request)
    assert _list(served, A) == ["SELECT"]
    gone = hive.HiveObjectRef(objectType=TABLE, dbName="db", objectName="none")
    served.call("refresh_privileges", objToRefresh=gone, authorizer="SQL", grantRequest=request)
    for wrong in (P1, A):
        with pytest.raises(MetaError):
            served.call(
                "refresh_privileges", objToRefresh=wrong, authorizer="SQL", grantRequest=request
            )


def test_too_many_in_a_call_are_refused(served: ServedMetastore) -> None:
    before = _kept(served)
    many = [_privilege(T, f"u{number}") for number in range(10_001)]
    for wanted in (many, [_privilege(T, privilege=",".join(f"p{n}" for n in range(10_001)))]):
        with pytest.raises(MetaError, match="10001 privileges were sent; send at most 10000"):
            _grant(served, *wanted)
    infos = {
        f"u{number}": [hive.PrivilegeGrantInfo(privilege="SELECT")] for number in range(10_001)
    }
    new = table_to_struct(Table(name="new", database_name="db", storage=STORAGE))
    new.privileges = hive.PrincipalPrivilegeSet(userPrivileges=infos)  # type: ignore[attr-defined]
    with pytest.raises(MetaError, match="10001 privileges were sent; send at most 10000"):
        served.call("create_table", tbl=new)
    with pytest.raises(MetaError, match="1001 groups were sent; send at most 1000"):
        _set(served, T, user_name="ann", group_names=[f"g{number}" for number in range(1_001)])
    assert _kept(served) == before
    assert served.call("get_all_tables", db_name="db") == ["p", "t"]


def _names(by_name: dict[str, list[Struct]]) -> dict[str, list[str]]:
    return {name: [info.privilege for info in infos] for name, infos in by_name.items()}


def _kept(served: ServedMetastore) -> dict[str, int]:
    """How many rows each table of privileges has, if any."""
    names = ("GLOBAL_PRIVS", "DB_PRIVS", "TBL_PRIVS", "TBL_COL_PRIVS", "PART_PRIVS",
             "PART_COL_PRIVS")  # fmt: skip
    counts = {name: len(rows_of(served.database_url, name)) for name in names}
    return {name: count for name, count in counts.items() if count}


def _ids(served: ServedMetastore) -> list[Any]:
    return sorted(row["TBL_GRANT_ID"] for row in rows_of(served.database_url, "TBL_PRIVS"))
