"""Several small tables that are compacted, and wait for a cleaner."""

from __future__ import annotations

from pathlib import Path

from hms_bridge.config.settings import CompactorSettings
from tests.support.world import World

TABLES = ("a", "b", "c")


def compacted_tables(folder: Path, *, threads: int = 1, is_source: bool = True) -> World:
    """TABLES of two rows each. ``threads``: of the cleaner."""
    world = World(
        folder,
        parameters={"repl.source.for": "policy"} if is_source else {},
        compactor=CompactorSettings(cleaner_threads=threads),
    )
    for table in TABLES:
        world.create_table(table)
        world.insert(table, (1, "v"))
        world.insert(table, (2, "w"))
    for table in TABLES:
        world.compact(table)
    world.clock.advance_ms(60_000)
    return world


def deltas(world: World, table: str) -> set[str]:
    """The names of those that are there."""
    return {name for name in world.names(table) if name.startswith("delta_")}
