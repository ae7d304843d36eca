"""How benchmarks measure and print: the machine, then one line a ratio."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

TURNS = 3
HEADING = "what | ours | theirs | ratio | target | verdict"
"""Of lines of ratios."""


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """One comparison. ``ratio`` is how many times better ours is; at least ``target`` is ok."""

    what: str
    ours: str
    theirs: str
    ratio: float
    target: float

    def line(self) -> str:
        verdict = "ok" if self.ratio >= self.target else "short"
        return (
            f"{self.what} | {self.ours} | {self.theirs} | {self.ratio:.2f}x | "
            f">= {self.target:g}x | {verdict}"
        )


@dataclass(frozen=True, kw_only=True)
class Limit:
    """What no server can do better than, however little it does: ``bare`` beside ours."""

    what: str
    ours: str
    bare: str
    reached: float

    def line(self) -> str:
        return f"{self.what} | {self.ours} | {self.bare} | {self.reached:.2f} of the limit"


def machine() -> str:
    """Processor, cores, memory, versions."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return (
        f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} "
        f"{platform.release()}, Python {platform.python_version()}"
    )


def median_seconds(work: Callable[[], object], repetitions: int = 3) -> float:
    """The median of some runs after one that warms up."""
    work()
    times = []
    for _ in range(repetitions):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def seconds_of(work: Callable[[], object]) -> float:
    """Once."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def beside(
    what: str, ours: Callable[[], object], theirs: Callable[[], object], target: float
) -> Ratio:
    """In turn, after one that warms up: a machine has good and bad minutes."""
    ours(), theirs()
    times = [(seconds_of(ours), seconds_of(theirs)) for _ in range(TURNS)]
    mine, other = (statistics.median(column) for column in zip(*times, strict=True))
    return Ratio(
        what=what, ours=f"{mine:.2f} s", theirs=f"{other:.2f} s", ratio=other / mine, target=target
    )
