"""Verbs of privileges (Hive: HMSHandler.grant_privileges and its kin, ObjectStore.grantPrivileges;
docs/hive/metastore.md §32)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby

from hms_bridge.backend.connection import Connection
from hms_bridge.backend.work import sql
from hms_bridge.catalog import connectors, databases, partitions, privileges, roles, tables
from hms_bridge.catalog.limits import check_grant
from hms_bridge.catalog.privileges import StoredGrant
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.errors import MetaError, NoSuchObjectError
from hms_bridge.hooks import changes
from hms_bridge.model.catalog import PrincipalType, Table
from hms_bridge.model.privilege import (
    ADMIN_ROLE,
    PUBLIC_ROLE,
    SQL_AUTHORIZER,
    Grant,
    ObjectKind,
    Principal,
    PrivilegeSet,
    Securable,
)
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import UnitOfWork, reads, writes

_OF_OWNERS = ("DELETE", "INSERT", "SELECT", "UPDATE")
"""What Hive lets who makes a table do with it (hive.security.authorization.createtable.owner.grants
of its SQL authorization)."""


def add_with_table(unit: UnitOfWork, table: Table, grants: Sequence[Grant]) -> None:
    """What a client grants together with a new table (ObjectStore.putPersistentPrivObjects). It
    comes from HiveServer2's settings: a role that is not there, or a privilege that is named twice,
    must not keep anybody from making tables."""
    of_table = Securable(
        kind=ObjectKind.TABLE,
        catalog=table.catalog_name,
        database=table.database_name,
        name=table.name,
    )
    wanted = [replace(grant, object=of_table, authorizer=SQL_AUTHORIZER) for grant in grants]
    by_key = {_key(single): single for grant in wanted for single in _split(grant)}
    for grant in by_key.values():
        check_grant(grant)
    _insert(unit, list(by_key.values()))
    if grants:
        unit.points.append(changes.privileges_changed("grant", list(by_key.values())))


def _grant(unit: UnitOfWork, grants: Sequence[Grant]) -> None:
    _add(unit, grants)
    if grants:
        unit.points.append(changes.privileges_changed("grant", grants))


def _add(unit: UnitOfWork, grants: Sequence[Grant]) -> None:
    for grant in grants:
        check_grant(grant)
    principals = {grant.principal for grant in grants}
    for name in sorted(p.name for p in principals if p.type is PrincipalType.ROLE):
        if roles.find_role(unit.connection, name, RowLock.SHARED) is None:
            raise MetaError(f"Role {name} does not exist")
    _insert(unit, grants)


def _insert(unit: UnitOfWork, grants: Sequence[Grant]) -> None:
    for wanted, of_object in _by_object(grants):
        level = privileges.level_of(wanted)
        owner, partition = _hold(unit.connection, wanted)
        where = privileges.on_object(wanted, partition)
        there = privileges.find_grants(unit.connection, level, where)
        taken = {_key(stored.grant) for stored in there}
        rows = []
        for grant in of_object:
            for single in _split(grant):
                if _key(single) in taken:
                    raise MetaError(
                        f"{single.privilege} is already granted on {wanted} by {single.grantor}"
                    )
                taken.add(_key(single))
                rows.append(replace(single, create_time=unit.now_seconds))
        privileges.insert_grants(unit.connection, level, owner, rows)


def _revoke(unit: UnitOfWork, grants: Sequence[Grant], is_option_only: bool = False) -> None:
    for wanted, of_object in _by_object(grants):
        level = privileges.level_of(wanted)
        with suppress(NoSuchObjectError):  # what is not there has no grants, which is said below
            _hold(unit.connection, wanted)
        there = _stored(unit.connection, wanted)
        for grant in of_object:
            revoked = [_named(there, single) for single in _split(grant)]
            keys = [stored.id for stored in revoked]
            if is_option_only:
                _require_options(revoked)
                privileges.take_grant_options(unit.connection, level, keys)
            else:
                privileges.delete_grants(unit.connection, level, keys)
    if grants:
        unit.points.append(
            changes.privileges_changed("revoke", grants, isGrantOptionOnly=is_option_only)
        )


def _refresh(
    unit: UnitOfWork, wanted: Securable, authorizer: str | None, grants: Sequence[Grant]
) -> None:
    kinds = (ObjectKind.DATABASE, ObjectKind.TABLE, ObjectKind.COLUMN, ObjectKind.CONNECTOR)
    if wanted.kind not in kinds:
        raise MetaError(f"privileges of {wanted} cannot be replaced; grant and revoke them")
    if wanted.column is not None or wanted.values:
        raise MetaError(f"{wanted}: those of all columns are replaced; name the table only")
    try:
        _hold(unit.connection, wanted)
    except NoSuchObjectError:
        return  # What is not there any more has none; who copies them would stop for it.
    level = privileges.level_of(wanted)
    where = [*privileges.on_object(wanted), *privileges.written_by(level, authorizer)]
    there = {
        replace(stored.grant, create_time=0): stored.id
        for stored in privileges.find_grants(unit.connection, level, where)
    }
    kept = {replace(single, create_time=0) for grant in grants for single in _split(grant)}
    gone = [key for grant, key in there.items() if grant not in kept]
    privileges.delete_grants(unit.connection, level, gone)
    new = [grant for grant in kept if grant not in there]
    _add(unit, new)
    if gone or new:
        unit.points.append(changes.privileges_replaced(wanted, grants))


def _list(
    connection: Connection, principal: Principal | None, wanted: Securable | None
) -> tuple[Grant, ...]:
    """``None``, or an object that is not named: of all objects (of its kind)."""
    levels = privileges.LEVELS if wanted is None else (privileges.level_of(wanted),)
    where = []
    is_named = wanted is not None and (wanted.database or wanted.name)
    if wanted is not None and is_named:
        where = privileges.on_object(wanted, _partition_name(connection, wanted))
    elif principal is None and wanted is None:
        raise MetaError("neither a principal nor an object was named; name one of both")
    return tuple(
        stored.grant
        for level in levels
        for stored in privileges.find_grants(
            connection,
            level,
            [*where, *(privileges.of_principal(level, principal) if principal else ())],
        )
    )


def _get_set(
    connection: Connection, wanted: Securable, user: str | None, groups: Sequence[str]
) -> PrivilegeSet:
    there = [stored.grant for stored in _stored(connection, wanted)]
    if not there and user is not None and wanted.kind is ObjectKind.TABLE:
        there = _of_owner(connection, wanted, user)
    names: set[str] = set()
    if wanted.kind is not ObjectKind.GLOBAL:
        names = roles.names_above(connection, PrincipalType.GROUP, groups)
        if user is not None:
            names |= {PUBLIC_ROLE, *roles.names_above(connection, PrincipalType.USER, [user])}

    def given(kind: PrincipalType, names: Iterable[str]) -> dict[str, list[Grant]]:
        return {
            name: [grant for grant in there if grant.principal == Principal(name, kind)]
            for name in names
        }

    return PrivilegeSet(
        users=given(PrincipalType.USER, [] if user is None else [user]),
        groups=given(PrincipalType.GROUP, groups),
        roles=given(PrincipalType.ROLE, sorted(names)),
    )


def _of_owner(connection: Connection, wanted: Securable, user: str) -> list[Grant]:
    """Of a table that was made without any grants, as ours and Spark's are: its owner may read and
    change it. Without that, Hive rebuilds no materialized view from what changed
    (HiveMaterializedViewUtils.checkPrivilegeForMaterializedViews)."""
    stored = tables.find_table(connection, wanted.database or "", wanted.name or "", wanted.catalog)
    if stored is None:
        return []
    table = stored.table
    if table.owner_type is not PrincipalType.USER or table.owner != user:
        return []
    return [
        Grant(
            object=wanted,
            principal=Principal(user, PrincipalType.USER),
            privilege=privilege,
            grantor=user,
            grantor_type=PrincipalType.USER,
            has_grant_option=True,
            create_time=table.create_time,
        )
        for privilege in _OF_OWNERS
    ]


def _stored(connection: Connection, wanted: Securable) -> tuple[StoredGrant, ...]:
    where = privileges.on_object(wanted, _partition_name(connection, wanted))
    return privileges.find_grants(connection, privileges.level_of(wanted), where)


def _partition_name(connection: Connection, wanted: Securable) -> str | None:
    if not wanted.values:
        return None
    stored = tables.require_table(
        connection, wanted.database or "", wanted.name or "", wanted.catalog
    )
    return partitions.name_of(stored.table, wanted.values)


def _hold(connection: Connection, wanted: Securable) -> tuple[int | str | None, str | None]:
    """The key of an object, held so that it stays and nobody else grants on it, and the name of its
    partition. Raises NoSuchObjectError."""
    kind, database, name = wanted.kind, wanted.database or "", wanted.name or ""
    if kind is ObjectKind.GLOBAL:
        roles.find_role(connection, ADMIN_ROLE, RowLock.EXCLUSIVE)  # there is nothing else to hold
        return None, None
    if kind is ObjectKind.DATABASE:
        held = databases.require_database(connection, database, wanted.catalog, RowLock.EXCLUSIVE)
        return held.id, None
    if kind is ObjectKind.CONNECTOR:
        return connectors.require_connector(connection, name, RowLock.EXCLUSIVE).name, None
    stored = tables.require_table(connection, database, name, wanted.catalog, RowLock.EXCLUSIVE)
    if not wanted.values:
        return stored.id, None
    partition = partitions.name_of(stored.table, wanted.values)
    stored_partitions = partitions.find_by_names(connection, stored, [partition]).stored()
    if not stored_partitions:
        raise NoSuchObjectError(f"partition {partition} of {stored.table.full_name} not found")
    return stored_partitions[0].id, partition


def _by_object(grants: Sequence[Grant]) -> Iterator[tuple[Securable, list[Grant]]]:
    """In one order, whoever asks: who holds several objects waits for nobody in a circle."""
    for _, group in groupby(sorted(grants, key=_order), key=_order):
        of_object = list(group)
        yield of_object[0].object, of_object


def _order(grant: Grant) -> tuple[object, ...]:
    o = grant.object
    return (o.kind, o.catalog, o.database or "", o.name or "", o.values, o.column or "")


def _split(grant: Grant) -> Iterator[Grant]:
    """Several may stand in one, with commas."""
    for privilege in grant.privilege.split(","):
        yield replace(grant, privilege=privilege)


def _key(grant: Grant) -> tuple[object, ...]:
    """What is granted once only: a grantor's name counts in any case."""
    grantor = (grant.grantor or "").casefold()
    return (grant.principal, grant.privilege, grantor, grant.authorizer, grant.object.column)


def _named(there: Sequence[StoredGrant], wanted: Grant) -> StoredGrant:
    """The grant that a revocation means: that of its authorizer, if there is one."""
    same = [
        stored
        for stored in there
        if stored.grant.principal == wanted.principal
        and stored.grant.privilege.casefold() == wanted.privilege.casefold()
    ]
    if not same:
        raise MetaError(
            f"No grant ({wanted.privilege}) found on {wanted.object} for {wanted.principal.name}"
        )
    return next((s for s in same if s.grant.authorizer == wanted.authorizer), same[0])


def _require_options(revoked: Sequence[StoredGrant]) -> None:
    for stored in revoked:
        grant = stored.grant
        if not grant.has_grant_option:
            raise MetaError(
                f"User {grant.principal.name} does not have grant option with privilege "
                f"{grant.privilege}"
            )


class PrivilegeVerbs(VerbFamily):
    """The ServedPrivileges."""

    grant_privileges = writes(_grant)
    revoke_privileges = writes(_revoke)
    refresh_privileges = writes(_refresh)
    list_privileges = reads(sql(_list))
    get_privilege_set = reads(sql(_get_set))
