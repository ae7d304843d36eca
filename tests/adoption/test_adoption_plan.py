"""What an adoption decides from names alone."""

from __future__ import annotations

import pytest

from hms_bridge.acid.listing import DirectoryListing, ListedFile
from hms_bridge.adoption.plan import AdoptionPlan, AdoptionRequest, RootFound, plan_adoption
from hms_bridge.errors import AcidFormatError
from hms_bridge.model.catalog import Column
from hms_bridge.model.valid_ids import ValidWriteIdList


def plan_with(valid_write_ids: str, *, is_open_aborted: bool = False) -> AdoptionPlan:
    names = ("delta_0000001_0000001_0000", "delta_0000004_0000004_0000")
    listing = DirectoryListing.build(
        "/t", files=[ListedFile(path=f"{name}/bucket_00000", size_bytes=9) for name in names]
    )
    request = AdoptionRequest(
        database_name="d",
        table_name="t",
        location="file:/t",
        columns=(Column(name="id", type="int"),),
        valid_write_ids=ValidWriteIdList.parse(valid_write_ids),
        is_open_aborted=is_open_aborted,
        owner="o",
    )
    return plan_adoption(request, [RootFound(path="", location="file:/t", listing=listing)])


def test_a_list_older_than_the_directory_is_refused() -> None:
    """The next write would get an id that has rows already, and its commit would show them."""
    with pytest.raises(AcidFormatError, match="up to write id 4, but --valid-write-ids ends at 3"):
        plan_with("d.t:3:9223372036854775807::")


def test_open_writes_may_have_committed_after_the_list_was_taken() -> None:
    with pytest.raises(AcidFormatError, match="write ids 4 were open when the list was taken"):
        plan_with("d.t:4:4:4:2")


def test_open_writes_count_as_aborted_if_one_says_so() -> None:
    ids = plan_with("d.t:4:4:4:2", is_open_aborted=True).write_ids
    assert (ids.high_watermark, ids.open_ids, ids.aborted_ids) == (4, (), (2, 4))
