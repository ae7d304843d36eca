"""Sites that change places again and again while clients write, define, compact and give up."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.errors import HmsBridgeError, ReplError
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.target import Target
from tests.support.handover_world import POLICY, Sites
from tests.support.open_write import OpenWrite
from tests.support.world import World

SEEDS = int(os.environ.get("HMS_BRIDGE_HANDOVER_SEEDS", "3"))


class Schedule:
    """What happens to two sites, by a seed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.sites = Sites(folder).with_tables()
        self.now, self.other = self.sites.main, self.sites.dr
        self.next_id = 100
        self.open: list[tuple[str, OpenWrite]] = []
        self.told: list[str] = []

    def run(self, steps: int) -> None:
        for _ in range(steps):
            verb = self.random.choice(
                [self.client] * 8
                + [self.replicate] * 3
                + [self.compact, self.begin, self.end, self.switch, self.fail_over]
            )
            self.told.append(verb.__name__)
            verb()
        self.switch()

    def tables(self, world: World) -> list[str]:
        return [
            name
            for name in world.metastore.get_tables(POLICY)
            if not world.describe(name).is_partitioned
        ]

    def client(self) -> None:
        self.change(self.now)

    def change(self, world: World) -> None:
        names, dice = self.tables(world), self.random.random()
        name = self.random.choice(names) if names else None
        self.next_id += 1
        if name is None or dice < 0.08:
            world.create_table(f"made{self.next_id}")
        elif dice < 0.2 and name in [held for held, _ in self.open]:
            return  # with a lock it would wait for the writer, without one the dump refuses
        elif dice < 0.14:
            world.metastore.drop_table(POLICY, name)
        elif dice < 0.2:
            renamed = replace(world.describe(name), name=f"named{self.next_id}")
            world.metastore.alter_table(POLICY, name, renamed)
        elif dice < 0.3:
            self.write_partition(world)
        elif dice < 0.5 and world.rows(name):
            world.delete(name, self.random.choice(world.rows(name))["id"])
        elif dice < 0.6 and world.rows(name):
            world.update(name, (self.random.choice(world.rows(name))["id"], f"u{self.next_id}"))
        else:
            world.insert(name, (self.next_id, "new"))

    def write_partition(self, world: World) -> None:
        if "parted" not in world.metastore.get_tables(POLICY):
            world.create_table("parted", is_partitioned=True)
        value = self.random.choice("xyz")
        known = {one.values[0] for one in world.metastore.get_partitions(POLICY, "parted")}
        if value not in known:
            world.add_partition("parted", value)
        world.insert("parted", (self.next_id, value), partition=f"p={value}")

    def replicate(self) -> None:
        self.sites.replicate()

    def compact(self) -> None:
        world = self.now
        names = self.tables(world)
        if names:
            target = Target(POLICY, self.random.choice(names))
            world.metastore.compact(CompactionRequest(target=target, type=CompactionType.MAJOR))
            world.worker().run_once()
            self.sites.clock.advance_ms(10_000)
            world.cleaner().run_once()

    def begin(self) -> None:
        names = self.tables(self.now)
        if names and len(self.open) < 2:
            writer = self.now.begin()
            name = self.random.choice(names)
            writer.lock(name)
            self.next_id += 1
            writer.insert(name, [(self.next_id, "slow")])
            self.open.append((name, writer))

    def end(self) -> None:
        """Sooner or later, on whichever site that is now."""
        if self.open:
            _, writer = self.open.pop(0)
            try:
                writer.commit() if self.random.random() < 0.7 else writer.abort()
            except HmsBridgeError:
                self.told.append("had been aborted")

    def switch(self) -> None:
        """Everything that was acknowledged is there, on both sides in the end."""
        while self.open:
            self.end()
        before = self.rows(self.now)
        self.sites.promote(is_planned=True)
        assert self.rows(self.other) == before
        self.turn(is_discarded=False)

    def fail_over(self) -> None:
        """What the lost site had alone is named, and then goes."""
        self.sites.promote()
        self.turn(is_discarded=True)

    def turn(self, *, is_discarded: bool) -> None:
        self.now, self.other = self.other, self.now
        for _ in range(self.random.randrange(4)):
            self.change(self.now)
        expected = self.rows(self.now)
        if is_discarded:
            try:
                self.sites.failback()
            except ReplError as error:
                assert "nobody else has it" in str(error)
                self.sites.failback(is_discarded=True)
        else:
            self.sites.failback()
        self.sites.assert_same()
        assert self.rows(self.now) == expected
        # Those of the lost site were aborted.
        self.open = []

    def rows(self, world: World) -> dict[str, list[dict[str, object]]]:
        return {name: world.rows(name) for name in world.metastore.get_tables(POLICY)}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_row_goes_however_often_sites_change_places(fast_folder: Path, seed: int) -> None:
    schedule = Schedule(fast_folder, seed)
    with schedule.sites:
        try:
            schedule.run(30)
        except Exception as error:
            error.add_note(" ".join(schedule.told))
            raise
