"""A volume that holds the first Spark task that wants to write, until it is let go.

Cases arm a gate, run a statement, and know then which process of which executor is in the middle
of its work. Sent to executors by value: they cannot see this checkout.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ARMED, TAKEN, HELD, RELEASED = "armed", "taken", "held", "released"
_HELD_CALLS = frozenset({"make_working_directory", "make_directory", "open_output", "write_new"})


class GatedResolver:
    """Resolves as another one does; tasks' first call that writes stops at the gate."""

    def __init__(self, resolver: Callable[[str], Any], folder: str) -> None:
        self.resolver = resolver
        self.folder = folder

    def __call__(self, text: str) -> Any:
        location = self.resolver(text)
        return dataclasses.replace(location, volume=_Gated(location.volume, self.folder))


class _Gated:
    """A volume behind the gate."""

    def __init__(self, inner: Any, folder: str) -> None:
        self._inner = inner
        self._folder = folder

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in _HELD_CALLS:
            return found

        def held(*arguments: Any, **options: Any) -> Any:
            _pass(self._folder, str(arguments[0]))
            return found(*arguments, **options)

        return held


def _pass(folder: str, path: str) -> None:
    from pyspark import TaskContext

    if TaskContext.get() is None or not Path(folder, ARMED).exists():
        return
    try:
        place = os.open(f"{folder}/{TAKEN}", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        return  # another try is held already; this one goes on
    with os.fdopen(place, "w") as stream:
        json.dump({"pid": os.getpid(), "path": path}, stream)
    os.link(f"{folder}/{TAKEN}", f"{folder}/{HELD}")
    while not Path(folder, RELEASED).exists():
        time.sleep(0.02)


@contextlib.contextmanager
def by_value() -> Iterator[None]:
    """What is pickled within brings this module along."""
    import sys

    from pyspark import cloudpickle

    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)
