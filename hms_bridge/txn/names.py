"""Names as the transaction tables keep them: lower case, but partition values as they are."""

from __future__ import annotations


def lower_partition(name: str | None) -> str | None:
    """``DS=Ab/HR=1`` as ``ds=Ab/hr=1``; None stays None, and "" becomes None."""
    if not name:
        return None
    parts = (part.partition("=") for part in name.split("/"))
    return "/".join(f"{key.lower()}{equals}{value}" for key, equals, value in parts)
