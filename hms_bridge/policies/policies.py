"""Policies of replication, in SQL. The methods' contracts: ``PolicyStore``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sqlalchemy import URL, Connection, Row, delete, insert, select, update

from hms_bridge.backend.columns import Columns, Kept, flag
from hms_bridge.backend.schema.replication_tables import (
    HMSB_REPL_CYCLE,
    HMSB_REPL_POLICY,
    HMSB_REPL_POLICY_TABLES,
    HMSB_REPL_TOTAL,
    HMSB_REPL_WATCH,
)
from hms_bridge.errors import AlreadyExistsError, InvalidOperationError, NoSuchObjectError
from hms_bridge.model.replication import PolicySide, ReplicationPolicy
from hms_bridge.policies.same_place import is_same_directory, metastore_key


def _side(prefix: str) -> Columns[PolicySide]:
    return Columns(
        PolicySide,
        metastore=f"{prefix}_URL",
        database=f"{prefix}_DB",
        settings=Kept(
            f"{prefix}_SETTINGS",
            json.loads,
            lambda settings: json.dumps(dict(settings), sort_keys=True),
        ),
    )


_ROW = HMSB_REPL_POLICY.c
_COVERED = HMSB_REPL_POLICY_TABLES.c
_POLICIES = HMSB_REPL_POLICY.outerjoin(HMSB_REPL_POLICY_TABLES, _COVERED.POLICY_NAME == _ROW.NAME)
_COLUMNS = Columns(
    ReplicationPolicy,
    root="ROOT",
    source=_side("SOURCE"),
    target=_side("TARGET"),
    is_paused=flag("IS_PAUSED"),
)
_ENDING = 2
"""In IS_PAUSED: the removal has begun. Earlier versions take it for a pause."""
_WITH_TABLES = select(HMSB_REPL_POLICY, _COVERED.INCLUDED, _COVERED.EXCLUDED).select_from(_POLICIES)


def add_policies(
    connection: Connection,
    policies: Sequence[ReplicationPolicy],
    *,
    is_replacing: bool = False,
    made_from: Mapping[str, ReplicationPolicy | None] = MappingProxyType({}),
) -> None:
    """See PolicyStore.add_policies."""
    _require_unchanged(connection, made_from)
    known = {policy.name for policy in get_policies(connection)}
    for policy in changed_by(connection, policies, is_replacing=is_replacing):
        _write(connection, policy, is_known=policy.name in known)


def _require_unchanged(
    connection: Connection, made_from: Mapping[str, ReplicationPolicy | None]
) -> None:
    """Who changes one of them now is waited for, and seen. Raises InvalidOperationError."""
    held = select(_ROW.NAME).where(_ROW.NAME.in_(made_from)).with_for_update()
    connection.execute(held).all()
    kept = {policy.name: policy for policy in get_policies(connection)}
    for name, was in made_from.items():
        if kept.get(name) != was:
            raise InvalidOperationError(
                f"policy {name} was changed by somebody else meanwhile, as by 'repl policy pause': "
                f"nothing was changed now. Look at it ('repl policy show {name}'), and type this "
                "again if it is still wanted"
            )


def changed_by(
    connection: Connection, policies: Sequence[ReplicationPolicy], *, is_replacing: bool = False
) -> tuple[ReplicationPolicy, ...]:
    """See PolicyStore.changed_by."""
    kept = {policy.name: policy for policy in get_policies(connection)}
    ending = get_names_ending(connection)
    changed = []
    for policy in policies:
        there = kept.get(policy.name)
        if policy.name in ending:
            raise _being_removed(policy.name)
        if there == policy:
            continue  # typed again, as after a kill
        if there is not None and not is_replacing:
            raise AlreadyExistsError(
                f"there is a policy {policy.name} already, and it is not this one: --replace "
                f"changes it ('repl policy show {policy.name}' shows it), or take another name"
            )
        for other in kept.values():
            if other.name != policy.name:
                _require_apart(policy, other, connection.engine.url)
        kept[policy.name] = policy
        changed.append(policy)
    return tuple(changed)


def _write(connection: Connection, policy: ReplicationPolicy, *, is_known: bool) -> None:
    values = _COLUMNS.values(policy)
    if is_known:
        connection.execute(
            update(HMSB_REPL_POLICY).where(_ROW.NAME == policy.name).values(**values)
        )
        connection.execute(
            delete(HMSB_REPL_POLICY_TABLES).where(_COVERED.POLICY_NAME == policy.name)
        )
    else:
        connection.execute(
            insert(HMSB_REPL_POLICY).values(NAME=policy.name, NEXT_CYCLE=1, **values)
        )
    if not policy.scope.is_whole_database:
        connection.execute(
            insert(HMSB_REPL_POLICY_TABLES).values(
                POLICY_NAME=policy.name,
                INCLUDED=policy.included_tables,
                EXCLUDED=policy.excluded_tables,
            )
        )


def get_policy(connection: Connection, name: str) -> ReplicationPolicy:
    """See PolicyStore.get_policy."""
    return _policy(_need(connection, name))


def get_policies(connection: Connection) -> tuple[ReplicationPolicy, ...]:
    """See PolicyStore.get_policies."""
    rows = connection.execute(_WITH_TABLES)
    return tuple(sorted((_policy(row) for row in rows), key=lambda policy: policy.name))


def get_names_at_work(connection: Connection, database_name: str) -> tuple[str, ...]:
    """See PolicyStore.get_names_at_work."""
    own = connection.engine.url
    wanted = _side_key(PolicySide(database=database_name), own)
    return tuple(
        policy.name
        for policy in get_policies(connection)
        if not policy.is_paused
        and wanted in (_side_key(policy.source, own), _side_key(policy.target, own))
    )


def set_paused(connection: Connection, name: str, *, is_paused: bool) -> None:
    """See PolicyStore.set_paused."""
    _need(connection, name)
    changed = connection.execute(
        update(HMSB_REPL_POLICY)
        .where(_ROW.NAME == name, _ROW.IS_PAUSED != _ENDING)
        .values(IS_PAUSED=int(is_paused))
    )
    if changed.rowcount != 1:
        raise _being_removed(name)


def begin_removal(connection: Connection, name: str, *, made_from: ReplicationPolicy) -> None:
    """See PolicyStore.begin_removal."""
    _need(connection, name)
    _require_unchanged(connection, {name: made_from})
    connection.execute(update(HMSB_REPL_POLICY).where(_ROW.NAME == name).values(IS_PAUSED=_ENDING))


def get_names_ending(connection: Connection) -> tuple[str, ...]:
    """See PolicyStore.get_names_ending."""
    ending = select(_ROW.NAME).where(_ROW.IS_PAUSED == _ENDING).order_by(_ROW.NAME)
    return tuple(connection.scalars(ending))


def _being_removed(name: str) -> InvalidOperationError:
    return InvalidOperationError(
        f"policy {name} is being removed: 'repl policy remove {name}' goes on with it, and then "
        "another one can have its name"
    )


def remove_policy(connection: Connection, name: str) -> None:
    """See PolicyStore.remove_policy."""
    _need(connection, name)
    for table in (HMSB_REPL_CYCLE, HMSB_REPL_TOTAL, HMSB_REPL_POLICY_TABLES, HMSB_REPL_WATCH):
        connection.execute(delete(table).where(table.c.POLICY_NAME == name))
    connection.execute(delete(HMSB_REPL_POLICY).where(_ROW.NAME == name))


def take_cycle_number(connection: Connection, name: str) -> int:
    """The number of a policy's next cycle. Raises NoSuchObjectError."""
    number: int = _need(connection, name, is_locked=True).NEXT_CYCLE
    connection.execute(
        update(HMSB_REPL_POLICY).where(_ROW.NAME == name).values(NEXT_CYCLE=number + 1)
    )
    return number


def _need(connection: Connection, name: str, *, is_locked: bool = False) -> Row[*tuple[Any, ...]]:
    query = _WITH_TABLES.where(_ROW.NAME == name)
    # PostgreSQL locks no side of an outer join that may be missing.
    locked = select(HMSB_REPL_POLICY).where(_ROW.NAME == name).with_for_update()
    row = connection.execute(locked if is_locked else query).first()
    if row is None:
        known = ", ".join(connection.scalars(select(_ROW.NAME).order_by(_ROW.NAME))) or "none"
        raise NoSuchObjectError(f"there is no policy {name}; there are: {known}")
    return row


def _require_apart(policy: ReplicationPolicy, other: ReplicationPolicy, own: URL) -> None:
    """Two that share a target would undo each other's work, two that share dumps take them from
    each other. ``own``: the database that keeps them."""
    target = policy.target
    if _side_key(target, own) == _side_key(other.target, own):
        raise AlreadyExistsError(
            f"policy {other.name} replicates into {target.database} there already; a replica has "
            "one source: take another database (--into), or remove that policy"
        )
    is_one_source = policy.source.database.lower() == other.source.database.lower()
    if is_one_source and is_same_directory(policy.root, other.root):
        raise AlreadyExistsError(
            f"policy {other.name} keeps dumps of a database {policy.source.database} below "
            f"{other.root} already; take another directory (--root)"
        )


def _side_key(side: PolicySide, own: URL) -> tuple[str, ...]:
    return (side.database.lower(), *metastore_key(side.metastore, own))


def _policy(row: Row[*tuple[Any, ...]]) -> ReplicationPolicy:
    return _COLUMNS.read(
        row, name=row.NAME, included_tables=row.INCLUDED, excluded_tables=row.EXCLUDED
    )
