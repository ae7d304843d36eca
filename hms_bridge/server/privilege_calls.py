"""Roles and privileges, of which none are kept: what follows without them."""

from __future__ import annotations

from hms_bridge.errors import NoSuchObjectError
from hms_bridge.metastore import CatalogStore
from hms_bridge.model.catalog import PrincipalType, Table
from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.names import table_name
from hms_bridge.wire.structs import Struct, hive

_PUBLIC = "public"
_TABLE = 3
"""Hive's number for an object that is a table."""

_OF_OWNERS = ("DELETE", "INSERT", "SELECT", "UPDATE")
"""What Hive grants to who makes a table."""


class PrivilegeCalls(Calls[CatalogStore]):
    """Every user has the role that all have. Who owns a table may read and change it, as Hive
    grants it when a table is made; without that, Hive rebuilds no materialized view from what
    changed (HiveMaterializedViewUtils.checkPrivilegeForMaterializedViews)."""

    @answers("get_role_grants_for_principal", of="request")
    def roles_of(self, request: Struct) -> Struct:
        grants = []
        if request.principal_type == PrincipalType.USER:
            grants = [
                hive.RolePrincipalGrant(
                    roleName=_PUBLIC,
                    principalName=request.principal_name,
                    principalType=int(PrincipalType.USER),
                    grantOption=False,
                    grantTime=0,
                )
            ]
        return hive.GetRoleGrantsForPrincipalResponse(principalGrants=grants)

    @answers("get_privilege_set")
    def privileges_of(self, args: Struct) -> Struct:
        users: dict[str, list[Struct]] = {}
        if args.user_name:
            users = {args.user_name: self._of_user(args.user_name, args.hiveObject)}
        groups: dict[str, list[Struct]] = {name: [] for name in args.group_names or ()}
        return hive.PrincipalPrivilegeSet(
            userPrivileges=users or None,
            groupPrivileges=groups or None,
            rolePrivileges={_PUBLIC: []},
        )

    def _of_user(self, user: str, target: Struct | None) -> list[Struct]:
        if target is None or target.objectType != _TABLE:
            return []
        name = table_name(target.dbName, target.objectName, target.catName)
        try:
            table = self._store.get_table(name.database, name.table, name.catalog)
        except NoSuchObjectError:
            return []
        is_owner = table.owner_type is PrincipalType.USER and table.owner == user
        return [_grant(privilege, table) for privilege in _OF_OWNERS] if is_owner else []


def _grant(privilege: str, table: Table) -> Struct:
    return hive.PrivilegeGrantInfo(
        privilege=privilege,
        createTime=table.create_time,
        grantor=table.owner,
        grantorType=int(PrincipalType.USER),
        grantOption=True,
    )
