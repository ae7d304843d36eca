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
from tests.failures.scene import Scene, different
from tests.support.failures import DEADLOCK, Failures

CALLS_MAX = int(os.environ.get("HMS_BRIDGE_FAILED_CALLS", "4"))
"""At so many calls of storage and of database, evenly spread, each verb fails, in one way after the
other; with 0 at all of them in all ways."""
WAYS = ("once", "lasting", DEADLOCK)
Rows = dict[str, object]
Verb = Callable[[], object]
Prepare = Callable[[], Verb]


@dataclass(frozen=True)
class End:
    """What is left when all is settled; of what nobody ended, the kinds."""

    visible: list[dict[str, object]]
    files: set[str]
    left: set[str]


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
        self._saved = scene.save()
        self._before = scene.visible()
        counts = self._count()
        self._after, self._done = scene.visible(), scene.save()
        self._ends = [self._end()]
        scene.restore(self._saved)
        self._ends.append(self._end())
        problems = []
        for failures, way, first in _tries(counts):
            scene.restore(self._saved)
            try:
                self._try(failures, way, first)
            except AssertionError as problem:
                problems.append(f"{way} at {first}, {failures.met}: {problem}")
        assert not problems, f"{len(problems)}:\n" + "\n".join(problems)

    def _end(self) -> End:
        self.scene.settle()
        return End(self.scene.visible(), self.scene.files(), _kinds(self.scene.left()))

    def _count(self) -> dict[Failures, int]:
        scene = self.scene
        with scene.storage.failing(None), scene.database.failing(None):
            self.verb()
        return {scene.storage: scene.storage.count, scene.database: scene.database.count}

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
        if error is not None:
            self._check_error(error)
        is_unchanged, is_done = scene.is_as(self._saved), scene.is_as(self._done)
        known = self._before if is_unchanged else self._after if is_done else None
        found = known or scene.visible()
        is_after = not different(found, self._after)
        if self.is_of_steps:
            self._check_rows(found)
        else:
            is_lie = "nothing was changed" in str(error) and different(found, self._before)
            assert not is_lie, f"something was changed: {error}"
            is_before = not different(found, self._before)
            is_doubt = isinstance(error, CommitUnknownError) and way == "lasting"
            is_noted = is_doubt and "HMSB_FILE_TASK" in _kinds(scene.left())
            assert is_after or is_before or is_noted, (
                "between",
                different(found, self._after),
                error,
            )
        if way == DEADLOCK and not failures.met.startswith("after"):
            assert error is None and (is_after or self.is_of_steps), f"not tried again: {error}"
        is_repeated = bool(first % 2) and (error is not None or not is_after)
        if is_repeated:
            self._repeat(is_after, has_time=way == "lasting")
            is_done = scene.is_as(self._done)
        if is_done:
            return
        if is_repeated:
            leaves_out = is_after or self.is_of_steps
            what = different(scene.visible(), self._after, are_events_left_out=leaves_out)
            assert not what, ("repeated", what, error)
        elif is_unchanged:
            return
        self._check_end(is_repeated=is_repeated)

    def _check_rows(self, found: list[dict[str, object]]) -> None:
        """Of each table or partition the rows before, or those after."""
        for place, state in enumerate(found):
            known = self._before[place], self._after[place]
            for name in state:
                if not name.startswith("rows of"):
                    continue
                for part, rows in cast(Rows, state[name]).items():
                    choices = [cast(Rows, one.get(name, {})).get(part) for one in known]
                    # What a replica gets anew is empty until its write ids are known.
                    assert rows in ({}, *choices), ("between", name, part)

    def _check_error(self, error: Exception) -> None:
        kinds: tuple[type[Exception], ...] = (HmsBridgeError,)
        if self.is_of_program:
            kinds += (ChangeManagerError, OSError)
        assert isinstance(error, kinds), f"{type(error).__name__}: {error}"
        assert len(str(error)) > 30 or isinstance(error, OSError), f"says too little: {error!r}"

    def _repeat(self, is_after: bool, *, has_time: bool) -> None:
        """``has_time``: what could not even be given back runs out first."""
        try:
            self.verb()
        except Exception as error:
            if is_after and isinstance(error, MetastoreError | ReplError):
                return
            if not has_time:
                raise AssertionError(f"repeated: {type(error).__name__}: {error}") from error
            for world in self.scene.worlds:
                world.clock.advance_ms(CLAIM_MS + 1)
                world.metastore.run_housekeeping()
            self._repeat(is_after, has_time=False)

    def _check_end(self, *, is_repeated: bool) -> None:
        found = self._end()
        left = [
            one for one in self.scene.left() if not any(_kinds([one]) <= e.left for e in self._ends)
        ]
        assert not left, ("left", left)
        if self.is_of_steps:
            self._check_rows(found.visible)
            wanted = {one for one in self._ends[0].files if "/warehouse/" in f"/{one}"}
            there = {one for one in found.files if "/warehouse/" in f"/{one}"}
            assert not is_repeated or wanted == there, ("stray", there - wanted, wanted - there)
            return
        differences = []
        for wanted in self._ends:
            what = different(found.visible, wanted.visible, are_events_left_out=is_repeated)
            stray = {one for one in found.files - wanted.files if not self._is_said(one)}
            if not what and not stray and found.files >= wanted.files:
                return
            differences.append((what, "stray", stray, "lost", wanted.files - found.files))
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


def _tries(counts: dict[Failures, int]) -> Iterator[tuple[Failures, str, int]]:
    """Of each way the same number of calls, each way others; and the last one, which is a commit
    of most verbs."""
    for failures, ways in zip(counts, (WAYS[:2], WAYS), strict=True):
        count = counts[failures]
        every = max(1, count // CALLS_MAX) if CALLS_MAX else 1
        for first in range(1, count + 1, every) if CALLS_MAX else ():
            yield failures, ways[(first // every) % len(ways)], first
        for first in (count,) if CALLS_MAX and count else range(1, count + 1):
            for way in ways[:1] if CALLS_MAX else ways:
                yield failures, way, first
