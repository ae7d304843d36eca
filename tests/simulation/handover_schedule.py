"""Schedules in which source and replica change places, beside all that others hold."""

from __future__ import annotations

import random

from tests.simulation.scenes import SCENES, Scene
from tests.simulation.schedule import DDL, WEIGHTS, Script, Step, fill

HANDOVER_WEIGHTS = {
    "promote": 7,
    "promote_without": 3,
    "cancel": 2,
    "failback": 8,
    "switch_over": 3,
    "work_there": 14,
}
"""How often each kind of work begins, among the others."""
HANDOVER_WORKS = frozenset(HANDOVER_WEIGHTS)

HANDOVER_SCENES: dict[str, Scene] = {
    "a switch and back": (
        ("insert", 0, 0),
        ("switch_over", 0, 0),
        ("insert", 0, 0),
        ("change", 0, 0),
        ("run_policy", 0, 0),
        ("switch_over", 0, 0),
    ),
    "a promotion killed, and asked for again": (
        ("insert", 0, 0),
        ("promote", 10, 250),
        ("kill", 0, 0),
        ("work_there", 0, 0),
        ("insert", 0, 0),
        ("wait", 400_000, 400_000),
        ("promote", 0, 0),
        ("work_there", 0, 0),
        ("failback", 0, 0),
    ),
    "a failback killed, and asked for again": (
        ("insert", 0, 0),
        ("promote", 0, 0),
        ("insert", 0, 0),
        ("failback", 10, 250),
        ("kill", 0, 0),
        ("change", 0, 0),
        ("wait", 400_000, 400_000),
        ("failback", 0, 0),
    ),
    "a writer through a promotion": (
        ("insert", 3, 40),
        ("promote", 1, 60),
        ("insert", 3, 40),
        ("go on", 0, 0),
        ("go on", 0, 0),
        ("work_there", 0, 0),
    ),
    "a writer between a look and its fence": (
        ("insert", 0, 0),
        ("promote", 16, 24),
        ("insert", 6, 24),
        ("the one before goes on", 0, 0),
        ("go on", 0, 0),
    ),
    "a load that dies, and its source": (
        ("insert", 0, 0),
        ("dump", 0, 0),
        ("load", 60, 120),
        ("kill", 0, 0),
        ("wait", 400_000, 400_000),
        ("promote_without", 0, 0),
        ("insert", 0, 0),
    ),
    "a load under a promotion": (
        ("insert", 0, 0),
        ("dump", 0, 0),
        ("load", 5, 120),
        ("stall", 0, 0),
        ("promote", 0, 0),
        ("wait", 400_000, 400_000),
        ("promote", 0, 0),
        ("go on", 0, 0),
    ),
    "a source that is lost, written to, and found": (
        ("insert", 0, 0),
        ("replicate", 0, 0),
        ("insert", 0, 0),
        ("promote_without", 0, 0),
        ("work_there", 0, 0),
        ("insert", 0, 0),
        ("work_there", 5, 40),
        ("promote", 0, 0),
        ("failback", 0, 0),
        ("failback", 0, 0),
    ),
    "daemons at both sides of a failback": (
        ("insert", 0, 0),
        ("insert", 0, 0),
        ("promote", 0, 0),
        ("insert", 0, 0),
        ("insert", 0, 0),
        ("request", 0, 0),
        ("wait", 6_000, 6_000),
        ("clean", 0, 0),
        ("failback", 5, 200),
        ("insert", 0, 0),
        ("request", 0, 0),
        ("wait", 12 * 86_400_000, 12 * 86_400_000),
        ("clean", 0, 0),
        ("purge", 0, 0),
        ("go on", 0, 0),
        ("failback", 0, 0),
    ),
}


def make_handover_schedule(seed: int, length: int = 16) -> list[Step]:
    """The steps of a seed. In the beginning there is a replica, most of the time."""
    script = Script(random.Random(f"handover {seed}"))
    if script.dice.random() < 0.9:
        script.begin("insert", 0)
        script.begin("run_policy" if script.dice.random() < 0.5 else "replicate", 0)
    works = WEIGHTS | DDL | HANDOVER_WEIGHTS
    fill(script, works, ((0.14, HANDOVER_SCENES), (0.06, SCENES)), length)
    return script.steps
