"""What is expected of transactions, and when nothing is."""

from __future__ import annotations

from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.txn import TxnToWriteId, TxnType
from hms_bridge.txn.foresight import PAUSE_MAX, REMEMBERED_MAX, ExpectedWrites, Foresight


def opened(foresight: Foresight, *ids: int, was_expected: bool = False) -> None:
    foresight.opened([TxnId(number) for number in ids], TxnType.DEFAULT, was_expected=was_expected)


def pause(foresight: Foresight) -> int:
    """How often no id is expected from now on."""
    return next(turn for turn in range(2 * PAUSE_MAX) if foresight.next_id() is not None)


def test_nothing_is_expected_of_a_database_that_was_not_looked_at() -> None:
    foresight = Foresight()
    assert foresight.next_id() is None
    assert foresight.writes_of([TxnId(1)]) is None


def test_the_next_id_is_expected_after_the_highest() -> None:
    foresight = Foresight()
    opened(foresight, 7, 8)
    opened(foresight, 5)
    assert foresight.next_id() == 9


def test_writes_are_those_of_what_was_opened_here() -> None:
    foresight = Foresight()
    opened(foresight, 7)
    pairs = [TxnToWriteId(txn_id=TxnId(number), write_id=WriteId(3)) for number in (7, 8)]
    foresight.wrote("d", "t2", pairs)
    foresight.wrote("d", "t1", pairs)
    foresight.wrote("d", "t1", pairs)
    written = (("d", "t1", WriteId(3)), ("d", "t2", WriteId(3)))
    assert foresight.writes_of([TxnId(7)]) == [
        ExpectedWrites(kind=TxnType.DEFAULT, written=written)
    ]
    assert foresight.writes_of([TxnId(8)]) is None
    assert foresight.writes_of([TxnId(7), TxnId(8)]) is None
    foresight.forget([TxnId(7), TxnId(8)])
    assert foresight.writes_of([TxnId(7)]) is None


def test_no_more_are_remembered_than_the_most() -> None:
    foresight = Foresight()
    opened(foresight, *range(1, REMEMBERED_MAX + 2))
    assert foresight.writes_of([TxnId(1)]) is None
    assert foresight.writes_of([TxnId(2)]) is not None


def test_where_others_open_between_no_id_is_expected_for_longer_and_longer() -> None:
    foresight = Foresight()
    opened(foresight, 7)
    pauses = []
    for _ in range(13):
        foresight.fail()
        pauses.append(pause(foresight))
    assert pauses[:4] == [1, 2, 4, 8]
    assert pauses[-2:] == [PAUSE_MAX, PAUSE_MAX]
    opened(foresight, 8, was_expected=True)
    foresight.fail()
    assert pause(foresight) == 1


def test_after_a_failure_nothing_is_known_of_what_is_open() -> None:
    foresight = Foresight()
    opened(foresight, 7)
    foresight.fail()
    assert foresight.writes_of([TxnId(7)]) is None
