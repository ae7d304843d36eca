"""COLUMN_STATS_ACCURATE, as Hive reads and writes it."""

from __future__ import annotations

import pytest

from hms_bridge.model.ids import WriteId
from hms_bridge.model.statistics_state import (
    ACCURATE,
    accurate_columns,
    change_needs_write_id,
    is_basic_accurate,
    is_believable,
    with_accurate_basic,
    with_accurate_columns,
    without_columns,
)

BOTH = {ACCURATE: '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true","b":"true"}}'}
BASIC = {ACCURATE: '{"BASIC_STATS":"true"}'}


def test_texts_are_hives() -> None:
    assert with_accurate_columns(with_accurate_basic({}), ["b", "a"]) == BOTH
    assert with_accurate_columns({"k": "v"}, ["a"]) == {
        "k": "v", ACCURATE: '{"COLUMN_STATS":{"a":"true"}}',
    }  # fmt: skip
    assert without_columns(BOTH, None) == BASIC
    assert without_columns(BOTH, ["a", "x"]) == {
        ACCURATE: '{"BASIC_STATS":"true","COLUMN_STATS":{"b":"true"}}'
    }
    assert without_columns({}, ["a"]) == {}
    assert (is_basic_accurate(BOTH), accurate_columns(BOTH)) == (True, ("a", "b"))


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "null", '{"COLUMN_STATS":[]}', "7"])
def test_what_cannot_be_read_is_not_right(text: str) -> None:
    parameters = {ACCURATE: text}
    assert not is_basic_accurate(parameters)
    assert accurate_columns(parameters) == ()
    assert with_accurate_basic(parameters) == BASIC


@pytest.mark.parametrize(
    "text",
    [
        '{"BASIC_STATS":"true","COLUMN_STATS":' + '{"a":' * 100_000 + "1" + "}" * 100_001,
        '{"BASIC_STATS":' + "9" * 5_000 + "}",
    ],
    ids=["too deep", "too long a number"],
)
def test_a_text_that_nobody_can_read_is_replaced(text: str) -> None:
    assert with_accurate_columns({ACCURATE: text}, ["a"]) == {
        ACCURATE: '{"COLUMN_STATS":{"a":"true"}}'
    }


def test_a_name_that_no_column_has_is_left_out() -> None:
    """Half of a pair of surrogates, which no database holds: no statistics could be changed."""
    text = '{"BASIC_STATS":"true","COLUMN_STATS":{"\\ud800":"true","\\ud83d\\ude00":"true"}}'
    assert with_accurate_columns({ACCURATE: text}, ["a"]) == {
        ACCURATE: '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true","\N{GRINNING FACE}":"true"}}'
    }


def test_old_hives_wrote_a_bare_true() -> None:
    assert is_basic_accurate({ACCURATE: "true"})


@pytest.mark.parametrize(
    ("write_id", "snapshot", "is_writer", "expected"),
    [
        (0, None, False, True),  # never written in a transaction
        (5, "d.t:5:9::", False, True),
        (5, "d.t:4:9::", False, False),  # later than the snapshot
        (5, "d.t:6:5:5:", False, False),  # still open then
        (5, "d.t:6:9::5", False, False),  # aborted
        (5, "d.t:6:9::5", True, True),  # whose place a writer may take
        (5, "d.t:6:5:5:", True, False),
        (5, None, False, False),
    ],
)
def test_who_may_believe(
    write_id: int, snapshot: str | None, is_writer: bool, expected: bool
) -> None:
    assert is_believable(BASIC, write_id, snapshot, is_writer=is_writer) is expected


def test_only_writers_may_replace_what_is_not_right() -> None:
    assert not is_believable({}, 5, "d.t:5:9::")
    assert is_believable({}, 5, "d.t:5:9::", is_writer=True)


def test_a_change_has_to_tell_its_snapshot() -> None:
    none = WriteId(-1)
    assert change_needs_write_id({}, BASIC, none, None, is_of_columns=False)
    assert change_needs_write_id(BASIC, BASIC, none, None, is_of_columns=True)
    assert not change_needs_write_id(BASIC, BASIC, none, None, is_of_columns=False)
    assert not change_needs_write_id(BASIC, {}, none, None, is_of_columns=True)
    assert not change_needs_write_id({}, BASIC, WriteId(3), "d.t:3:9::", is_of_columns=True)
