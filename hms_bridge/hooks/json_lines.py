"""The hook ``json-lines``: appends a line to a file."""

from __future__ import annotations

import os
from pathlib import Path

from hms_bridge.config.settings import JSON_LINES_FILE, Settings
from hms_bridge.errors import ConfigError
from hms_bridge.hooks.port import NotHeardError
from hms_bridge.hooks.told_json import told_json
from hms_bridge.model.hook import HookEvent


class JsonLinesError(NotHeardError):
    """The file cannot be written."""


class JsonLines:
    """Each event is on the disk before it counts as heard. A kill may leave half a line at the end;
    the next event begins on a line of its own, and the one that was cut off comes again."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def with_settings(cls, settings: Settings) -> JsonLines:
        """Raises ConfigError if no file is named."""
        if settings.hooks.json_lines_file is None:
            raise ConfigError(f"hook json-lines: name its file with {JSON_LINES_FILE.name}")
        return cls(Path(settings.hooks.json_lines_file))

    def on_event(self, event: HookEvent) -> None:
        """Append it. The file is opened each time, so that it may be moved away (logrotate).
        Raises JsonLinesError."""
        try:
            self._append(told_json(event).encode() + b"\n")
        except OSError as error:
            raise JsonLinesError(
                f"{self._path.absolute()} cannot be written: {error.strerror or error}; "
                f"see {JSON_LINES_FILE.name}"
            ) from error

    def _append(self, line: bytes) -> None:
        # Messages have all parameters of tables, passwords of data sources among them.
        with open(self._path, "a+b", opener=_for_owner_alone) as file:
            if file.tell() and not _ends_with_line(file.fileno(), file.tell()):
                line = b"\n" + line
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


def _for_owner_alone(path: str, flags: int) -> int:
    """A new file is the owner's; one that is there keeps its mode (a log shipper may read it)."""
    return os.open(path, flags, 0o600)


def _ends_with_line(descriptor: int, size: int) -> bool:
    return os.pread(descriptor, 1, size - 1) == b"\n"
