"""Databases over a server of ours: what Hive's Java client asks, and a golden does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_bridge.wire.structs import hive
from tests.support.served_metastore import served_metastore

USER, ROLE = 1, 2


@pytest.mark.parametrize(
    ("owner", "given", "kept"),
    [("ann", None, USER), ("ann", ROLE, ROLE), (None, None, None)],
    ids=["a user where no type is given", "the type that is given", "nobody"],
)
def test_type_of_an_owner(
    tmp_path: Path, owner: str | None, given: int | None, kept: int | None
) -> None:
    with served_metastore(tmp_path) as served:
        database = hive.Database(name="d", ownerName=owner, ownerType=given)
        served.call("create_database", database=database)
        assert served.call("get_database", name="d").ownerType == kept
