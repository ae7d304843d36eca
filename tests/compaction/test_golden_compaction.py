"""I1, I2: compacting any table state of a real Hive changes no row and no ROW__ID of any reader."""

from __future__ import annotations

import functools
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from changemanager.filesystem.local import LocalVolume
from changemanager.location import FsspecResolver
from hms_bridge.acid.directory import AcidState, resolve
from hms_bridge.acid.markers import ACID_VERSION, ACID_VERSION_FILE
from hms_bridge.acid.names import DirectoryName
from hms_bridge.compaction.kernel import BucketKernel, LocalExecutor
from hms_bridge.compaction.plan import CompactionPlan, NothingToCompact, plan_compaction
from hms_bridge.compaction.worker import gather
from hms_bridge.directories.listing import list_acid_directory
from hms_bridge.directories.rename import rename_directory
from hms_bridge.model.catalog import Column
from hms_bridge.model.compaction import CompactionType, VerifyMode
from hms_bridge.model.ids import TxnId
from hms_bridge.model.valid_ids import ValidTxnList
from hms_bridge.orc.timestamps import TimestampForm
from hms_bridge.rows.reader import Projection, has_raw_rows
from hms_bridge.rows.scan import row_type
from hms_bridge.snapshot.plan import plan_read
from tests.support.golden import GoldenStage, golden_stages
from tests.support.plan_rows import read_plan

pytestmark = pytest.mark.golden

LOCAL = LocalVolume()
STAGES = [stage for stage in golden_stages("full_acid") if stage.has_rows]
KINDS = [CompactionType.MINOR, CompactionType.MAJOR]


def listing_of(root: str) -> Any:
    return list_acid_directory(LOCAL, root, has_raw_rows=functools.partial(has_raw_rows, LOCAL))


def rows_of(root: str, stage: GoldenStage, txns: ValidTxnList, columns: tuple[Column, ...]) -> list:
    projection = Projection(
        table=row_type(columns), has_row_id=True, timestamps=TimestampForm.PARTS
    )
    plan = plan_read(
        listing_of(root), txns=txns, write_ids=stage.write_ids, is_bucketed=stage.is_bucketed
    )
    rows = [row for batch in read_plan(LOCAL, plan, projection) for row in batch.to_pylist()]
    return sorted(json.dumps(row, sort_keys=True, default=repr) for row in rows)


def columns_of(stage: GoldenStage) -> tuple[Column, ...]:
    return tuple(Column(name=n, type=t) for n, t in stage.state["metastore_table"]["columns"])


def state_of(root: str, stage: GoldenStage, txns: ValidTxnList) -> AcidState:
    return resolve(listing_of(root), txns=txns, write_ids=stage.write_ids.compactor_view())


def verify_of(stage: GoldenStage) -> VerifyMode:
    """All values, but where pyarrow has no room for them: year 1 and 9999, uniontype."""
    return VerifyMode.KEYS if "g11" in str(stage.files) else VerifyMode.FULL


def compact(
    root: Path, stage: GoldenStage, kind: CompactionType, txn_id: TxnId
) -> CompactionPlan | NothingToCompact:
    txns = stage.txns.with_open(txn_id)
    plan = plan_compaction(
        state_of(str(root), stage, txns),
        stage.write_ids.compactor_view(),
        kind=kind,
        txn_id=txn_id,
        columns=columns_of(stage),
        is_bucketed=stage.is_bucketed,
    )
    if isinstance(plan, NothingToCompact):
        return plan
    temporary = f"{root}/_tmp_compaction_v{txn_id:07d}"
    results = LocalExecutor(
        kernel=BucketKernel(resolver=FsspecResolver(), verify=verify_of(stage))
    ).run(plan.tasks, root=str(root), temporary=temporary)
    for result in results:
        assert result.verification is not None
        assert result.verification.difference is None
        written = sum(file.row_count for file in result.files)
        assert written == result.rows_read + result.delete_events_read
    for output in plan.outputs:
        directory = Path(temporary) / output.format()
        directory.mkdir(parents=True, exist_ok=True)
        (directory / ACID_VERSION_FILE).write_bytes(ACID_VERSION)
    gather(LOCAL, temporary, results)
    for output in plan.outputs:
        rename_directory(LOCAL, f"{temporary}/{output.format()}", f"{root}/{output.format()}")
    shutil.rmtree(temporary)
    return plan


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name.lower())
@pytest.mark.parametrize("stage", STAGES, ids=str)
def test_no_reader_sees_a_change(stage: GoldenStage, kind: CompactionType, tmp_path: Path) -> None:
    columns = columns_of(stage)
    txn_id = TxnId(max(stage.txns.high_watermark, 0) + 1)
    after = replace(stage.txns, high_watermark=txn_id)
    for number, partition in enumerate(stage.partitions):
        root = tmp_path / str(number)
        shutil.copytree(stage.root(partition), root)
        before = rows_of(str(root), stage, stage.txns, columns)
        if isinstance(compact(root, stage, kind, txn_id), NothingToCompact):
            continue
        assert rows_of(str(root), stage, stage.txns, columns) == before, "an old reader"
        # With the compaction's inputs gone, what is left must be the same rows.
        state = resolve(listing_of(str(root)), txns=after, write_ids=stage.write_ids)
        for one in state.obsolete:
            path = root / one.path
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        assert rows_of(str(root), stage, after, columns) == before, "a new reader"


def _is_one_turn(before: GoldenStage, after: GoldenStage) -> bool:
    is_same_table = before.scenario == after.scenario and before.table == after.table
    return is_same_table and before.write_ids == after.write_ids


def _worker_turns() -> list[tuple[GoldenStage, GoldenStage, CompactionType]]:
    turns = []
    for before, after in zip(STAGES, STAGES[1:], strict=False):
        kind = next((k for k in KINDS if f"after-{k.name.lower()}" in after.name), None)
        is_cleaner = after.name.endswith("-cleaner")
        is_other_engine = "query" in after.scenario or "rebalance" in after.scenario
        if kind and not is_cleaner and not is_other_engine and _is_one_turn(before, after):
            turns.append((before, after, kind))
    return turns


@pytest.mark.parametrize(("before", "after", "kind"), _worker_turns(), ids=str)
def test_directories_are_those_of_a_real_hive(
    before: GoldenStage, after: GoldenStage, kind: CompactionType, tmp_path: Path
) -> None:
    """Names without the visibility suffix: transaction ids are each metastore's own."""
    for number, partition in enumerate(after.partitions):
        old, new = Path(before.root(partition)), Path(after.root(partition))
        theirs = _bare({p.name for p in new.iterdir()} - {p.name for p in old.iterdir()})
        if not theirs:
            continue  # Hive was asked to compact some partitions only
        root = tmp_path / str(number)
        shutil.copytree(old, root)
        plan = compact(root, before, kind, TxnId(before.txns.high_watermark + 1))
        ours = (
            set()
            if isinstance(plan, NothingToCompact)
            else _bare({output.format() for output in plan.outputs})
        )
        assert ours == theirs


def _bare(names: set[str]) -> set[str]:
    parsed = [DirectoryName.parse(name) for name in names]
    return {replace(name, visibility_txn_id=TxnId(0)).format() for name in parsed if name}
