"""What the families of verbs share: where they work, and how names come in."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hms_bridge.catalog.limits import check_database, check_table
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Column, Database, Partition, Storage, Table
from hms_bridge.model.properties import LAST_DDL_TIME
from hms_bridge.service.drops import Drops
from hms_bridge.service.file_work import FileWork
from hms_bridge.service.locations import WarehouseRoots
from hms_bridge.service.unit_of_work import Transactions, Verbs
from hms_bridge.service.warehouse_files import WarehouseFiles


@dataclass(frozen=True, kw_only=True, slots=True)
class Foundation:
    """The parts that :class:`MetastoreService` is built on."""

    transactions: Transactions
    files: WarehouseFiles
    file_work: FileWork
    drops: Drops
    roots: WarehouseRoots


class VerbFamily(Verbs):
    """Base of the families: none inherits from another, nor reaches into one. What several need
    is given to each as a part."""

    def __init__(self, foundation: Foundation) -> None:
        super().__init__(foundation.transactions)
        self._files = foundation.files
        self._file_work = foundation.file_work
        self._drops = foundation.drops
        self._settings = foundation.transactions.settings
        self._clock = foundation.transactions.clock
        self._roots = foundation.roots


def changed_meanwhile(what: str, meanwhile: str) -> MetaError:
    """The refusal of a verb: what was looked at, or done, before its transaction is of something
    that is not there any more."""
    return MetaError(f"{what} was changed by someone else while {meanwhile}; try again")


def normal_database(database: Database) -> Database:
    """With names in lower case. Raises InvalidObjectError for what cannot be stored."""
    lowered = replace(
        database, name=database.name.lower(), catalog_name=database.catalog_name.lower()
    )
    check_database(lowered)
    return lowered


def normal_table(table: Table) -> Table:
    """With names in lower case. Raises InvalidObjectError for what cannot be stored."""
    lowered = replace(
        table,
        name=table.name.lower(),
        database_name=table.database_name.lower(),
        catalog_name=table.catalog_name.lower(),
        partition_columns=_normal_columns(table.partition_columns),
        storage=normal_storage(table.storage),
    )
    check_table(lowered)
    return lowered


def normal_partition(partition: Partition, table: Table) -> Partition:
    """As a partition of that table, with names in lower case."""
    return replace(
        partition,
        database_name=table.database_name,
        table_name=table.name,
        catalog_name=table.catalog_name,
        storage=normal_storage(partition.storage),
    )


def normal_storage(storage: Storage) -> Storage:
    """With column names in lower case."""
    return replace(storage, columns=_normal_columns(storage.columns))


def _normal_columns(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    if all(column.name.islower() for column in columns):
        return columns
    return tuple(replace(column, name=column.name.lower()) for column in columns)


def with_ddl_time(parameters: dict[str, str], now_seconds: int) -> dict[str, str]:
    """Parameters with the time of the statement, unless one is given (as in Hive)."""
    if parameters.get(LAST_DDL_TIME, "0") in ("", "0"):
        return {**parameters, LAST_DDL_TIME: str(now_seconds)}
    return parameters
