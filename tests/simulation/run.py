"""Runs schedules: `python -m tests.simulation.run --seeds 1000 --first 1`."""

from __future__ import annotations

import argparse
import gc
import logging
import multiprocessing
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, fields
from functools import cache

from hms_bridge.errors import BackendError, HmsBridgeError
from hms_bridge.model.ids import LockId, TxnId
from tests.simulation.cluster import Cluster, determined
from tests.simulation.creations import Creations
from tests.simulation.crowd import Crowd
from tests.simulation.daemons import EXPECTED
from tests.simulation.foreign_worker import ForeignWorker
from tests.simulation.handover_schedule import HANDOVER_WORKS, make_handover_schedule
from tests.simulation.handovers import Handovers
from tests.simulation.hostile_clients import HostileClients
from tests.simulation.meddlers import Meddlers
from tests.simulation.mixed_schedule import MIXED_WEIGHTS, make_mixed_schedule
from tests.simulation.readers import Readers
from tests.simulation.schedule import Kind, Step, make_schedule
from tests.simulation.scheduler import FOREVER, Actor
from tests.simulation.scope_admins import ScopeAdmins
from tests.simulation.scope_schedule import SCOPE_WORKS, make_scope_schedule
from tests.simulation.stale_clients import StaleClients
from tests.simulation.statements import NotTodayError
from tests.simulation.story import ViolationError
from tests.simulation.tenants import Tenants

LAST_WORKS = (
    "read_all",
    "keep_house",
    "wait",
    "keep_house",
    "clean_all",
    "replicate",
    "mend_replica",
    "read_all",
)
"""What an admin sees to in the end; where sides have changed places, first of all that."""


@cache
def the_cluster() -> Cluster:
    """One a process: its engines remember the statements that they have compiled.

    What is alive now stays so: without this, a third of the time goes by looking for garbage."""
    with determined(0):
        cluster = Cluster()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    return cluster


class InjectedError(OSError):
    """The storage says no, as it was told to."""


class BrokenConnectionError(BackendError):
    """The database says no, as it was told to."""


@dataclass
class Tally:
    """What a run, or many, did."""

    schedules: int = 0
    steps: int = 0
    points: int = 0
    kills: int = 0
    power_cuts: int = 0
    equal_at_the_end: int = 0
    works: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """What another did, too."""
        for one in fields(self):
            mine, theirs = getattr(self, one.name), getattr(other, one.name)
            setattr(self, one.name, mine + theirs)

    def told(self) -> str:
        """In words."""
        return (
            f"{self.schedules} schedules, {self.kills} kills, {self.power_cuts} power cuts, "
            f"{self.steps} steps, {self.points} operations, {self.equal_at_the_end} replicas equal "
            "in the end"
        )


class Run:
    """One schedule on a cluster of its own."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.cluster = the_cluster()
        self.cluster.restart()
        kinds = (
            Readers,
            Handovers,
            StaleClients,
            Tenants,
            ForeignWorker,
            HostileClients,
            ScopeAdmins,
            Meddlers,
            Creations,
        )
        self.crowd = Crowd(self.cluster)
        self.players = [*(kind(self.cluster) for kind in kinds), self.crowd]
        self.cluster.scheduler.on_delay = self._delay
        self.faulted: set[str] = set()
        self._last = 1_000
        self._behind_ms = 0
        self.numbers: dict[int, Actor] = {}

    def play(self, steps: Sequence[Step]) -> None:
        """Raises ViolationError. No thread is left behind."""
        try:
            self.cluster.roles.are_to_change = is_handover(steps)
            self.cluster.clock.on_sleep = self._meanwhile
            self.cluster.wishes.is_used = any(step.work in _OF_SCOPES for step in steps)
            for step in steps:
                self._step(step)
                self.tally.steps += 1
                self.cluster.check()
            self._finish()
        finally:
            self.tally.schedules += 1
            self.tally.points += self.cluster.scheduler.point_count
            self.tally.kills += self.cluster.scheduler.kill_count
            for actor in self.cluster.scheduler.living:
                self.cluster.scheduler.kill(actor)

    def _step(self, step: Step) -> None:
        match step.kind:
            case Kind.START:
                self._start(step)
                return
            case Kind.WAIT:
                self._wait(step.amount)
                return
            case Kind.CUT:
                self._cut(step.amount)
                return
            case Kind.SET if not step.actor:
                self._set_clock(step.amount)
                return
        actor = self.numbers.get(step.actor)
        if actor is None or not actor.is_alive:
            return
        match step.kind:
            case Kind.RUN:
                actor.is_stalled = False
                actor.resume(step.amount or FOREVER)
            case Kind.KILL:
                self.cluster.scheduler.kill(actor)
                self._forget(actor)
            case Kind.FAIL:
                actor.fault = InjectedError(5, "the disk says no")
                actor.fault_count = max(1, step.amount)
                self.faulted.add(actor.name)
            case Kind.BREAK:
                actor.database_fault = BrokenConnectionError("the database says no")
                actor.is_broken_late = bool(step.amount)
                self.faulted.add(actor.name)
            case Kind.SLOW:
                actor.delay_ms = step.amount
            case Kind.STALL:
                actor.is_stalled = True
            case Kind.SET:
                actor.ahead_ms = step.amount
                self.cluster.ages.steps += 1
        self._judge(actor)

    def _start(self, step: Step) -> None:
        works = (getattr(player, step.work, None) for player in self.players)
        work = next(found for found in works if found is not None)
        dice = random.Random(step.amount)
        name = f"{step.work} {step.actor}"
        self.tally.works[step.work] += 1
        self.cluster.roles.homes[name] = self.cluster.roles.now
        self.numbers[step.actor] = self.cluster.scheduler.spawn(
            step.actor, name, lambda: work(dice)
        )

    def _judge(self, actor: Actor) -> None:
        """A process may end with a refusal that has a name, and with nothing else."""
        error = actor.error
        if actor.is_done and not actor.is_dead and error is None:
            self.tally.done[actor.name.split()[0]] += 1
        if error is None or isinstance(error, NotTodayError):
            return
        if isinstance(error, ViolationError):
            raise error
        self.tally.refused[f"{actor.name.split()[0]}: {type(error).__name__}"] += 1
        if not isinstance(error, EXPECTED):
            text = "".join(traceback.format_exception(error)[-3:])
            raise ViolationError("I13", f"{actor.name} ends with {text}") from error
        if actor.name.startswith("read") and actor.name not in self.faulted:
            raise ViolationError("I3", f"{actor.name} cannot read: {error}") from error

    def _forget(self, actor: Actor) -> None:
        self.cluster.effects.pop(actor.name, None)
        self.cluster.owned.pop(actor.name, None)

    def _wait(self, milliseconds: int) -> None:
        """Time goes by in steps that let the living give signs of life; the stalled give none.

        Nobody stands still for longer than aborts are remembered and goes on then."""
        self._behind_ms = max(0, self._behind_ms - milliseconds)
        if milliseconds < 0:
            self.cluster.clock.set_back_ms(-milliseconds)
            return
        left = milliseconds
        while left > 0:
            part = min(left, max(100_000, milliseconds // 4))
            self.cluster.clock.advance_ms(part)
            left -= part
            self._beat()
        for actor in self.cluster.scheduler.living:
            is_still = actor.is_stalled or actor.is_refused
            actor.stalled_ms += milliseconds if is_still else -actor.stalled_ms
            if actor.stalled_ms >= self.cluster.source.settings.compactor.abort_retention_ms:
                self.cluster.scheduler.kill(actor)
                self._forget(actor)

    def _delay(self, actor: Actor) -> None:
        """An operation on slow storage; the others, and its own other threads, go on meanwhile."""
        with self.cluster.scheduler.atomic():
            self.cluster.clock.advance_ms(actor.delay_ms)
            self._beat()

    def _meanwhile(self) -> None:
        """The living give signs of life while one of them sleeps, and short writers go on."""
        with self.cluster.scheduler.atomic():
            self._beat()
            self.crowd.turn()

    def _set_clock(self, milliseconds: int) -> None:
        """No time goes by, nor is it waited in the end for a time that is yet to come."""
        self.cluster.clock.set_back_ms(-milliseconds)
        self.cluster.ages.steps += 1
        self._beat()

    def _beat(self) -> None:
        for actor in self.cluster.scheduler.living:
            if actor.is_stalled:
                continue
            claims = self.cluster.owned.get(actor.name, set())
            for claim in sorted(claims, key=lambda one: (one.side, one.txn_id, one.lock_id)):
                store = self.cluster.side(claim.side).metastore
                try:
                    store.heartbeat(TxnId(claim.txn_id), LockId(claim.lock_id))
                except HmsBridgeError:
                    claims.discard(claim)
                    actor.is_refused = True
            actor.is_refused &= not claims

    def _cut(self, seed: int) -> None:
        """Everybody dies, and the disk forgets."""
        for actor in self.cluster.scheduler.living:
            self.cluster.scheduler.kill(actor)
            self._forget(actor)
        self.cluster.disk.cut_power(random.Random(seed))
        self.tally.power_cuts += 1
        self.cluster.check_archive()

    # -- the end

    def _finish(self) -> None:
        """Who lives may end; then everything comes to an end (I13) and both sides are equal."""
        for actor in self.cluster.scheduler.living:
            actor.is_stalled = False
            actor.fault = actor.database_fault = None
            actor.delay_ms = actor.ahead_ms = 0
            actor.resume(FOREVER)
            self._judge(actor)
            self.cluster.check()
        self.crowd.end()
        # In the end all of it is dumped, and what the source dropped goes.
        self.cluster.wishes.event_limit, self.cluster.wishes.is_drop_allowed = None, True
        works = list(LAST_WORKS)
        if self.cluster.roles.are_to_change:
            works.insert(works.index("replicate"), "settle")
        for work in works:
            if work == "wait":
                self._wait(self._behind_ms + 700_000)  # what was held before the clock went back
            else:
                self._do(work)
            self.cluster.check()
        self.cluster.check_ended()
        is_equal = self.cluster.roles.is_brought_back or self.cluster.is_replica_equal()
        self.tally.equal_at_the_end += is_equal

    def _do(self, work: str) -> None:
        """A piece of work of its own, without trouble."""
        self._last += 1
        self._start(Step(Kind.START, self._last, work, self._last))
        actor = self.numbers[self._last]
        actor.resume(FOREVER)
        self._judge(actor)


def is_handover(steps: Sequence[Step]) -> bool:
    """Whether sides are to change places."""
    return any(step.work in HANDOVER_WORKS for step in steps)


_OF_SCOPES = SCOPE_WORKS | MIXED_WEIGHTS.keys() - HANDOVER_WORKS - {"rename_table"}
_TOLD_EVERY = 100
_PART = 20


def play(seed: int, steps: Sequence[Step], tally: Tally | None = None) -> ViolationError | None:
    """Play steps; the violation that they lead to."""
    with determined(seed):
        run = Run(tally or Tally())
        try:
            run.play(steps)
        except ViolationError as violation:
            return violation
    return None


def shrink(
    seed: int,
    steps: Sequence[Step],
    violation: ViolationError,
    tries: int = 400,
) -> list[Step]:
    """Fewer steps that break the same invariant (delta debugging: halves, quarters, … single)."""
    kept, size = list(steps), max(1, len(steps) // 2)
    while tries > 0:
        at = 0
        while at < len(kept) and tries > 0:
            fewer = kept[:at] + kept[at + size :]
            tries -= 1
            found = play(seed, fewer)
            if found is not None and found.invariant == violation.invariant:
                kept = fewer
            else:
                at += size
        if size == 1:
            break
        size = max(1, size // 2)
    return kept


def tell(text: str) -> None:
    """To who waits."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def search(
    seeds: Iterable[int],
    *,
    tally: Tally,
    seconds: float | None = None,
    tries: int = 400,
    tell: Callable[[str], None] = tell,
    make: Callable[[int], list[Step]] = make_schedule,
) -> int:
    """Play the schedules of seeds until `seconds` of a core are used up, or twice as many have gone
    by; how many broke an invariant. Each is told
    with the fewest steps that `tries` tries came to."""
    started, began, found = time.monotonic(), time.process_time(), 0
    for seed in seeds:
        if seconds is not None and (
            time.process_time() - began > seconds or time.monotonic() - started > 2 * seconds
        ):
            break
        steps = make(seed)
        violation = play(seed, steps, tally)
        if violation is None:
            continue
        found += 1
        tell(f"seed {seed}: {violation}")
        few = shrink(seed, steps, violation, tries) if tries else steps
        again = play(seed, few)
        tell("\n".join([f"  {len(few)} of {len(steps)} steps: {again}", *map(str, few)]))
    return found


@dataclass(frozen=True)
class Part:
    """Some seeds that one process plays."""

    seeds: tuple[int, ...]
    tries: int
    schedules: str = ""


SCHEDULES: dict[str, Callable[[int], list[Step]]] = {
    "": make_schedule,
    "handover": make_handover_schedule,
    "scope": make_scope_schedule,
    "handover and scope": make_mixed_schedule,
}
"""Kinds of schedules, each with seeds of its own."""


def _groups(seeds: range, size: int) -> Iterator[tuple[int, ...]]:
    for at in range(0, len(seeds), size):
        yield tuple(seeds[at : at + size])


def play_part(part: Part) -> tuple[Tally, int, list[str]]:
    """What was done, how many violations were found, and what is to be told of them."""
    logging.disable(logging.WARNING)
    tally, told = Tally(), list[str]()
    make = SCHEDULES[part.schedules]
    found = search(part.seeds, tally=tally, tries=part.tries, tell=told.append, make=make)
    return tally, found, told


def play_parts(parts: Sequence[Part], processes: int) -> Iterator[tuple[Tally, int, list[str]]]:
    """One after the other in this process, or by several; in the order of the parts."""
    if processes == 1:
        yield from map(play_part, parts)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        try:
            yield from pool.map(play_part, parts)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _end() -> None:
    """What it has spawned would play on for hours."""
    for child in multiprocessing.active_children():
        child.terminate()
    sys.exit(1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the schedules of many seeds; 1 if one of them found a violation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many schedules")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--processes", type=int, default=1, help="how many play side by side")
    parser.add_argument("--seconds", type=float, default=None, help="stop after so long")
    parser.add_argument("--tries", type=int, default=400, help="to shrink a schedule; 0: none")
    parser.add_argument("--until-found", action="store_true", help="stop at the first violation")
    for name, told in (
        ("handover", "sides change places"),
        ("scope", "the scope of tables changes, dumps have limits, databases go"),
    ):
        parser.add_argument(
            f"--{name}", dest="kinds", action="append_const", const=name, default=[], help=told
        )
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: _end())
    tally, started, found, told_at = Tally(), time.monotonic(), 0, 0
    seeds = range(options.first, options.first + options.seeds)
    size = _PART if options.processes > 1 else 1
    kinds = " and ".join(sorted(options.kinds))
    parts = [Part(one, options.tries, kinds) for one in _groups(seeds, size)]
    for done, count, texts in play_parts(parts, options.processes):
        tally.add(done)
        found += count
        for text in texts:
            tell(text)
        if tally.schedules - told_at >= _TOLD_EVERY:
            told_at = tally.schedules
            tell(tally.told())
        is_late = options.seconds and time.monotonic() - started >= options.seconds
        if is_late or (found and options.until_found):
            break
    tell(f"{tally.told()} in {time.monotonic() - started:.0f} s: {found} violations")
    tell(f"begun {dict(tally.works)}")
    tell(f"done {dict(tally.done)}, refused {dict(tally.refused)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
