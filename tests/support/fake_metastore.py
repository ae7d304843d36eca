"""A metastore that remembers how it was called and answers what it was told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class FakeMetastore:
    """Implements every method of the port: ``answers`` by name, an exception is raised.

    Calls are kept as (name, positional arguments, keyword arguments). A callable answer is called.
    """

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = answers
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)

        def answer(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                self.calls.append((name, args, kwargs))
            value = self.answers.get(name)
            if isinstance(value, BaseException):
                raise value
            return value(*args, **kwargs) if callable(value) else value

        return answer
