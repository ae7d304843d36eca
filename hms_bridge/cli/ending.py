"""The last border of the program, and of each process that it forks: where errors become a message
and an exit code."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from io import StringIO
from traceback import format_exception
from types import TracebackType
from typing import NoReturn

import click

from changemanager.errors import ChangeManagerError
from changemanager.masking import masked_text
from hms_bridge.errors import HmsBridgeError


class TextEnding:
    """How the program's end is shown to a person."""

    def __init__(self, is_verbose: bool) -> None:
        self._is_verbose = is_verbose

    def run(self, work: Callable[[], object]) -> NoReturn:
        """Do the work, and end the process: 0 ok, 1 failed, 2 usage."""
        try:
            work()
        except click.ClickException as error:
            self.misused(error)
            sys.exit(error.exit_code)
        except click.exceptions.Exit as leaving:
            sys.exit(leaving.exit_code)
        except (click.Abort, KeyboardInterrupt):
            self.write_line("stopped")
            sys.exit(1)
        except BrokenPipeError:
            _leave_closed_pipe()
        except (HmsBridgeError, ChangeManagerError) as error:
            self.failed(str(error), error)
        except OSError as error:  # a file system's refusal says itself what to do
            self.failed(_refusal_text(error), error)
        except Exception as error:  # the last border: a person never sees a traceback unasked
            self.failed(f"unexpected {type(error).__name__}: {error}", error)
        sys.exit(0)

    def misused(self, error: click.ClickException) -> None:
        """Words that cannot be understood, and how to ask for help."""
        shown = StringIO()
        error.show(shown)
        click.echo(masked_text(shown.getvalue()), err=True, nl=False)

    def write_line(self, text: str) -> None:
        """What is said on the way out, as that the program was interrupted."""
        click.echo(masked_text(text), err=True)

    def failed(self, text: str, error: BaseException) -> NoReturn:
        """An error, with its traceback if that was asked for."""
        self.write_line(f"error: {text}")
        if self._is_verbose:
            sys.excepthook = _show_traceback
            raise error
        if not isinstance(error, HmsBridgeError | ChangeManagerError):
            self.write_line("run again with --verbose to see where it came from")
        sys.exit(1)


class JsonEnding(TextEnding):
    """How it is written for a program that reads ``--log-format json``: in one such line."""

    def misused(self, error: click.ClickException) -> None:
        """At the level of an error, without the usage."""
        self._log(logging.ERROR, f"error: {error.format_message()}")

    def write_line(self, text: str) -> None:
        """At the level of information."""
        self._log(logging.INFO, text)

    def failed(self, text: str, error: BaseException) -> NoReturn:
        """An error; the traceback, if that was asked for, stands in the line."""
        self._log(logging.ERROR, f"error: {text}", error if self._is_verbose else None)
        sys.exit(1)

    def _log(self, level: int, text: str, error: BaseException | None = None) -> None:
        from hms_bridge.cli.logs import JsonFormatter

        trace = (type(error), error, error.__traceback__) if error is not None else None
        fields = {"name": "hms_bridge", "levelno": level, "msg": text, "exc_info": trace}
        record = logging.makeLogRecord({**fields, "levelname": logging.getLevelName(level)})
        click.echo(JsonFormatter().format(record), err=True)


def _show_traceback(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    click.echo(masked_text("".join(format_exception(kind, error, trace))), err=True, nl=False)


def _refusal_text(error: OSError) -> str:
    """Without the number that Python puts before it."""
    if error.strerror is None:
        return str(error) or type(error).__name__
    return f"{error.strerror}: {error.filename}" if error.filename else error.strerror


def _leave_closed_pipe() -> NoReturn:
    """Who read our output has gone (``| head``): what Python still holds of it goes nowhere."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)
