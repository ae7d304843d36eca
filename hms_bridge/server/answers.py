"""How a handler says which thrift methods it answers.

A method that none answers is refused with UNKNOWN_METHOD, on which clients fall back to an
older or newer form; a MetaException in its place would stop them (docs/hive/metastore.md §1, §2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, Generic, TypeVar, cast

from hms_bridge.wire.required import given
from hms_bridge.wire.structs import Struct

Answer = Callable[[Struct], Any]
"""Takes the arguments of a call; gives what goes into ``success``, None for void methods."""

StoreT = TypeVar("StoreT")
AnswerT = TypeVar("AnswerT", bound=Callable[..., Any])

_ANSWERED = "_answered_methods"
_GATHERED = "_is_gathered"


class Calls(Generic[StoreT]):
    """Base of the handlers that answer from a part of the metastore."""

    def __init__(self, store: StoreT) -> None:
        self._store = store


def answers(
    *names: str, of: str | None = None, is_gathered: bool = False
) -> Callable[[AnswerT], AnswerT]:
    """Mark a handler's method as the answer to these thrift methods. ``of``: the argument that it
    is given in place of them all; a call without it is refused, by a MetaError. ``is_gathered``: it
    waits for nothing but its share of what verbs of several clients do together
    (:mod:`hms_bridge.gathering`), or leaves before it does."""

    def mark(function: AnswerT) -> AnswerT:
        answer: Any = function if of is None else _of_argument(function, of)
        setattr(answer, _ANSWERED, names)
        setattr(answer, _GATHERED, is_gathered)
        return cast(AnswerT, answer)

    return mark


def _of_argument(function: Callable[..., Any], argument: str) -> Callable[..., Any]:
    @wraps(function)
    def answer(handler: object, args: Struct) -> Any:
        return function(handler, given(getattr(args, argument), argument))

    return answer


def answered_names(handler: type) -> tuple[str, ...]:
    """The thrift methods that a handler answers, sorted."""
    marked = (getattr(function, _ANSWERED, ()) for function in vars(handler).values())
    return tuple(sorted(name for names in marked for name in names))


def is_gathered(answer: Answer) -> bool:
    """Whether calls of it may be made on one thread with others of the kind."""
    return getattr(answer, _GATHERED, False)


def collect_answers(handlers: Iterable[object]) -> dict[str, Answer]:
    """Every marked method of the handlers, bound, by thrift method."""
    by_method: dict[str, Answer] = {}
    for handler in handlers:
        for attribute, function in vars(type(handler)).items():
            for name in getattr(function, _ANSWERED, ()):
                by_method[name] = getattr(handler, attribute)
    return by_method
