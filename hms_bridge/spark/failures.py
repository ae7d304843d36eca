"""What a failed Spark call says, in one line."""

from __future__ import annotations

import re

_TRACEBACK = "Traceback (most recent call last):"
_OURS = ("hms_bridge.errors.", "changemanager.errors.", "cleaner.errors.")
_CAUSED_BY = "Caused by: "
_LOST = re.compile(r"Lost task \S+ in stage \S+ \(TID \d+\) \([^)]*\): (.*)")


def first_line(error: BaseException) -> str:
    """A Python task's own error if there is one (it ends its traceback), else Spark's first line
    with the last cause that Java gives for it."""
    full = [line for line in _text(error).splitlines() if line.strip()]
    lines = [line.strip() for line in full]
    own = [line for line in lines if line.startswith(_OURS)]
    if own:
        return own[-1].partition(": ")[2]
    ending = _end_of_traceback(full)
    if ending is not None:
        return ending
    if not lines:
        return type(error).__name__
    cause = _last_cause(lines)
    first = _subject(lines)
    return first if cause is None or cause in first else f"{first}: {cause}"


def _text(error: BaseException) -> str:
    """With Java's stack, which PySpark keeps apart where it has an error of its own for it."""
    stack = getattr(error, "_stackTrace", None)
    return f"{error}\n{stack}" if isinstance(stack, str) else str(error)


def _subject(lines: list[str]) -> str:
    """Py4J's first line names the call, its second what Java says."""
    if lines[0].startswith("An error occurred while calling") and len(lines) > 1:
        return lines[1].removeprefix(": ")
    return lines[0]


def _last_cause(lines: list[str]) -> str | None:
    """The deepest cause; where one above it ends in its words and says more, that one."""
    causes = [line.removeprefix(_CAUSED_BY) for line in lines if line.startswith(_CAUSED_BY)]
    lost = (_LOST.search(line) for line in lines)
    reasons = [match[1] for match in lost if match]
    if not causes:
        return reasons[-1] if reasons else None
    last = causes[-1]
    words = last.partition(": ")[2] or last
    return max((cause for cause in [*reasons, *causes] if cause.endswith(words)), key=len)


def _end_of_traceback(lines: list[str]) -> str | None:
    """Frames are indented, the error below them is not; of a chain the last one was raised."""
    starts = [number for number, line in enumerate(lines) if _TRACEBACK in line]
    if not starts:
        return None
    below = lines[starts[-1] + 1 :]
    return next((line for line in below if not line[0].isspace()), None)
