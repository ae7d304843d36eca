"""Who comes while another is at work waits, and all who wait are done together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import pytest

from hms_bridge.service.shared_turns import SharedTurns

LONG_SECONDS = 10.0


class Workshop:
    """Notes what is done together; a piece of work named in ``held`` lasts until it is let go."""

    def __init__(
        self,
        *held: str,
        size_max: int = 8,
        patience_seconds: float = 30.0,
        company_seconds: float = 0.0,
    ) -> None:
        self.turns = SharedTurns(
            self._do,
            size_max=size_max,
            patience_seconds=patience_seconds,
            company_seconds=company_seconds,
        )
        self.batches: list[tuple[str, ...]] = []
        self.doers: list[str] = []
        self.failing: set[str] = set()
        self.taken: dict[str, bool | BaseException] = {}
        self.begun = {name: threading.Event() for name in held}
        self.let_go = {name: threading.Event() for name in held}
        self._threads: list[threading.Thread] = []

    def _do(self, works: Sequence[str]) -> None:
        self.batches.append(tuple(works))
        self.doers.append(threading.current_thread().name)
        for work in works:
            if work in self.let_go:
                self.begun[work].set()
                assert self.let_go[work].wait(LONG_SECONDS)
            if work in self.failing:
                raise SystemExit(work)

    def come(self, *names: str, is_queued: bool = True) -> None:
        """Each on a thread of its own, one after the other."""
        for name in names:
            thread = threading.Thread(target=self._take, args=(name,), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
            if is_queued:
                wait_until(lambda name=name: any(p.works == (name,) for p in self.turns._waiting))

    def _take(self, name: str) -> None:
        try:
            self.taken[name] = self.turns.take(name)
        except SystemExit as error:
            self.taken[name] = error

    def begin(self, name: str) -> None:
        """One who is at work when this returns."""
        self.come(name, is_queued=False)
        assert self.begun[name].wait(LONG_SECONDS)

    def end(self) -> None:
        for thread in self._threads:
            thread.join(LONG_SECONDS)
            assert not thread.is_alive()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_who_is_alone_waits_for_nobody() -> None:
    shop = Workshop()
    assert shop.turns.take("a")
    assert shop.turns.take("b")
    assert shop.batches == [("a",), ("b",)]


def test_who_comes_meanwhile_is_done_together_by_the_first_of_them() -> None:
    shop = Workshop("a")
    shop.begin("a")
    shop.come("b", "c", "d")
    shop.let_go["a"].set()
    shop.end()
    assert shop.batches == [("a",), ("b", "c", "d")]
    assert shop.doers == ["a", "b"]
    assert shop.taken == dict.fromkeys("abcd", True)
    assert shop.turns.take("e")
    assert shop.batches[-1] == ("e",)


def test_more_than_fit_are_done_in_the_order_in_which_they_came() -> None:
    shop = Workshop("a", size_max=2)
    shop.begin("a")
    shop.come("b", "c", "d", "e", "f")
    shop.let_go["a"].set()
    shop.end()
    assert shop.batches == [("a",), ("b", "c"), ("d", "e"), ("f",)]


def test_nobody_returns_before_the_work_is_over() -> None:
    shop = Workshop("a", "c")
    shop.begin("a")
    shop.come("b", "c", "d")
    shop.let_go["a"].set()
    assert shop.begun["c"].wait(LONG_SECONDS)
    wait_until(lambda: "a" in shop.taken)
    time.sleep(0.02)
    assert shop.taken == {"a": True}, "b is done, but not all that is done with it"
    shop.let_go["c"].set()
    shop.end()


def test_what_is_raised_is_heard_by_the_one_who_did_it_and_the_others_go_on() -> None:
    shop = Workshop("a")
    shop.failing = {"c"}
    shop.begin("a")
    shop.come("b", "c", "d")
    shop.let_go["a"].set()
    shop.end()
    assert isinstance(shop.taken.pop("b"), SystemExit)
    assert shop.taken == dict.fromkeys("acd", True)
    assert shop.turns.take("e"), "somebody leads again"


def test_who_lost_patience_and_who_comes_then_goes_on_alone() -> None:
    shop = Workshop("a", patience_seconds=0.05)
    shop.begin("a")
    shop.come("b", is_queued=False)
    wait_until(lambda: shop.taken == {"b": False})
    shop.turns._patience_seconds = LONG_SECONDS / 2
    began = time.monotonic()
    assert not shop.turns.take("c")
    assert time.monotonic() - began < LONG_SECONDS / 4, "who comes later does not even wait"
    shop.let_go["a"].set()
    shop.end()
    assert shop.batches == [("a",)]
    assert shop.turns.take("d"), "what held them up is over"


def test_where_there_was_company_who_leads_waits_for_as_many() -> None:
    shop = Workshop("a", company_seconds=2 * LONG_SECONDS)
    shop.begin("a")
    shop.come("b", "c", "d")
    shop.let_go["a"].set()
    shop.end()
    shop.come("e", is_queued=False)
    wait_until(lambda: shop.turns._all_here is not None)
    shop.come("f")
    shop.come("g", is_queued=False)
    shop.end()
    assert [sorted(batch) for batch in shop.batches[1:]] == [["b", "c", "d"], ["e", "f", "g"]]


def test_who_has_company_no_more_waits_less_each_time_and_then_not_at_all() -> None:
    shop = Workshop("a", company_seconds=0.01)
    shop.begin("a")
    shop.come("b", "c", "d")
    shop.let_go["a"].set()
    shop.end()
    assert all(shop.turns.take(name) for name in "efg")
    shop.turns._company_seconds = 2 * LONG_SECONDS
    shop.come("h", is_queued=False)
    shop.end()
    assert shop.batches[2:] == [("e",), ("f",), ("g",), ("h",)]


@pytest.mark.parametrize("size_max", [1, 3, 64])
def test_in_a_crowd_everybody_is_done_once(size_max: int) -> None:
    shop = Workshop(size_max=size_max)
    names = [str(number) for number in range(8)]

    def come_often(name: str) -> None:
        for turn in range(50):
            assert shop.turns.take(f"{name}.{turn}")

    threads = [threading.Thread(target=come_often, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_SECONDS)
    done = [work for batch in shop.batches for work in batch]
    assert len(done) == len(set(done)) == 400
    assert max(map(len, shop.batches)) <= size_max
    for name in names:
        mine = [work for work in done if work.startswith(f"{name}.")]
        assert mine == [f"{name}.{turn}" for turn in range(50)]
