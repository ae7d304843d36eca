"""SCHEDULED_QUERIES and SCHEDULED_EXECUTIONS (Hive: ObjectStore.scheduledQueryPoll and its kin;
docs/hive/metastore.md §35)."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, select, update

from hms_bridge.backend.columns import Columns
from hms_bridge.backend.schema.catalog_tables import CTLGS
from hms_bridge.backend.schema.report_tables import SCHEDULED_EXECUTIONS, SCHEDULED_QUERIES
from hms_bridge.backend.sequences import next_sequence_values
from hms_bridge.catalog.row_locks import RowLock, hold, select_held
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.schedule import QueryState, ScheduledQuery, ScheduleKey

_QUERY_SEQUENCE = "org.apache.hadoop.hive.metastore.model.MScheduledQuery"
_EXECUTION_SEQUENCE = "org.apache.hadoop.hive.metastore.model.MScheduledExecution"

_Q = SCHEDULED_QUERIES.c
_E = SCHEDULED_EXECUTIONS.c
_IS_GOING_ON = _E.STATE.in_([QueryState.INITED.name, QueryState.EXECUTING.name])
_COLUMNS = Columns(
    ScheduledQuery,
    is_enabled="ENABLED",
    schedule="SCHEDULE",
    user="USER",
    query="QUERY",
    next_execution="NEXT_EXECUTION",
)


def hold_all(connection: Connection) -> None:
    """Hold what every metastore has one row of: Hive keeps no index that makes names unique."""
    hold(connection, CTLGS.c.CTLG_ID, CTLGS.c.NAME == DEFAULT_CATALOG, RowLock.EXCLUSIVE)


def find_query(connection: Connection, key: ScheduleKey) -> tuple[int, ScheduledQuery] | None:
    """One with its number; None if it is not there."""
    return _first(connection, _Q.SCHEDULE_NAME == key.name, _in(key.namespace))


def insert_query(connection: Connection, query: ScheduledQuery) -> None:
    """A new one; the caller has seen that its name is free."""
    number = next_sequence_values(connection, _QUERY_SEQUENCE, 1)
    connection.execute(
        insert(SCHEDULED_QUERIES).values(
            SCHEDULED_QUERY_ID=number,
            SCHEDULE_NAME=query.key.name,
            CLUSTER_NAMESPACE=query.key.namespace,
            **_COLUMNS.values(query),
        )
    )


def update_query(connection: Connection, number: int, query: ScheduledQuery) -> bool:
    """Replace everything but its name; whether it was there."""
    here = _Q.SCHEDULED_QUERY_ID == number
    values = _COLUMNS.values(query)
    return connection.execute(update(SCHEDULED_QUERIES).where(here).values(**values)).rowcount > 0


def delete_query(connection: Connection, number: int) -> bool:
    """With what is known of its executions; whether it was there."""
    connection.execute(delete(SCHEDULED_EXECUTIONS).where(_E.SCHEDULED_QUERY_ID == number))
    here = _Q.SCHEDULED_QUERY_ID == number
    return connection.execute(delete(SCHEDULED_QUERIES).where(here)).rowcount > 0


def first_due(
    connection: Connection, namespace: str | None, now_seconds: int
) -> tuple[int, ScheduledQuery] | None:
    """The one that waits longest and that nobody executes, held: what its service executes is what
    it is, and it is due."""
    is_due = (
        _in(namespace),
        _Q.ENABLED.is_(True),
        _Q.ACTIVE_EXECUTION_ID.is_(None),
        _Q.NEXT_EXECUTION <= now_seconds,
    )
    while (first := _first(connection, *is_due)) is not None:
        here = and_(_Q.SCHEDULED_QUERY_ID == first[0], *is_due)
        hold(connection, _Q.SCHEDULED_QUERY_ID, here, RowLock.EXCLUSIVE)
        if (held := _first(connection, here)) is not None:
            return held
    return None


def start(connection: Connection, number: int, next_execution: int | None, now_seconds: int) -> int:
    """The number of a new execution of a query that is held."""
    execution = next_sequence_values(connection, _EXECUTION_SEQUENCE, 1)
    connection.execute(
        update(SCHEDULED_QUERIES)
        .where(_Q.SCHEDULED_QUERY_ID == number)
        .values(ACTIVE_EXECUTION_ID=execution, NEXT_EXECUTION=next_execution)
    )
    connection.execute(
        insert(SCHEDULED_EXECUTIONS).values(
            SCHEDULED_EXECUTION_ID=execution,
            SCHEDULED_QUERY_ID=number,
            STATE=QueryState.INITED.name,
            START_TIME=now_seconds,
            LAST_UPDATE_TIME=now_seconds,
        )
    )
    return execution


def state_of(connection: Connection, execution: int) -> QueryState | None:
    """How far it is, held so that it stays; None if it is not there."""
    here = _E.SCHEDULED_EXECUTION_ID == execution
    hold(connection, _E.SCHEDULED_EXECUTION_ID, here, RowLock.EXCLUSIVE)
    name = connection.scalar(select(_E.STATE).where(here))
    return None if name is None else QueryState[name]


def go_on(
    connection: Connection, execution: int, state: QueryState, now_seconds: int, **more: str
) -> None:
    """Write down how far an execution is that goes on; ``more``: other columns."""
    connection.execute(
        update(SCHEDULED_EXECUTIONS)
        .where(_E.SCHEDULED_EXECUTION_ID == execution)
        .values(STATE=state.name, LAST_UPDATE_TIME=now_seconds, **more)
    )


def end(
    connection: Connection, execution: int, state: QueryState, now_seconds: int, **more: str
) -> None:
    """Write down how an execution ended; its query may be given out again."""
    values = {"STATE": state.name, "END_TIME": now_seconds, "LAST_UPDATE_TIME": None, **more}
    here = _E.SCHEDULED_EXECUTION_ID == execution
    connection.execute(update(SCHEDULED_EXECUTIONS).where(here).values(**values))
    connection.execute(
        update(SCHEDULED_QUERIES)
        .where(_Q.ACTIVE_EXECUTION_ID == execution)
        .values(ACTIVE_EXECUTION_ID=None)
    )


def silent_since(connection: Connection, before_seconds: int) -> tuple[int, ...]:
    """Executions of which nothing was heard since, held: their services may be about to end
    them."""
    number = _E.SCHEDULED_EXECUTION_ID
    is_silent = and_(_E.LAST_UPDATE_TIME < before_seconds, _IS_GOING_ON)
    statement = select(number).where(is_silent).order_by(number)
    rows = select_held(connection, statement, number, RowLock.EXCLUSIVE)
    return tuple(row.SCHEDULED_EXECUTION_ID for row in rows)


def free_unexecuted(connection: Connection) -> None:
    """Let queries be given out again whose execution is over, or not there at all: a Hive that was
    killed may leave that (ObjectStore.recoverInvalidScheduledQueryState)."""
    going_on = select(_E.SCHEDULED_EXECUTION_ID).where(_IS_GOING_ON)
    active = _Q.ACTIVE_EXECUTION_ID
    is_left = and_(active.is_not(None), active.not_in(going_on))
    # First, for a statement that waits for a row looks at the executions of before it waited.
    hold(connection, _Q.SCHEDULED_QUERY_ID, is_left, RowLock.EXCLUSIVE)
    connection.execute(update(SCHEDULED_QUERIES).where(is_left).values(ACTIVE_EXECUTION_ID=None))


def forget_ended(connection: Connection, before_seconds: int) -> None:
    """Remove executions that ended before."""
    connection.execute(delete(SCHEDULED_EXECUTIONS).where(_E.END_TIME < before_seconds))


def _in(namespace: str | None) -> ColumnElement[bool]:
    return _Q.CLUSTER_NAMESPACE.is_not_distinct_from(namespace)


def _first(
    connection: Connection, *where: ColumnElement[bool]
) -> tuple[int, ScheduledQuery] | None:
    query = select(SCHEDULED_QUERIES).where(*where)
    row = connection.execute(query.order_by(_Q.NEXT_EXECUTION, _Q.SCHEDULED_QUERY_ID)).first()
    if row is None:
        return None
    key = ScheduleKey(row.SCHEDULE_NAME, row.CLUSTER_NAMESPACE)
    return row.SCHEDULED_QUERY_ID, _COLUMNS.read(row, key=key)
