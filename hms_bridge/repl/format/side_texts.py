"""The small JSON texts that dumps of ours have beside Hive's; a Hive passes over them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from hms_bridge.errors import ReplError
from hms_bridge.model.ids import EventId
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


def format_origin(hashes: Mapping[EventId, str | None]) -> str:
    """The text of hashes of events at the source; None: one that its log has no more."""
    return json.dumps({"events": {str(event_id): text for event_id, text in hashes.items()}}) + "\n"


def parse_origin(
    text: str | None, path: str, way_out: str = "copy the dump again"
) -> dict[EventId, str]:
    """Read them, as far as they are known; none where a dump has no such text. Raises ReplError."""
    with parsing("hashes of events", path, way_out):
        events = json.loads(text or '{"events": {}}')["events"]
        return {EventId(int(at)): str(noted) for at, noted in events.items() if noted is not None}
