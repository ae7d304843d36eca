"""Every stage of every full-ACID table: the plan reads exactly the rows that Hive read."""

from collections import Counter

import pytest

from hms_bridge.acid.directory import resolve
from hms_bridge.model.valid_ids import RangeResponse
from hms_bridge.snapshot.plan import plan_read
from tests.support.golden import GoldenStage, golden_stages
from tests.support.row_ids import read_row_ids

STAGES = golden_stages("full_acid")
pytestmark = pytest.mark.golden


@pytest.mark.parametrize("stage", [one for one in STAGES if one.is_readable], ids=str)
def test_plan_reads_what_hive_read(stage: GoldenStage) -> None:
    assert stage.rows is not None
    expected = Counter(tuple(row["row__id"]) for row in stage.rows)
    found: Counter[tuple[int, int, int]] = Counter()
    for partition in stage.partitions:
        plan = plan_read(
            stage.listing(partition),
            txns=stage.txns,
            write_ids=stage.write_ids,
            is_bucketed=stage.is_bucketed,
        )
        assert plan.unread == ()
        found += read_row_ids(plan)
    assert found == expected


@pytest.mark.parametrize("stage", STAGES, ids=str)
def test_nothing_open_or_aborted_is_selected(stage: GoldenStage) -> None:
    write_ids, txns = stage.write_ids, stage.txns
    for partition in stage.partitions:
        listing = stage.listing(partition)
        state = resolve(listing, txns=txns, write_ids=write_ids)
        for directory in state.current:
            name = directory.name
            assert txns.is_valid(name.visibility_txn_id)
            if not name.is_base:
                seen = write_ids.range_valid(name.min_write_id, name.max_write_id)
                assert seen is not RangeResponse.NONE
        everything = [
            *state.current,
            *state.aborted,
            *state.ignored,
            *(one.directory for one in state.obsolete if one.directory),
        ]
        assert sorted(one.path for one in everything) == [one.path for one in listing.directories]


def test_there_is_something_to_compare() -> None:
    assert len(STAGES) >= 100
