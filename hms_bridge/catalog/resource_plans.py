"""WM_RESOURCEPLAN and what belongs to it: a plan is read and written as a whole, for it is small
(docs/hive/metastore.md §39)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, Select, Table, delete, insert, select, update

from hms_bridge.backend.batches import insert_rows
from hms_bridge.backend.columns import Columns, flag
from hms_bridge.backend.schema.plan_tables import (
    WM_MAPPING,
    WM_POOL,
    WM_POOL_TO_TRIGGER,
    WM_RESOURCEPLAN,
    WM_TRIGGER,
)
from hms_bridge.backend.sequences import next_sequence_values
from hms_bridge.catalog.row_locks import RowLock, select_held
from hms_bridge.model.resource_plan import Mapping, PlanKey, PlanStatus, Pool, ResourcePlan, Trigger

_MODELS = "org.apache.hadoop.hive.metastore.model."
_P = WM_RESOURCEPLAN.c
_POOL = Columns(
    Pool,
    path="PATH",
    fraction="ALLOC_FRACTION",
    query_parallelism="QUERY_PARALLELISM",
    policy="SCHEDULING_POLICY",
)
_TRIGGER = Columns(
    Trigger,
    name="NAME",
    expression="TRIGGER_EXPRESSION",
    action="ACTION_EXPRESSION",
    is_in_unmanaged=flag("IS_IN_UNMANAGED"),
)
_MAPPING = Columns(
    Mapping, entity_type="ENTITY_TYPE", entity_name="ENTITY_NAME", ordering="ORDERING"
)


def plans_of(
    connection: Connection, namespace: str, lock: RowLock = RowLock.NONE
) -> dict[int, ResourcePlan]:
    """Those of a namespace by their numbers, sorted by name. Who changes one holds them all: it
    decides by the others, and there are few."""
    statement = select(WM_RESOURCEPLAN).where(_P.NS == namespace).order_by(_P.NAME)
    rows = select_held(connection, statement, _P.RP_ID, lock)
    return {row.RP_ID: _plan(connection, row.RP_ID, row) for row in rows}


def insert_plan(connection: Connection, plan: ResourcePlan) -> None:
    """A new one; the caller has seen that its name is free."""
    number = next_sequence_values(connection, f"{_MODELS}MWMResourcePlan", 1)
    connection.execute(
        insert(WM_RESOURCEPLAN).values(
            RP_ID=number, NAME=plan.key.name, NS=plan.key.namespace, STATUS=plan.status.name
        )
    )
    update_plan(connection, number, plan)


def update_plan(connection: Connection, number: int, plan: ResourcePlan) -> None:
    """Put a plan in place of that with a number."""
    _delete_parts(connection, number)
    pools = _insert(connection, WM_POOL, "MWMPool", number, list(map(_POOL.values, plan.pools)))
    by_path = dict(zip((pool.path for pool in plan.pools), pools, strict=True))
    triggers = _insert(
        connection, WM_TRIGGER, "MWMTrigger", number, list(map(_TRIGGER.values, plan.triggers))
    )
    by_name = dict(zip((trigger.name for trigger in plan.triggers), triggers, strict=True))
    mappings = [
        _MAPPING.values(mapping) | {"POOL_ID": by_path.get(mapping.pool or "")}
        for mapping in plan.mappings
    ]
    _insert(connection, WM_MAPPING, "MWMMapping", number, mappings)
    pairs = [
        {"POOL_ID": by_path[path], "TRIGGER_ID": by_name[name]} for path, name in plan.pool_triggers
    ]
    insert_rows(connection, WM_POOL_TO_TRIGGER, pairs)
    connection.execute(
        update(WM_RESOURCEPLAN)
        .where(_P.RP_ID == number)
        .values(
            NAME=plan.key.name,
            STATUS=plan.status.name,
            QUERY_PARALLELISM=plan.query_parallelism,
            DEFAULT_POOL_ID=by_path.get(plan.default_pool or ""),
        )
    )


def delete_plan(connection: Connection, number: int) -> None:
    """With everything in it."""
    _delete_parts(connection, number)
    connection.execute(delete(WM_RESOURCEPLAN).where(_P.RP_ID == number))


def _plan(connection: Connection, number: int, row: Row[Any]) -> ResourcePlan:
    pools = connection.execute(_of(WM_POOL, number)).all()
    triggers = connection.execute(_of(WM_TRIGGER, number)).all()
    paths = {pool.POOL_ID: pool.PATH for pool in pools}
    names = {trigger.TRIGGER_ID: trigger.NAME for trigger in triggers}
    pairs = connection.execute(
        select(WM_POOL_TO_TRIGGER)
        .where(WM_POOL_TO_TRIGGER.c.POOL_ID.in_(paths))
        .order_by(*WM_POOL_TO_TRIGGER.c)
    )
    return ResourcePlan(
        key=PlanKey(row.NAME, row.NS),
        status=PlanStatus[row.STATUS],
        query_parallelism=row.QUERY_PARALLELISM,
        default_pool=paths.get(row.DEFAULT_POOL_ID),
        pools=tuple(map(_POOL.read, pools)),
        triggers=tuple(map(_TRIGGER.read, triggers)),
        mappings=tuple(
            _MAPPING.read(mapping, pool=paths.get(mapping.POOL_ID))
            for mapping in connection.execute(_of(WM_MAPPING, number))
        ),
        pool_triggers=tuple((paths[pair.POOL_ID], names[pair.TRIGGER_ID]) for pair in pairs),
    )


def _of(table: Table, number: int) -> Select[Any]:
    return select(table).where(table.c.RP_ID == number).order_by(*table.primary_key.columns)


def _insert(
    connection: Connection, table: Table, model: str, number: int, rows: list[dict[str, Any]]
) -> range:
    """The keys that they get, in their order."""
    if not rows:
        return range(0)
    first = next_sequence_values(connection, f"{_MODELS}{model}", len(rows))
    (key,) = table.primary_key.columns
    keys = range(first, first + len(rows))
    of_plan = [{key.name: at, "RP_ID": number, **row} for at, row in zip(keys, rows, strict=True)]
    insert_rows(connection, table, of_plan)
    return keys


def _delete_parts(connection: Connection, number: int) -> None:
    """In the order in which they refer to each other."""
    pools = select(WM_POOL.c.POOL_ID).where(WM_POOL.c.RP_ID == number)
    connection.execute(
        update(WM_RESOURCEPLAN).where(_P.RP_ID == number).values(DEFAULT_POOL_ID=None)
    )
    connection.execute(delete(WM_POOL_TO_TRIGGER).where(WM_POOL_TO_TRIGGER.c.POOL_ID.in_(pools)))
    for table in (WM_MAPPING, WM_TRIGGER, WM_POOL):
        connection.execute(delete(table).where(table.c.RP_ID == number))
