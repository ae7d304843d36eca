"""Whole clusters under schedules of a seed: no row is lost, nothing is silent (I1-I13)."""

from __future__ import annotations

import pytest

from tests.simulation.run import Tally, play, shrink, the_cluster
from tests.simulation.schedule import Weather, make_schedule

SECONDS = 60.0


def test_a_seed_replays_all():
    """The same operations, and the same bytes on disk."""
    found = []
    for _ in range(2):
        tally = Tally()
        assert play(7, make_schedule(7, Weather()), tally) is None
        files = [(path, file.data) for path, file in the_cluster().disk.files("/")]
        found.append((tally.points, tally.kills, sorted(files)))
    assert found[0] == found[1]
