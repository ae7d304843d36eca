"""Calls of one thread that stop where they wait for others, and leave where others would wait."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from hms_bridge.errors import CommitUnknownError, MetaError, NoSuchTxnError
from hms_bridge.gathering import (
    Gathering,
    LeftGatheringError,
    do_in_gathering,
    leave_gathering,
    stay_in_gathering,
)
from hms_bridge.model.ids import TxnId
from hms_bridge.model.txn import OpenTxnsRequest, TxnState
from hms_bridge.service.metastore_service import MetastoreService
from hms_bridge.service.open import open_local_metastore
from hms_bridge.service.shared_turns import SharedTurns
from hms_bridge.service.shared_writes import Place, Rank
from hms_bridge.service.unit_of_work import Turn, UnitOfWork
from tests.conformance import objects
from tests.conformance.objects import commit, events_after, open_txn, write_id
from tests.support.crowd import wait_until
from tests.support.databases import fresh_url

LEFT = "left"


class Workshop:
    """Notes what is done together, with results; what is in ``failing`` fails."""

    def __init__(self, size_max: int = 8) -> None:
        self.size_max = size_max
        self.batches: list[list[str]] = []
        self.failing: dict[str, BaseException] = {}
        self.company = 0.0

    def take_all(self, works: Sequence[str]) -> None:
        self.batches.append(list(works))
        for work in works:
            if work in self.failing:
                raise self.failing[work]

    def seconds_for_company(self, count: int) -> float:
        return self.company / count


class Calls:
    """Of one gathering; ``ends`` says how each of them ended, in that order."""

    def __init__(self) -> None:
        self.gathering = Gathering()
        self.ends: list[tuple[str, object]] = []

    def begin(self, name: str, call: Callable[[], object]) -> None:
        self.gathering.begin(partial(self._make, name, call))

    def _make(self, name: str, call: Callable[[], object]) -> None:
        try:
            self.ends.append((name, call()))
        except LeftGatheringError:
            self.ends.append((name, LEFT))
        except Exception as error:
            self.ends.append((name, error))

    def take(self) -> None:
        """Until nobody waits."""
        while len(self.gathering):
            self.gathering.take()

    def outcomes(self, *calls: Callable[[], object]) -> list[object]:
        """What each returned or raised; all that comes together is done together."""
        self.ends.clear()
        for number, call in enumerate(calls):
            self.begin(str(number), call)
        self.take()
        found = dict(self.ends)
        return [found[str(number)] for number in range(len(calls))]


@pytest.fixture
def shop() -> Workshop:
    return Workshop()


@pytest.fixture
def calls() -> Calls:
    return Calls()


def work(shop: Workshop, *names: str) -> Callable[[], object]:
    def make() -> tuple[str, ...]:
        for name in names:
            assert do_in_gathering(shop, name)
        return names

    return make


def test_who_waits_is_done_together_in_the_order_in_which_they_came(
    shop: Workshop, calls: Calls
) -> None:
    for name in "abc":
        calls.begin(name, work(shop, name))
    assert (shop.batches, calls.ends, len(calls.gathering)) == ([], [], 3)
    calls.gathering.take()
    assert shop.batches == [["a", "b", "c"]]
    assert calls.ends == [(name, (name,)) for name in "abc"]
    assert len(calls.gathering) == 0


def test_who_waits_for_nothing_ends_at_once(calls: Calls) -> None:
    calls.begin("a", lambda: 7)
    assert calls.ends == [("a", 7)]


class Client:
    """Somebody whose call is made."""

    def __call__(self) -> int:
        return 7


def test_no_client_is_kept_beyond_its_call(shop: Workshop, calls: Calls) -> None:
    """Not even by the seat that its call was the first of."""
    calls.begin("waits", work(shop, "a"))
    left = []
    for _ in range(2):
        client = Client()
        left.append(weakref.ref(client))
        calls.begin("comes", client)
    del client
    assert [ref() for ref in left] == [None, None]
    calls.take()


def test_a_gathering_that_is_over_keeps_no_seat(shop: Workshop, calls: Calls) -> None:
    calls.outcomes(work(shop, "a"), work(shop, "b"))
    seats = [weakref.ref(seat) for seat in calls.gathering._free]
    calls.gathering.close()
    assert [ref() for ref in seats] == [None, None]


def test_who_waits_again_waits_with_those_who_came_meanwhile(shop: Workshop, calls: Calls) -> None:
    calls.begin("a", work(shop, "a1", "a2"))
    calls.begin("b", work(shop, "b"))
    calls.gathering.take()
    assert calls.ends == [("b", ("b",))]
    calls.begin("c", work(shop, "c"))
    calls.take()
    assert shop.batches == [["a1", "b"], ["a2", "c"]]
    assert [name for name, _ in calls.ends] == ["b", "a", "c"]


def test_more_than_fit_are_done_one_part_after_the_other(calls: Calls) -> None:
    shop = Workshop(size_max=3)
    assert calls.outcomes(*(work(shop, name) for name in "abcdefg")) == [(n,) for n in "abcdefg"]
    assert shop.batches == [["a", "b", "c"], ["d", "e", "f"], ["g"]]


def test_what_different_ones_do_is_not_mixed(shop: Workshop, calls: Calls) -> None:
    other = Workshop()
    calls.outcomes(work(shop, "a"), work(other, "b"), work(shop, "c"))
    assert (shop.batches, other.batches) == ([["a"], ["c"]], [["b"]])


def test_what_fails_is_heard_by_a_single_one_only(shop: Workshop, calls: Calls) -> None:
    shop.failing["a"] = error = MetaError("no")
    assert calls.outcomes(work(shop, "a")) == [error]
    assert calls.outcomes(work(shop, "a"), work(shop, "b")) == [("a",), ("b",)]
    assert calls.outcomes(work(shop, "b")) == [("b",)], "nothing is left of it"


def test_outside_of_it_nobody_waits_stays_or_leaves(shop: Workshop, calls: Calls) -> None:
    for _ in range(2):
        assert not do_in_gathering(shop, "a")
        stay_in_gathering()
        leave_gathering()
        calls.begin("a", work(shop, "a"))  # nor where some wait
    assert shop.batches == []
    calls.take()


def test_who_has_done_something_does_not_leave(shop: Workshop, calls: Calls) -> None:
    def stays(*, has_done: bool) -> str:
        do_in_gathering(shop, "a")
        if has_done:
            stay_in_gathering()
        leave_gathering()
        return "stayed"

    both = (partial(stays, has_done=True), partial(stays, has_done=False))
    for _ in range(3):  # places are used again, from whichever call
        assert calls.outcomes(*both) == ["stayed", LEFT]
        assert calls.outcomes(*reversed(both)) == [LEFT, "stayed"]
        assert calls.outcomes(leave_gathering) == [LEFT]
    assert len(calls.gathering._free) == 2


def test_how_long_they_wait_for_company(shop: Workshop, calls: Calls) -> None:
    shop.company = 6.0
    found = [calls.gathering.seconds_for_company]
    for name in "abc":
        calls.begin(name, work(shop, name))
        found.append(calls.gathering.seconds_for_company)
    assert found == [0.0, 6.0, 3.0, 2.0]
    calls.take()


def test_those_of_a_thread_share_with_those_of_other_threads() -> None:
    begun, go_on = threading.Event(), threading.Event()
    batches: list[list[str]] = []

    def do(works: Sequence[str]) -> None:
        batches.append(list(works))
        if "first" in works:
            begun.set()
            assert go_on.wait(10)

    turns = SharedTurns(do, size_max=4, patience_seconds=30.0)
    first = threading.Thread(target=turns.take, args=("first",))
    first.start()
    assert begun.wait(10)
    names = [("a", "b", "c"), ("d", "e"), ("f",)]
    others = [threading.Thread(target=turns.take_all, args=(each,)) for each in names]
    for place, thread in enumerate(others):
        thread.start()
        wait_until(lambda place=place: len(turns._waiting) > place)  # type: ignore[misc]
    go_on.set()
    for thread in (first, *others):
        thread.join(10)
        assert not thread.is_alive()
    assert batches == [["first"], ["a", "b", "c"], ["d", "e", "f"]], "never a part of one's works"


def _in_company() -> tuple[SharedTurns[str], list[int]]:
    """Who waits for others for long, and how many pieces of work were done at once."""
    batches: list[int] = []
    turns = SharedTurns[str](
        lambda works: batches.append(len(works)),
        size_max=8,
        patience_seconds=30.0,
        company_seconds=20.0,
    )
    return turns, batches


def test_who_leads_counts_what_came_together_as_so_many() -> None:
    turns, batches = _in_company()
    turns.take_all(("a", "b", "c"))
    before = time.monotonic()
    leader = threading.Thread(target=turns.take, args=("d",))
    leader.start()
    wait_until(lambda: turns._all_here is not None)
    turns.take_all(("e", "f"))
    leader.join(10)
    assert time.monotonic() - before < 10, "all that were expected are here"
    assert batches == [3, 3]


def test_as_many_as_of_late_wait_for_nobody_and_fewer_do() -> None:
    turns, batches = _in_company()
    assert turns.seconds_for_company(1) == 0
    turns.take_all(("a", "b", "c"))
    assert [turns.seconds_for_company(number) for number in (1, 2, 3)] == [20.0, 20.0, 0.0]
    before = time.monotonic()
    turns.take_all(("a",))
    assert time.monotonic() - before < 10, "whoever calls it has waited"
    assert batches == [3, 1]


# -- with a database


@pytest.fixture
def metastore(tmp_path: Path) -> Iterator[MetastoreService]:
    opened = open_local_metastore(fresh_url(tmp_path), warehouse=str(tmp_path / "warehouse"))
    yield opened
    opened.close()


def gathered(*calls: Callable[[], object]) -> list[object]:
    """Outcomes of calls on a thread of their own; the main thread shares nothing."""
    found: list[list[object]] = []
    thread = threading.Thread(target=lambda: found.append(Calls().outcomes(*calls)), daemon=True)
    thread.start()
    thread.join(30)
    return found[0]


def states(metastore: MetastoreService) -> dict[TxnId, TxnState]:
    return {info.id: info.state for info in metastore.get_open_txns_info() if info.started_ms}


def commits(metastore: MetastoreService) -> list[object]:
    """Notes each from now on."""
    noted: list[object] = []
    event.listen(metastore._transactions.database.engine, "commit", noted.append)
    return noted


def failing_commits(
    metastore: MetastoreService,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    *places: int,
    is_done: bool,
) -> None:
    """Those of the commits from now on, from 1, fail: after they are done, or before."""
    dialect = metastore._transactions.database.engine.dialect
    do_commit, numbers = dialect.do_commit, count(1)

    def fail(connection: Any) -> None:
        is_failing = next(numbers) in places
        if is_done or not is_failing:
            do_commit(connection)
        if is_failing:
            connection.rollback()
            raise dialect.loaded_dbapi.OperationalError(text)  # type: ignore[attr-defined]

    monkeypatch.setattr(dialect, "do_commit", fail)


def test_verbs_of_a_gathering_share_one_commit(metastore: MetastoreService) -> None:
    noted = commits(metastore)
    ids = gathered(*[lambda: open_txn(metastore)] * 5)
    assert ids == [1, 2, 3, 4, 5]
    assert len(noted) == 1
    assert [told.type for told in events_after(metastore, 0)] == ["OPEN_TXN"] * 5


def test_a_call_of_several_verbs_goes_on_with_the_next(metastore: MetastoreService) -> None:
    database = objects.new_database(metastore)
    objects.new_table(metastore, database)
    known = metastore.get_current_event_id()

    def whole() -> int:
        txn = open_txn(metastore)
        given = write_id(metastore, txn, database)
        commit(metastore, txn)
        return given

    noted = commits(metastore)
    assert sorted(gathered(*[whole] * 3)) == [1, 2, 3]  # type: ignore[type-var]
    assert len(noted) == 3
    assert states(metastore) == {}
    kinds = [told.type for told in events_after(metastore, known)]
    assert kinds == ["OPEN_TXN"] * 3 + ["ALLOC_WRITE_ID_EVENT"] * 3 + ["COMMIT_TXN"] * 3


def test_what_shares_nothing_leaves_before_it_has_done_anything(
    metastore: MetastoreService,
) -> None:
    many = OpenTxnsRequest(user="u", host="h", count=100)
    outcomes = gathered(
        lambda: metastore.open_txns(many), metastore.get_open_txns, lambda: open_txn(metastore)
    )
    assert outcomes == [LEFT, LEFT, 1]


def test_who_is_done_goes_on_here_with_what_shares_nothing(metastore: MetastoreService) -> None:
    def opens_and_looks() -> int:
        txn = open_txn(metastore)
        return len(metastore.get_open_txns().txns) + txn * 100

    assert gathered(opens_and_looks, opens_and_looks) == [102, 202]
    assert len(states(metastore)) == 2


@pytest.mark.parametrize("count_of_calls", [1, 3])
@pytest.mark.parametrize("is_done", [False, True])
def test_a_commit_whose_answer_is_lost_is_answered_and_never_made_again(
    metastore: MetastoreService,
    monkeypatch: pytest.MonkeyPatch,
    count_of_calls: int,
    *,
    is_done: bool,
) -> None:
    def opens() -> object:
        try:
            return open_txn(metastore)
        finally:
            leave_gathering()  # as who would go on with something else

    failing_commits(metastore, monkeypatch, "the disk does not answer", 1, is_done=is_done)
    outcomes = gathered(*[opens] * count_of_calls)
    assert [type(one) for one in outcomes] == [CommitUnknownError] * count_of_calls
    assert len(states(metastore)) == (count_of_calls if is_done else 0)


@pytest.mark.parametrize("count_of_calls", [1, 2])
def test_what_is_committed_is_not_made_again_whatever_fails_after_it(
    metastore: MetastoreService, monkeypatch: pytest.MonkeyPatch, count_of_calls: int
) -> None:
    def fails(_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(metastore._transactions._shared, "_committed", fails)
    outcomes = gathered(*[lambda: open_txn(metastore)] * count_of_calls)
    assert LEFT not in outcomes
    assert len(states(metastore)) == count_of_calls


@pytest.mark.parametrize("count_of_calls", [1, 3])
def test_a_commit_that_did_not_happen_lets_each_leave_to_be_made_alone(
    metastore: MetastoreService, monkeypatch: pytest.MonkeyPatch, count_of_calls: int
) -> None:
    failing_commits(metastore, monkeypatch, "database is locked", 1, is_done=False)
    assert gathered(*[lambda: open_txn(metastore)] * count_of_calls) == [LEFT] * count_of_calls
    assert states(metastore) == {}
    assert open_txn(metastore) in states(metastore)


def test_one_that_cannot_be_done_with_others_leaves_and_they_do_not(
    metastore: MetastoreService,
) -> None:
    def fault(_: UnitOfWork) -> None:
        raise ZeroDivisionError("a bug")

    def refused(_: UnitOfWork) -> None:
        raise MetaError("no")

    def locks() -> Turn[None]:
        return Place(Rank.LOCK), None

    write = metastore._transactions.write
    opened, left, error = gathered(
        lambda: open_txn(metastore),
        lambda: write(fault, locks),
        lambda: write(refused, locks),
    )
    assert left == LEFT
    assert isinstance(error, MetaError)
    with pytest.raises(ZeroDivisionError):
        write(fault, locks)
    assert list(states(metastore)) == [opened]


def test_a_single_one_hears_what_it_is_refused_with(metastore: MetastoreService) -> None:
    (error,) = gathered(lambda: commit(metastore, TxnId(77)))
    assert isinstance(error, NoSuchTxnError)
