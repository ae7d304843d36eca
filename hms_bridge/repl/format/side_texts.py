"""The small JSON texts that dumps of ours have beside Hive's; a Hive passes over them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from hms_bridge.errors import ReplError
from hms_bridge.repl.format.untrusted import checked_name


@contextmanager
def parsing(what: str, path: str, way_out: str = "copy the dump again") -> Iterator[None]:
    """Read a text inside. Raises ReplError, naming ``path``, if it does not hold what it should."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ReplError(f"{path}: no {what}; it is damaged: {way_out}") from None


def format_names(names: Iterable[str]) -> str:
    """The text of a list of names."""
    return json.dumps(sorted(names)) + "\n"


def parse_names(text: str | None, path: str, what: str) -> frozenset[str]:
    """Read a list of names, none if it is not there. Raises ReplError, naming ``path``."""
    with parsing(f"list of {what}", path):
        names = json.loads(text or "[]")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise TypeError
        return frozenset(names)


def parse_table_names(text: str | None, path: str) -> frozenset[str]:
    """The same, of tables. Raises ReplError also for a name that no table has."""
    return frozenset(checked_name(name, "table") for name in parse_names(text, path, "tables"))
