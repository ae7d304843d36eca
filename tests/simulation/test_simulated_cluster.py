"""Whole clusters under schedules of a seed: no row is lost, nothing is silent (I1-I13)."""

from __future__ import annotations

import itertools
import os
import sys
import threading

import pytest

from tests.simulation.handover_schedule import make_handover_schedule
from tests.simulation.mixed_schedule import make_mixed_schedule
from tests.simulation.run import Tally, play, search, the_cluster
from tests.simulation.schedule import make_schedule
from tests.simulation.scheduler import Scheduler, SlowError
from tests.simulation.scope_schedule import make_scope_schedule

MANY = 10
SECONDS = float(os.environ.get("HMS_BRIDGE_SIMULATION_SECONDS", "40"))


@pytest.fixture
def loud(capfd):
    """Prints past pytest: what was played is part of the answer."""

    def tell(text: str) -> None:
        with capfd.disabled():
            sys.stdout.write(f"\n{text}\n")

    return tell


@pytest.mark.parametrize(
    ("make", "share"),
    [
        (make_schedule, 0.5),
        (make_handover_schedule, 0.2),
        (make_scope_schedule, 0.15),
        (make_mixed_schedule, 0.15),
    ],
)
def test_schedules_of_whole_clusters(loud, make, share):
    """I1-I13, as many schedules as the time allows, always from the first seed on."""
    tally, told = Tally(), []
    seconds = SECONDS * share
    search(itertools.count(1), tally=tally, seconds=seconds, tries=200, tell=told.append, make=make)
    loud(f"simulated cluster: {tally.told()}")
    assert not told, "\n".join(told)
    assert tally.schedules
    assert tally.equal_at_the_end > tally.schedules // 3 or tally.schedules < MANY


@pytest.mark.parametrize(
    "make", [make_schedule, make_handover_schedule, make_scope_schedule, make_mixed_schedule]
)
def test_a_seed_replays_all(make):
    """The same operations, and the same bytes on disk."""
    found = []
    for _ in range(2):
        tally = Tally()
        assert play(7, make(7), tally) is None
        files = [(path, file.data) for path, file in the_cluster().disk.files("/")]
        found.append((tally.points, tally.kills, sorted(files)))
    assert found[0] == found[1]


def test_who_waits_for_a_stalled_one_is_noticed(monkeypatch):
    """Real time alone tells: a lock of Python's own, on the way, is no point of the schedule."""
    monkeypatch.setattr("tests.simulation.scheduler.STANDSTILL_SECONDS", 0.2)
    scheduler, lock = Scheduler(), threading.Lock()

    def work():
        with lock:
            scheduler.point("read", "f")

    first, second = (scheduler.spawn(number, f"reader {number}", work) for number in (1, 2))
    first.resume(0)  # stalls before it has read
    second.resume(1)
    assert isinstance(second.error, SlowError)
