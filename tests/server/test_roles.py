"""Roles, and who has them, as a server answers it over its own database (docs/hive/metastore.md
§31)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.config.settings import Settings
from hms_bridge.errors import MetaError, MetastoreError
from hms_bridge.model.catalog import PrincipalType
from hms_bridge.model.privilege import Principal
from hms_bridge.service.open import open_local_metastore
from hms_bridge.wire.structs import hive
from tests.support.served_metastore import ServedMetastore, served_metastore

USER, ROLE, GROUP = 1, 2, 3
GRANT, REVOKE = 1, 2


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedMetastore]:
    """With roles ``r1`` to ``r3``."""
    with served_metastore(tmp_path) as served:
        for number in "123":
            served.call("create_role", role=hive.Role(roleName=f"r{number}", ownerName="hive"))
        yield served


def _grant(served: ServedMetastore, role: str, name: str, kind: int = USER, **more: Any) -> Any:
    wanted = {"grantor": "hive", "grantorType": USER, "grant_option": False} | more
    return served.call(
        "grant_role", role_name=role, principal_name=name, principal_type=kind, **wanted
    )


def _roles(served: ServedMetastore, name: str, kind: int = USER) -> list[str]:
    roles = served.call("list_roles", principal_name=name, principal_type=kind)
    return [role.roleName for role in roles]


def test_two_roles_are_always_there(served: ServedMetastore) -> None:
    names = ["admin", "public", "r1", "r2", "r3"]
    assert served.call("get_role_names") == names
    for name in ("admin", "public"):
        with pytest.raises(MetaError, match="can't be dropped"):
            served.call("drop_role", role_name=name)
    with pytest.raises(MetaError, match="implicitly exists"):
        served.call("create_role", role=hive.Role(roleName="public"))
    with pytest.raises(MetaError, match="No user can be added to public"):
        _grant(served, "public", "ann")
    with pytest.raises(MetaError, match="can't be revoked"):
        served.call("revoke_role", role_name="public", principal_name="ann", principal_type=USER)
    everything = hive.HiveObjectRef(objectType=1)
    found = served.call(
        "list_privileges", principal_name="admin", principal_type=ROLE, hiveObject=everything
    )
    assert [(one.grantInfo.privilege, one.grantInfo.grantOption) for one in found] == [
        ("All", True)
    ]


def test_a_role_is_there_once_and_goes_with_its_members(served: ServedMetastore) -> None:
    with pytest.raises(MetaError, match="Role r1 already exists"):
        served.call("create_role", role=hive.Role(roleName="r1"))
    _grant(served, "r1", "ann")
    _grant(served, "r2", "r1", ROLE)
    assert _roles(served, "r1", ROLE) == ["r2"]
    for _ in range(2):
        assert served.call("drop_role", role_name="r1") is True
    assert _roles(served, "ann") == ["public"]
    served.call("create_role", role=hive.Role(roleName="r1"))
    assert _roles(served, "r1", ROLE) == []
    assert served.call("create_role", role=hive.Role(roleName="R1")) is True


def test_a_role_is_granted_once(served: ServedMetastore) -> None:
    _grant(served, "r1", "ann", grant_option=True)
    with pytest.raises(MetaError, match="already has the role r1"):
        _grant(served, "r1", "ann")
    with pytest.raises(MetaError, match="already has the role r1"):
        _grant(served, "r1", "ann", GROUP)
    assert _grant(served, "r1", "ann", GROUP, grantor="bob") is True
    request = hive.GetPrincipalsInRoleRequest(roleName="r1")
    members = served.call("get_principals_in_role", request=request).principalGrants
    assert [(one.principalName, one.principalType, one.grantOption) for one in members] == [
        ("ann", USER, True), ("ann", GROUP, False)]  # fmt: skip
    assert [one.grantorName for one in members] == ["hive", "bob"]
    assert all(one.grantTime > 0 for one in members)
    for role, name, kind in (("none", "ann", USER), ("r1", "none", ROLE)):
        with pytest.raises(MetaError, match="none role can not be found"):
            _grant(served, role, name, kind)


def test_roles_of_roles_make_no_circle(served: ServedMetastore) -> None:
    _grant(served, "r1", "r2", ROLE)
    _grant(served, "r2", "r3", ROLE)
    for role, member in (("r3", "r1"), ("r2", "r2"), ("r3", "r2")):
        with pytest.raises(MetaError, match="no cycles allowed"):
            _grant(served, role, member, ROLE)


def test_the_option_goes_before_the_role(served: ServedMetastore) -> None:
    request = hive.GrantRevokeRoleRequest(
        requestType=GRANT, roleName="r1", principalName="ann", principalType=USER, grantor="hive",
        grantorType=USER, grantOption=True,
    )  # fmt: skip
    assert served.call("grant_revoke_role", request=request).success is True
    request.requestType = REVOKE
    assert served.call("grant_revoke_role", request=request).success is True
    assert _roles(served, "ann") == ["r1", "public"]
    with pytest.raises(MetaError, match="does not have grant option with role r1"):
        served.call("grant_revoke_role", request=request)
    request.grantOption = False
    for _ in range(2):
        assert served.call("grant_revoke_role", request=request).success is True
    assert _roles(served, "ann") == ["public"]
    request.requestType = 3
    with pytest.raises(MetaError, match="Unknown request type 3"):
        served.call("grant_revoke_role", request=request)


def test_names_are_bounded(served: ServedMetastore) -> None:
    with pytest.raises(MetastoreError, match="at most 128 fit"):
        served.call("create_role", role=hive.Role(roleName="r" * 129))
    with pytest.raises(MetastoreError, match="at most 128 fit"):
        _grant(served, "r1", "a" * 129)
    with pytest.raises(MetastoreError, match="4 is no type of principal"):
        _grant(served, "r1", "ann", 4)


def test_administrators_are_named_in_the_settings(tmp_path: Path) -> None:
    """Whoever is named gets the role, once; whoever is no longer keeps it."""
    url = f"sqlite:///{tmp_path}/metastore.db"
    ann, bob = (Principal(name, PrincipalType.USER) for name in ("ann", "bob"))
    for admins in (("ann",), ("ann", "bob"), ("bob",)):
        settings = Settings(admins=admins, warehouse=str(tmp_path / "warehouse"))
        metastore = open_local_metastore(url, settings=settings)
        metastore.add_admins()
        members = [grant.principal for grant in metastore.get_members_of_role("admin")]
        assert members == ([ann] if admins == ("ann",) else [ann, bob])
        metastore.close()
