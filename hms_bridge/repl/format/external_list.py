"""`_file_list_external`: directories of external tables, whose data no archive protects
(docs/hive/replication.md §27)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from changemanager.errors import ChangeManagerError
from changemanager.location import parse_uri
from hms_bridge.errors import ReplError
from hms_bridge.repl.format.untrusted import DumpRules, checked_name, require_allowed_uri

_COPY_MODE = "FALLBACK_COPY"
_PARTS_MIN = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class ExternalDirectory:
    """One directory to copy. ``target`` is where the dump says it goes; the load decides itself."""

    source: str
    target: str
    table_name: str


def format_external_list(directories: Iterable[ExternalDirectory]) -> str:
    """The text of a list: `source#target#table#FALLBACK_COPY#null` lines."""
    return "".join(
        f"{directory.source}#{directory.target}#{directory.table_name}#{_COPY_MODE}#null\n"
        for directory in directories
    )


def parse_external_list(text: str, rules: DumpRules, where: str) -> tuple[ExternalDirectory, ...]:
    """Read a list. Raises ReplError for a line that is not believed."""
    directories = []
    for line in text.split("\n"):
        if not line.strip():
            continue
        parts = line.split("#")
        if len(parts) < _PARTS_MIN:
            raise ReplError(f"{where}: {line!r} should be source#target#table; dump again")
        try:
            require_allowed_uri(parts[0], rules)
            parse_uri(parts[1])
        except ChangeManagerError as error:
            raise ReplError(f"{where}: {error}") from error
        directories.append(
            ExternalDirectory(
                source=parts[0], target=parts[1], table_name=checked_name(parts[2], "table")
            )
        )
    return tuple(directories)


def external_target(base_directory: str, source: str) -> str:
    """Where the data of an external table goes: its source path below the base directory."""
    return f"{base_directory.rstrip('/')}{parse_uri(source).path}"
