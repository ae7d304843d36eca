"""A repair that is killed at any step is ended by asking for it again (I6, I13)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from hms_bridge.model.properties import INCOMPATIBLE
from hms_bridge.repl.repair.plan import Step
from tests.support.faults import CrashError, FaultPlan
from tests.support.repair_world import repair, repair_of, request
from tests.support.repl_world import ReplWorld

_RUNS = 15


@pytest.fixture
def world(world: ReplWorld) -> ReplWorld:
    world.replicate()
    return world


def lose_files(world: ReplWorld) -> None:
    for file in world.replica.path("t").rglob("bucket_*"):
        file.unlink()


def mark_incompatible(world: ReplWorld) -> None:
    database = world.target.get_database("dst")
    parameters = {**database.parameters, INCOMPATIBLE: "true"}
    world.target.alter_database("dst", replace(database, parameters=parameters))


def lose_texts(world: ReplWorld) -> None:
    """A dump that waits."""
    world.clock.advance_ms(1000)
    world.insert("t", (world.source.get_current_event_id(), "more"))
    world.dump()
    next(iter(sorted(world.repl_root.glob("*/*/hive/**/_files")))).unlink()


def killed(world: ReplWorld, at: int) -> int:
    """A repair that dies at a point; how many points it came to."""
    faults = FaultPlan()
    faults.crash_at = at
    world.clock.advance_ms(1000)
    with suppress(CrashError):
        repair_of(world, faults).run(request(is_bootstrap_allowed=True))
    return faults.count


@pytest.mark.parametrize(
    ("spoil", "step"),
    [
        (lose_files, Step.TABLES),
        (lose_texts, Step.DUMP_AGAIN),
        (mark_incompatible, Step.BOOTSTRAP),
    ],
    ids=["tables", "dump again", "bootstrap"],
)
def test_a_repair_may_be_killed_anywhere(
    world: ReplWorld, spoil: Callable[[ReplWorld], None], step: Step
) -> None:
    spoil(world)
    total = killed(world, 1_000_000)
    assert total > _RUNS
    world.assert_same()
    for at in range(1, total, total // _RUNS):
        spoil(world)
        killed(world, at)
        report = repair(world, is_bootstrap_allowed=True)
        assert {one.step for one in report.steps} <= {step, Step.GO_ON}, at
        assert (report.left, report.exit_code) == ((), 0), at
        world.assert_same()
