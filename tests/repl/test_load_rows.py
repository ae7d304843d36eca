"""The replica in a real metastore of ours: rows and row ids are those of real Hive's replica."""

from __future__ import annotations

import pytest

from hms_bridge.repl.load.plan import LoadRequest
from hms_bridge.repl.load.repl_load import ReplLoad
from hms_bridge.service.open import open_local_metastore
from tests.support.golden_repl import CYCLES, HIVE_ROOTS
from tests.support.table_rows import acid_rows, row_order


@pytest.fixture
def target(fast_folder):
    metastore = open_local_metastore(
        f"sqlite:///{fast_folder}/target.db3", warehouse=str(fast_folder / "warehouse")
    )
    yield metastore
    metastore.close()


@pytest.mark.golden
def test_every_row_of_every_cycle_is_there_once(cycle, target, fast_folder):
    load = ReplLoad(target, cycle.resolve)
    request = LoadRequest(
        root=str(fast_folder / "repl"),
        source_database="src",
        target_database="dst",
        external_base=str(fast_folder / "external"),
        functions_root=str(fast_folder / "functions"),
        roots=HIVE_ROOTS,
        is_from_hive=True,
    )
    compared = 0
    for dumped, loaded in CYCLES:
        cycle.bring_dump(dumped, fast_folder / "repl")
        load.run(load.plan(request))
        golden = cycle.target_rows(loaded)
        for name in target.get_tables("dst"):
            if not target.get_table("dst", name).is_full_acid:
                continue
            ours = acid_rows(target, cycle.resolve, "dst", name)
            rows = [{**row, "row__id": list(row["row__id"].values())} for row in golden[name]]
            assert ours == sorted(rows, key=row_order), f"{name} after {loaded}"
            compared += len(rows)
    assert compared == 210
