"""Roles, and who has them."""

from __future__ import annotations

from hms_bridge.errors import MetaError
from hms_bridge.model.privilege import Principal, Role, RoleGrant
from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.served_rights import ServedRoles
from hms_bridge.wire.convert_privilege import (
    principal_of,
    role_from_struct,
    role_grants_to_structs,
    role_to_struct,
    type_or_none,
)
from hms_bridge.wire.required import given
from hms_bridge.wire.structs import Struct, hive

GRANT, REVOKE = 1, 2
"""Hive's GrantRevokeType."""


class RoleCalls(Calls[ServedRoles]):
    """Names of roles and principals keep their case."""

    @answers("create_role")
    def create_role(self, args: Struct) -> bool:
        self._store.create_role(role_from_struct(given(args.role, "role")))
        return True

    @answers("drop_role")
    def drop_role(self, args: Struct) -> bool:
        self._store.drop_role(given(args.role_name, "role_name"))
        return True

    @answers("get_role_names")
    def names(self, _: Struct) -> list[str]:
        return list(self._store.get_role_names())

    @answers("grant_role")
    def grant_role(self, args: Struct) -> bool:
        self._grant(args, args.role_name, args.principal_name, args.principal_type,
                    bool(args.grant_option))  # fmt: skip
        return True

    @answers("revoke_role")
    def revoke_role(self, args: Struct) -> bool:
        principal = principal_of(args.principal_name, args.principal_type)
        self._store.revoke_role(given(args.role_name, "role_name"), principal)
        return True

    @answers("grant_revoke_role", of="request")
    def grant_or_revoke(self, request: Struct) -> Struct:
        name = given(request.roleName, "roleName")
        is_option = bool(request.grantOption)
        if request.requestType == GRANT:
            self._grant(request, name, request.principalName, request.principalType, is_option)
        elif request.requestType == REVOKE:
            principal = principal_of(request.principalName, request.principalType)
            self._store.revoke_role(name, principal, is_option)
        else:
            raise MetaError(f"Unknown request type {request.requestType}")
        return hive.GrantRevokeRoleResponse(success=True)

    @answers("list_roles")
    def roles(self, args: Struct) -> list[Struct]:
        """Those that a principal has."""
        principal = principal_of(args.principal_name, args.principal_type)
        return [role_to_struct(grant.role) for grant in self._store.get_roles_of(principal)]

    @answers("get_role_grants_for_principal", of="request")
    def roles_of(self, request: Struct) -> Struct:
        """As list_roles, with who granted them."""
        principal = principal_of(request.principal_name, request.principal_type)
        grants = role_grants_to_structs(self._store.get_roles_of(principal))
        return hive.GetRoleGrantsForPrincipalResponse(principalGrants=grants)

    @answers("get_principals_in_role", of="request")
    def members(self, request: Struct) -> Struct:
        grants = self._store.get_members_of_role(given(request.roleName, "roleName"))
        return hive.GetPrincipalsInRoleResponse(principalGrants=role_grants_to_structs(grants))

    def _grant(
        self,
        of: Struct,
        role: str | None,
        name: str | None,
        kind: int | None,
        has_grant_option: bool,
    ) -> None:
        principal: Principal = principal_of(name, kind)
        self._store.grant_role(
            RoleGrant(
                role=Role(name=given(role, "the role's name")),
                principal=principal,
                grantor=of.grantor,
                grantor_type=type_or_none(of.grantorType),
                has_grant_option=has_grant_option,
            )
        )
