"""What is expected of transactions, and when nothing is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.lock import LockType
from hms_bridge.model.txn import TxnToWriteId, TxnType
from hms_bridge.txn.foresight import PAUSE_MAX, REMEMBERED_MAX, ExpectedWrites, Foresight

T = TypeVar("T")
READ, WRITE = LockType.SHARED_READ, LockType.SHARED_WRITE
EXCL_WRITE, EXCLUSIVE = LockType.EXCL_WRITE, LockType.EXCLUSIVE


def opened(foresight: Foresight, *ids: int) -> None:
    foresight.opened([TxnId(number) for number in ids], TxnType.DEFAULT)


def pause(look: Callable[[], object]) -> int:
    """How often nothing is expected from now on."""
    return next(turn for turn in range(2 * PAUSE_MAX) if look())


def fails(foresight: Foresight, look: Callable[[], T]) -> T:
    """What was looked at is not so."""
    foresight.begin()
    expected = look()
    foresight.fail()
    return expected


def wrote(foresight: Foresight, txn: int, write_id: int, table: str = "t") -> None:
    pair = TxnToWriteId(txn_id=TxnId(txn), write_id=WriteId(write_id))
    foresight.wrote("d", table, [pair])


def test_nothing_is_expected_of_a_database_that_was_not_looked_at() -> None:
    foresight = Foresight()
    assert foresight.next_id() is None
    assert foresight.writes_of([TxnId(1)]) is None


def test_the_next_id_is_expected_after_the_highest() -> None:
    foresight = Foresight()
    opened(foresight, 7, 8)
    opened(foresight, 5)
    assert foresight.next_id() == 9


def test_the_ids_of_a_database_that_was_restored_are_lower() -> None:
    foresight = Foresight()
    opened(foresight, 1000)
    assert fails(foresight, foresight.next_id) == 1001
    opened(foresight, 7)
    pause(foresight.next_id)
    foresight.begin()
    assert foresight.next_id() == 8
    opened(foresight, 5)
    foresight.begin()
    assert foresight.next_id() == 8


def test_ids_follow_those_that_are_expected_with_them() -> None:
    foresight = Foresight()
    opened(foresight, 7)
    foresight.begin()
    assert [foresight.next_id(2), foresight.next_id()] == [8, 10]
    foresight.draw()
    assert foresight.next_id() is None
    foresight.begin()
    assert foresight.next_id() == 8


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
        assert fails(foresight, foresight.next_id) == 8
        pauses.append(pause(foresight.next_id))
    assert pauses[:4] == [1, 2, 4, 8]
    assert pauses[-2:] == [PAUSE_MAX, PAUSE_MAX]
    foresight.begin()
    foresight.next_id()
    foresight.hold()
    fails(foresight, foresight.next_id)
    assert pause(foresight.next_id) == 1


def test_after_a_failure_nothing_is_known_of_what_is_open() -> None:
    foresight = Foresight()
    opened(foresight, 7)
    assert fails(foresight, lambda: foresight.writes_of([TxnId(7)]))
    assert foresight.writes_of([TxnId(7)]) is None


def test_what_was_not_expected_did_not_fail() -> None:
    foresight = Foresight()
    opened(foresight, 7)
    wrote(foresight, 7, 3)
    assert fails(foresight, lambda: foresight.next_write_id("d", "t")) == 4
    assert foresight.next_write_id("d", "t") is None
    foresight.begin()
    foresight.fail()
    assert foresight.next_id() == 8
    assert foresight.writes_of([TxnId(7)])


def test_the_next_write_id_of_a_table_is_expected_after_the_last() -> None:
    foresight = Foresight()
    assert foresight.next_write_id("d", "t") is None
    wrote(foresight, 7, 3)
    wrote(foresight, 8, 9, "u")
    assert foresight.next_write_id("d", "t") == 4
    assert foresight.next_write_id("d", "u") == 10
    wrote(foresight, 8, 2)
    assert foresight.next_write_id("d", "t") == 3, "the table was made anew"


@pytest.mark.parametrize("kind", [EXCL_WRITE, EXCLUSIVE])
def test_locks_are_free_where_the_last_one_was_and_none_is_in_the_way(kind: LockType) -> None:
    def are_free() -> list[str]:
        return [
            f"{table} {wanted.name}"
            for table in ("t", "u")
            for wanted in (READ, WRITE)
            if foresight.is_free("d", table, [wanted])
        ]

    foresight = Foresight()
    assert are_free() == []
    foresight.locked("d", "t", READ, is_granted=True)
    foresight.locked("d", "t", WRITE, is_granted=True)
    foresight.locked("d", "u", WRITE, is_granted=True)
    free = are_free()
    assert free == ["t SHARED_READ", "t SHARED_WRITE", "u SHARED_WRITE"]
    foresight.locked("d", None, READ, is_granted=True)
    foresight.locked("e", None, kind, is_granted=True)
    foresight.locked("e", "t", kind, is_granted=True)
    assert are_free() == free
    assert foresight.is_free("d", "t", [READ, WRITE])
    foresight.locked("d", "t", kind, is_granted=True)
    assert "t SHARED_WRITE" not in are_free()
    assert ("t SHARED_READ" in are_free()) == (kind is EXCL_WRITE)
    assert not foresight.is_free("d", "t", [READ, WRITE])
    foresight.locked("d", None, kind, is_granted=False)
    assert "u SHARED_WRITE" not in are_free()


def test_a_lock_that_waits_says_that_the_next_one_may() -> None:
    foresight = Foresight()
    foresight.locked("d", "t", WRITE, is_granted=True)
    foresight.locked("d", "t", WRITE, is_granted=False)
    assert not foresight.is_free("d", "t", [WRITE])


def test_no_more_tables_are_remembered_than_the_most() -> None:
    foresight = Foresight()
    for number in range(REMEMBERED_MAX + 1):
        wrote(foresight, 7, 3, f"t{number}")
    assert foresight.next_write_id("d", "t0") is None
    assert foresight.next_write_id("d", f"t{REMEMBERED_MAX}") == 4
