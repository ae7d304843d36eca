"""How files become tasks."""

from __future__ import annotations

import time

import pytest

from hms_bridge.acid.listing import DirectoryListing, ListedFile
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.plans.scan_plan import PlannedRoot, ScanPlan, plan_scan_files
from hms_bridge.snapshot.plan import plan_read

MIB = 1 << 20


def _plan(sizes: dict[str, int], *, is_bucketed: bool = False, parallelism: int = 8) -> ScanPlan:
    listing = DirectoryListing.build(
        "/t", files=[ListedFile(path=path, size_bytes=size) for path, size in sizes.items()]
    )
    plan = plan_read(
        listing,
        txns=ValidTxnList(high_watermark=TxnId(10_000)),
        write_ids=ValidWriteIdList(table="db.t", high_watermark=WriteId(10_000)),
        is_bucketed=is_bucketed,
    )
    root = PlannedRoot(uri="hdfs://h/t", path="/t", plan=plan)
    return plan_scan_files([root], parallelism=parallelism, split_bytes=128 * MIB)


def _deltas(count: int, size: int = 3000) -> dict[str, int]:
    return {
        f"{kind}_{number:07d}_{number:07d}_0000/bucket_{bucket:05d}": size
        for number in range(1, count + 1)
        for bucket in range(16)
        for kind in ("delta", "delete_delta")
    }


def test_many_tiny_files_are_few_tasks_and_planned_in_linear_time() -> None:
    seconds = {}
    for count in (100, 1000):
        begun = time.process_time()
        plan = _plan(_deltas(count), is_bucketed=True)
        seconds[count] = time.process_time() - begun
        assert len(plan.files) == count * 16
        assert sum(map(len, plan.deletes)) == count * 16
    assert len(plan.splits) <= 64
    assert [first for first, _ in plan.splits[1:]] == [end for _, end in plan.splits[:-1]]
    assert seconds[1000] < max(3, 30 * seconds[100])


def test_large_files_are_cut_and_small_ones_kept_together() -> None:
    sizes = {f"base_0000001/bucket_{n:05d}": size for n, size in enumerate((300 * MIB, MIB, MIB))}
    plan = _plan(sizes, parallelism=2)
    assert [tuple(entry[1:3]) for entry in plan.files] == [
        (0, 100 * MIB), (100 * MIB, 200 * MIB), (200 * MIB, -1), (0, -1), (0, -1),
    ]  # fmt: skip
    assert plan.splits == [[0, 1], [1, 2], [2, 5]]


@pytest.mark.parametrize("is_bucketed", [True, False])
def test_a_file_names_the_deletes_that_may_hit_it(is_bucketed: bool) -> None:
    sizes = {
        "base_0000002/bucket_00000": 9, "base_0000002/bucket_00001": 9,
        "delete_delta_0000003_0000003_0000/bucket_00001": 9,
        "delta_0000004_0000004_0000/bucket_00001": 9,
    }  # fmt: skip
    plan = _plan(sizes, is_bucketed=is_bucketed)
    lists = {entry[0]: plan.deletes[entry[5]] if entry[5] >= 0 else [] for entry in plan.files}
    deletes = ["hdfs://h/t/delete_delta_0000003_0000003_0000/bucket_00001"]
    assert lists == {
        "hdfs://h/t/base_0000002/bucket_00000": [] if is_bucketed else deletes,
        "hdfs://h/t/base_0000002/bucket_00001": deletes,
        "hdfs://h/t/delta_0000004_0000004_0000/bucket_00001": [],
    }
