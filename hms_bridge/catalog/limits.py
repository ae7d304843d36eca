"""What a name or a text may be: checked before it reaches the database.

The lengths are those of Hive's columns; a text that is too long would be refused, or cut, by
the database in words that no user understands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from hms_bridge.errors import InvalidObjectError
from hms_bridge.model.catalog import Catalog, Column, Database, Partition, Storage, Table
from hms_bridge.model.connector import DataConnector
from hms_bridge.model.constraint import ColumnConstraint
from hms_bridge.model.function import Function
from hms_bridge.model.privilege import Grant, ObjectKind, Principal, Role, RoleGrant
from hms_bridge.model.report import ReplicationMetric
from hms_bridge.model.resource_plan import ResourcePlan
from hms_bridge.model.schedule import QueryProgress, ScheduledQuery
from hms_bridge.model.shortened import shortened
from hms_bridge.model.statistics import StatisticsUpdate

CATALOG_NAME_LENGTH_MAX = 256
DATABASE_NAME_LENGTH_MAX = 128
TABLE_NAME_LENGTH_MAX = 256
TABLE_TYPE_LENGTH_MAX = 128
COLUMN_NAME_LENGTH_MAX = 767
PARTITION_COLUMN_NAME_LENGTH_MAX = 128
PARTITION_COLUMN_TYPE_LENGTH_MAX = 767
PARTITION_NAME_LENGTH_MAX = 767
PARTITION_VALUE_LENGTH_MAX = 256
PARAMETER_KEY_LENGTH_MAX = 256
DATABASE_PARAMETER_KEY_LENGTH_MAX = 180
DATABASE_PARAMETER_VALUE_LENGTH_MAX = 4000
TEXT_LENGTH_MAX = 4000
OWNER_LENGTH_MAX = 767
DATABASE_OWNER_LENGTH_MAX = 128
SKEWED_VALUE_LENGTH_MAX = 256
FUNCTION_NAME_LENGTH_MAX = 128
CONSTRAINT_TEXT_LENGTH_MAX = 400
PRIVILEGE_NAME_LENGTH_MAX = 128
TOKEN_LENGTH_MAX = 767
PLAN_TEXT_LENGTH_MAX = 1024
PLAN_PARTS_MAX = 2000
SCHEDULE_LENGTH_MAX = 256
METRIC_PROGRESS_LENGTH_MAX = 10_000
STATISTICS_TEXT_LENGTH_MAX = 128


_PLAIN_NAME = re.compile(r"\w+", re.ASCII)


def is_plain(name: str) -> bool:
    """Whether a name has letters, digits and underscores alone, as those of catalogs, functions and
    data connectors have to: they stand in texts without quotes (MetaStoreUtils.validateName)."""
    return _PLAIN_NAME.fullmatch(name) is not None


def check_catalog(catalog: Catalog) -> None:
    """Raises InvalidObjectError for names and texts that cannot be stored."""
    what = f"catalog '{_short(catalog.name)}'"
    _limit(catalog.name, CATALOG_NAME_LENGTH_MAX, f"{what}: its name")
    _limit(catalog.description, TEXT_LENGTH_MAX, f"{what}: its description")
    _limit(catalog.location, TEXT_LENGTH_MAX, f"{what}: its location")


def check_database(database: Database) -> None:
    """Raises InvalidObjectError for names and texts that cannot be stored."""
    what = f"database '{_short(database.name)}'"
    if not _is_name(database.name):
        raise InvalidObjectError(f"{database.name} is not a valid database name")
    _limit(database.name, DATABASE_NAME_LENGTH_MAX, f"{what}: its name")
    _limit(database.description, TEXT_LENGTH_MAX, f"{what}: its description")
    _limit(database.location, TEXT_LENGTH_MAX, f"{what}: its location")
    _limit(database.managed_location, TEXT_LENGTH_MAX, f"{what}: its managed location")
    _limit(database.owner_name, DATABASE_OWNER_LENGTH_MAX, f"{what}: its owner")
    for key, value in database.parameters.items():
        _limit(key, DATABASE_PARAMETER_KEY_LENGTH_MAX, f"{what}: property name")
        _limit(value, DATABASE_PARAMETER_VALUE_LENGTH_MAX, f"{what}: value of property '{key}'")


def check_table(table: Table) -> None:
    """Raises InvalidObjectError for names and texts that cannot be stored."""
    if not _is_name(table.name):
        raise InvalidObjectError(f"{table.name} is not a valid object name")
    what = f"table '{_short(table.full_name)}'"
    _limit(table.name, TABLE_NAME_LENGTH_MAX, f"{what}: its name")
    _limit(table.owner, OWNER_LENGTH_MAX, f"{what}: its owner")
    _limit(table.type, TABLE_TYPE_LENGTH_MAX, f"{what}: its type")
    _check_parameters(table.parameters, what)
    for column in table.partition_columns:
        _limit(column.name, PARTITION_COLUMN_NAME_LENGTH_MAX, f"{what}: partition column name")
        _limit(
            column.type,
            PARTITION_COLUMN_TYPE_LENGTH_MAX,
            f"{what}: type of partition column '{column.name}'",
        )
        _limit(
            column.comment, TEXT_LENGTH_MAX, f"{what}: comment of partition column '{column.name}'"
        )
    _check_distinct((c.name for c in table.partition_columns), f"{what}: partition column")
    check_storage(table.storage, what)


def check_partition(partition: Partition, name: str) -> None:
    """Raises InvalidObjectError for values and texts that cannot be stored."""
    what = f"partition '{_short(name)}' of {partition.database_name}.{partition.table_name}"
    _limit(name, PARTITION_NAME_LENGTH_MAX, f"{what}: its name")
    # PostgreSQL holds none, MariaDB puts it before the end of a text, and to SQLite it is the end:
    # a filter that goes through names in their order would pass over others.
    if "\0" in name:
        raise InvalidObjectError(
            f"{what}: its name has a NUL, which not every database holds; leave it out"
        )
    for value in partition.values:
        _limit(value, PARTITION_VALUE_LENGTH_MAX, f"{what}: partition value")
    _check_parameters(partition.parameters, what)
    check_storage(partition.storage, what)


def check_partition_mark(values: str) -> None:
    """Raises InvalidObjectError for what PARTITION_EVENTS does not take."""
    _limit(values, PARTITION_NAME_LENGTH_MAX, "the values of a partition together")


def check_function(function: Function) -> None:
    """Raises InvalidObjectError for names and texts that cannot be stored."""
    what = f"function '{_short(function.name)}'"
    _limit(function.name, FUNCTION_NAME_LENGTH_MAX, f"{what}: its name")
    _limit(function.class_name, TEXT_LENGTH_MAX, f"{what}: its class")
    _limit(function.owner_name, DATABASE_OWNER_LENGTH_MAX, f"{what}: its owner")
    for resource in function.resources:
        _limit(resource.uri, TEXT_LENGTH_MAX, f"{what}: a resource's place")


def check_constraint(constraint: ColumnConstraint, table: str) -> None:
    """Raises InvalidObjectError for what KEY_CONSTRAINTS does not take."""
    what = f"constraint of {table}"
    _limit(constraint.name, CONSTRAINT_TEXT_LENGTH_MAX, f"{what}: its name")
    _limit(constraint.expression, CONSTRAINT_TEXT_LENGTH_MAX, f"{what}: its expression")


def check_connector(connector: DataConnector) -> None:
    """Raises InvalidObjectError for what DATACONNECTORS does not take; parameters may be secret."""
    what = f"dataconnector '{_short(connector.name)}'"
    _limit(connector.name, PRIVILEGE_NAME_LENGTH_MAX, f"{what}: its name")
    _limit(connector.type, 32, f"{what}: its type")
    _limit(connector.url, TEXT_LENGTH_MAX, f"{what}: its URL")
    _limit(connector.description, 256, f"{what}: its description")
    _limit(connector.owner_name, 256, f"{what}: its owner")
    for key, value in connector.parameters.items():
        _limit(key, DATABASE_PARAMETER_KEY_LENGTH_MAX, f"{what}: property name")
        if len(value) > DATABASE_PARAMETER_VALUE_LENGTH_MAX:
            raise InvalidObjectError(
                f"{what}: the value of property '{key}' has {len(value)} characters; at most "
                f"{DATABASE_PARAMETER_VALUE_LENGTH_MAX} fit"
            )


def check_procedure(name: str, owner: str) -> None:
    """Raises InvalidObjectError for what STORED_PROCS and PACKAGES do not take."""
    _limit(name, TABLE_NAME_LENGTH_MAX, "the name of the procedure or package")
    _limit(owner, DATABASE_OWNER_LENGTH_MAX, f"'{_short(name)}': its owner")


def check_plan(plan: ResourcePlan) -> None:
    """Raises InvalidObjectError for what the tables of workload management do not take, and for
    more parts than anybody can look through: a plan is written as a whole."""
    what = f"resource plan '{_short(plan.key.name)}'"
    if not plan.key.name:
        raise InvalidObjectError("Resource name cannot be empty.")
    parts = (*plan.pools, *plan.triggers, *plan.mappings, *plan.pool_triggers)
    if len(parts) > PLAN_PARTS_MAX:
        raise InvalidObjectError(f"{what} has {len(parts)} parts; at most {PLAN_PARTS_MAX} fit")
    for text in (plan.key.name, plan.key.namespace, *(trigger.name for trigger in plan.triggers)):
        _limit(text, PRIVILEGE_NAME_LENGTH_MAX, f"{what}: a name")
    for mapping in plan.mappings:
        _limit(mapping.entity_name, PRIVILEGE_NAME_LENGTH_MAX, f"{what}: a user or group")
    for pool in plan.pools:
        _limit(pool.path, PLAN_TEXT_LENGTH_MAX, f"{what}: the path of a pool")
    for trigger in plan.triggers:
        _limit(trigger.expression, PLAN_TEXT_LENGTH_MAX, f"{what}: the condition of a trigger")
        _limit(trigger.action, PLAN_TEXT_LENGTH_MAX, f"{what}: the action of a trigger")


def check_token(*secrets: str) -> None:
    """Raises InvalidObjectError for what is too long, and does not show it."""
    for secret in secrets:
        if len(secret) > TOKEN_LENGTH_MAX:
            raise InvalidObjectError(
                f"a token, its identifier or a key has {len(secret)} characters; at most "
                f"{TOKEN_LENGTH_MAX} fit"
            )


def check_scheduled_query(query: ScheduledQuery) -> None:
    """Raises InvalidObjectError for what SCHEDULED_QUERIES does not take."""
    what = f"scheduled query '{_short(str(query.key))}'"
    for text, part in (
        (query.key.name, "name"),
        (query.key.namespace, "namespace"),
        (query.schedule, "schedule"),
        (query.user, "user"),
    ):
        _limit(text, SCHEDULE_LENGTH_MAX, f"{what}: its {part}")
    _limit(query.query, TEXT_LENGTH_MAX, f"{what}: its text")


def check_progress(progress: QueryProgress) -> None:
    """Raises InvalidObjectError for what SCHEDULED_EXECUTIONS does not take."""
    what = f"execution {progress.execution_id}: the executor's id of its query"
    _limit(progress.executor_query_id, SCHEDULE_LENGTH_MAX, what)


def check_statistics(update: StatisticsUpdate) -> None:
    """Raises InvalidObjectError for what TAB_COL_STATS and PART_COL_STATS do not take."""
    what = f"statistics of '{_short(update.table_name)}'"
    _limit(update.engine, STATISTICS_TEXT_LENGTH_MAX, f"{what}: their engine")
    for column in (column for measured in update.objects for column in measured.columns):
        _limit(column.column, COLUMN_NAME_LENGTH_MAX, f"{what}: column name")
        _limit(
            column.type,
            STATISTICS_TEXT_LENGTH_MAX,
            f"{what}: type of column '{_short(column.column)}'",
        )


def check_metric(metric: ReplicationMetric) -> None:
    """Raises InvalidObjectError for names that REPLICATION_METRICS does not take."""
    what = f"metrics of execution {metric.execution_id}"
    _limit(metric.policy, SCHEDULE_LENGTH_MAX, f"{what}: its policy")
    _limit(metric.message_format, 16, f"{what}: its format")


def check_role(role: Role) -> None:
    """Raises InvalidObjectError for what ROLES does not take."""
    _required_name(role.name, "the role's name")
    _limit(role.owner, PRIVILEGE_NAME_LENGTH_MAX, f"role '{_short(role.name)}': its owner")


def check_role_grant(grant: RoleGrant) -> None:
    """Raises InvalidObjectError for what ROLE_MAP does not take."""
    _check_principal(grant.principal)
    what = f"grant of role '{_short(grant.role.name)}'"
    _limit(grant.grantor, PRIVILEGE_NAME_LENGTH_MAX, f"{what}: its grantor")


def check_grant(grant: Grant) -> None:
    """Raises InvalidObjectError for an object that is not named, and for what does not fit."""
    what = f"privilege on {_short(str(grant.object))}"
    wanted = grant.object
    if wanted.kind is ObjectKind.COLUMN and not wanted.column:
        raise InvalidObjectError(f"{what}: the column was not named; set columnName")
    if wanted.kind is ObjectKind.PARTITION and not wanted.values:
        raise InvalidObjectError(f"{what}: the partition was not named; set partValues")
    _check_principal(grant.principal)
    for name in grant.privilege.split(","):
        _required_name(name, f"{what}: its name")
    _limit(grant.grantor, PRIVILEGE_NAME_LENGTH_MAX, f"{what}: its grantor")
    _limit(grant.authorizer, PRIVILEGE_NAME_LENGTH_MAX, f"{what}: its authorizer")
    _limit(wanted.column, COLUMN_NAME_LENGTH_MAX, f"{what}: its column")


def _check_principal(principal: Principal) -> None:
    _required_name(principal.name, "the principal's name")


def _required_name(name: str, what: str) -> None:
    if not name:
        raise InvalidObjectError(f"{what} is empty; give one")
    _limit(name, PRIVILEGE_NAME_LENGTH_MAX, what)


def check_storage(storage: Storage, what: str) -> None:
    """Raises InvalidObjectError for columns and texts that cannot be stored."""
    for column in storage.columns:
        _check_column(column, what)
    _check_distinct((column.name.lower() for column in storage.columns), f"{what}: column")
    _limit(storage.location, TEXT_LENGTH_MAX, f"{what}: its location")
    _limit(storage.input_format, TEXT_LENGTH_MAX, f"{what}: its input format")
    _limit(storage.output_format, TEXT_LENGTH_MAX, f"{what}: its output format")
    _limit(storage.serde.library, TEXT_LENGTH_MAX, f"{what}: its SerDe library")
    _limit(storage.serde.name, 128, f"{what}: its SerDe name")
    _limit(storage.serde.description, TEXT_LENGTH_MAX, f"{what}: its SerDe's description")
    for class_name in (storage.serde.serializer_class, storage.serde.deserializer_class):
        _limit(class_name, TEXT_LENGTH_MAX, f"{what}: a class of its SerDe")
    _check_parameters(storage.parameters, f"{what}: storage")
    _check_parameters(storage.serde.parameters, f"{what}: SerDe")
    for values in storage.skew.values:
        for value in values:
            _limit(value, SKEWED_VALUE_LENGTH_MAX, f"{what}: skewed value")


def _check_column(column: Column, what: str) -> None:
    if not column.name:
        raise InvalidObjectError(f"{what}: a column has no name; give it one")
    if not column.type:
        raise InvalidObjectError(f"{what}: column '{column.name}' has no type; give it one")
    _limit(column.name, COLUMN_NAME_LENGTH_MAX, f"{what}: column name")
    _limit(column.comment, TEXT_LENGTH_MAX, f"{what}: comment of column '{column.name}'")


def _check_parameters(parameters: Mapping[str, str], what: str) -> None:
    for key in parameters:
        if not key:
            raise InvalidObjectError(f"{what}: a property has no name; give it one")
        _limit(key, PARAMETER_KEY_LENGTH_MAX, f"{what}: property name")


def _check_distinct(names: Iterable[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidObjectError(f"{what} '{name}' is there twice; name each once")
        seen.add(name)


def _is_name(name: str) -> bool:
    """Hive takes nearly any text; what would leave its directory is refused."""
    return (
        bool(name.strip())
        and name not in (".", "..")
        and "/" not in name
        and all(character >= " " for character in name)
    )


def _limit(text: str | None, length_max: int, what: str) -> None:
    if text is not None and len(text) > length_max:
        raise InvalidObjectError(
            f"{what} has {len(text)} characters ('{_short(text)}'); at most {length_max} fit"
        )


def _short(text: str) -> str:
    return shortened(text, 60)
