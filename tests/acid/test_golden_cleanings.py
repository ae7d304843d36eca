"""What Hive's cleaner deleted is what we would delete, but where Hive's cleaner lost rows."""

from collections import Counter
from dataclasses import replace

import pytest

from hms_bridge.acid.listing import DirectoryListing
from hms_bridge.acid.obsolete import CleaningPlan, VictimReason, plan_cleaning
from hms_bridge.model.ids import WriteId
from hms_bridge.snapshot.plan import plan_read
from tests.support.golden import GoldenStage, golden_cleanings, golden_stages
from tests.support.row_ids import read_row_ids

CLEANINGS = list(golden_cleanings("full_acid", "insert_only"))
STAGES = [stage for stage in golden_stages("full_acid") if stage.is_readable]
pytestmark = pytest.mark.golden

LOST_BY_HIVE = {
    "g10_aborts/03-after-minor-cleaner": {
        "delete_delta_0000001_0000006_v0000503",
        "delta_0000001_0000006_v0000503",
    },
    "g25_cleaner_open_bug/02-after-minor-cleaner": {"delta_0000004_0000004_0000"},
}
"""Live or open directories that Hive 4.2's cleaner deleted."""

BEYOND_THE_COMPACTION = {
    "g25_cleaner_open_bug/02-after-minor-cleaner": {"delta_0000005_0000005_0000"},
}
"""Aborted, but above the highest write id of the entry: for a later run."""


def _paths(listing: DirectoryListing) -> set[str]:
    return {one.path for one in (*listing.directories, *listing.originals)}


def _plans(stage: GoldenStage) -> dict[str | None, list[CleaningPlan]]:
    """A plan for each entry that is ready for cleaning, by partition."""
    plans: dict[str | None, list[CleaningPlan]] = {}
    database, table = stage.table.split(".")
    for entry in stage.state["metastore"]["COMPACTION_QUEUE"]:
        if entry["CQ_STATE"] != "r" or (entry["CQ_DATABASE"], entry["CQ_TABLE"]) != (
            database,
            table,
        ):
            continue
        plan = plan_cleaning(
            stage.listing(entry["CQ_PARTITION"]),
            txns=stage.txns.cleaner_view(None),
            write_ids=stage.write_ids,
            highest_write_id=WriteId(entry["CQ_HIGHEST_WRITE_ID"]),
        )
        plans.setdefault(entry["CQ_PARTITION"], []).append(plan)
    return plans


def _deletable(listing: DirectoryListing, plans: list[CleaningPlan]) -> set[str]:
    victims = [victim for plan in plans for victim in plan.victims]
    return {
        path
        for path in _paths(listing)
        for victim in victims
        if path == victim.path or (victim.is_directory and path.startswith(victim.path + "/"))
    }


@pytest.mark.parametrize(("before", "after"), CLEANINGS, ids=str)
def test_what_hive_deleted_is_deletable(before: GoldenStage, after: GoldenStage) -> None:
    plans = _plans(before)
    for partition in before.partitions:
        listing = before.listing(partition)
        gone = _paths(listing) - _paths(after.listing(partition))
        excess = gone - _deletable(listing, plans.get(partition, []))
        lost, later = LOST_BY_HIVE.get(str(after), set()), BEYOND_THE_COMPACTION.get(str(after))
        assert excess == lost | (later or set())


@pytest.mark.parametrize("stage", STAGES, ids=str)
def test_rows_are_the_same_after_all_victims_are_gone(stage: GoldenStage) -> None:
    assert stage.rows is not None
    found: Counter[tuple[int, int, int]] = Counter()
    for partition in stage.partitions:
        listing = stage.listing(partition)
        plan = plan_cleaning(listing, txns=stage.txns, write_ids=stage.write_ids)
        gone = _deletable(listing, [plan])
        rest = replace(
            listing,
            directories=tuple(one for one in listing.directories if one.path not in gone),
            originals=tuple(one for one in listing.originals if one.path not in gone),
        )
        found += read_row_ids(plan_read(rest, txns=stage.txns, write_ids=stage.write_ids))
    assert found == Counter(tuple(row["row__id"]) for row in stage.rows)


@pytest.mark.parametrize("stage", STAGES, ids=str)
def test_everything_is_either_victim_or_kept(stage: GoldenStage) -> None:
    for partition in stage.partitions:
        listing = stage.listing(partition)
        plan = plan_cleaning(listing, txns=stage.txns, write_ids=stage.write_ids)
        kept, gone = {one.path for one in plan.kept}, _deletable(listing, [plan])
        assert not kept & gone
        assert _paths(listing) <= kept | gone
        for victim in plan.victims:
            assert (victim.by is None) == (victim.reason is not VictimReason.OBSOLETE)


def test_both_losses_of_hive_are_compared() -> None:
    assert LOST_BY_HIVE.keys() <= {str(after) for _, after in CLEANINGS}
    assert len(CLEANINGS) >= 20
