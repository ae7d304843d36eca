"""The hook ``command``: runs a program for each event, without a shell."""

from __future__ import annotations

import os
import selectors
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO

from hms_bridge.config.settings import HOOK_COMMAND, Settings
from hms_bridge.errors import ConfigError
from hms_bridge.hooks.marked_processes import kill_marked
from hms_bridge.hooks.port import NotHeardError
from hms_bridge.hooks.told_json import told_json
from hms_bridge.model.hook import HookEvent

RUN = "HMS_BRIDGE_COMMAND_RUN"
"""Which run of a program it is that a process comes from: no other has the same."""

_PASSED_ON = frozenset(
    {
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TMPDIR", "TZ", "LANG", "LANGUAGE",
        "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "JAVA_HOME", "HADOOP_HOME",
        "HADOOP_CONF_DIR", "HIVE_CONF_DIR", "KRB5CCNAME", "KRB5_CONFIG", "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    }
)  # fmt: skip
_PASSED_PREFIXES = ("LC_", "HMS_BRIDGE_HOOK_")
_SHOWN_MAX = 500
_PIECE_BYTES = 64 * 1024
_STEP_SECONDS = 0.05
"""How soon the end of a program is seen whose standard error something else keeps open."""


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
        names[RUN] = f"{os.getpid()}-{threading.get_native_id()}-{time.monotonic_ns()}"
        text = told_json(event).encode() + b"\n"  # which read of a shell waits for
        try:
            environment = {**passed_on(os.environ), **names}
            code, end = _run(self._words, text, environment, self._timeout_seconds)
        except subprocess.TimeoutExpired as error:
            raise CommandError(
                f"{self._words[0]} did not end within {self._timeout_seconds:g} s; it was killed"
            ) from error
        except OSError as error:
            raise CommandError(
                f"{self._words[0]} cannot be run: {error.strerror or error}; "
                f"see {HOOK_COMMAND.name}"
            ) from error
        if code != 0:
            said = end.decode(errors="replace").strip()[-_SHOWN_MAX:]
            raise CommandError(
                f"{self._words[0]} ended with {code}" + (f": {said}" if said else "")
            )


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """What a program gets of the server's environment: what programs need to run, and what an
    administrator named for hooks. Any other variable may hold a password, whatever its name."""
    return {
        name: value
        for name, value in environment.items()
        if name in _PASSED_ON or name.startswith(_PASSED_PREFIXES)
    }


def _run(
    words: Sequence[str], text: bytes, environment: Mapping[str, str], timeout_seconds: float
) -> tuple[int, bytes]:
    """A program's exit code, and the end of what it wrote to its standard error.

    It is over when it ends itself: what it leaves behind may have its pipes for as long as it
    likes. Who does not end in time is killed with all that it started, else each try would leave
    some of that. Raises TimeoutExpired, and OSError if it cannot be started.
    """
    deadline = time.monotonic() + timeout_seconds
    with subprocess.Popen(
        words,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            end = _talk(process, text, deadline)
            return process.wait(max(0.0, deadline - time.monotonic())), end
        except BaseException:
            # It was not waited for, so the number is still its own.
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                kill_marked(f"{RUN}={environment[RUN]}")
            raise


def _talk(process: subprocess.Popen[bytes], text: bytes, deadline: float) -> bytes:
    """Write to it, and read from it, until it ends, closes both pipes, or the time is over; the end
    of what it said, as it may say more than there is memory for."""
    assert process.stdin is not None
    assert process.stderr is not None
    rest, end = memoryview(text), b""
    with selectors.DefaultSelector() as pipes:
        for pipe, what in (
            (process.stdin, selectors.EVENT_WRITE),
            (process.stderr, selectors.EVENT_READ),
        ):
            os.set_blocking(pipe.fileno(), False)
            pipes.register(pipe, what)
        has_ended = False
        while pipes.get_map() and not has_ended and time.monotonic() < deadline:
            # Asked before its pipes: what it said is there by then, and a piece is a pipe full.
            has_ended = process.poll() is not None
            came = [key.fileobj for key, _ in pipes.select(0 if has_ended else _STEP_SECONDS)]
            if process.stderr in came:
                piece = os.read(process.stderr.fileno(), _PIECE_BYTES)
                end = (end + piece)[-_SHOWN_MAX:]
                if not piece:
                    pipes.unregister(process.stderr)
            if process.stdin in came:
                rest = _write(process.stdin, rest)
                if not rest:
                    pipes.unregister(process.stdin)
                    process.stdin.close()
    return end


def _write(pipe: IO[bytes], rest: memoryview) -> memoryview:
    """What is left to write; nothing to who does not read any more."""
    try:
        return rest[os.write(pipe.fileno(), rest) :]
    except BrokenPipeError:
        return rest[:0]
