"""ROLES and ROLE_MAP: roles, and who has them (Hive: ObjectStore.addRole, grantRole, removeRole;
docs/hive/metastore.md §31)."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    and_,
    delete,
    insert,
    or_,
    select,
    update,
)

from hms_bridge.backend.batches import batches_of_names
from hms_bridge.backend.columns import Columns, flag, name_or_none
from hms_bridge.backend.schema.privilege_tables import ROLE_MAP, ROLES
from hms_bridge.backend.sequences import next_sequence_values
from hms_bridge.catalog.row_locks import RowLock, select_held
from hms_bridge.model.catalog import PrincipalType
from hms_bridge.model.privilege import Principal, Role, RoleGrant

_ROLE_SEQUENCE = "org.apache.hadoop.hive.metastore.model.MRole"
_MAP_SEQUENCE = "org.apache.hadoop.hive.metastore.model.MRoleMap"

_ROLE = Columns(Role, name="ROLE_NAME", owner="OWNER_NAME", create_time="CREATE_TIME")
_GRANT = Columns(
    RoleGrant,
    grantor="GRANTOR",
    grantor_type=name_or_none("GRANTOR_TYPE", PrincipalType),
    has_grant_option=flag("GRANT_OPTION"),
    grant_time="ADD_TIME",
)


def role_names(connection: Connection) -> tuple[str, ...]:
    """All, sorted."""
    return tuple(sorted(connection.scalars(select(ROLES.c.ROLE_NAME))))


def hold_roles(connection: Connection) -> None:
    """Hold all roles alone: who makes one a member of another decides by all of them, also by one
    that another program made while this one waited for the others."""
    key = ROLES.c.ROLE_ID
    select_held(connection, select(key).where(key.is_not(None)), key, RowLock.EXCLUSIVE)


def find_role(
    connection: Connection, name: str, lock: RowLock = RowLock.NONE
) -> tuple[int, Role] | None:
    """A role with its key; None if it is not there."""
    statement = select(ROLES).where(ROLES.c.ROLE_NAME == name)
    rows = select_held(connection, statement, ROLES.c.ROLE_ID, lock)
    return (rows[0].ROLE_ID, _ROLE.read(rows[0])) if rows else None


def insert_role(connection: Connection, role: Role) -> None:
    """A new one; the caller has seen that its name is free."""
    key = next_sequence_values(connection, _ROLE_SEQUENCE, 1)
    connection.execute(insert(ROLES).values(ROLE_ID=key, **_ROLE.values(role)))


def delete_role(connection: Connection, key: int, name: str) -> None:
    """With all that says who has it, and which roles it has."""
    connection.execute(delete(ROLE_MAP).where(ROLE_MAP.c.ROLE_ID == key))
    connection.execute(delete(ROLE_MAP).where(*_is(Principal(name, PrincipalType.ROLE))))
    connection.execute(delete(ROLES).where(ROLES.c.ROLE_ID == key))


def roles_of(connection: Connection, principal: Principal) -> tuple[RoleGrant, ...]:
    """Those that were granted to it, the oldest first; not those of its roles."""
    return _grants(connection, *_is(principal))


def members_of(connection: Connection, role: str) -> tuple[RoleGrant, ...]:
    """To whom a role was granted, the oldest first."""
    return _grants(connection, ROLES.c.ROLE_NAME == role)


def is_taken(connection: Connection, key: int, grant: RoleGrant) -> bool:
    """Whether it has it, or a user, group or role of that name has it from the same grantor, which
    Hive's index takes for the same."""
    m = ROLE_MAP.c
    same = and_(
        m.GRANTOR.is_not_distinct_from(grant.grantor),
        m.GRANTOR_TYPE.is_not_distinct_from(grant.grantor_type and grant.grantor_type.name),
    )
    here = (m.ROLE_ID == key, m.PRINCIPAL_NAME == grant.principal.name)
    kind = m.PRINCIPAL_TYPE == grant.principal.type.name
    query = select(m.ROLE_GRANT_ID).where(*here, or_(kind, same))
    return connection.execute(query).first() is not None


def insert_member(connection: Connection, key: int, grant: RoleGrant) -> None:
    """Grant a role by its key."""
    grant_key = next_sequence_values(connection, _MAP_SEQUENCE, 1)
    connection.execute(
        insert(ROLE_MAP).values(
            ROLE_GRANT_ID=grant_key,
            ROLE_ID=key,
            PRINCIPAL_NAME=grant.principal.name,
            PRINCIPAL_TYPE=grant.principal.type.name,
            **_GRANT.values(grant),
        )
    )


def delete_member(connection: Connection, key: int, principal: Principal) -> None:
    """Take a role from who has it, or may not have it."""
    connection.execute(delete(ROLE_MAP).where(ROLE_MAP.c.ROLE_ID == key, *_is(principal)))


def take_grant_option(connection: Connection, key: int, principal: Principal) -> bool:
    """Leave the role, but let it grant no longer; whether it could."""
    m = ROLE_MAP.c
    changed = connection.execute(
        update(ROLE_MAP)
        .where(m.ROLE_ID == key, *_is(principal), m.GRANT_OPTION != 0)
        .values(GRANT_OPTION=0)
    )
    return changed.rowcount > 0


def names_above(connection: Connection, kind: PrincipalType, names: Iterable[str]) -> set[str]:
    """Names of the roles of these principals, of the roles' roles, and so on."""
    above_all: set[str] = set()
    asked, new = kind, set(names)
    while new:
        above: set[str] = set()
        for piece in batches_of_names(new):
            query = _select(ROLES.c.ROLE_NAME).where(
                ROLE_MAP.c.PRINCIPAL_TYPE == asked.name, ROLE_MAP.c.PRINCIPAL_NAME.in_(piece)
            )
            above |= set(connection.scalars(query))
        asked, new = PrincipalType.ROLE, above - above_all
        above_all |= new
    return above_all


def _select(*columns: Column[object]):  # type: ignore[no-untyped-def]
    return select(*columns).join_from(ROLE_MAP, ROLES, ROLE_MAP.c.ROLE_ID == ROLES.c.ROLE_ID)


def _is(principal: Principal) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    m = ROLE_MAP.c
    return m.PRINCIPAL_NAME == principal.name, m.PRINCIPAL_TYPE == principal.type.name


def _grants(connection: Connection, *where: ColumnElement[bool]) -> tuple[RoleGrant, ...]:
    query = _select(*ROLES.c, *(column for column in ROLE_MAP.c if column.name != "ROLE_ID"))
    rows = connection.execute(query.where(*where).order_by(ROLE_MAP.c.ROLE_GRANT_ID))
    return tuple(
        _GRANT.read(
            row,
            role=_ROLE.read(row),
            principal=Principal(row.PRINCIPAL_NAME, PrincipalType[row.PRINCIPAL_TYPE]),
        )
        for row in rows
    )
