"""What a metastore may or may not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from hms_bridge.errors import NoSuchObjectError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.partition_name import parse_partition_name

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


def if_there(
    ask: Callable[Asked, Answer], *args: Asked.args, **kwargs: Asked.kwargs
) -> Answer | None:
    """What a metastore answers to a question; None if there is no such object."""
    try:
        return ask(*args, **kwargs)
    except NoSuchObjectError:
        return None


def find_partition(
    store: Metastore, database: str, table: str, partition_name: str
) -> Partition | None:
    """A partition by its name; None if it, or its table, is not there."""
    values = [value for _, value in parse_partition_name(partition_name)]
    return if_there(store.get_partition, database, table, values)


def all_tables(store: Metastore, database: str) -> tuple[Table, ...]:
    """Those of a database, views too."""
    names = store.get_tables(database)
    return store.get_tables_by_names(database, names) if names else ()
