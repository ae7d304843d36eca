"""Schedules in which sides change places while the tables that are replicated change, too."""

from __future__ import annotations

import random

from tests.simulation.handover_schedule import HANDOVER_SCENES, HANDOVER_WEIGHTS
from tests.simulation.schedule import DDL, SCENES, WEIGHTS, Scene, Script, Step, fill
from tests.simulation.scope_schedule import SCOPE_SCENES, SCOPE_WEIGHTS

_ALONE = frozenset({"drop_database", "create_database", "load_drop"})
"""The source's database does not go while sides change places."""

_OF_SCOPES = {work: weight for work, weight in SCOPE_WEIGHTS.items() if work not in _ALONE}
MIXED_WEIGHTS = HANDOVER_WEIGHTS | _OF_SCOPES | {"replicate_all": 6}
"""How often each kind of work begins, among the others."""

MIXED_SCENES: dict[str, Scene] = {
    "some tables that would take the place of all": (
        ("change_scope", 0, 0),
        ("insert", 0, 0),
        ("replicate", 0, 0),
        ("promote", 0, 0),
        ("insert", 0, 0),
        ("replicate_all", 0, 0),
        ("promote", 0, 0),
        ("insert", 0, 0),
        ("failback", 0, 0),
    ),
    "some tables of a lost source, which comes back": (
        ("change_scope", 0, 0),
        ("insert", 0, 0),
        ("replicate", 0, 0),
        ("insert", 0, 0),
        ("promote_without", 0, 0),
        ("work_there", 0, 0),
        ("insert", 0, 0),
        ("work_there", 0, 0),
        ("promote", 0, 0),
        ("failback", 0, 0),
    ),
    "a promotion of some tables killed, and its source back": (
        ("change_scope", 0, 0),
        ("insert", 0, 0),
        ("replicate", 0, 0),
        ("promote_without", 10, 90),
        ("kill", 0, 0),
        ("wait", 400_000, 400_000),
        ("work_there", 0, 0),
        ("promote", 0, 0),
        ("insert", 0, 0),
    ),
    "a change of scope on its way, and a promotion": (
        ("insert", 0, 0),
        ("replicate", 0, 0),
        ("change_scope", 0, 0),
        ("dump", 0, 0),
        ("load", 10, 120),
        ("kill", 0, 0),
        ("promote", 0, 0),
        ("wait", 400_000, 400_000),
        ("promote", 0, 0),
        ("promote_without", 0, 0),
    ),
    "all tables again under a promotion": (
        ("change_scope", 0, 0),
        ("replicate", 0, 0),
        ("insert", 0, 0),
        ("replicate_all", 10, 200),
        ("promote", 10, 200),
        ("go on", 0, 0),
        ("kill", 0, 0),
        ("wait", 400_000, 400_000),
        ("switch_over", 0, 0),
        ("change_scope", 0, 0),
        ("insert", 0, 0),
        ("run_policy", 0, 0),
    ),
}


def make_mixed_schedule(seed: int, length: int = 16) -> list[Step]:
    """The steps of a seed. In the beginning some tables are replicated, or all."""
    script = Script(random.Random(f"mixed {seed}"))
    dice = script.dice
    if dice.random() < 0.6:
        script.begin("change_scope", 0)
    script.begin("insert", 0)
    script.begin("run_policy" if dice.random() < 0.5 else "replicate", 0)
    works = WEIGHTS | DDL | MIXED_WEIGHTS
    of_scopes = {
        name: scene
        for name, scene in SCOPE_SCENES.items()
        if not any(work in _ALONE for work, _, _ in scene)
    }
    scenes = ((0.16, MIXED_SCENES), (0.05, HANDOVER_SCENES), (0.04, of_scopes), (0.03, SCENES))
    fill(script, works, scenes, length)
    return script.steps
