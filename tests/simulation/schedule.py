"""A schedule is a list of steps that a seed makes, and that stays a schedule without some of them.

Each step names its actor by number, so that leaving one out changes nothing about the others' names
and dice.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a step does."""

    START = "start"
    RUN = "run"
    KILL = "kill"
    FAIL = "fail"
    STALL = "stall"
    WAIT = "wait"
    CUT = "cut power"


@dataclass(frozen=True, slots=True)
class Step:
    """`actor`: number of the actor. `work`: what it does, for START. `amount`: points to run (0:
    to the end), milliseconds to wait, or seed of the actor's dice."""

    kind: Kind
    actor: int = 0
    work: str = ""
    amount: int = 0

    def __str__(self) -> str:
        match self.kind:
            case Kind.START:
                return f"start {self.actor} {self.work} {self.amount}"
            case Kind.RUN:
                return f"run {self.actor} {self.amount or 'to its end'}"
            case Kind.WAIT:
                return f"wait {self.amount} ms"
            case Kind.CUT:
                return f"cut power {self.amount}"
            case _:
                return f"{self.kind.value} {self.actor}"


WEIGHTS = {
    "insert": 26,
    "change": 12,
    "overwrite": 5,
    "read": 9,
    "request": 12,
    "initiate": 2,
    "work": 3,
    "clean": 12,
    "keep_house": 2,
    "replicate": 6,
    "dump": 3,
    "load": 4,
    "purge": 2,
}
"""How often each kind of work begins."""
DDL = {"add_partition": 3, "drop_partition": 4, "drop_table": 2, "create": 4, "rename_table": 2}
"""Without a lock, as Spark and Trino do it."""

_WAITS_MS = (1_500, 6_000, 60_000, 200_000, 400_000, 3_600_000, 12 * 86_400_000, -7_200_000)


@dataclass(frozen=True)
class Weather:
    """Which troubles a run may have. Those that are off by default lead to what is known to be
    wrong, or lies outside of what is promised (docs/simulation.md)."""

    has_ddl: bool = True
    has_power_cuts: bool = False
    has_clock_steps: bool = True
    has_empty_overwrites: bool = False
    must_end: bool = False


def make_schedule(seed: int, weather: Weather, length: int = 14) -> list[Step]:
    """The steps of a seed; `length` pieces of work."""
    dice = random.Random(seed)
    works = WEIGHTS | (DDL if weather.has_ddl else {})
    names, weights = list(works), list(works.values())
    is_calm = dice.random() < 0.3
    steps: list[Step] = []
    open_actors: list[int] = []
    for number in range(1, length + 1):
        (work,) = dice.choices(names, weights)
        steps.append(Step(Kind.START, number, work, dice.randrange(1 << 30)))
        if is_calm or dice.random() < 0.55:
            steps.append(Step(Kind.RUN, number))
        else:
            steps.append(Step(Kind.RUN, number, amount=_points(dice)))
            open_actors.append(number)
        while open_actors and dice.random() < 0.45:
            steps += _push(dice, open_actors)
        steps += _trouble(dice, weather)
    return steps


def _points(dice: random.Random) -> int:
    """Few more often than many; a whole work has between 20 and 400."""
    return int(dice.choice((3, 10, 40, 120)) * dice.random()) + 1


def _push(dice: random.Random, open_actors: list[int]) -> list[Step]:
    actor = dice.choice(open_actors)
    what = dice.random()
    if what < 0.25:
        open_actors.remove(actor)
        return [Step(Kind.KILL, actor)]
    if what < 0.33:
        return [Step(Kind.FAIL, actor), Step(Kind.RUN, actor, amount=_points(dice))]
    if what < 0.38:
        return [Step(Kind.STALL, actor)]
    if what < 0.65:
        open_actors.remove(actor)
        return [Step(Kind.RUN, actor)]
    return [Step(Kind.RUN, actor, amount=_points(dice))]


def _trouble(dice: random.Random, weather: Weather) -> list[Step]:
    if weather.has_power_cuts and dice.random() < 0.12:
        return [Step(Kind.CUT, amount=dice.randrange(1 << 30))]
    if dice.random() < 0.25:
        waits = _WAITS_MS if weather.has_clock_steps else _WAITS_MS[:5]
        (wait,) = dice.choices(waits, (8, 8, 6, 6, 3, 2, 1, 1)[: len(waits)])
        return [Step(Kind.WAIT, amount=wait)]
    return []
