"""Constraints that a Hive on the same database made are told to whoever writes."""

from __future__ import annotations

from pathlib import Path

from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.model.catalog import Column, Storage, Table
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind
from hms_bridge.server.serve import MetastoreServer
from tests.support.hive_constraints import ENABLED, RELIED_ON, put_constraint
from tests.support.world import World

COLUMNS = tuple(Column(name=name, type="int") for name in "abc")
PRIMARY_KEY = 0


def test_constraints_of_hive_are_told_by_the_database_and_over_thrift(tmp_path: Path) -> None:
    world = World(tmp_path)
    url, local = world.url, world.metastore
    for name in ("t", "other"):
        local.create_table(Table(name=name, database_name="db", storage=Storage(columns=COLUMNS)))
    put_constraint(url, "t", "nn", ConstraintKind.NOT_NULL, 1)
    put_constraint(url, "t", "dv", ConstraintKind.DEFAULT, 2, expression="7", flags=RELIED_ON)
    put_constraint(
        url, "t", "ch", ConstraintKind.CHECK, None, expression="a > b", flags=ENABLED | 2
    )
    put_constraint(url, "other", "nn2", ConstraintKind.NOT_NULL, 0)
    expected = {
        ColumnConstraint(name="nn", kind=ConstraintKind.NOT_NULL, column="b"),
        ColumnConstraint(
            name="dv",
            kind=ConstraintKind.DEFAULT,
            column="c",
            expression="7",
            is_enabled=False,
            is_relied_on=True,
        ),
        ColumnConstraint(
            name="ch",
            kind=ConstraintKind.CHECK,
            column=None,
            expression="a > b",
            is_validated=True,
        ),
    }
    with (
        MetastoreServer(0, local) as server,
        ThriftMetastoreClient(f"thrift://127.0.0.1:{server.port}") as remote,
    ):
        for metastore in (local, remote):
            assert set(metastore.get_constraints("DB", "T")) == expected
            assert metastore.get_constraints("db", "unknown") == ()
    local.close()
