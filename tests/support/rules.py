"""A rule over many things is one test, whose message names each of them that breaks it.

Thousands of cases of a millisecond each would cost more to collect and to report than to run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def holds_for(
    things: Iterable[Any], name: Callable[[Any], object] = str
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Makes a check of one thing the test of all: ``@holds_for(PATHS)``. A tuple is the check's
    arguments. The test fails for no things at all."""
    listed = list(things)

    def rule(check: Callable[..., None]) -> Callable[[], None]:
        def test() -> None:
            broken = []
            for thing in listed:
                try:
                    check(*thing) if isinstance(thing, tuple) else check(thing)
                except Exception as error:
                    broken.append(f"{name(thing)}: {type(error).__name__}: {error}")
            assert listed, "there is nothing to check"
            assert not broken, f"{len(broken)} of {len(listed)}:\n" + "\n".join(broken)

        test.__name__, test.__qualname__ = check.__name__, check.__qualname__
        test.__doc__, test.__module__ = check.__doc__, check.__module__
        return test

    return rule
