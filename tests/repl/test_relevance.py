from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hms_bridge.model.ids import EventId, TxnId
from hms_bridge.repl.format.relevance import TxnStep, unrelated_events


def steps(*given_steps):
    return [
        TxnStep(
            event_id=EventId(number),
            opened=tuple(TxnId(one) for one in opened),
            touched=tuple(TxnId(one) for one in touched),
            ended=None if ended is None else TxnId(ended),
        )
        for number, (opened, touched, ended) in enumerate(given_steps, start=1)
    ]


def test_a_transaction_that_did_nothing_here_is_left_out():
    assert unrelated_events(steps(([7], [], None), ([], [], 7))) == {1, 2}


def test_one_that_wrote_stays():
    assert unrelated_events(steps(([7], [], None), ([], [7], None), ([], [], 7))) == set()


def test_one_that_is_still_open_stays():
    """It may write in the next dump, which does not have its OPEN event."""
    assert unrelated_events(steps(([7], [], None))) == set()


def test_one_that_was_opened_before_stays():
    assert unrelated_events(steps(([], [], 7))) == set()


def test_those_opened_together_stay_together():
    together = steps(([7, 8], [], None), ([], [], 7), ([], [8], None), ([], [], 8))
    assert unrelated_events(together) == set()
    idle = steps(([7, 8], [], None), ([], [], 7), ([], [], 8))
    assert unrelated_events(idle) == {1, 2, 3}


@st.composite
def logs(draw):
    """A log: transactions opened in groups, some of which touch the database, some of which end."""
    found, next_txn, still_open = [], 1, []
    for _ in range(draw(st.integers(1, 20))):
        kind = draw(st.sampled_from(["open", "touch", "end"]))
        if kind == "open":
            size = draw(st.integers(1, 3))
            found.append((list(range(next_txn, next_txn + size)), [], None))
            still_open += range(next_txn, next_txn + size)
            next_txn += size
        elif still_open:
            one = draw(st.sampled_from(still_open))
            if kind == "end":
                still_open.remove(one)
            found.append(([], [one], None) if kind == "touch" else ([], [], one))
    return steps(*found) if found else steps(([1], [], None))


@given(logs())
def test_a_target_ends_with_the_same_open_transactions_and_writes(log):
    """Replaying what is kept opens and ends the same transactions, but for idle ones."""
    left_out = unrelated_events(log)
    kept = [step for step in log if step.event_id not in left_out]

    def replayed(some):
        opened, touched = set(), set()
        for step in some:
            opened.update(step.opened)
            touched.update(step.touched)
            opened.discard(step.ended)
        return opened, touched

    assert replayed(kept) == replayed(log)
    known = {one for step in kept for one in step.opened}
    ended = {step.ended for step in kept} - {None}
    assert ended <= known
    assert {one for step in kept for one in step.touched} <= known
