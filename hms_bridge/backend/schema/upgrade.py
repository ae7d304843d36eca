"""Carry out an upgrade of Hive's schema; look at what stands against it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from hms_bridge.backend.engine import Database
from hms_bridge.backend.schema.install import stated_version
from hms_bridge.backend.schema.shape import read_shape
from hms_bridge.backend.schema.steps import SetVersion, Step
from hms_bridge.backend.schema.txn_tables import VERSION
from hms_bridge.backend.schema.upgrade_plan import UpgradePlan, differences, plan_upgrade
from hms_bridge.errors import BackendError, RetryableBackendError

_log = logging.getLogger(__name__)

_LOCK_SECONDS = 30
_LOCK_NAME = "hms_bridge_schema_upgrade"

_OTHERS = {
    "postgresql": "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
    "mysql": "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = DATABASE() "
    "AND ID <> CONNECTION_ID()",
}
"""How many connections of others a database has, as far as its user may see them."""


def planned_upgrade(database: Database, wanted: str) -> UpgradePlan:
    """What an upgrade would do now. Raises as :func:`plan_upgrade`, and BackendError for a database
    without Hive's schema."""
    with database.transaction(write=False) as connection:
        return _plan(connection, wanted, database.name)


def upgrade_schema(database: Database, wanted: str) -> UpgradePlan:
    """Upgrade Hive's tables, the version last; what was done.

    PostgreSQL and SQLite do all of it or nothing. MySQL commits step by step; after an end in the
    middle the same call does what is left. Two at a time wait for each other.
    Raises as :func:`planned_upgrade`, and BackendError where somebody holds a table for longer than
    30 s, or rows stand against a rule that is new to them.
    """
    try:
        return _upgrade(database, wanted)
    except RetryableBackendError as error:
        remedy = "somebody holds a table: stop every metastore on the database"
        if isinstance(error.__cause__, IntegrityError):
            remedy = "rows stand against a rule of Hive's tables: remove all but one of equal ones"
        raise BackendError(f"{error}; {remedy}, then begin again") from error


def _upgrade(database: Database, wanted: str) -> UpgradePlan:
    with database.transaction(write=True) as connection, _alone(connection, database.name):
        plan = _plan(connection, wanted, database.name)
        changes = [step for step in plan.steps if not isinstance(step, SetVersion)]
        for step in changes:
            _carry_out(step, connection)
        left = tuple(differences(read_shape(connection), wanted, connection.dialect))
        if left:
            raise BackendError(
                f"{database.name}: after the upgrade to {wanted} there is still to do: "
                f"{'; '.join(step.what for step in left[:5])}; the version was left as it is"
            )
        for step in plan.steps[len(changes) :]:
            _carry_out(step, connection)
    return plan


def connections_of_others(database: Database) -> int:
    """How many other connections there are, or 0 where nobody knows."""
    with database.transaction(write=False) as connection:
        question = _OTHERS.get(connection.dialect.name.replace("mariadb", "mysql"))
        return int(connection.execute(text(question)).scalar_one()) if question else 0


def _plan(connection: Connection, wanted: str, name: str) -> UpgradePlan:
    has_version = connection.dialect.has_table(connection, VERSION.name)
    present = stated_version(connection) if has_version else None
    if present is None:
        raise BackendError(f"{name} holds no metastore schema; run 'hms-bridge schema init'")
    return plan_upgrade(present, read_shape(connection), wanted, connection.dialect)


def _carry_out(step: Step, connection: Connection) -> None:
    _log.info("%s", step.what)
    for statement in step.statements(connection.dialect):
        connection.execute(text(statement))


@contextmanager
def _alone(connection: Connection, name: str) -> Iterator[None]:
    """Keep other upgrades out, and give up rather than wait for good for a table that somebody
    holds. SQLite's own lock does both."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'"))
        if connection.dialect.has_table(connection, VERSION.name):
            connection.execute(text(f'LOCK TABLE "{VERSION.name}" IN EXCLUSIVE MODE'))
        yield
        return
    if connection.dialect.name not in ("mysql", "mariadb"):
        yield
        return
    connection.execute(text(f"SET SESSION lock_wait_timeout = {_LOCK_SECONDS}"))
    locked = text(f"SELECT GET_LOCK('{_LOCK_NAME}', {_LOCK_SECONDS})")
    if connection.execute(locked).scalar() != 1:
        raise BackendError(f"{name}: another upgrade is at work; wait for its end")
    try:
        yield
    finally:
        connection.execute(text(f"SELECT RELEASE_LOCK('{_LOCK_NAME}')"))
