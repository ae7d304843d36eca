"""What a failed Spark call says, in one line."""

from __future__ import annotations

_TRACEBACK = "Traceback (most recent call last):"
_OURS = ("hms_bridge.errors.", "changemanager.errors.", "cleaner.errors.")


def first_line(error: BaseException) -> str:
    """A Python task's own error if there is one (it ends its traceback), else the first line."""
    full = [line for line in str(error).splitlines() if line.strip()]
    lines = [line.strip() for line in full]
    own = [line for line in lines if line.startswith(_OURS)]
    if own:
        return own[-1].partition(": ")[2]
    ending = _end_of_traceback(full)
    if ending is not None:
        return ending
    return lines[0] if lines else type(error).__name__


def _end_of_traceback(lines: list[str]) -> str | None:
    """Frames are indented, the error below them is not; of a chain the last one was raised."""
    starts = [number for number, line in enumerate(lines) if _TRACEBACK in line]
    if not starts:
        return None
    below = lines[starts[-1] + 1 :]
    return next((line for line in below if not line[0].isspace()), None)
