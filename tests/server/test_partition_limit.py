"""hive.metastore.limit.partition.request: as a real Hive 4.2 with a limit of 3 answered such calls,
asked about a table with five partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hms_bridge.config.settings import ServerSettings
from hms_bridge.errors import MetaError
from hms_bridge.server.serve import dispatcher_of
from hms_bridge.wire.struct_bytes import EncodedStructs
from hms_bridge.wire.structs import hive
from tests.support.odd_calls import DATABASE, TABLE, make, partition
from tests.support.served_metastore import served_metastore

OF = {"db_name": DATABASE, "tbl_name": TABLE}
REQUEST = {"catName": "hive", "dbName": DATABASE, "tblName": TABLE}
FOUR = [f"ds={value}/hr=1" for value in range(1, 5)]
FILTER = 'ds >= "1"'
AUTH = {"user_name": "u", "group_names": []}
ALL: dict[str, Any] = {"max_parts": -1}
REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("get_partitions", {**OF, **ALL}),
    ("get_partitions", {**OF, "max_parts": 100}),
    ("get_partitions_pspec", {**OF, **ALL}),
    ("get_partitions_ps", {**OF, **ALL, "part_vals": [""]}),
    ("get_partitions_ps_with_auth", {**OF, **ALL, "part_vals": [""], **AUTH}),
    ("get_partitions_with_auth", {**OF, **ALL, **AUTH}),
    ("get_partitions_by_filter", {**OF, **ALL, "filter": FILTER}),
    ("get_part_specs_by_filter", {**OF, **ALL, "filter": FILTER}),
    ("get_partitions_by_names", {**OF, "names": FOUR}),
    ("get_partitions_req", {"req": hive.PartitionsRequest(**REQUEST, maxParts=-1)}),
    ("get_partitions_by_names_req", {
        "req": hive.GetPartitionsByNamesRequest(**OF, names=FOUR)
    }),
    ("get_partitions_by_expr", {
        "req": hive.PartitionsByExprRequest(**REQUEST, expr=FILTER.encode(), maxParts=-1)
    }),
]  # fmt: skip
ANSWERED: list[tuple[str, dict[str, Any], int]] = [
    ("get_partitions", {**OF, "max_parts": 2}, 2),
    ("get_partition_names", {**OF, **ALL}, 5),
    ("get_partition_names_ps", {**OF, **ALL, "part_vals": [""]}, 5),
    ("get_partitions_by_names", {**OF, "names": FOUR[:3]}, 3),
    ("get_partitions_ps", {**OF, **ALL, "part_vals": ["1"]}, 1),
    ("get_partitions_by_filter", {**OF, **ALL, "filter": 'ds = "1"'}, 1),
]  # fmt: skip


def test_no_call_reads_more_partitions_than_are_allowed(tmp_path: Path) -> None:
    with served_metastore(tmp_path) as served:
        make(served.call)
        served.call("add_partitions", new_parts=[partition(v, "1") for v in ("3", "4", "5")])
        dispatcher = dispatcher_of(served.metastore, limits=ServerSettings(partitions_max=3))

        def ask(name: str, arguments: dict[str, Any]) -> Any:
            call = dispatcher._calls[name]
            return call.answer(call.arguments(**arguments))

        for name, arguments in REFUSED:
            with pytest.raises(MetaError, match=r"Number of partitions scanned \(=[45]\)") as error:
                ask(name, arguments)
            assert "exceeds limit (=3)" in str(error.value), name
            served.call(name, **arguments)  # without a limit
        for name, arguments, count in ANSWERED:
            answer = ask(name, arguments)
            number = answer.count if isinstance(answer, EncodedStructs) else len(answer)
            assert number == count, (name, arguments)
