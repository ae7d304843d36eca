"""How long work takes, without a clock: by the steps of SQLite's."""

from __future__ import annotations

from collections.abc import Callable

from hms_bridge.backend.work import Work
from tests.support.world import World


def steps(world: World, work: Callable[[Work], object]) -> int:
    """How many of SQLite's instructions it takes, in tens."""
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    def counted(given: Work) -> None:
        raw = given.connection.connection.driver_connection
        raw.set_progress_handler(count, 10)  # type: ignore[union-attr]
        work(given)
        raw.set_progress_handler(None, 0)  # type: ignore[union-attr]

    world.do(counted)
    return taken
