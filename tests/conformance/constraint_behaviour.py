"""What every metastore does with constraints."""

from __future__ import annotations

import pytest

from hms_bridge.errors import MetaError, MetastoreError
from hms_bridge.metastore import Metastore
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind, ReferredColumn
from tests.conformance.objects import events_after, new_database, new_table


class ConstraintBehaviour:
    """Inherit through MetastoreBehaviour."""

    def test_constraints_of_all_kinds(self, metastore: Metastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name, "parent")
        new_table(metastore, name, "child")
        key = (
            ColumnConstraint(
                name="pk1", kind=ConstraintKind.PRIMARY_KEY, column="id", is_enabled=False
            ),
        )
        refers = ReferredColumn(
            database_name=name, table_name="parent", column="id", key_name="pk1"
        )
        foreign = ColumnConstraint(
            name="fk1", kind=ConstraintKind.FOREIGN_KEY, column="id", is_enabled=False,
            is_relied_on=True, refers_to=refers,
        )  # fmt: skip
        last = metastore.get_current_event_id()
        with pytest.raises(MetaError):
            metastore.add_constraints(name, "child", [foreign])
        metastore.add_constraints(name, "parent", key)
        metastore.add_constraints(name, "child", [foreign])
        assert metastore.get_constraints(name, "parent") == key
        assert metastore.get_constraints(name, "child") == (foreign,)
        others = [
            ColumnConstraint(name="a_nn", kind=ConstraintKind.NOT_NULL, column="id"),
            ColumnConstraint(name="b_dv", kind=ConstraintKind.DEFAULT, column="id", expression="7"),
            ColumnConstraint(
                name="c_ck", kind=ConstraintKind.CHECK, column="id", expression="id > 0"
            ),
            ColumnConstraint(
                name="d_uk", kind=ConstraintKind.UNIQUE, column="id", is_enabled=False
            ),
        ]
        for constraint in others:
            metastore.add_constraints(name, "child", [constraint])
        assert metastore.get_constraints(name, "child") == (*others, foreign)
        assert metastore.get_constraints(name, "no_such_table") == ()
        with pytest.raises(MetastoreError):
            metastore.add_constraints(name, "parent", key)
        metastore.drop_constraint(name, "child", "fk1")
        with pytest.raises(MetastoreError):
            metastore.drop_constraint(name, "child", "fk1")
        assert metastore.get_constraints(name, "child") == tuple(others)
        told = events_after(metastore, last)
        assert [(event.type, event.table_name) for event in told] == [
            ("ADD_PRIMARYKEY", "parent"), ("ADD_FOREIGNKEY", "parent"),
            ("ADD_NOTNULLCONSTRAINT", "child"), ("ADD_DEFAULTCONSTRAINT", "child"),
            ("ADD_CHECKCONSTRAINT", "child"), ("ADD_UNIQUECONSTRAINT", "child"),
            ("DROP_CONSTRAINT", "child"),
        ]  # fmt: skip
