import pytest

from hms_bridge.acid.listing import DirectoryListing, ListedFile
from hms_bridge.acid.obsolete import CleaningScope, VictimReason, plan_cleaning
from hms_bridge.model.ids import TxnId, WriteId
from tests.support.acid_tree import kept, tree, txns, victims, write_ids

NONE_OPEN = "9223372036854775807"
ALL_SEEN = f"99:{NONE_OPEN}::"


def test_inputs_of_a_compaction_go() -> None:
    plan = plan_cleaning(
        tree(
            "delta_0000001_0000001_0000/bucket_00000",
            "delete_delta_0000002_0000002_0000/",
            "delta_0000001_0000002_v0000009/",
            "delete_delta_0000001_0000002_v0000009/",
            "delta_0000003_0000003_0000/",
        ),
        txns=txns(),
        write_ids=write_ids(ALL_SEEN),
        highest_write_id=WriteId(2),
    )
    assert victims(plan) == ["delete_delta_0000002_0000002_0000", "delta_0000001_0000001_0000"]
    victim = plan.victims[1]
    assert (victim.reason, victim.by) == (VictimReason.OBSOLETE, "delta_0000001_0000002_v0000009")
    assert (victim.is_directory, victim.size_bytes) == (True, 10)
    assert kept(plan) == {
        "delta_0000001_0000002_v0000009": "CURRENT",
        "delete_delta_0000001_0000002_v0000009": "CURRENT",
        "delta_0000003_0000003_0000": "BEYOND",
    }
    assert plan.leftovers == ()


def test_originals_go_with_their_directories() -> None:
    plan = plan_cleaning(
        tree(
            "000000_0",
            "HIVE_UNION_SUBDIR_1/000000_0",
            "HIVE_UNION_SUBDIR_1/000001_0",
            "mixed/000000_0",
            "mixed/note.txt",
            "veiled/000000_0",
            "veiled/_tmp/x",
            "base_0000002_v0000009/",
        ),
        txns=txns(),
        write_ids=write_ids(ALL_SEEN),
    )
    assert [(one.path, one.is_directory, one.size_bytes) for one in plan.victims] == [
        ("000000_0", False, 10),
        ("HIVE_UNION_SUBDIR_1", True, 20),
        ("mixed/000000_0", False, 10),
        ("veiled/000000_0", False, 10),
    ]
    assert kept(plan) == {
        "base_0000002_v0000009": "CURRENT",
        "mixed/note.txt": "UNKNOWN",
        "veiled/_tmp": "HIDDEN",
    }


def test_originals_without_a_base_stay() -> None:
    plan = plan_cleaning(tree("000000_0"), txns=txns(), write_ids=write_ids(ALL_SEEN))
    assert (victims(plan), kept(plan)) == ([], {"000000_0": "CURRENT"})


def test_no_partition_means_aborted_writes_only() -> None:
    """HIVE-25502: from the table's root, partitions look like files that a base hides."""
    listing = tree(
        "000000_0",
        "p=1/000000_0",
        "p=1/delta_0000001_0000001_0000/bucket_00000",
        "base_0000003/",
        "delta_0000002_0000002_0000/",
        "delta_0000001_0000001_0000/",
    )
    plan = plan_cleaning(
        listing,
        txns=txns(),
        write_ids=write_ids(f"9:{NONE_OPEN}::2"),
        scope=CleaningScope.ABORTED_ONLY,
    )
    assert victims(plan) == ["delta_0000002_0000002_0000"]
    assert plan.victims[0].write_ids == (2,)
    assert kept(plan)["delta_0000001_0000001_0000"] == "OUT_OF_SCOPE"
    assert kept(plan)["000000_0"] == "OUT_OF_SCOPE"
    everything = plan_cleaning(listing, txns=txns(), write_ids=write_ids(ALL_SEEN))
    assert "p=1/000000_0" in kept(everything)
    assert not any(path.startswith("p=1") for path in victims(everything))


def test_output_of_an_aborted_compaction_goes_and_nothing_else() -> None:
    """HIVE-29572: its entry may say ready, but its transaction was aborted."""
    plan = plan_cleaning(
        tree(
            "delta_0000001_0000001_0000/",
            "delta_0000002_0000002_0000/",
            "base_0000002_v0000009/",
            "delta_0000001_0000002_v0000010/",
        ),
        txns=txns(f"10:{NONE_OPEN}::9,10"),
        write_ids=write_ids(ALL_SEEN),
        highest_write_id=WriteId(2),
    )
    assert [(one.path, one.reason) for one in plan.victims] == [
        ("base_0000002_v0000009", VictimReason.ABORTED_COMPACTION),
        ("delta_0000001_0000002_v0000010", VictimReason.ABORTED_COMPACTION),
    ]


def test_compaction_that_runs_is_left_alone() -> None:
    plan = plan_cleaning(
        tree("delta_0000001_0000001_0000/", "base_0000001_v0000009/", "base_0000005_v0000010/"),
        txns=txns("10:9:9,10:"),
        write_ids=write_ids(ALL_SEEN),
        highest_write_id=WriteId(1),
    )
    assert victims(plan) == []
    assert kept(plan)["base_0000001_v0000009"] == "OPEN_COMPACTION"
    assert [one.path for one in plan.leftovers] == ["base_0000001_v0000009"]


def test_compaction_that_an_open_reader_does_not_see_covers_nothing() -> None:
    listing = tree("delta_0000001_0000001_0000/", "base_0000001_v0000009/")
    everyone = txns(f"12:{NONE_OPEN}::")
    for view in (everyone.cleaner_view(TxnId(9)), everyone.cleaner_view(None, [TxnId(9)])):
        plan = plan_cleaning(listing, txns=view, write_ids=write_ids(ALL_SEEN))
        assert victims(plan) == []
        assert [one.path for one in plan.leftovers] == ["base_0000001_v0000009"]
    plan = plan_cleaning(
        listing, txns=everyone.cleaner_view(TxnId(10)), write_ids=write_ids(ALL_SEEN)
    )
    assert victims(plan) == ["delta_0000001_0000001_0000"]


def test_g25_open_write_among_aborted_ones_stays() -> None:
    """Hive 4.2 deletes the open write's delta here, and its commit then succeeds."""
    plan = plan_cleaning(
        tree(
            *(f"delta_000000{one}_000000{one}_0000/" for one in range(1, 6)),
            "delta_0000002_0000003_v0000010/",
        ),
        txns=txns("11:5:5:2,6"),
        write_ids=write_ids("5:4:4:1,5"),
        highest_write_id=WriteId(3),
    )
    assert victims(plan) == [
        "delta_0000001_0000001_0000",
        "delta_0000002_0000002_0000",
        "delta_0000003_0000003_0000",
    ]
    assert kept(plan) == {
        "delta_0000002_0000003_v0000010": "CURRENT",
        "delta_0000004_0000004_0000": "OPEN_WRITE",
        "delta_0000005_0000005_0000": "BEYOND",
    }
    assert plan.forgettable_write_ids == (1,)


def test_g10_aborted_overwrite_covers_nothing() -> None:
    """Hive 4.2 takes it for a base and deletes the table's live rows."""
    plan = plan_cleaning(
        tree(
            "base_0000007/",
            "delta_0000001_0000006_v0000503/",
            "delta_0000006_0000006_0000/",
            "delta_0000008_0000008_0000/",
            "delta_0000009_0000009_0000/",
        ),
        txns=txns("504:496:496,498:499"),
        write_ids=write_ids("11:8:8,10:2,4,5,7,11"),
        highest_write_id=WriteId(7),
    )
    assert victims(plan) == ["base_0000007", "delta_0000006_0000006_0000"]
    assert kept(plan)["delta_0000009_0000009_0000"] == "BEYOND"


def test_later_compaction_waits_for_its_own_entry() -> None:
    plan = plan_cleaning(
        tree(
            "delta_0000001_0000001_0000/",
            "delta_0000001_0000002_v0000009/",
            "delta_0000003_0000003_0000/",
            "base_0000003_v0000012/",
        ),
        txns=txns(),
        write_ids=write_ids(ALL_SEEN),
        highest_write_id=WriteId(2),
    )
    assert victims(plan) == ["delta_0000001_0000001_0000"]
    assert kept(plan)["base_0000003_v0000012"] == "BEYOND"


@pytest.mark.parametrize("earlier", ["", "_v0000010"])
def test_of_two_outputs_of_one_range_the_earlier_goes(earlier: str) -> None:
    """A Hive beside us reads the later one and removes the other: the same must stay here."""
    names = [f"{kind}_0000001_0000005" for kind in ("delete_delta", "delta")]
    plan = plan_cleaning(
        tree(*(f"{name}{end}/" for name in names for end in (earlier, "_v0000012"))),
        txns=txns(),
        write_ids=write_ids(ALL_SEEN),
    )
    assert victims(plan) == [f"{name}{earlier}" for name in names]
    assert kept(plan) == {f"{name}_v0000012": "CURRENT" for name in names}


def test_abort_records_stay_while_their_rows_do() -> None:
    """HIVE-24481: a streaming delta mixes aborted and committed writes."""
    listing = tree(
        "delta_0000001_0000003/", "delta_0000004_0000004_0000/", "delta_0000005_0000005_0000/"
    )
    plan = plan_cleaning(
        listing,
        txns=txns(),
        write_ids=write_ids(f"9:{NONE_OPEN}::2,4,8"),
        highest_write_id=WriteId(7),
    )
    assert victims(plan) == ["delta_0000004_0000004_0000"]
    assert plan.forgettable_write_ids == (4,)
    assert plan.has_uncompacted_aborts
    compacted = tree("delta_0000001_0000003/", "delta_0000001_0000005_v0000009/")
    plan = plan_cleaning(compacted, txns=txns(), write_ids=write_ids(f"9:{NONE_OPEN}::2,4,8"))
    assert victims(plan) == ["delta_0000001_0000003"]
    assert plan.forgettable_write_ids == (2, 4, 8)
    assert not plan.has_uncompacted_aborts


def test_half_of_a_pair_covers_only_its_own_kind() -> None:
    """Hive 3 publishes a delta and its delete delta by two renames; a crash may lie between."""
    inputs = ["delta_0000001_0000001_0000/", "delete_delta_0000002_0000002_0000/"]
    plan = plan_cleaning(
        tree(*inputs, "delta_0000001_0000003/"), txns=txns(), write_ids=write_ids(ALL_SEEN)
    )
    assert victims(plan) == ["delta_0000001_0000001_0000"]
    assert kept(plan)["delete_delta_0000002_0000002_0000"] == "UNPROVEN"
    assert [one.path for one in plan.leftovers] == ["delete_delta_0000002_0000002_0000"]
    plan = plan_cleaning(
        tree(*inputs, "delete_delta_0000001_0000003/"), txns=txns(), write_ids=write_ids(ALL_SEEN)
    )
    assert victims(plan) == ["delete_delta_0000002_0000002_0000"]
    whole = tree(*inputs, "delta_0000001_0000003/", "delete_delta_0000001_0000003/")
    plan = plan_cleaning(whole, txns=txns(), write_ids=write_ids(ALL_SEEN))
    assert len(plan.victims) == 2


def test_streaming_delta_covers_nothing() -> None:
    plan = plan_cleaning(
        tree(
            "delta_0000001_0000005/bucket_00000",
            "delta_0000001_0000005/bucket_00000_flush_length",
            "delta_0000002_0000002_0000/bucket_00000",
        ),
        txns=txns(),
        write_ids=write_ids(ALL_SEEN),
    )
    assert victims(plan) == []
    assert kept(plan)["delta_0000002_0000002_0000"] == "UNPROVEN"


def test_staging_and_strangers_are_left_and_told() -> None:
    plan = plan_cleaning(
        tree("_tmp_1/base_0000001/bucket_00000", "note.txt", "base_0000001_v0000009/"),
        txns=txns(),
        write_ids=write_ids(ALL_SEEN),
    )
    assert victims(plan) == []
    assert kept(plan) == {
        "_tmp_1": "HIDDEN",
        "base_0000001_v0000009": "CURRENT",
        "note.txt": "UNKNOWN",
    }


def test_base_newer_than_the_cleaning_is_no_error() -> None:
    plan = plan_cleaning(
        tree("base_0000009_v0000020/", "delta_0000002_0000002_0000/"),
        txns=txns(),
        write_ids=write_ids(f"9:{NONE_OPEN}::2"),
        highest_write_id=WriteId(5),
    )
    assert victims(plan) == ["delta_0000002_0000002_0000"]


def test_insert_only_originals_go_whatever_their_names() -> None:
    listing = DirectoryListing.build(
        "/t",
        files=[ListedFile(path="part-0.parquet", size_bytes=1)],
        directories=["base_0000001"],
        is_insert_only=True,
    )
    plan = plan_cleaning(listing, txns=txns(), write_ids=write_ids(ALL_SEEN))
    assert victims(plan) == ["part-0.parquet"]
