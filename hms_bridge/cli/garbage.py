"""How often Python looks for garbage in this program."""

from __future__ import annotations

import atexit
import gc

_NEW_OBJECTS_A_SEARCH = 20_000
"""Python's own number is 700. Until so many are there, some megabytes wait at most."""


def search_seldom() -> None:
    """A third of a short verb went by in searches of what was just loaded, the last of them at the
    exit, when all of it is given back with the process anyway."""
    gc.set_threshold(_NEW_OBJECTS_A_SEARCH)
    atexit.register(gc.freeze)


def spare_what_is_loaded() -> None:
    """What is loaded by now stays. Else each full search goes through all of it again, and the
    answer with a thousand partitions is reason enough for one: tens of thousands of objects, none
    of which is garbage yet."""
    gc.collect()
    gc.freeze()
