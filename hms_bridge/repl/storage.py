"""What a storage refuses, in words of what it means for a verb."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from changemanager.errors import ChangeManagerError
from hms_bridge.errors import ReplError


@contextmanager
def explained_refusals(text: Callable[[Exception], str]) -> Iterator[None]:
    """Raises ReplError, with a text of its cause, where a file system or an archive refuses."""
    try:
        yield
    except (OSError, ChangeManagerError) as error:
        raise ReplError(text(error)) from error
