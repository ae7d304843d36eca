"""How long a dump waits for open writers."""

from __future__ import annotations

import pytest

from hms_bridge.errors import ReplError
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
