"""How files become tasks."""

import time

from hms_bridge.acid.listing import DirectoryListing, ListedFile
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.plans.scan_plan import PlannedRoot, ScanPlan, plan_scan_files
from hms_bridge.snapshot.plan import plan_read

MIB = 1 << 20


def _plan(sizes: dict[str, int]) -> ScanPlan:
    files = [ListedFile(path=path, size_bytes=size) for path, size in sizes.items()]
    plan = plan_read(
        DirectoryListing.build("/t", files=files),
        txns=ValidTxnList(high_watermark=TxnId(10_000)),
        write_ids=ValidWriteIdList(table="db.t", high_watermark=WriteId(10_000)),
        is_bucketed=True,
    )
    root = PlannedRoot(uri="hdfs://h/t", path="/t", plan=plan)
    return plan_scan_files([root], parallelism=2, split_bytes=128 * MIB)


def test_many_tiny_files_are_few_tasks_and_planned_in_linear_time() -> None:
    seconds = {}
    for count in (100, 1000):
        sizes = {
            f"{kind}_{number:07d}_{number:07d}_0000/bucket_{bucket:05d}": 3000
            for kind in ("delta", "delete_delta")
            for number in range(1, count + 1)
            for bucket in range(16)
        }
        begun = time.process_time()
        plan = _plan(sizes)
        seconds[count] = time.process_time() - begun
        assert len(plan.files) == sum(map(len, plan.deletes)) == count * 16
        assert {(entry[0][-5:], plan.deletes[entry[5]][0][0][-5:]) for entry in plan.files} == {
            (f"{bucket:05d}", f"{bucket:05d}") for bucket in range(16)
        }
    assert len(plan.splits) <= 64
    assert [first for first, _ in plan.splits[1:]] == [end for _, end in plan.splits[:-1]]
    assert seconds[1000] < max(3, 30 * seconds[100])


def test_large_files_are_cut_and_small_ones_kept_together() -> None:
    plan = _plan({f"base_0000001/bucket_{n:05d}": (300, 1, 1)[n] * MIB for n in range(3)})
    ranges = [(0, 100 * MIB), (100 * MIB, 200 * MIB), (200 * MIB, -1), (0, -1), (0, -1)]
    assert [tuple(entry[1:3]) for entry in plan.files] == ranges
    assert plan.splits == [[0, 1], [1, 2], [2, 5]]
