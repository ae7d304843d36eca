"""The hook ``command``: runs a program for each event, without a shell."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence

from hms_bridge.config.settings import HOOK_COMMAND, Settings
from hms_bridge.errors import ConfigError
from hms_bridge.hooks.port import NotHeardError
from hms_bridge.hooks.told_json import told_json
from hms_bridge.model.hook import HookEvent

_SHOWN_MAX = 500


class CommandError(NotHeardError):
    """The program could not be started, did not end in time, or ended with another code than 0."""


class Command:
    """The program gets the event as JSON on its standard input, and ``HMS_BRIDGE_EVENT_KEY`` and
    ``HMS_BRIDGE_EVENT_TYPE`` in its environment. Nothing of an event is ever a word of the command
    line: names of tables are whatever a client likes."""

    def __init__(self, words: Sequence[str], timeout_seconds: float) -> None:
        self._words = tuple(words)
        self._timeout_seconds = timeout_seconds

    @classmethod
    def with_settings(cls, settings: Settings) -> Command:
        """Raises ConfigError if no program is named."""
        try:
            words = shlex.split(settings.hooks.command)
        except ValueError as error:
            raise ConfigError(f"{HOOK_COMMAND.name}: {error}; look at its quotes") from error
        if not words:
            raise ConfigError(f"hook command: name its program with {HOOK_COMMAND.name}")
        return cls(words, settings.hooks.timeout_ms / 1000)

    def on_event(self, event: HookEvent) -> None:
        """Run it. Raises CommandError."""
        names = {"HMS_BRIDGE_EVENT_KEY": event.key, "HMS_BRIDGE_EVENT_TYPE": event.type}
        try:
            done = subprocess.run(
                self._words,
                input=told_json(event).encode() + b"\n",  # which read of a shell waits for
                env={**os.environ, **names},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=self._timeout_seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise CommandError(
                f"{self._words[0]} did not end within {self._timeout_seconds:g} s; it was killed"
            ) from error
        except OSError as error:
            raise CommandError(
                f"{self._words[0]} cannot be run: {error.strerror or error}; "
                f"see {HOOK_COMMAND.name}"
            ) from error
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip()[-_SHOWN_MAX:]
            raise CommandError(
                f"{self._words[0]} ended with {done.returncode}" + (f": {said}" if said else "")
            )
