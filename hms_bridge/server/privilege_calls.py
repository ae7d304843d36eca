"""Privileges on objects. Nothing here enforces them: clients such as HiveServer2 do."""

from __future__ import annotations

from collections.abc import Sequence

from hms_bridge.errors import MetaError
from hms_bridge.model.privilege import Grant
from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.role_calls import GRANT, REVOKE
from hms_bridge.server.served_rights import ServedPrivileges
from hms_bridge.wire.convert_privilege import (
    grant_to_struct,
    grants_from_bag,
    object_from_struct,
    principal_of,
    set_to_struct,
)
from hms_bridge.wire.required import given
from hms_bridge.wire.structs import Struct, hive

GRANTS_MAX = 10_000
"""In a call; all are held in one transaction."""
GROUPS_MAX = 1000
"""Of a user."""


class PrivilegeCalls(Calls[ServedPrivileges]):
    """Who may do what with which object."""

    @answers("grant_privileges")
    def grant(self, args: Struct) -> bool:
        self._store.grant_privileges(_grants(args.privileges))
        return True

    @answers("revoke_privileges")
    def revoke(self, args: Struct) -> bool:
        self._store.revoke_privileges(_grants(args.privileges))
        return True

    @answers("grant_revoke_privileges", of="request")
    def grant_or_revoke(self, request: Struct) -> Struct:
        grants = _grants(request.privileges)
        if request.requestType == GRANT:
            self._store.grant_privileges(grants)
        elif request.requestType == REVOKE:
            self._store.revoke_privileges(grants, bool(request.revokeGrantOption))
        else:
            raise MetaError(f"Unknown request type {request.requestType}")
        return hive.GrantRevokePrivilegeResponse(success=True)

    @answers("refresh_privileges")
    def refresh(self, args: Struct) -> Struct:
        wanted = given(object_from_struct(args.objToRefresh), "objToRefresh.objectType")
        request = given(args.grantRequest, "grantRequest")
        self._store.refresh_privileges(wanted, args.authorizer, _grants(request.privileges))
        return hive.GrantRevokePrivilegeResponse(success=True)

    @answers("list_privileges")
    def list_grants(self, args: Struct) -> list[Struct]:
        wanted = object_from_struct(args.hiveObject, is_named=False)
        principal = None
        if args.principal_name is not None:
            principal = principal_of(args.principal_name, args.principal_type)
        return [grant_to_struct(grant) for grant in self._store.list_privileges(principal, wanted)]

    @answers("get_privilege_set")
    def privileges_of(self, args: Struct) -> Struct:
        """What a user may do with an object, its groups and roles among it."""
        wanted = given(object_from_struct(args.hiveObject), "hiveObject.objectType")
        groups = args.group_names or ()
        require_few_groups(groups)
        return set_to_struct(self._store.get_privilege_set(wanted, args.user_name, groups))


def require_few_groups(groups: Sequence[str]) -> None:
    """Raises MetaError for more groups of a user than are looked up in a call."""
    if len(groups) > GROUPS_MAX:
        raise MetaError(f"{len(groups)} groups were sent; send at most {GROUPS_MAX}")


def _grants(bag: Struct | None) -> list[Grant]:
    return bounded(grants_from_bag(bag))


def bounded(grants: list[Grant]) -> list[Grant]:
    """Those of one call, in each of which several may stand. Raises MetaError for too many."""
    count = sum(1 + grant.privilege.count(",") for grant in grants)
    if count > GRANTS_MAX:
        raise MetaError(f"{count} privileges were sent; send at most {GRANTS_MAX}")
    return grants
