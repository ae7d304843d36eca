"""What a client may do with a table by what it says of itself: Hive answers the same."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from hms_bridge.model.catalog import Column, Storage, Table, TableType
from hms_bridge.server.access_types import access_type

READ, ALL = 2, 8
ACID = {"transactional": "true"}
INSERT_ONLY = ACID | {"transactional_properties": "insert_only"}


def _table(kind: TableType, parameters: Mapping[str, str], bucket_count: int) -> Table:
    return Table(
        name="t",
        database_name="d",
        type=kind,
        storage=Storage(columns=(Column(name="c", type="int"),), bucket_count=bucket_count),
        parameters=dict(parameters),
    )


@pytest.mark.parametrize(
    ("kind", "parameters", "bucket_count", "needed", "access"),
    [
        (TableType.EXTERNAL_TABLE, {}, 0, {"EXTREAD", "EXTWRITE"}, ALL),
        (TableType.EXTERNAL_TABLE, {}, 4, {"HIVEBUCKET2"}, ALL),
        (TableType.MANAGED_TABLE, INSERT_ONLY, 0, {"HIVEMANAGEDINSERTWRITE"}, ALL),
        (TableType.MANAGED_TABLE, INSERT_ONLY, 0, {"CONNECTORWRITE"}, ALL),
        (TableType.MANAGED_TABLE, ACID, 0, {"HIVEFULLACIDWRITE"}, ALL),
        (TableType.MANAGED_TABLE, ACID, 0, {"CONNECTORWRITE"}, ALL),
        (TableType.VIRTUAL_VIEW, {}, 0, {"HIVESQL"}, READ),
        (TableType.VIRTUAL_VIEW, {}, 0, {"CONNECTORREAD"}, READ),
        (TableType.MATERIALIZED_VIEW, {}, 0, {"HIVEFULLACIDREAD", "HIVEMQT"}, READ),
        (TableType.MATERIALIZED_VIEW, {}, 0, {"CONNECTORREAD", "HIVEMQT"}, READ),
    ],
)
def test_who_says_all_that_is_needed_has_access(
    kind: TableType, parameters: Mapping[str, str], bucket_count: int, needed: set[str], access: int
) -> None:
    table = _table(kind, parameters, bucket_count)
    assert access_type(table, needed) == access
    assert access_type(table, needed | {"SPARKSQL"}) == access
    for lacking in needed:
        assert access_type(table, needed - {lacking}) is None
    assert access_type(table, {"HIVEFULLACIDREADS"}) is None


def test_a_managed_table_without_transactions_asks_for_nothing() -> None:
    assert access_type(_table(TableType.MANAGED_TABLE, {}, 0), ()) == ALL
