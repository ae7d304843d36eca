"""`make mutants`: break one protective line at a time, and see a test fail.

Works on a copy of the tree. `--simulated SEEDS` asks the simulated cluster instead of the named
tests, and says after how many schedules it found each. `--draw COUNT --seed SEED` asks it for
mutations that no schedule is known to find, and says how many it found.
"""

from __future__ import annotations

import argparse
import compileall
import os
import py_compile
import queue
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.simulation.mutation import Mutation, StaleMutationError
from tests.simulation.mutations import MUTATIONS

ROOT = Path(__file__).parents[2]
PACKAGES = ("hms_bridge", "cleaner", "changemanager", "tests")
DRAWN_FROM = (
    "cleaner/",
    "changemanager/",
    "hms_bridge/archive/",
    "hms_bridge/compaction/",
    "hms_bridge/repl/",
    "hms_bridge/txn/",
)
KINDS = ((), ("--handover",), ("--scope",))
"""Of schedules: a mutation that is drawn may be of any."""
_DRAWN_SCHEDULES = 500
_FOUND = re.compile(r"^(\d+) schedules", re.MULTILINE)


def copy_tree(folder: Path) -> None:
    """The packages and the tests; recorded data, which nobody changes, by links."""
    for name in PACKAGES:
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "golden")
        )
        # Nothing is compiled again but what is broken, by its text: a second is too long for times.
        mode = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(folder / name, quiet=2, invalidation_mode=mode)
    (folder / "tests/golden").symlink_to(ROOT / "tests/golden")
    for name in ("pyproject.toml", "conf", "docs", "README.md"):
        (folder / name).symlink_to(ROOT / name)


@contextmanager
def broken(mutation: Mutation, folder: Path) -> Iterator[None]:
    """A copy of the tree with all that a mutation breaks. Raises StaleMutationError."""
    sound = {edit.file: (folder / edit.file).read_text(encoding="utf-8") for edit in mutation.edits}
    try:
        for edit in mutation.edits:
            place = folder / edit.file
            text = edit.applied(place.read_text(encoding="utf-8"))
            place.write_text(text, encoding="utf-8")
        yield
    finally:
        for file, text in sound.items():
            (folder / file).write_text(text, encoding="utf-8")


def _run(folder: Path, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def _by_test(folder: Path, test: str) -> str | None:
    """What the named test says; None if it does not notice."""
    options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    done = _run(folder, ["pytest", *options, test])
    if done.returncode == 0:
        return None
    if done.returncode != 1:
        raise StaleMutationError(f"{test} cannot be run: {done.stdout[-500:]}{done.stderr[-500:]}")
    return f"killed by {test}"


def _by_simulation(folder: Path, seeds: int, kinds: Sequence[str]) -> str | None:
    """How many schedules it took; None if none of them noticed."""
    options = ["--seeds", str(seeds), "--tries", "0", "--until-found"]
    done = _run(folder, ["tests.simulation.run", *options, *kinds])
    if done.returncode == 0:
        return None
    counts = _FOUND.findall(done.stdout)
    if not counts:
        raise StaleMutationError(f"the simulation cannot be run: {done.stderr[-500:]}")
    reason = done.stdout.partition(": ")[2].partition("\n")[0][:100]
    return f"found by schedule {counts[-1]}: {reason}"


def drawn(count: int, seed: int) -> list[Mutation]:
    """Mutations that no schedule is known to find. One that is known from now on makes room for
    another one, and changes nothing about the rest."""
    unknown = [one for one in MUTATIONS if not one.is_simulated and one.file.startswith(DRAWN_FROM)]
    unknown.sort(key=lambda one: random.Random(f"{seed} {one.name}").random())
    return unknown[:count]


Attempt = Callable[[Mutation, Path], str | None]
"""Asks a broken tree; what noticed, None for nothing."""


def by_named_test(mutation: Mutation, folder: Path) -> str | None:
    """The test that the mutation names."""
    return _by_test(folder, mutation.test or "")


def by_schedules(seeds: int) -> Attempt:
    """Schedules of the kind that the mutation names."""

    def attempt(mutation: Mutation, folder: Path) -> str | None:
        kinds = ["--handover"] * mutation.is_handover + ["--scope"] * mutation.is_scope
        return _by_simulation(folder, seeds, kinds)

    return attempt


def by_any_schedules(seeds: int) -> Attempt:
    """Schedules of each kind, so many in all."""

    def attempt(mutation: Mutation, folder: Path) -> str | None:
        del mutation
        for kind in KINDS:
            if noticed := _by_simulation(folder, seeds // len(KINDS), kind):
                return " ".join((*kind, noticed))
        return None

    return attempt


def _is_noticed(mutation: Mutation, folder: Path, attempt: Attempt) -> bool:
    """Tries one and says what came of it; a stale one counts as not noticed."""
    started = time.monotonic()
    try:
        with broken(mutation, folder):
            noticed = attempt(mutation, folder)
    except StaleMutationError as error:
        noticed = None
        sys.stdout.write(f"  {error}\n")
    seconds = time.monotonic() - started
    sys.stdout.write(f"{mutation.name}: {noticed or 'SURVIVED'} ({seconds:.0f} s)\n")
    sys.stdout.flush()
    return noticed is not None


def count_noticed(mutations: Sequence[Mutation], processes: int, attempt: Attempt) -> int:
    """Tries all, so many at a time, each in a copy of the tree."""
    with tempfile.TemporaryDirectory(prefix="mutants") as name:
        folders: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(processes):
            copy_tree(Path(name, str(number)))
            folders.put(Path(name, str(number)))

        def is_noticed(mutation: Mutation) -> bool:
            folder = folders.get()
            try:
                return _is_noticed(mutation, folder, attempt)
            finally:
                folders.put(folder)

        with ThreadPoolExecutor(processes) as pool:
            return list(pool.map(is_noticed, mutations)).count(True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try all mutations, or those whose names hold a text; 1 if one survived or is stale. Of those
    that are drawn any may survive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulated", type=int, metavar="SEEDS", help="ask the simulated cluster")
    parser.add_argument("--draw", type=int, metavar="COUNT", help="some that it may not find")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="N at a time")
    parser.add_argument("names", nargs="*", help="parts of names")
    options = parser.parse_args(arguments)
    seeds = options.simulated
    if options.draw:
        wanted = drawn(options.draw, options.seed)
        attempt = by_any_schedules(seeds or _DRAWN_SCHEDULES)
        found = count_noticed(wanted, options.processes, attempt)
        sys.stdout.write(f"{found} of {len(wanted)} found\n")
        return 0
    wanted = [
        one
        for one in MUTATIONS
        if (one.is_simulated if seeds else one.test)
        and (not options.names or any(name in one.name for name in options.names))
    ]
    attempt = by_schedules(seeds) if seeds else by_named_test
    survivors = len(wanted) - count_noticed(wanted, options.processes, attempt)
    sys.stdout.write(f"{len(wanted)} mutations, {survivors} survived\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
