"""Constraints that Hive's writers keep: kept in the plan, or refused by name."""

from __future__ import annotations

import pytest

from hms_bridge.dml.parse import parse_statement
from hms_bridge.dml.plan import WritePlan, plan_write
from hms_bridge.dml.statement import Delete, Insert, Update
from hms_bridge.errors import DmlError
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind
from tests.dml.test_plan import TABLES

NOT_NULL = ColumnConstraint(name="nn", kind=ConstraintKind.NOT_NULL, column="id")
CHECK = ColumnConstraint(name="ck", kind=ConstraintKind.CHECK, column="id", expression="(id > 0)")
DEFAULT = ColumnConstraint(name="dv", kind=ConstraintKind.DEFAULT, column="name", expression="'x'")
INSERT = "insert into t (id, p) values (1, 'a')"
INSERT_ALL = "insert into t values (1, 'n', null, null, 'a')"
UPDATE = "update t set name = 'b'"
DELETE = "delete from t where id = 1"


def plan(text: str, *constraints: ColumnConstraint) -> WritePlan:
    statement = parse_statement(text)
    assert isinstance(statement, Insert | Update | Delete)
    return plan_write(statement, TABLES, constraints)


@pytest.mark.parametrize("text", [INSERT, INSERT_ALL, UPDATE])
def test_a_null_in_a_not_null_column_fails_the_statement(text: str) -> None:
    """An UPDATE writes the columns anew that it does not assign."""
    query = plan(text, NOT_NULL).query
    assert query.count("RAISE_ERROR") == 1
    assert "column id of d.t is NOT NULL (constraint nn)" in query


@pytest.mark.parametrize("text", [INSERT_ALL, UPDATE])
def test_a_check_is_refused_by_name(text: str) -> None:
    with pytest.raises(DmlError, match=r"constraint ck, CHECK \(id > 0\).*DROP CONSTRAINT ck"):
        plan(text, CHECK)


def test_a_default_is_to_be_written_out() -> None:
    with pytest.raises(DmlError, match="column name of d.t has the default 'x' .constraint dv."):
        plan(INSERT, DEFAULT)
    for text in (INSERT_ALL, UPDATE):
        assert plan(text, DEFAULT) == plan(text)


@pytest.mark.parametrize("text", [INSERT, INSERT_ALL, UPDATE])
def test_what_is_not_enabled_binds_nobody(text: str) -> None:
    disabled = [
        ColumnConstraint(
            name=one.name, kind=one.kind, column=one.column, is_enabled=False, is_relied_on=True
        )
        for one in (NOT_NULL, CHECK, DEFAULT)
    ]
    assert plan(text, *disabled) == plan(text)


def test_a_delete_breaks_no_constraint() -> None:
    assert plan(DELETE, NOT_NULL, CHECK, DEFAULT) == plan(DELETE)
