"""Statements that only the metastore carries out: CREATE, DROP, SHOW, DESCRIBE."""

from __future__ import annotations

from hms_bridge.dml.named import find_database, find_table
from hms_bridge.dml.statement import (
    CreateDatabase,
    CreateTable,
    Ddl,
    Describe,
    DropDatabase,
    DropTable,
    NameAsWritten,
    Show,
    Use,
)
from hms_bridge.errors import AlreadyExistsError, DmlError, NoSuchObjectError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import (
    ORC_INPUT_FORMAT,
    ORC_OUTPUT_FORMAT,
    ORC_SERDE,
    Database,
    SerDe,
    Storage,
    Table,
)
from hms_bridge.model.properties import BUCKETING_VERSION, TRANSACTIONAL

Listed = tuple[tuple[str, ...], list[tuple[object, ...]], str | None]
"""Columns, rows, message."""


def run_definition(statement: Ddl, metastore: Metastore, current: str) -> Listed:
    """Carry out a statement; ``current`` is the database of names without one."""
    match statement:
        case CreateDatabase() | DropDatabase():
            return (), [], _database(statement, metastore)
        case CreateTable() | DropTable():
            return (), [], _table(statement, metastore, current)
        case Show(what="databases"):
            return ("database_name",), [(name,) for name in metastore.get_databases()], None
        case Show(what="partitions", table=NameAsWritten() as name):
            return _partitions(name, metastore, current)
        case Show():
            database = statement.database or current
            find_database(metastore, database)
            return ("tab_name",), [(name,) for name in metastore.get_tables(database)], None
        case Describe():
            return _describe(statement.table, metastore, current)
        case Use():
            raise DmlError("USE is the session's own")


def _database(statement: CreateDatabase | DropDatabase, metastore: Metastore) -> str:
    if isinstance(statement, CreateDatabase):
        try:
            metastore.create_database(Database(name=statement.name, location=statement.location))
        except AlreadyExistsError:
            if not statement.is_if_not_exists:
                raise
            return f"database {statement.name} is there already"
        return f"database {statement.name} created"
    try:
        metastore.drop_database(statement.name, is_cascade=statement.is_cascade)
    except NoSuchObjectError:
        if not statement.is_if_exists:
            find_database(metastore, statement.name)
            raise
        return f"there is no database {statement.name}"
    return f"database {statement.name} dropped"


def _table(statement: CreateTable | DropTable, metastore: Metastore, current: str) -> str:
    database = statement.table.database or current
    name = f"{database}.{statement.table.name}"
    if isinstance(statement, DropTable):
        try:
            _require_table(metastore.get_table(database, statement.table.name))
            metastore.drop_table(database, statement.table.name, is_purge=statement.is_purge)
        except NoSuchObjectError:
            if not statement.is_if_exists:
                find_table(metastore, database, statement.table.name)
                raise
            return f"there is no table {name}"
        return f"table {name} dropped"
    find_database(metastore, database)
    try:
        metastore.create_table(_orc_table(statement, database))
    except AlreadyExistsError:
        if not statement.is_if_not_exists:
            raise
        return f"table {name} is there already"
    return f"table {name} created"


def _require_table(table: Table) -> None:
    """As Hive does (DropTableAnalyzer): a view is not dropped as if it were a table."""
    if table.is_any_view:
        raise DmlError(f"{table.full_name} is a view and not dropped as a table; drop it with Hive")


def _orc_table(statement: CreateTable, database: str) -> Table:
    """Full ACID unless the properties say otherwise: that is what this program is for."""
    return Table(
        name=statement.table.name,
        database_name=database,
        storage=Storage(
            columns=statement.columns,
            location=statement.location,
            input_format=ORC_INPUT_FORMAT,
            output_format=ORC_OUTPUT_FORMAT,
            serde=SerDe(library=ORC_SERDE, parameters={"serialization.format": "1"}),
            bucket_columns=statement.bucket_columns,
            bucket_count=statement.bucket_count,
        ),
        partition_columns=statement.partition_columns,
        parameters={TRANSACTIONAL: "true", BUCKETING_VERSION: "2", **statement.properties},
    )


def _partitions(name: NameAsWritten, metastore: Metastore, current: str) -> Listed:
    table = find_table(metastore, name.database or current, name.name)
    if not table.is_partitioned:
        raise DmlError(f"{table.full_name} has no partitions")
    names = metastore.get_partition_names(table.database_name, table.name)
    return ("partition",), [(partition,) for partition in names], None


def _describe(name: NameAsWritten, metastore: Metastore, current: str) -> Listed:
    table = find_table(metastore, name.database or current, name.name)
    rows: list[tuple[object, ...]] = [
        (column.name, column.type, column.comment) for column in table.storage.columns
    ]
    rows += [(column.name, column.type, "partition column") for column in table.partition_columns]
    return ("col_name", "data_type", "comment"), rows, None
