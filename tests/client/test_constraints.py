"""Constraints, asked of a metastore of Hive 4 and of an older one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hms_bridge.client.caller import UnknownMethodError
from hms_bridge.client.constraint_client import ConstraintClient
from hms_bridge.wire.structs import hive

KEYS = [hive.SQLPrimaryKey(table_db="s", table_name="t", column_name="id", pk_name="pk1")]
FOREIGN = [hive.SQLForeignKey(fktable_db="s", fktable_name="t", fk_name="fk1")]


class Hive:
    """Answers some methods, and does not know the others."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def repeat(self, name: str, *, request: Any) -> Any:
        self.asked.append(name)
        if name not in self.answers:
            raise UnknownMethodError(f"unknown method {name}")
        return self.answers[name]


def names(metastore: Hive) -> tuple[str, ...]:
    found = ConstraintClient(metastore).get_constraints("s", "t")  # type: ignore[arg-type]
    return tuple(constraint.name for constraint in found)


def test_hive_4_tells_all_in_one_answer():
    told = SimpleNamespace(
        allTableConstraints=hive.SQLAllTableConstraints(primaryKeys=KEYS, foreignKeys=FOREIGN)
    )
    metastore = Hive(get_all_table_constraints=told)
    assert names(metastore) == ("fk1", "pk1")
    assert metastore.asked == ["get_all_table_constraints"]


@pytest.mark.parametrize("has_foreign", [False, True])
def test_an_older_one_is_asked_for_each_kind(has_foreign):
    metastore = Hive(
        get_primary_keys=hive.PrimaryKeysResponse(primaryKeys=KEYS),
        get_foreign_keys=hive.ForeignKeysResponse(foreignKeys=FOREIGN if has_foreign else []),
    )
    assert names(metastore) == (("fk1", "pk1") if has_foreign else ("pk1",))
    assert "get_check_constraints" in metastore.asked
