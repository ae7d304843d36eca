"""What every metastore has from its first start on."""

from __future__ import annotations

from sqlalchemy import Connection

from hms_bridge.catalog import privileges, roles
from hms_bridge.catalog.catalogs import find_catalog, insert_catalog
from hms_bridge.catalog.databases import find_database, insert_database
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
