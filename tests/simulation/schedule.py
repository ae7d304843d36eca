"""A schedule is a list of steps that a seed makes, and that stays a schedule without some of them.

Each step names its actor by number, so that leaving one out changes nothing about the others' names
and dice.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from hms_bridge.config.settings import CompactorSettings
from tests.simulation.rare_scenes import RARE_SCENES
from tests.simulation.scenes import SCENES, Scene


class Kind(Enum):
    """What a step does."""

    START = "start"
    RUN = "run"
    KILL = "kill"
    FAIL = "fail"
    BREAK = "break the connection of"
    SLOW = "slow"
    STALL = "stall"
    WAIT = "wait"
    CUT = "cut power"
    SET = "set the clock"


@dataclass(frozen=True, slots=True)
class Step:
    """`actor`: number of the actor. `work`: what it does, for START. `amount`: points to run (0:
    to the end), milliseconds to wait or to set a clock by, or seed of the actor's dice. SET of an
    actor is that of its host alone; of none, that of all."""

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
            case Kind.SET:
                return f"set the clock of {self.actor or 'all'} by {self.amount} ms"
            case Kind.FAIL | Kind.SLOW | Kind.BREAK if self.amount:
                return f"{self.kind.value} {self.actor} {self.amount}"
            case _:
                return f"{self.kind.value} {self.actor}"


WEIGHTS = {
    "insert": 26,
    "change": 12,
    "type_sql": 6,
    "overwrite": 5,
    "truncate": 3,
    "read": 9,
    "request": 12,
    "initiate": 2,
    "work": 3,
    "clean": 12,
    "keep_house": 2,
    "replicate": 6,
    "run_policy": 3,
    "dump": 3,
    "load": 4,
    "purge": 2,
    "purge_daily": 2,
    "touch_archive": 1,
    "load_forged": 1,
    "crowd": 1,
    "mend_replica": 1,
    "repair": 2,
    "adopt_copy": 2,
    "read_by_lock": 4,
    "read_slowly": 2,
    "read_other": 2,
    "plant_file": 3,
    "plant_table": 2,
    "request_rebalance": 1,
    "rebalance_as_hive": 1,
    "attack": 1,
}
"""How often each kind of work begins."""
DDL = {
    "add_partition": 3,
    "drop_partition": 4,
    "drop_table": 2,
    "create": 4,
    "create_as_select": 2,
    "rename_table": 2,
    "rename_partition": 2,
    "add_column": 4,
    "change_column": 2,
    "adopt_dropped": 3,
}
"""Without a lock, as Spark and Trino do it."""

_WAITS_MS = (
    1_500,  # a transaction that is being opened
    6_000,  # the cleaner's interval
    60_000,
    200_000,
    400_000,  # hive.txn.timeout, and leases
    CompactorSettings().abort_retention_ms,
    12 * 86_400_000,  # hive.repl.cm.retain, and the time-out of replays
    -7_200_000,  # somebody sets the clock
)
_HOUR_MS = 3_600_000
_STEPS_MS = tuple(sign * hours * _HOUR_MS for sign in (1, -1) for hours in (2, 72, 960))
"""So wrong are clocks: hours, days, 40 days."""
_WRONG_HOSTS = 0.04


def make_schedule(seed: int, length: int = 14) -> list[Step]:
    """The steps of a seed; about `length` pieces of work, of which some stand together."""
    script = Script(random.Random(seed))
    fill(script, WEIGHTS | DDL, ((0.12, SCENES), (0.12, RARE_SCENES)), length)
    return script.steps


def fill(
    script: Script,
    works: Mapping[str, int],
    shares: Sequence[tuple[float, Mapping[str, Scene]]],
    length: int,
) -> None:
    """About `length` pieces of work, as often as `works` says, or whole scenes instead: `shares`
    tells of each kind how likely."""
    dice = script.dice
    is_calm = dice.random() < 0.3
    while script.count < length:
        scenes = next((scenes for share, scenes in shares if dice.random() < share), None)
        if scenes is not None:
            script.play_scene(scenes[dice.choice(list(scenes))])
            continue
        (work,) = dice.choices(list(works), list(works.values()))
        script.begin(work, 0 if is_calm or dice.random() < 0.55 else _points(dice))
        while script.open_actors and dice.random() < 0.45:
            script.push()
        script.trouble()


class Script:
    """A schedule that grows."""

    def __init__(self, dice: random.Random) -> None:
        self.steps: list[Step] = []
        self.open_actors: list[int] = []
        self.count = 0
        self.dice = dice

    def begin(self, work: str, points: int) -> None:
        """A piece of work, to its end or for so many operations."""
        self.count += 1
        seed = self.dice.randrange(1 << 30)
        self.steps.append(Step(Kind.START, self.count, work, seed))
        if self.dice.random() < _WRONG_HOSTS:
            self.steps.append(Step(Kind.SET, self.count, amount=self.dice.choice(_STEPS_MS)))
        self.steps.append(Step(Kind.RUN, self.count, amount=points))
        if points:
            self.open_actors.append(self.count)

    def play_scene(self, scene: Scene) -> None:
        """Its works one after the other."""
        for work, low, high in scene:
            if work == "wait":
                self.steps.append(Step(Kind.WAIT, amount=low))
            elif work == "set":
                self.steps.append(Step(Kind.SET, amount=low))
            elif work == "cut":
                self.steps.append(Step(Kind.CUT, amount=self.dice.randrange(1 << 30)))
            elif work in _ENDS:
                if self.open_actors:
                    self.steps.append(Step(_ENDS[work], self.open_actors[-1]))
            elif work == "the one before goes on":
                self.steps += [Step(Kind.RUN, actor) for actor in self.open_actors[-2:-1]]
            else:
                self.begin(work, self.dice.randint(low, high) if high else 0)

    def push(self) -> None:
        """One that was left open goes on, ends, fails, stalls or dies."""
        dice = self.dice
        actor = dice.choice(self.open_actors)
        what = dice.random()
        if what < 0.25:
            self.open_actors.remove(actor)
            self.steps.append(Step(Kind.KILL, actor))
        elif what < 0.33:
            self.steps += [
                _trouble_of(dice, actor),
                Step(Kind.RUN, actor, amount=_points(dice)),
            ]
        elif what < 0.38:
            self.steps.append(Step(Kind.STALL, actor))
        elif what < 0.65:
            self.open_actors.remove(actor)
            self.steps.append(Step(Kind.RUN, actor))
        else:
            self.steps.append(Step(Kind.RUN, actor, amount=_points(dice)))

    def trouble(self) -> None:
        """Time goes by, or the power fails."""
        dice = self.dice
        if dice.random() < 0.12:
            self.steps.append(Step(Kind.CUT, amount=dice.randrange(1 << 30)))
        elif dice.random() < 0.25:
            (wait,) = dice.choices(_WAITS_MS, (8, 8, 6, 6, 3, 2, 1, 1))
            self.steps.append(Step(Kind.WAIT, amount=wait))
        elif dice.random() < 0.03:
            self.steps.append(Step(Kind.SET, amount=dice.choice(_STEPS_MS)))


_ENDS = {"go on": Kind.RUN, "stall": Kind.STALL, "kill": Kind.KILL}


def _trouble_of(dice: random.Random, actor: int) -> Step:
    """Its storage fails once, or for a while; its database fails once; or its storage is slow."""
    what = dice.random()
    if what < 0.45:
        return Step(Kind.FAIL, actor)
    if what < 0.65:
        return Step(Kind.FAIL, actor, amount=dice.randint(2, 12))
    if what < 0.8:
        return Step(Kind.BREAK, actor, amount=dice.randrange(2))
    return Step(Kind.SLOW, actor, amount=dice.choice((500, 8_000, 70_000, 200_000)))


def _points(dice: random.Random) -> int:
    """Few more often than many; a whole work has between 20 and 400."""
    return int(dice.choice((3, 10, 40, 120)) * dice.random()) + 1
