"""Schedules in which the scope of tables changes, dumps have limits and go by their age, and the
source's database is dropped and made anew, beside all that others hold."""

from __future__ import annotations

import random

from tests.simulation.schedule import DDL, SCENES, WEIGHTS, Scene, Script, Step, fill

SCOPE_WEIGHTS = {
    "change_scope": 8,
    "dump_as_before": 2,
    "set_limit": 4,
    "keep_dumps": 2,
    "expire": 4,
    "drop_database": 1,
    "create_database": 3,
    "load_drop": 1,
    "rename_table": 5,
}
"""How often each kind of work begins, among the others."""
SCOPE_WORKS = frozenset(SCOPE_WEIGHTS) - DDL.keys()

SCOPE_SCENES: dict[str, Scene] = {
    "a change of scope killed, and asked for again": (
        ("insert", 0, 0),
        ("replicate", 0, 0),
        ("change_scope", 0, 0),
        ("insert", 0, 0),
        ("rename_table", 0, 0),
        ("dump", 10, 120),
        ("kill", 0, 0),
        ("wait", 400_000, 400_000),
        ("dump", 0, 0),
        ("load", 20, 200),
        ("kill", 0, 0),
        ("wait", 400_000, 400_000),
        ("load", 0, 0),
    ),
    "tables under a change of scope": (
        ("insert", 0, 0),
        ("replicate", 0, 0),
        ("change_scope", 0, 0),
        ("dump", 10, 120),
        ("rename_table", 0, 0),
        ("create", 0, 0),
        ("insert", 0, 0),
        ("drop_table", 0, 0),
        ("go on", 0, 0),
        ("load", 0, 0),
        ("insert", 0, 0),
        ("replicate", 0, 0),
    ),
    "two changes of scope, one after the other": (
        ("insert", 0, 0),
        ("replicate", 0, 0),
        ("change_scope", 0, 0),
        ("dump", 0, 0),
        ("change_scope", 0, 0),
        ("mend_replica", 0, 0),
    ),
    "names that cross the edge and come back": (
        ("change_scope", 0, 0),
        ("insert", 0, 0),
        ("replicate", 0, 0),
        ("rename_table", 0, 0),
        ("insert", 0, 0),
        ("dump", 0, 0),
        ("rename_table", 0, 0),
        ("create", 0, 0),
        ("insert", 0, 0),
        ("load", 0, 0),
        ("replicate", 0, 0),
        ("rename_table", 0, 0),
        ("replicate", 0, 0),
    ),
    "a compaction before a table comes into the scope": (
        ("insert", 0, 0),
        ("insert", 0, 0),
        ("replicate", 0, 0),
        ("request", 0, 0),
        ("wait", 6_000, 6_000),
        ("clean", 0, 0),
        ("change_scope", 0, 0),
        ("dump", 0, 0),
        ("change", 0, 0),
        ("request", 0, 0),
        ("wait", 6_000, 6_000),
        ("clean", 0, 0),
        ("load", 0, 0),
    ),
    "a dump of few events under open writers": (
        ("replicate", 0, 0),
        ("set_limit", 0, 0),
        ("insert", 8, 40),
        ("insert", 0, 0),
        ("dump", 0, 0),
        ("go on", 0, 0),
        ("load", 0, 0),
        ("change", 0, 0),
        ("replicate", 0, 0),
        ("replicate", 0, 0),
        ("run_policy", 0, 0),
    ),
    "dumps that are kept, and go": (
        ("keep_dumps", 0, 0),
        ("insert", 0, 0),
        ("replicate", 0, 0),
        ("insert", 0, 0),
        ("replicate", 0, 0),
        ("insert", 0, 0),
        ("dump", 0, 0),
        ("wait", 12 * 86_400_000, 12 * 86_400_000),
        ("expire", 0, 40),
        ("request", 0, 0),
        ("wait", 6_000, 6_000),
        ("clean", 0, 0),
        ("purge", 0, 0),
        ("go on", 0, 0),
        ("load", 0, 0),
    ),
    "a database dropped and made anew": (
        ("insert", 0, 0),
        ("replicate", 0, 0),
        ("insert", 0, 0),
        ("dump", 0, 0),
        ("drop_database", 0, 0),
        ("dump", 0, 0),
        ("load", 0, 0),
        ("load_drop", 5, 60),
        ("kill", 0, 0),
        ("wait", 400_000, 400_000),
        ("load_drop", 0, 0),
        ("create_database", 0, 0),
        ("create", 0, 0),
        ("insert", 0, 0),
        ("replicate", 0, 0),
    ),
    "a database dropped and made anew before anybody tells": (
        ("insert", 0, 0),
        ("replicate", 0, 0),
        ("drop_database", 0, 0),
        ("create_database", 0, 0),
        ("create", 0, 0),
        ("insert", 0, 0),
        ("replicate", 0, 0),
        ("mend_replica", 0, 0),
    ),
}


def make_scope_schedule(seed: int, length: int = 15) -> list[Step]:
    """The steps of a seed. In the beginning some tables are replicated, most of the time."""
    script = Script(random.Random(f"scope {seed}"))
    dice = script.dice
    if dice.random() < 0.6:
        script.begin("change_scope", 0)
    if dice.random() < 0.3:
        script.begin("set_limit", 0)
    script.begin("insert", 0)
    script.begin("run_policy" if dice.random() < 0.5 else "replicate", 0)
    works = WEIGHTS | DDL | SCOPE_WEIGHTS
    fill(script, works, ((0.16, SCOPE_SCENES), (0.05, SCENES)), length)
    return script.steps
