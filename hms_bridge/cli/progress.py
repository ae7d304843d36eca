"""What a person sees while a verb works: on standard error, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

_TEXT = TextColumn("{task.description}")

Advance = Callable[[int], None]
"""Given how many bytes were done since the last call; fewer than 0 where some are done again."""


_AROUND: ContextVar[Progress | None] = ContextVar("progress", default=None)
"""The spinners of a block: a terminal has one live display at a time."""


@contextmanager
def working(text: str) -> Iterator[Callable[[str], None]]:
    """A spinner with the time that has gone by; the block may change its text. Within another one
    it is a line below that."""
    around = _AROUND.get()
    if around is not None:
        with _line(around, text) as change:
            yield change
        return
    with _progress(SpinnerColumn(), _TEXT, TimeElapsedColumn()) as progress:
        token = _AROUND.set(progress)
        try:
            with _line(progress, text) as change:
                yield change
        finally:
            _AROUND.reset(token)


@contextmanager
def _line(progress: Progress, text: str) -> Iterator[Callable[[str], None]]:
    task = progress.add_task(text, total=None)

    def change(other: str) -> None:
        progress.update(task, description=other)

    try:
        yield change
    finally:
        progress.remove_task(task)


@contextmanager
def bytes_bar(text: str, total_bytes: int) -> Iterator[Advance]:
    """A bar that fills as the block reports what it has done, from any thread: how much, how fast,
    and how long it will still take."""
    columns = (_TEXT, BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with _progress(*columns) as progress:
        task = progress.add_task(text, total=total_bytes)

        def advance(size_bytes: int) -> None:
            progress.advance(task, size_bytes)

        yield advance


def _progress(*columns: ProgressColumn) -> Progress:
    console = Console(stderr=True)
    is_shown = console.is_terminal and sys.stderr.isatty()
    return Progress(*columns, console=console, transient=True, disable=not is_shown)
