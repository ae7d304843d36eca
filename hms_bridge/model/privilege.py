"""Roles, and who may do what with which object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from hms_bridge.model.catalog import DEFAULT_CATALOG, PrincipalType

ADMIN_ROLE = "admin"
PUBLIC_ROLE = "public"
"""Every user has it, without a row that says so."""

SQL_AUTHORIZER = "SQL"
"""The authorizer of what Hive grants by itself: to administrators, and with a new table."""


class ObjectKind(IntEnum):
    """What a privilege is about; the number stands on the wire (Hive's HiveObjectType)."""

    GLOBAL = 1
    DATABASE = 2
    TABLE = 3
    PARTITION = 4
    COLUMN = 5
    CONNECTOR = 6


@dataclass(frozen=True, slots=True, order=True)
class Principal:
    """A user, group or role. Its name keeps its case."""

    name: str
    type: PrincipalType


@dataclass(frozen=True, kw_only=True, slots=True)
class Securable:
    """What a privilege is about. ``name`` is a table's or a data connector's; ``values`` are those
    of a partition, also of one whose column it is."""

    kind: ObjectKind
    catalog: str = DEFAULT_CATALOG
    database: str | None = None
    name: str | None = None
    values: tuple[str, ...] = ()
    column: str | None = None

    def __str__(self) -> str:
        """For messages: ``table [db, t]``."""
        parts = (self.database, self.name, *self.values, self.column)
        words = "data connector" if self.kind is ObjectKind.CONNECTOR else self.kind.name.lower()
        named = ", ".join(part for part in parts if part)
        return f"{words} [{named}]" if named else "the whole metastore"


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """That a principal has a privilege on an object, and from whom. ``authorizer`` is the
    authorization that wrote it, which keeps its own apart from those of others."""

    object: Securable
    principal: Principal
    privilege: str
    grantor: str | None = None
    grantor_type: PrincipalType | None = None
    has_grant_option: bool = False
    create_time: int = 0
    authorizer: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Role:
    """A role; its name keeps its case."""

    name: str
    owner: str | None = None
    create_time: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class RoleGrant:
    """That a principal has a role, and from whom; the role ``public`` comes from nobody."""

    role: Role
    principal: Principal
    grantor: str | None = None
    grantor_type: PrincipalType | None = None
    has_grant_option: bool = False
    grant_time: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class PrivilegeSet:
    """What a user, its groups and the roles of both may do with one object."""

    users: Mapping[str, Sequence[Grant]]
    groups: Mapping[str, Sequence[Grant]]
    roles: Mapping[str, Sequence[Grant]]
