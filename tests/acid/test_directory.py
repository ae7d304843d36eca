import pytest

from hms_bridge.acid.directory import resolve
from hms_bridge.acid.markers import DataFormat
from hms_bridge.errors import NotEnoughHistoryError
from tests.support.acid_tree import current, obsolete, tree, txns, write_ids

NONE_OPEN = "9223372036854775807"
ALL_SEEN = f"99:{NONE_OPEN}::"


def test_writes_in_order() -> None:
    state = resolve(
        tree(
            "delta_0000001_0000001_0000/",
            "delete_delta_0000002_0000002_0000/",
            "delta_0000002_0000002_0001/",
            "delta_0000003_0000003_0002/",
            "delta_0000003_0000003_0003/",
        ),
        txns=txns(),
        write_ids=write_ids(ALL_SEEN),
    )
    assert current(state) == [
        "delta_0000001_0000001_0000",
        "delete_delta_0000002_0000002_0000",
        "delta_0000002_0000002_0001",
        "delta_0000003_0000003_0002",
        "delta_0000003_0000003_0003",
    ]


def test_minor_compaction_hides_its_inputs() -> None:
    state = resolve(
        tree(
            "delta_0000001_0000001_0000/",
            "delete_delta_0000002_0000002_0000/",
            "delta_0000002_0000002_0001/",
            "delta_0000001_0000002_v0000009/",
            "delete_delta_0000001_0000002_v0000009/",
            "delta_0000003_0000003_0000/",
        ),
        txns=txns(),
        write_ids=write_ids(ALL_SEEN),
    )
    assert current(state) == [
        "delete_delta_0000001_0000002_v0000009",
        "delta_0000001_0000002_v0000009",
        "delta_0000003_0000003_0000",
    ]
    assert obsolete(state) == [
        "delete_delta_0000002_0000002_0000",
        "delta_0000001_0000001_0000",
        "delta_0000002_0000002_0001",
    ]


def test_compacted_statements_of_one_write() -> None:
    state = resolve(
        tree(
            "delta_0000005_0000005_0000/",
            "delta_0000005_0000005_0001/",
            "delta_0000005_0000005_v0000009/",
        ),
        txns=txns(),
        write_ids=write_ids(ALL_SEEN),
    )
    assert current(state) == ["delta_0000005_0000005_v0000009"]
    assert len(state.obsolete) == 2


def test_base_hides_originals_and_all_below() -> None:
    state = resolve(
        tree("000000_0", "delta_0000001_0000001_0000/", "base_0000001_v0000009/", "base_0000000/"),
        txns=txns(),
        write_ids=write_ids(ALL_SEEN),
    )
    assert current(state) == ["base_0000001_v0000009"]
    assert state.originals == ()
    assert obsolete(state) == ["000000_0", "base_0000000", "delta_0000001_0000001_0000"]
    assert {one.by.path for one in state.obsolete} == {"base_0000001_v0000009"}


def test_originals_are_read_without_a_base() -> None:
    state = resolve(tree("000000_0"), txns=txns(), write_ids=write_ids(f"0:{NONE_OPEN}::"))
    assert [file.path for file in state.originals] == ["000000_0"]


def test_base_of_originals_alone_is_always_usable() -> None:
    state = resolve(
        tree("000000_0", "base_-9223372036854775808_v0000009/", "delta_0000001_0000001_0000/"),
        txns=txns(),
        write_ids=write_ids("1:1:1:"),
    )
    assert current(state) == ["base_-9223372036854775808_v0000009"]
    assert obsolete(state) == ["000000_0"]


def test_empty_delta_of_a_replica_is_nobodys() -> None:
    state = resolve(tree("delta_0000000_0000000_0000/"), txns=txns(), write_ids=write_ids(ALL_SEEN))
    assert (current(state), obsolete(state)) == ([], [])


def test_open_and_future_writes_are_ignored() -> None:
    state = resolve(
        tree(
            "delta_0000001_0000001_0000/",
            "delta_0000002_0000002_0000/",
            "delta_0000004_0000004_0000/",
            "base_0000002/",
        ),
        txns=txns(),
        write_ids=write_ids("3:2:2:"),
    )
    assert current(state) == ["delta_0000001_0000001_0000"]
    assert sorted(one.path for one in state.ignored) == [
        "base_0000002",
        "delta_0000002_0000002_0000",
        "delta_0000004_0000004_0000",
    ]
    assert (state.obsolete, state.aborted) == ((), ())


def test_aborted_writes_are_told_apart() -> None:
    state = resolve(
        tree(
            "delta_0000001_0000001_0000/",
            "delta_0000002_0000002_0000/",
            "delta_0000003_0000005/",
            "delta_0000006_0000007/",
        ),
        txns=txns(),
        write_ids=write_ids(f"9:{NONE_OPEN}::2,4,6,7"),
    )
    assert current(state) == ["delta_0000001_0000001_0000", "delta_0000003_0000005"]
    assert [one.path for one in state.aborted] == [
        "delta_0000002_0000002_0000",
        "delta_0000006_0000007",
    ]
    assert state.aborted_write_ids == (2, 6, 7)
    assert state.has_uncompacted_aborts


def test_compacted_delta_holds_no_aborted_rows() -> None:
    state = resolve(
        tree("delta_0000001_0000003_v0000009/"),
        txns=txns(),
        write_ids=write_ids(f"3:{NONE_OPEN}::2"),
    )
    assert current(state) == ["delta_0000001_0000003_v0000009"]
    assert not state.has_uncompacted_aborts


def test_compaction_in_progress_is_invisible() -> None:
    listing = tree(
        "delta_0000001_0000001_0000/", "delta_0000002_0000002_0000/", "base_0000002_v0000009/"
    )
    state = resolve(listing, txns=txns("9:9:9:"), write_ids=write_ids(ALL_SEEN))
    assert current(state) == ["delta_0000001_0000001_0000", "delta_0000002_0000002_0000"]
    assert [one.path for one in state.ignored] == ["base_0000002_v0000009"]
    aborted = resolve(listing, txns=txns(f"9:{NONE_OPEN}::9"), write_ids=write_ids(ALL_SEEN))
    assert [one.path for one in aborted.aborted] == ["base_0000002_v0000009"]
    assert aborted.aborted_write_ids == ()


PAIR = "delta_0000001_0000005_v00000{0}/", "delete_delta_0000001_0000005_v00000{0}/"


def test_newest_of_two_outputs_of_one_range() -> None:
    """HIVE-29210 (docs/hive/acid.md §7): reading both would double the rows."""
    paths = [path.format(txn) for path in PAIR for txn in (10, 12)]
    state = resolve(tree(*paths), txns=txns(), write_ids=write_ids(ALL_SEEN))
    assert current(state) == [
        "delete_delta_0000001_0000005_v0000012",
        "delta_0000001_0000005_v0000012",
    ]
    assert obsolete(state) == [
        "delete_delta_0000001_0000005_v0000010",
        "delta_0000001_0000005_v0000010",
    ]


@pytest.mark.parametrize("end", ["15:12:12:", f"15:{NONE_OPEN}::12", f"11:{NONE_OPEN}::"])
def test_output_that_is_not_committed_is_none(end: str) -> None:
    paths = [path.format(txn) for path in PAIR for txn in (10, 12)]
    state = resolve(tree(*paths), txns=txns(end), write_ids=write_ids(ALL_SEEN))
    assert current(state) == [
        "delete_delta_0000001_0000005_v0000010",
        "delta_0000001_0000005_v0000010",
    ]
    assert state.obsolete == ()


def test_unsuffixed_output_gives_way_to_a_later_one() -> None:
    state = resolve(
        tree("delta_0000001_0000005/", "delta_0000001_0000005_v0000010/"),
        txns=txns(),
        write_ids=write_ids(ALL_SEEN),
    )
    assert current(state) == ["delta_0000001_0000005_v0000010"]
    assert obsolete(state) == ["delta_0000001_0000005"]


def test_newest_of_two_bases_of_one_number() -> None:
    state = resolve(
        tree("base_0000005_v0000010/", "base_0000005_v0000012/", "base_0000005_v0000014/"),
        txns=txns("14:14:14:"),
        write_ids=write_ids(ALL_SEEN),
    )
    assert current(state) == ["base_0000005_v0000012"]
    assert obsolete(state) == ["base_0000005_v0000010"]


def test_compacted_beyond_the_snapshot() -> None:
    listing = tree("base_0000005_v0000009/", "delta_0000006_0000006_0000/")
    with pytest.raises(NotEnoughHistoryError, match="base_0000005_v0000009"):
        resolve(listing, txns=txns(), write_ids=write_ids("6:4:4:"))
    state = resolve(listing, txns=txns(), write_ids=write_ids("6:4:4:"), requires_history=False)
    assert state.base is None


def test_marked_base_of_hive_3_is_compacted() -> None:
    listing = tree(formats={"base_0000005": DataFormat.COMPACTED})
    with pytest.raises(NotEnoughHistoryError):
        resolve(listing, txns=txns(), write_ids=write_ids("6:4:4:"))


def test_aborted_overwrite_is_no_history() -> None:
    state = resolve(
        tree("base_0000005/", "delta_0000001_0000001_0000/"),
        txns=txns(),
        write_ids=write_ids(f"6:{NONE_OPEN}::5"),
    )
    assert current(state) == ["delta_0000001_0000001_0000"]
    assert [one.path for one in state.aborted] == ["base_0000005"]


def test_aborted_overwrite_does_not_hide_lost_history() -> None:
    listing = tree("base_0000003/", "base_0000005_v0000009/")
    with pytest.raises(NotEnoughHistoryError):
        resolve(listing, txns=txns(), write_ids=write_ids(f"4:{NONE_OPEN}::3"))


def test_earlier_base_serves_an_older_snapshot() -> None:
    state = resolve(
        tree("base_0000002_v0000008/", "delta_0000003_0000003_0000/", "base_0000005_v0000009/"),
        txns=txns(),
        write_ids=write_ids("5:4:4:"),
    )
    assert current(state) == ["base_0000002_v0000008", "delta_0000003_0000003_0000"]
    assert state.obsolete == ()


@pytest.mark.parametrize("kind", [None, DataFormat.TRUNCATED, DataFormat.DROPPED])
def test_truncated_base_counts_as_overwrite(kind: DataFormat | None) -> None:
    formats = {} if kind is None else {"base_0000005": kind}
    listing = tree("base_0000005/", "delta_0000004_0000004_0000/", formats=formats)
    open_write = resolve(listing, txns=txns(), write_ids=write_ids("5:5:5:"))
    assert current(open_write) == ["delta_0000004_0000004_0000"]
    done = resolve(listing, txns=txns(), write_ids=write_ids("5:2:2:"))
    assert current(done) == ["base_0000005"]


def test_overwrite_and_compaction_of_one_number() -> None:
    listing = tree("base_0000005/", "base_0000005_v0000010/")
    state = resolve(listing, txns=txns(), write_ids=write_ids(ALL_SEEN))
    assert (current(state), obsolete(state)) == (["base_0000005_v0000010"], ["base_0000005"])
    unseen = resolve(listing, txns=txns("10:10:10:"), write_ids=write_ids(ALL_SEEN))
    assert (current(unseen), obsolete(unseen)) == (["base_0000005"], [])


@pytest.mark.parametrize("number", [4, 5, 6])
def test_aborted_overwrite_around_a_compacted_base(number: int) -> None:
    aborted = f"base_000000{number}"
    state = resolve(
        tree(f"{aborted}/", "base_0000005_v0000010/", "delta_0000007_0000007_0000/"),
        txns=txns(),
        write_ids=write_ids(f"9:{NONE_OPEN}::{number}"),
    )
    assert current(state) == ["base_0000005_v0000010", "delta_0000007_0000007_0000"]
    assert [one.path for one in state.aborted] == [aborted]
    assert state.obsolete == ()


@pytest.mark.parametrize("end", [5, 6])
def test_aborted_deltas_at_both_ends_of_a_minor(end: int) -> None:
    """Compactions are named after their inputs, or up to the high watermark."""
    output = f"delta_0000002_000000{end}_v0000010"
    singles = [f"delta_000000{one}_000000{one}_0000" for one in range(1, 7)]
    state = resolve(
        tree(f"{output}/", *(f"{one}/" for one in singles)),
        txns=txns(),
        write_ids=write_ids(f"6:{NONE_OPEN}::1,6"),
    )
    assert current(state) == [output]
    assert [one.path for one in state.aborted] == [singles[0], singles[5]]
    assert obsolete(state) == singles[1:5]


def test_base_at_the_open_write_is_not_read() -> None:
    """Hive 4 takes it, and shows rows of a write that is not committed."""
    state = resolve(
        tree("base_0000004_v0000008/", "delta_0000005_0000005_0000/", "base_0000005/"),
        txns=txns(),
        write_ids=write_ids("5:5:5:"),
    )
    assert current(state) == ["base_0000004_v0000008"]
    with pytest.raises(NotEnoughHistoryError):
        resolve(tree("base_0000005_v9/"), txns=txns(), write_ids=write_ids("5:5:5:"))


def test_streaming_delta_that_straddles_a_compaction_is_read() -> None:
    """Write 4 of the batch is committed, 5 is open; a compaction up to 4 could not take it."""
    listing = tree("base_0000004_v0000010/", "delta_0000004_0000005/")
    for lists in ("5:5:5:", f"5:{NONE_OPEN}::5", f"5:{NONE_OPEN}::"):
        state = resolve(listing, txns=txns(), write_ids=write_ids(lists))
        assert current(state) == ["base_0000004_v0000010", "delta_0000004_0000005"]


def test_wider_compaction_hides_a_narrower_one() -> None:
    state = resolve(
        tree(
            "delta_0000001_0000003_v0000010/",
            "delta_0000001_0000006_v0000012/",
            "delete_delta_0000004_0000004_0000/",
            "delete_delta_0000001_0000006_v0000012/",
        ),
        txns=txns(),
        write_ids=write_ids(ALL_SEEN),
    )
    assert current(state) == [
        "delete_delta_0000001_0000006_v0000012",
        "delta_0000001_0000006_v0000012",
    ]
    assert len(state.obsolete) == 2


def test_unknown_files_are_handed_on() -> None:
    state = resolve(tree("README.txt"), txns=txns(), write_ids=write_ids(ALL_SEEN))
    assert [one.path for one in state.unknown] == ["README.txt"]
