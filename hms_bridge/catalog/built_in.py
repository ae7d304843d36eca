"""What every metastore has from its first start on."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from hms_bridge.catalog import privileges, roles
from hms_bridge.catalog.catalogs import find_catalog, insert_catalog
from hms_bridge.catalog.databases import find_database, insert_database
from hms_bridge.catalog.limits import check_role_grant
from hms_bridge.model.catalog import (
    DEFAULT_CATALOG,
    DEFAULT_DATABASE,
    Catalog,
    Database,
    PrincipalType,
)
from hms_bridge.model.privilege import (
    ADMIN_ROLE,
    PUBLIC_ROLE,
    SQL_AUTHORIZER,
    Grant,
    ObjectKind,
    Principal,
    Role,
    RoleGrant,
    Securable,
)


def install_default(connection: Connection, location: str, now_seconds: int) -> None:
    """Make the catalog ``hive``, its database ``default`` and the roles that Hive always has, if
    they are not there."""
    if find_catalog(connection, DEFAULT_CATALOG) is None:
        described = "Default catalog for Hive"
        insert_catalog(
            connection, Catalog(name=DEFAULT_CATALOG, description=described, location=location)
        )
    if find_database(connection, DEFAULT_DATABASE) is None:
        insert_database(
            connection,
            Database(
                name=DEFAULT_DATABASE,
                description="Default Hive database",
                location=location,
                owner_name="public",
                owner_type=PrincipalType.ROLE,
                create_time=now_seconds,
            ),
        )
    _make_roles(connection, now_seconds)


def add_admins(connection: Connection, users: Sequence[str], now_seconds: int) -> None:
    """Give users the role of administrators, if they lack it (HMSHandler.addAdminUsers;
    docs/hive/metastore.md §41). Each start of a server does, whoever made the tables."""
    if not users:
        return
    roles.hold_roles(connection)
    stored = roles.find_role(connection, ADMIN_ROLE)
    for user in users if stored is not None else ():
        principal = Principal(user, PrincipalType.USER)
        there = (granted.role.name for granted in roles.roles_of(connection, principal))
        if stored is not None and ADMIN_ROLE not in there:
            grant = RoleGrant(
                role=stored[1],
                principal=principal,
                grantor=ADMIN_ROLE,
                grantor_type=PrincipalType.ROLE,
                has_grant_option=True,
                grant_time=now_seconds,
            )
            check_role_grant(grant)
            roles.insert_member(connection, stored[0], grant)


def _make_roles(connection: Connection, now_seconds: int) -> None:
    """Administrators may do everything (HMSHandler.createDefaultRoles)."""
    there = set(roles.role_names(connection))
    for name in (ADMIN_ROLE, PUBLIC_ROLE):
        if name not in there:
            roles.insert_role(connection, Role(name=name, owner=name, create_time=now_seconds))
    if ADMIN_ROLE not in there:
        grant = Grant(
            object=Securable(kind=ObjectKind.GLOBAL),
            principal=Principal(ADMIN_ROLE, PrincipalType.ROLE),
            privilege="All",
            grantor=ADMIN_ROLE,
            grantor_type=PrincipalType.ROLE,
            has_grant_option=True,
            create_time=now_seconds,
            authorizer=SQL_AUTHORIZER,
        )
        privileges.insert_grants(connection, privileges.GLOBAL, None, [grant])
