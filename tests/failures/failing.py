"""Lets a verb fail at one call after the other, and looks at what each failure leaves."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from changemanager.errors import ChangeManagerError
from hms_bridge.errors import CommitUnknownError, HmsBridgeError, MetastoreError, ReplError
from hms_bridge.service.task_leases import CLAIM_MS
from tests.failures.scene import Scene, State, different
from tests.support.failures import DEADLOCK, Failures

CALLS_MAX = int(os.environ.get("HMS_BRIDGE_FAILED_CALLS", "3"))
"""At so many calls of storage and of database, evenly spread, each verb fails, in one way after the
other; with 0 at all of them in all ways."""
WAYS = ("once", "lasting", DEADLOCK)
Verb = Callable[[], object]


@dataclass(frozen=True)
class End:
    """What is left when all is settled, above all what nobody has ended."""

    left: list[str]
    visible: State
    files: set[str]


@dataclass
class Tried:
    """A verb and what it comes to: all that is compared with what a failure leaves.

    ``is_of_steps``: it may stop between two of its steps, and the same verb goes on from there.
    ``is_of_program``: its errors go to who types it, so one of a file system passes as it is.
    """

    scene: Scene
    verb: Verb
    is_of_steps: bool = False
    is_of_program: bool = False

    def run(self) -> None:
        """All failures of all ways. Raises AssertionError."""
        scene = self.scene
        self._saved, self._before = scene.save(), scene.visible()
        with scene.storage.failing(), scene.database.failing():
            self.verb()
        calls = (scene.storage, scene.storage.count), (scene.database, scene.database.count)
        self._done, self._after = scene.save(), scene.visible()
        self._ends = [self._end()]
        scene.restore(self._saved)
        self._ends.append(self._end())
        problems = []
        for failures, way, first in _tries(calls):
            scene.restore(self._saved)
            try:
                self._try(failures, way, first)
            except AssertionError as problem:
                problems.append(f"{way} at {first}, {failures.met}: {problem}")
        assert not problems, f"{len(problems)}:\n" + "\n".join(problems)

    def _end(self) -> End:
        return End(self.scene.settle(), self.scene.visible(), self.scene.files())

    def _try(self, failures: Failures, way: str, first: int) -> None:
        scene = self.scene
        error: Exception | None = None
        with failures.failing(first, way=way), _warnings() as self._said:
            try:
                self.verb()
            except Exception as raised:
                error = raised
        if not failures.is_met:
            return
        is_unchanged, is_done = scene.is_as(self._saved), scene.is_as(self._done)
        known = self._before if is_unchanged else self._after if is_done else None
        found = known or scene.visible()
        is_after = not different(found, self._after)
        self._check_error(error, found)
        self._check_state(error, found, is_lasting=way == "lasting")
        if way == DEADLOCK and not failures.met.startswith("after"):
            assert error is None and (is_after or self.is_of_steps), f"not tried again: {error}"
        # The other half of them leaves it to the house.
        is_repeated = bool(first % 2) and (error is not None or not is_after)
        if is_repeated:
            self._repeat(is_after, has_time=way == "lasting")
            leaves_out = is_after or self.is_of_steps
            what = different(scene.visible(), self._after, are_events_left_out=leaves_out)
            assert not what, ("repeated", what, error)
        if not scene.is_as(self._done) and not scene.is_as(self._saved):
            self._check_end(is_repeated=is_repeated)

    def _check_error(self, error: Exception | None, found: State) -> None:
        if error is None:
            return
        kinds: tuple[type[Exception], ...] = (HmsBridgeError,)
        if self.is_of_program:
            kinds += (ChangeManagerError, OSError)
        assert isinstance(error, kinds), f"{type(error).__name__}: {error}"
        assert len(str(error)) > 30 or isinstance(error, OSError), f"says too little: {error!r}"
        if "nothing was changed" in str(error) and not self.is_of_steps:
            assert not different(found, self._before), f"something was changed: {error}"

    def _check_state(self, error: Exception | None, found: State, *, is_lasting: bool) -> None:
        """The one before, or the one after; or nobody can tell before the database is back."""
        if self.is_of_steps:
            self._check_rows(found)
            return
        is_in_doubt = isinstance(error, CommitUnknownError) and is_lasting
        if is_in_doubt and "HMSB_FILE_TASK" in _kinds(self.scene.left()):
            return
        what = different(found, self._after)
        assert not what or not different(found, self._before), ("between", what, error)

    def _check_rows(self, found: State) -> None:
        """Of each table or partition the rows before, or those after. What a replica gets anew is
        empty until its write ids are known."""
        for place, state in enumerate(found):
            for name in (name for name in state if name.startswith("rows of")):
                known = (self._before[place].get(name, {}), self._after[place].get(name, {}))
                for part, rows in cast(dict[str, object], state[name]).items():
                    choices = [cast(dict[str, object], one).get(part) for one in known]
                    assert rows in ({}, *choices), ("between", name, part)

    def _repeat(self, is_after: bool, *, has_time: bool) -> None:
        """``has_time``: what could not even be given back runs out first."""
        try:
            self.verb()
        except Exception as error:
            if is_after and isinstance(error, MetastoreError | ReplError):
                return
            assert has_time, f"repeated: {type(error).__name__}: {error}"
            for world in self.scene.worlds:
                world.clock.advance_ms(CLAIM_MS + 1)
                world.metastore.run_housekeeping()
            self._repeat(is_after, has_time=False)

    def _check_end(self, *, is_repeated: bool) -> None:
        found = self._end()
        known = _kinds(self._ends[0].left + self._ends[1].left)
        left = [one for one in found.left if not _kinds([one]) <= known]
        assert not left, ("left", left)
        if self.is_of_steps:
            self._check_rows(found.visible)
            wanted, there = (_of_warehouses(one.files) for one in (self._ends[0], found))
            assert not is_repeated or wanted == there, ("stray", there - wanted, wanted - there)
            return
        differences = []
        for end in self._ends:
            what = different(found.visible, end.visible, are_events_left_out=is_repeated)
            stray = {one for one in found.files - end.files if not self._is_said(one)}
            if not what and not stray and found.files >= end.files:
                return
            differences.append((what, "stray", stray, "lost", end.files - found.files))
        raise AssertionError(("at the end", *differences))

    def _is_said(self, path: str) -> bool:
        """Whether a directory without files stays, and the log names it."""
        place = self.scene.folder / path
        return place.is_dir() and any(str(place) in text for text in self._said)


@contextmanager
def _warnings() -> Iterator[list[str]]:
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    try:
        yield said
    finally:
        logging.getLogger().removeHandler(handler)


def _kinds(left: list[str]) -> set[str]:
    return {one.split()[0] for one in left}


def _of_warehouses(files: set[str]) -> set[str]:
    return {one for one in files if "warehouse" in one.split("/")}


def _tries(calls: tuple[tuple[Failures, int], ...]) -> Iterator[tuple[Failures, str, int]]:
    """Each way at other calls; and once at the last one, which is the commit of most verbs."""
    for (failures, count), ways in zip(calls, (WAYS[:2], WAYS), strict=True):
        if not CALLS_MAX:
            yield from ((failures, way, n) for n in range(1, count + 1) for way in ways)
            continue
        every = max(1, count // CALLS_MAX)
        for place, first in enumerate(range(1, count + 1, every)):
            yield failures, ways[place % len(ways)], first
        if count:
            yield failures, "once", count
