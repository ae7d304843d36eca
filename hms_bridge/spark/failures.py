"""What a failed Spark call says, in one line."""

from __future__ import annotations

_OURS = ("hms_bridge.errors.", "changemanager.errors.", "cleaner.errors.")


def first_line(error: BaseException) -> str:
    """A Python task's own error if there is one (it ends its traceback), else the first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    own = [line for line in lines if line.startswith(_OURS)]
    if own:
        return own[-1].partition(": ")[2]
    return lines[0] if lines else type(error).__name__
