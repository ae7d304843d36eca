"""Partitions with what a user may do with them: as a real Hive 4.2 answered the same calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hms_bridge.errors import MetaError
from hms_bridge.wire.structs import Struct, hive
from tests.support.odd_calls import DATABASE, TABLE, make, partition, table
from tests.support.served_metastore import ServedMetastore, served_metastore

OF_PARTITIONS = {"EXTERNAL": "TRUE", "PARTITION_LEVEL_PRIVILEGE": "TRUE"}
OWN = "own"
"""A table whose partitions have privileges of their own; that of ``odd`` has none."""
USER = {"user_name": "u", "group_names": ["g"]}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedMetastore]:
    with served_metastore(tmp_path_factory.mktemp("rights")) as served:
        make(served.call)
        served.call("create_table", tbl=table(OWN, "ds", parameters=OF_PARTITIONS))
        served.call("add_partitions", new_parts=[partition(v, of=OWN) for v in ("1", "2")])
        for name, values in ((OWN, ["1"]), (TABLE, ["1", "1"])):
            wanted = hive.HiveObjectRef(
                objectType=4, dbName=DATABASE, objectName=name, partValues=values
            )
            grant = hive.PrivilegeGrantInfo(
                privilege="update", createTime=1, grantor="ann", grantorType=1, grantOption=False
            )
            given = hive.HiveObjectPrivilege(
                hiveObject=wanted, principalName="u", principalType=1, grantInfo=grant,
                authorizer="hive",
            )  # fmt: skip
            served.call("grant_privileges", privileges=hive.PrivilegeBag(privileges=[given]))
        yield served


def _shown(struct: Struct | None) -> Any:
    """The privileges that principals have, by their kinds."""
    if struct is None:
        return None
    kinds = (struct.userPrivileges, struct.groupPrivileges, struct.rolePrivileges)
    return tuple(
        kind and {name: [info.privilege for info in infos] for name, infos in kind.items()}
        for kind in kinds
    )


UPDATE = ({"u": ["update"]}, {"g": []}, {"public": []})
NOTHING = ({"u": []}, {"g": []}, {"public": []})


def _in_all_forms(served: ServedMetastore, of: dict[str, Any], user: dict[str, Any]) -> list[Any]:
    values = {"part_vals": ["1"], "max_parts": -1}
    request = hive.GetPartitionsPsWithAuthRequest(
        dbName=of["db_name"], tblName=of["tbl_name"], partVals=["1"], maxParts=-1,
        userName=user.get("user_name"), groupNames=user.get("group_names"),
    )  # fmt: skip
    return [
        served.call("get_partitions_ps_with_auth", **of, **values, **user),
        served.call("get_partitions_ps_with_auth_req", req=request).partitions,
        served.call("get_partitions_with_auth", **of, max_parts=1, **user),
    ]


def test_partitions_of_their_own_privileges_come_with_them(served: ServedMetastore) -> None:
    of = {"db_name": DATABASE, "tbl_name": OWN}
    one = served.call("get_partition_with_auth", **of, part_vals=["1"], **USER)
    assert _shown(one.privileges) == UPDATE
    other = served.call("get_partition_with_auth", **of, part_vals=["2"], **USER)
    assert _shown(other.privileges) == NOTHING  # a real one would begin with its table's
    for partitions in _in_all_forms(served, of, USER):
        assert [_shown(part.privileges) for part in partitions] == [UPDATE]
    unnamed = {"user_name": "other", "group_names": []}
    stranger = served.call("get_partition_with_auth", **of, part_vals=["1"], **unnamed)
    assert _shown(stranger.privileges) == ({"other": []}, None, {"public": []})


def test_nobody_asked_for_is_told_nothing(served: ServedMetastore) -> None:
    of = {"db_name": DATABASE, "tbl_name": OWN}
    one = served.call("get_partition_with_auth", **of, part_vals=["1"])
    assert _shown(one.privileges) == (None, None, None)
    for partitions in _in_all_forms(served, of, {}):
        assert [part.privileges for part in partitions] == [None]


def test_partitions_of_other_tables_have_none(served: ServedMetastore) -> None:
    of = {"db_name": DATABASE, "tbl_name": TABLE}
    one = served.call("get_partition_with_auth", **of, part_vals=["1", "1"], **USER)
    assert one.privileges is None
    for partitions in _in_all_forms(served, of, USER):
        assert [part.privileges for part in partitions] == [None]


def test_a_user_has_so_many_groups_at_most(served: ServedMetastore) -> None:
    many = {"user_name": "u", "group_names": [str(number) for number in range(1001)]}
    with pytest.raises(MetaError, match="1001 groups"):
        served.call(
            "get_partition_with_auth", db_name=DATABASE, tbl_name=OWN, part_vals=["1"], **many
        )
