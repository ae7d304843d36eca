"""What the harness raises.

::

    RefereeError                a referee could not be installed, started or asked
    ├─ InstallError             a part is not to be had; says which, why and what to do
    ├─ StartError               a server died or never became ready; carries the end of its log
    └─ StatementError           the engine refused a statement; `message` is its own text
"""

from __future__ import annotations


class RefereeError(Exception):
    """Root of all errors of the harness."""


class InstallError(RefereeError):
    """A part that a referee needs cannot be installed."""

    def __init__(self, *, part: str, why: str, remedy: str) -> None:
        super().__init__(f"cannot install {part}: {why}\nwhat to do: {remedy}")
        self.part = part
        self.why = why
        self.remedy = remedy


class StartError(RefereeError):
    """A server died or did not become ready in time."""


class StatementError(RefereeError):
    """An engine refused a statement."""

    def __init__(self, *, engine: str, statement: str, message: str) -> None:
        super().__init__(f"{engine} refused: {statement}\n{message}")
        self.engine = engine
        self.statement = statement
        self.message = message
