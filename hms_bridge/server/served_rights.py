"""What the server asks of a metastore about roles, privileges and tokens; see
served_metastore.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hms_bridge.model.privilege import Grant, Principal, PrivilegeSet, Role, RoleGrant, Securable


class ServedRoles(Protocol):
    """Roles, and who has them. ``admin`` and ``public`` are always there; every user has
    ``public``. All raise MetaError, as Hive does."""

    def create_role(self, role: Role) -> None:
        """Raises MetaError if its name is taken."""

    def drop_role(self, name: str) -> None:
        """With everything that was granted to it, and from everyone who has it; nothing happens if
        it is not there. Raises MetaError for ``admin`` and ``public``."""

    def get_role_names(self) -> tuple[str, ...]:
        """All, sorted."""

    def grant_role(self, grant: RoleGrant) -> None:
        """Raises MetaError if the role is not there, the principal has it, or is a role that the
        role has itself."""

    def revoke_role(self, name: str, principal: Principal, is_option_only: bool = False) -> None:
        """Take it, or only the option to grant it on. Raises MetaError for a role that is not
        there, or without that option; taking what nobody has is no error."""

    def get_roles_of(self, principal: Principal) -> tuple[RoleGrant, ...]:
        """What was granted to it, and ``public`` last if it is a user."""

    def get_members_of_role(self, role: str) -> tuple[RoleGrant, ...]:
        """To whom it was granted."""


class ServedPrivileges(Protocol):
    """Who may do what with which object."""

    def grant_privileges(self, grants: Sequence[Grant]) -> None:
        """All or none; several privileges may stand in one, with commas. Raises MetaError if a
        principal has one from the same grantor, or is a role that is not there; NoSuchObjectError
        for an object that is not there."""

    def revoke_privileges(self, grants: Sequence[Grant], is_option_only: bool = False) -> None:
        """Take them, or only the option to grant them on: all or none. Raises MetaError for
        one that is not there."""

    def refresh_privileges(
        self, wanted: Securable, authorizer: str | None, grants: Sequence[Grant]
    ) -> None:
        """Replace all of an object that came from an authorizer by these; what stays the same keeps
        its row. An object that is not there has none."""

    def list_privileges(
        self, principal: Principal | None, wanted: Securable | None
    ) -> tuple[Grant, ...]:
        """Of a principal, of an object, or of both; ``wanted`` without a name means all objects of
        its kind, None those of any kind."""

    def get_privilege_set(
        self, wanted: Securable, user: str | None, groups: Sequence[str]
    ) -> PrivilegeSet:
        """Of a user, its groups, and the roles of both and of these roles."""


class ServedTokens(Protocol):
    """Texts that other services keep: delegation tokens, and the keys that they are signed with."""

    def add_token(self, identifier: str, token: str) -> bool:
        """Keep one; False, and nothing changes, if one of that identifier is there."""

    def get_token(self, identifier: str) -> str | None:
        """None if it is not there."""

    def remove_token(self, identifier: str) -> bool:
        """Whether it was there."""

    def get_token_identifiers(self) -> tuple[str, ...]:
        """Those of all tokens, sorted."""

    def add_master_key(self, key: str) -> int:
        """The number that it gets."""

    def update_master_key(self, number: int, key: str) -> None:
        """Put another in its place. Raises NoSuchObjectError."""

    def remove_master_key(self, number: int) -> bool:
        """Whether there was one."""

    def get_master_keys(self) -> tuple[str, ...]:
        """All, in the order in which they came."""
