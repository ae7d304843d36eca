"""Verbs of roles (Hive: HMSHandler.create_role and its kin, ObjectStore.grantRole)."""

from __future__ import annotations

from dataclasses import replace

from hms_bridge.backend.connection import Connection
from hms_bridge.backend.work import sql
from hms_bridge.catalog import privileges, roles
from hms_bridge.catalog.built_in import add_admins
from hms_bridge.catalog.limits import check_role, check_role_grant
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.errors import MetaError
from hms_bridge.hooks import changes
from hms_bridge.model.catalog import PrincipalType
from hms_bridge.model.privilege import (
    ADMIN_ROLE,
    PUBLIC_ROLE,
    Principal,
    Role,
    RoleGrant,
)
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import UnitOfWork, reads, writes


def _create_role(unit: UnitOfWork, role: Role) -> None:
    check_role(role)
    if role.name == PUBLIC_ROLE:
        raise MetaError(f"{PUBLIC_ROLE} role implicitly exists. It can't be created.")
    roles.hold_roles(unit.connection)
    if roles.find_role(unit.connection, role.name) is not None:
        raise MetaError(f"Role {role.name} already exists.")
    roles.insert_role(unit.connection, replace(role, create_time=unit.now_seconds))
    unit.points.append(changes.role_changed("create", role.name))


def _drop_role(unit: UnitOfWork, name: str) -> None:
    if name in (ADMIN_ROLE, PUBLIC_ROLE):
        raise MetaError(f"{PUBLIC_ROLE},{ADMIN_ROLE} roles can't be dropped.")
    stored = roles.find_role(unit.connection, name, RowLock.EXCLUSIVE)
    if stored is not None:
        privileges.delete_all_of(unit.connection, Principal(name, PrincipalType.ROLE))
        roles.delete_role(unit.connection, stored[0], name)
        unit.points.append(changes.role_changed("drop", name))


def _grant_role(unit: UnitOfWork, grant: RoleGrant) -> None:
    check_role_grant(grant)
    name, principal = grant.role.name, grant.principal
    if name == PUBLIC_ROLE:
        raise MetaError(
            f"No user can be added to {PUBLIC_ROLE}. Since all users implicitly belong to "
            f"{PUBLIC_ROLE} role."
        )
    # All, because two grants that each make no cycle may make one together.
    roles.hold_roles(unit.connection)
    key = _require_role(unit.connection, name)
    if principal.type is PrincipalType.ROLE:
        _require_role(unit.connection, principal.name)
        above = roles.names_above(unit.connection, PrincipalType.ROLE, [name])
        if principal.name in {name} | above:
            raise MetaError(
                f"Cannot grant role {name} to {principal.name} as {name} already belongs to the "
                f"role {principal.name}. (no cycles allowed)"
            )
    if roles.is_taken(unit.connection, key, grant):
        raise MetaError(f"Principal {principal.name} already has the role {name}")
    roles.insert_member(unit.connection, key, replace(grant, grant_time=unit.now_seconds))
    unit.points.append(changes.role_granted(grant))


def _revoke_role(
    unit: UnitOfWork, name: str, principal: Principal, is_option_only: bool = False
) -> None:
    if name == PUBLIC_ROLE:
        raise MetaError(f"{PUBLIC_ROLE} role can't be revoked.")
    key = _require_role(unit.connection, name)
    if not is_option_only:
        roles.delete_member(unit.connection, key, principal)
    elif not roles.take_grant_option(unit.connection, key, principal):
        raise MetaError(f"User {principal.name} does not have grant option with role {name}")
    unit.points.append(changes.role_revoked(name, principal, is_option_only=is_option_only))


def _require_role(connection: Connection, name: str) -> int:
    stored = roles.find_role(connection, name)
    if stored is None:
        raise MetaError(f"{name} role can not be found.")
    return stored[0]


def _roles_of(connection: Connection, principal: Principal) -> tuple[RoleGrant, ...]:
    granted = roles.roles_of(connection, principal)
    if principal.type is not PrincipalType.USER:
        return granted
    return (
        *granted,
        RoleGrant(role=Role(name=PUBLIC_ROLE, owner=PUBLIC_ROLE), principal=principal),
    )


def _add_admins(unit: UnitOfWork) -> None:
    add_admins(unit.connection, unit.settings.admins, unit.now_seconds)


class RoleVerbs(VerbFamily):
    """The ServedRoles, and what a server does when it starts."""

    create_role = writes(_create_role)
    drop_role = writes(_drop_role)
    grant_role = writes(_grant_role)
    revoke_role = writes(_revoke_role)
    get_role_names = reads(sql(roles.role_names))
    get_roles_of = reads(sql(_roles_of))
    get_members_of_role = reads(sql(roles.members_of))
    add_admins = writes(_add_admins)
