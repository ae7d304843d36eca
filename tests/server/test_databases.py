"""Databases over a server of ours: what Hive's Java client asks, and a golden does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_bridge.wire.structs import hive
from tests.support.golden_fields import event_fields
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


def test_privileges_of_a_new_database_are_in_its_event(tmp_path: Path) -> None:
    """Of either form: Hive stores none of them."""
    with served_metastore(tmp_path) as served:
        rights = hive.PrincipalPrivilegeSet(userPrivileges={"ann": []})
        served.call("create_database", database=hive.Database(name="a", privileges=rights))
        request = hive.CreateDatabaseRequest(databaseName="b", privileges=rights)
        served.call("create_database_req", createDatabaseRequest=request)
        log = hive.NotificationEventRequest(lastEvent=0)
        events = served.call("get_next_notification", rqst=log).events
        sent = [event_fields(event)["message"]["dbJson"].get("5") for event in events]
        assert len(sent) == 2
        assert None not in sent
