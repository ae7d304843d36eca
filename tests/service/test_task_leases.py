"""A claim is renewed when its beat is over, whatever the clock says; its loss stops the work."""

from __future__ import annotations

import pytest

from changemanager.errors import LeaseLostError
from changemanager.manifest import ArchiveCause, ArchiveContext
from hms_bridge.archive.file_tasks import FileTask, FileTaskKind
from hms_bridge.service.task_leases import BEAT_MS, TaskLeases
from tests.support.simulated_clock import DAY_MS, SimulatedClock

TASK = FileTask(
    id="1",
    kind=FileTaskKind.DELETE,
    location="file:/w/t",
    root="file:/w",
    context=ArchiveContext(cause=ArchiveCause.DROP_TABLE),
    created_at_ms=0,
)


class Claims:
    def __init__(self) -> None:
        self.is_mine = True
        self.renewed = 0

    def renew(self, _: FileTask) -> bool:
        self.renewed += self.is_mine
        return self.is_mine


def test_a_claim_is_renewed_once_a_beat() -> None:
    claims, clock = Claims(), SimulatedClock()
    leases = TaskLeases(claims.renew, clock)
    with leases.held([TASK]):
        leases.check(TASK)
        clock.advance_ms(BEAT_MS - 1)
        leases.check(TASK)
        assert claims.renewed == 0
        clock.advance_ms(1)
        leases.check(TASK)
        leases.check(TASK)
        assert claims.renewed == 1


def test_a_clock_that_is_set_back_keeps_no_claim_unrenewed() -> None:
    """I9: by that clock the last beat would be good for a day."""
    claims, clock = Claims(), SimulatedClock()
    leases = TaskLeases(claims.renew, clock)
    with leases.held([TASK]):
        clock.set_back_ms(DAY_MS)
        leases.check(TASK)
        assert claims.renewed == 1


def test_who_lost_it_hears_so_before_the_next_step() -> None:
    claims, clock = Claims(), SimulatedClock()
    leases = TaskLeases(claims.renew, clock)
    with leases.held([TASK]):
        claims.is_mine = False
        clock.advance_ms(BEAT_MS)
        with pytest.raises(LeaseLostError, match="another process took this over"):
            leases.check(TASK)


def test_one_that_is_not_held_is_asked_each_time() -> None:
    claims = Claims()
    leases = TaskLeases(claims.renew, SimulatedClock())
    with leases.held([TASK]):
        pass
    leases.check(TASK)
    leases.check(TASK)
    assert claims.renewed == 2
