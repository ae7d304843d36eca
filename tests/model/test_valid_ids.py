from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_bridge.errors import MetaError
from hms_bridge.model.ids import MAX_ID, TxnId, WriteId
from hms_bridge.model.txn import OpenTxn, OpenTxns, TxnState
from hms_bridge.model.valid_ids import (
    RangeResponse,
    ValidTxnList,
    ValidTxnWriteIdList,
    ValidWriteIdList,
    WriteIdView,
)

NONE, SOME, ALL = RangeResponse.NONE, RangeResponse.SOME, RangeResponse.ALL
OPEN, ABORTED = TxnState.OPEN, TxnState.ABORTED
ids = st.sets(st.integers(1, 60), max_size=12)


def listing(high_watermark: int, txns: Mapping[int, TxnState]) -> OpenTxns:
    return OpenTxns(
        high_watermark=TxnId(high_watermark),
        txns=tuple(OpenTxn(id=TxnId(txn_id), state=state) for txn_id, state in txns.items()),
    )


@st.composite
def write_id_lists(draw: st.DrawFn) -> ValidWriteIdList:
    open_ids, aborted_ids = draw(ids), draw(ids)
    return ValidWriteIdList(
        table=draw(st.sampled_from([None, "db.t"])),
        high_watermark=WriteId(draw(st.integers(0, 60))),
        open_ids=tuple(WriteId(one) for one in open_ids),
        aborted_ids=tuple(WriteId(one) for one in aborted_ids - open_ids),
    )


@pytest.mark.parametrize(
    "text",
    [
        "492:9223372036854775807::44,374",
        "499:496:496,498:44,374,442",
        "5:5:5:",
        "7:9223372036854775807::",
    ],
)
def test_txn_list_text_comes_back(text: str) -> None:
    assert ValidTxnList.parse(text).format() == text


@pytest.mark.parametrize(
    "text",
    ["g.t:11:8:8,10:2,4,5,7,11", "g.t:0:9223372036854775807::", "null:3:9223372036854775807::3"],
)
def test_write_id_list_text_comes_back(text: str) -> None:
    assert ValidWriteIdList.parse(text).format() == text


@given(write_id_lists())
def test_write_id_list_round_trip(write_ids: ValidWriteIdList) -> None:
    assert ValidWriteIdList.parse(write_ids.format()) == write_ids


@given(st.lists(write_id_lists(), max_size=3), st.integers(0, 99))
def test_tables_list_round_trip(lists: list[ValidWriteIdList], txn_id: int) -> None:
    whole = ValidTxnWriteIdList(txn_id=TxnId(txn_id), lists=tuple(lists))
    assert ValidTxnWriteIdList.parse(whole.format()) == whole


def test_tables_list_finds_its_table() -> None:
    whole = ValidTxnWriteIdList.parse("12$d.a:3:9223372036854775807::$d.b:5:4:4:1")
    assert whole.txn_id == 12
    found = whole.of("d.b")
    assert found is not None
    assert (found.high_watermark, found.open_ids, found.aborted_ids) == (5, (4,), (1,))
    assert whole.of("d.c") is None


def test_of_two_lists_of_a_table_the_last_counts() -> None:
    found = ValidTxnWriteIdList.parse("12$d.a:3:4::$d.a:5:4:4:").of("d.a")
    assert found is not None
    assert (found.high_watermark, found.open_ids) == (5, (4,))


@pytest.mark.parametrize("text", [None, ""])
def test_no_text_means_all_valid(text: str | None) -> None:
    assert ValidTxnList.parse(text).is_valid(TxnId(MAX_ID))
    assert ValidWriteIdList.parse(text).is_valid(WriteId(MAX_ID))


@pytest.mark.parametrize("text", ["7:9223372036854775807", "7:9223372036854775807:", "7:9:,:,,"])
def test_lists_may_be_absent(text: str) -> None:
    found = ValidTxnList.parse(text)
    assert (found.high_watermark, found.open_ids, found.aborted_ids) == (7, (), ())


@pytest.mark.parametrize(
    "text",
    ["7", "7:", ":", ":::", ":5::", "7::5:", "7,8:5::", " 7:5::", "7:5:5,,6:", "7:5:,5:",
     "7:5:5, 6:", "7:5:1_0:", "7:5::6,\n", "7:5:-2-6:", "7:5:1-_3:",
     f"7:5:{2**63}-5:"],
)  # fmt: skip
def test_what_lacks_a_number_is_not_everything(text: str) -> None:
    """Hive's readers throw there: what a cut or mangled list leaves out is not visible."""
    with pytest.raises(MetaError, match="malformed"):
        ValidTxnList.parse(text)
    with pytest.raises(MetaError, match="malformed"):
        ValidWriteIdList.parse(f"d.t:{text}")
    with pytest.raises(MetaError, match="malformed"):
        ValidTxnWriteIdList.parse(f"3$d.t:{text}")


@pytest.mark.parametrize("text", ["$d.t:7:8::", "3,4$d.t:7:8::", " 3$d.t:7:8::", "d.t:7:8::"])
def test_lists_of_several_tables_begin_with_a_number(text: str) -> None:
    with pytest.raises(MetaError, match="malformed"):
        ValidTxnWriteIdList.parse(text)


def test_no_table_has_the_name_null() -> None:
    assert ValidWriteIdList.parse("NULL:7:8::").table is None


@given(ids, ids, st.integers(0, 60), st.integers(1, 99))
def test_ranges_mean_their_ids(opened: set[int], aborted: set[int], high: int, txn: int) -> None:
    plain = ValidTxnList.parse(f"{high}:{MAX_ID}:{_listed(opened)}:{_listed(aborted)}")
    found = ValidTxnList.parse(f"{high}:{MAX_ID}:{_in_ranges(opened)}:{_in_ranges(aborted)}")
    assert found.min_open == plain.min_open
    assert found.format() == plain.format() or opened & aborted
    for ask in ("is_valid", "is_open", "is_aborted"):
        assert getattr(found, ask)(TxnId(txn)) == getattr(plain, ask)(TxnId(txn))


def _listed(numbers: set[int]) -> str:
    return ",".join(map(str, sorted(numbers)))


def _in_ranges(numbers: set[int]) -> str:
    firsts = sorted(one for one in numbers if one - 1 not in numbers)
    return ",".join(f"{first}-{_end(first, numbers)}" for first in firsts)


def _end(one: int, numbers: set[int]) -> int:
    while one + 1 in numbers:
        one += 1
    return one


def test_a_range_backwards_has_no_ids() -> None:
    """As for Hive."""
    assert ValidTxnList.parse("9:9223372036854775807:8-3,-1:0-0").is_valid(TxnId(8))


def test_write_ids_have_no_ranges() -> None:
    with pytest.raises(MetaError, match="malformed"):
        ValidWriteIdList.parse("db.t:20:2:2-6:")


def test_stray_zero_is_no_exception() -> None:
    found = ValidTxnList.parse("7:5:5,0:0")
    assert (found.open_ids, found.aborted_ids) == ((5,), ())


@pytest.mark.parametrize(
    "text", ["x:1::", "7:8:nine:", "7:8::1;2", f"{2**63}:1::", f"5:5:{-(2**63)}:"]
)
def test_malformed_text_is_refused(text: str) -> None:
    with pytest.raises(MetaError, match="malformed"):
        ValidTxnList.parse(text)
    with pytest.raises(MetaError, match="malformed"):
        ValidWriteIdList.parse(f"d.t:{text}")
    with pytest.raises(MetaError, match="malformed"):
        ValidTxnWriteIdList.parse("what$d.t:1")


def test_a_refusal_shows_where_a_long_text_begins() -> None:
    with pytest.raises(MetaError) as refused:
        ValidTxnList.parse(f"7:x:{','.join(map(str, range(10_000)))}:")
    assert "'7:x:0,1,2" in str(refused.value)
    assert len(str(refused.value)) < 400


def test_id_that_is_open_and_aborted_counts_as_open() -> None:
    found = ValidWriteIdList(
        table=None, high_watermark=WriteId(9), open_ids=(WriteId(3),), aborted_ids=(WriteId(3),)
    )
    assert found.is_open(WriteId(3))
    assert not found.is_aborted(WriteId(3))


def test_lowest_open_id_bounds_what_the_text_says() -> None:
    assert ValidWriteIdList.parse("d.t:9:9223372036854775807:4:").min_open == 4
    assert ValidWriteIdList.parse("d.t:9:2:4:").min_open == 2


def test_listing_of_open_transactions_for_nobody() -> None:
    found = listing(9, {3: ABORTED, 5: OPEN, 8: OPEN}).snapshot()
    assert found.format() == "9:5:5,8:3"


def test_listing_of_open_transactions_for_one_of_them() -> None:
    found = listing(9, {3: ABORTED, 5: OPEN, 8: ABORTED}).snapshot(TxnId(5))
    assert found.format() == "5:9223372036854775807::3"
    assert found.is_valid(TxnId(5))
    assert not found.is_valid(TxnId(6))


def test_a_transaction_sees_itself_and_what_committed_after_it_began() -> None:
    found = listing(9, {3: ABORTED, 5: OPEN, 8: OPEN}).without(TxnId(5)).snapshot()
    assert found.format() == "9:8:8:3"


def test_compactor_counts_itself_as_open() -> None:
    """HIVE-29567: its own unfinished output must not be seen as committed."""
    mine = TxnId(8)
    found = listing(8, {3: OPEN, mine: OPEN}).snapshot(mine)
    assert found.is_valid(mine)
    assert not found.with_open(mine).is_valid(mine)
    assert found.with_open(mine).min_open == 3


def test_no_transaction_is_always_valid() -> None:
    assert ValidTxnList(high_watermark=TxnId(0)).is_valid(TxnId(0))


def test_cleaner_sees_what_all_readers_see() -> None:
    txns = ValidTxnList.parse("20:12:12,18:5,19")
    view = txns.cleaner_view(TxnId(12), not_seen=[TxnId(10)])
    hidden = [one for one in range(1, 21) if not view.is_valid(TxnId(one))]
    assert hidden == [5, 10, *range(12, 21)]
    assert view.is_aborted(TxnId(19))
    assert txns.cleaner_view(None) == txns


@given(write_id_lists(), st.integers(1, 60), st.integers(0, 12))
def test_ranges_count_single_ids(write_ids: ValidWriteIdList, first: int, length: int) -> None:
    members = [WriteId(one) for one in range(first, first + length + 1)]

    def expected(flags: list[bool]) -> RangeResponse:
        return ALL if all(flags) else SOME if any(flags) else NONE

    valid = [write_ids.is_valid(one) for one in members]
    aborted = [write_ids.is_aborted(one) for one in members]
    assert write_ids.range_valid(members[0], members[-1]) is expected(valid)
    assert write_ids.range_aborted(members[0], members[-1]) is expected(aborted)
    assert write_ids.has_open_between(members[0], members[-1]) == any(
        write_ids.is_open(one) for one in members
    )
    assert list(write_ids.aborted_between(members[0], members[-1])) == [
        one for one in members if write_ids.is_aborted(one)
    ]


@given(write_id_lists(), st.integers(1, 60))
def test_compacted_base_needs_everything_below_to_be_over(
    write_ids: ValidWriteIdList, number: int
) -> None:
    is_over = number <= write_ids.high_watermark and not any(
        write_ids.is_open(WriteId(one)) for one in range(1, number + 1)
    )
    assert write_ids.is_base_valid(WriteId(number)) == is_over


def test_base_at_the_lowest_open_id_is_not_valid() -> None:
    assert not ValidWriteIdList.parse("d.t:9:5:5:").is_base_valid(WriteId(5))
    assert ValidWriteIdList.parse("d.t:9:5:5:").is_base_valid(WriteId(4))


def test_compactor_stops_below_the_lowest_open_id() -> None:
    view = ValidWriteIdList.parse("d.t:9:5:5:3,7").compactor_view()
    assert (view.high_watermark, view.open_ids, view.aborted_ids) == (4, (), (3,))
    assert view.view is WriteIdView.COMPACTOR
    assert view.range_valid(WriteId(1), WriteId(4)) is ALL
    assert view.range_valid(WriteId(4), WriteId(5)) is NONE
    assert not view.is_valid(WriteId(3))
    later = ValidWriteIdList.parse("d.t:9:9223372036854775807::3,7").compactor_view()
    assert later.high_watermark == 9


def test_cleaner_is_capped_and_never_sees_a_straddling_range() -> None:
    write_ids = ValidWriteIdList.parse("d.t:9:8:8:3")
    view = write_ids.cleaner_view(WriteId(5))
    assert view.high_watermark == 5
    assert view.range_valid(WriteId(4), WriteId(6)) is NONE
    assert view.range_valid(WriteId(3), WriteId(5)) is SOME
    assert write_ids.cleaner_view(WriteId(20)).high_watermark == 7
    assert write_ids.cleaner_view().high_watermark == 7
