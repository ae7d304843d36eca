"""Roles and privileges: thrift structs to records and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import PrincipalType
from hms_bridge.model.privilege import (
    Grant,
    ObjectKind,
    Principal,
    PrivilegeSet,
    Role,
    RoleGrant,
    Securable,
)
from hms_bridge.wire.catalog_names import split_catalog
from hms_bridge.wire.fields import both_ways, filled, or_else
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.structs import Struct, hive

_PARTS = {
    ObjectKind.GLOBAL: (),
    ObjectKind.DATABASE: ("dbName",),
    ObjectKind.TABLE: ("dbName", "objectName"),
    ObjectKind.PARTITION: ("dbName", "objectName", "partValues"),
    ObjectKind.COLUMN: ("dbName", "objectName", "partValues", "columnName"),
    ObjectKind.CONNECTOR: ("objectName",),
}
"""What names an object of a kind; clients set more, which says nothing."""

role_to_struct, role_from_struct = both_ways(
    Role,
    "Role",
    name=filled("roleName"),
    owner="ownerName",
    create_time=or_else("createTime", 0),
)


def principal_of(name: str | None, kind: int | None) -> Principal:
    """Raises MetaError if a name or a kind is missing, or no such kind is known."""
    if not name:
        raise MetaError("the principal's name was not sent or is empty; set that field")
    return Principal(name, principal_type(given(kind, "the principal's type")))


def principal_type(kind: int) -> PrincipalType:
    """Raises MetaError for a number that stands for none."""
    try:
        return PrincipalType(kind)
    except ValueError as error:
        known = ", ".join(f"{int(known)} ({known.name})" for known in PrincipalType)
        raise MetaError(f"{kind} is no type of principal; send one of {known}") from error


def type_or_none(kind: int | None) -> PrincipalType | None:
    """As :func:`principal_type`, where none may be sent."""
    return None if kind is None else principal_type(kind)


def role_grant_to_struct(grant: RoleGrant) -> Struct:
    """RolePrincipalGrant."""
    return hive.RolePrincipalGrant(
        roleName=grant.role.name,
        principalName=grant.principal.name,
        principalType=int(grant.principal.type),
        grantOption=grant.has_grant_option,
        grantTime=grant.grant_time,
        grantorName=grant.grantor,
        grantorPrincipalType=_number(grant.grantor_type),
    )


def object_from_struct(struct: Struct | None, *, is_named: bool = True) -> Securable | None:
    """The object of a HiveObjectRef; None if it has no kind. Raises MetaError for an unknown kind,
    and if a name ``is_named`` must be there."""
    ref = given(struct, "hiveObject")
    if ref.objectType is None:
        return None
    try:
        kind = ObjectKind(ref.objectType)
    except ValueError as error:
        raise MetaError(f"hiveObject.objectType is {ref.objectType}, which is no kind") from error
    parts = _PARTS[kind]
    in_name, database = split_catalog(ref.dbName if "dbName" in parts else None)
    name = ref.objectName if "objectName" in parts else None
    if is_named and "dbName" in parts:
        given_name(database, "hiveObject.dbName")
    if is_named and "objectName" in parts:
        given_name(name, "hiveObject.objectName")
    return Securable(
        kind=kind,
        catalog=(ref.catName or in_name).lower(),
        database=database or None,
        name=name.lower() if name else None,
        values=tuple(ref.partValues or ()) if "partValues" in parts else (),
        column=ref.columnName.lower() if "columnName" in parts and ref.columnName else None,
    )


def grants_from_bag(bag: Struct | None) -> list[Grant]:
    """Those of a PrivilegeBag. Raises MetaError for one that lacks something."""
    grants = []
    for struct in given(bag, "privileges").privileges or ():
        wanted = given(object_from_struct(struct.hiveObject), "hiveObject.objectType")
        principal = principal_of(struct.principalName, struct.principalType)
        info = given(struct.grantInfo, "grantInfo")
        grants.append(_grant(wanted, principal, info, struct.authorizer))
    return grants


def grants_from_set(struct: Struct | None, wanted: Securable) -> list[Grant]:
    """Those of a PrincipalPrivilegeSet; none for None."""
    if struct is None:
        return []
    kinds = (
        (PrincipalType.USER, struct.userPrivileges),
        (PrincipalType.GROUP, struct.groupPrivileges),
        (PrincipalType.ROLE, struct.rolePrivileges),
    )
    return [
        _grant(wanted, Principal(name, kind), info, None)
        for kind, by_name in kinds
        for name, infos in (by_name or {}).items()
        for info in infos or ()
    ]


def _grant(wanted: Securable, principal: Principal, info: Struct, authorizer: str | None) -> Grant:
    return Grant(
        object=wanted,
        principal=principal,
        privilege=given(info.privilege, "grantInfo.privilege"),
        grantor=info.grantor,
        grantor_type=type_or_none(info.grantorType),
        has_grant_option=bool(info.grantOption),
        authorizer=authorizer,
    )


def grant_to_struct(grant: Grant) -> Struct:
    """HiveObjectPrivilege."""
    wanted = grant.object
    return hive.HiveObjectPrivilege(
        hiveObject=hive.HiveObjectRef(
            objectType=int(wanted.kind),
            dbName=wanted.database,
            objectName=wanted.name,
            partValues=list(wanted.values) or None,
            columnName=wanted.column,
            catName=wanted.catalog,
        ),
        principalName=grant.principal.name,
        principalType=int(grant.principal.type),
        grantInfo=_info(grant),
        authorizer=grant.authorizer,
    )


def set_to_struct(privileges: PrivilegeSet) -> Struct:
    """PrincipalPrivilegeSet; Hive leaves out what it was not asked for."""
    return hive.PrincipalPrivilegeSet(
        userPrivileges=_infos(privileges.users),
        groupPrivileges=_infos(privileges.groups),
        rolePrivileges=_infos(privileges.roles),
    )


def _infos(by_name: Mapping[str, Sequence[Grant]]) -> dict[str, list[Struct]] | None:
    return {name: list(map(_info, grants)) for name, grants in by_name.items()} or None


def _info(grant: Grant) -> Struct:
    return hive.PrivilegeGrantInfo(
        privilege=grant.privilege,
        createTime=grant.create_time,
        grantor=grant.grantor,
        grantorType=_number(grant.grantor_type),
        grantOption=grant.has_grant_option,
    )


def _number(kind: PrincipalType | None) -> int | None:
    return None if kind is None else int(kind)


def role_grants_to_structs(grants: Iterable[RoleGrant]) -> list[Struct]:
    """Several."""
    return [role_grant_to_struct(grant) for grant in grants]
