"""How a handler says which thrift methods it answers.

A method that none answers is refused with UNKNOWN_METHOD, on which clients fall back to an
older or newer form; a MetaException in its place would stop them (docs/hive/metastore.md §1, §2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from hms_bridge.wire.structs import Struct

Answer = Callable[[Struct], Any]
"""Takes the arguments of a call; gives what goes into ``success``, None for void methods."""

AnswerT = TypeVar("AnswerT", bound=Callable[..., Any])

_ANSWERED = "_answered_methods"


def answers(*names: str) -> Callable[[AnswerT], AnswerT]:
    """Mark a handler's method as the answer to these thrift methods."""

    def mark(function: AnswerT) -> AnswerT:
        setattr(function, _ANSWERED, names)
        return function

    return mark


def answered_names(handler: type) -> tuple[str, ...]:
    """The thrift methods that a handler answers, sorted."""
    marked = (getattr(function, _ANSWERED, ()) for function in vars(handler).values())
    return tuple(sorted(name for names in marked for name in names))


def collect_answers(handlers: Iterable[object]) -> dict[str, Answer]:
    """Every marked method of the handlers, bound, by thrift method."""
    found: dict[str, Answer] = {}
    for handler in handlers:
        for attribute, function in vars(type(handler)).items():
            for name in getattr(function, _ANSWERED, ()):
                found[name] = getattr(handler, attribute)
    return found
