"""How long a dump waits for open writers."""

from __future__ import annotations

import pytest

from hms_bridge.errors import ReplError
from hms_bridge.repl.dump.snapshot_wait import WaitRules, wait_for_snapshot
from tests.support.repl_world import ReplWorld


def test_a_dump_waits_no_longer_because_a_clock_is_set_back(world: ReplWorld) -> None:
    writer = world.begin()
    writer.lock("t")
    writer.insert("t", [(3, "c")])

    def set_back() -> None:
        assert len(world.clock.slept_seconds) < 1000, "no end"
        world.clock.set_back_ms(7_200_000)

    world.clock.on_sleep = set_back
    with pytest.raises(ReplError, match="cannot be dumped while it is written to"):
        world.dump()


def test_who_is_waited_for_is_told_again_when_one_has_ended(world: ReplWorld) -> None:
    """With the tables, and how long it can take from then on."""
    first, second = world.begin(), world.begin()
    first.lock("t")
    second.write_id("t")
    looks: list[str] = []

    def end() -> None:
        looks.append("")
        if len(looks) == 3:
            first.abort()
        if len(looks) == 6:
            second.abort()

    world.clock.on_sleep = end
    told: list[str] = []
    wait_for_snapshot(
        world.source, world.clock, "src", ["src.t"],
        WaitRules(timeout_seconds=600, poll_seconds=60, is_abort_allowed=True),
        on_waiting=told.append,
    )  # fmt: skip
    begun, later = told
    assert "for 10 min 0 s at most" in begun
    assert f"transactions {first.id} hold locks on src.t; write ids" in begun
    assert "Those with locks are aborted then. Ctrl-C" in begun
    assert "for 7 min 0 s at most: write ids" in later
    assert "of src.t are open" in later
    assert "aborted then" not in later
