"""``hms-bridge``: finds the verb that was asked for, and loads nothing else."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import entry_points
from itertools import pairwise
from typing import Any, NoReturn

import click

from changemanager.errors import ChangeManagerError
from hms_bridge.errors import HmsBridgeError

_VERBS = {
    "serve": "hms_bridge.cli.serve:serve",
    "schema": "hms_bridge.cli.schema:schema",
    "spark": "hms_bridge.cli.spark:spark",
    "sql": "hms_bridge.cli.sql:sql",
    "table": "hms_bridge.cli.table:table",
    "compact": "hms_bridge.cli.compaction:compact",
    "compactions": "hms_bridge.cli.compaction:compactions",
    "initiator": "hms_bridge.cli.initiator:initiator",
    "hooks": "hms_bridge.cli.hooks:hooks",
    "txns": "hms_bridge.cli.transactions:txns",
    "locks": "hms_bridge.cli.transactions:locks",
    "cm": "hms_bridge.cli.archive:cm",
    "repl": "hms_bridge.cli.repl:repl",
    "demo": "hms_bridge.cli.demo:demo",
}
"""Verb, and where its command is. Other packages add theirs as entry points."""

_ENTRY_POINTS = "hms_bridge.commands"


_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, sorted."""
        return sorted({*_VERBS, *(point.name for point in entry_points(group=_ENTRY_POINTS))})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one verb; None for an unknown one."""
        if cmd_name in _VERBS:
            module, _, attribute = _VERBS[cmd_name].partition(":")
            command = getattr(importlib.import_module(module), attribute)
            return command if isinstance(command, click.Command) else None
        for point in entry_points(group=_ENTRY_POINTS, name=cmd_name):
            command = point.load()
            return command if isinstance(command, click.Command) else None
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs with their first lines, which are kept here so that nothing loads."""
        rows = [(name, _SUMMARIES.get(name, "")) for name in self.list_commands(ctx)]
        with formatter.section("Verbs"):
            formatter.write_dl(rows)


_SUMMARIES = {
    "cleaner": "Remove replaced files that no reader can see (archive first).",
    "cm": "The ChangeManager: what is archived, and its purge.",
    "compact": "Queue a compaction of a table or partition.",
    "compactions": "The compaction queue and its history.",
    "demo": "The main job, end to end, on tables that a real Hive wrote.",
    "hooks": "Code that is asked before changes, or told of them; how far it is behind.",
    "initiator": "Find what should be compacted, and queue it.",
    "locks": "Who holds which lock, and who waits.",
    "repl": "Dump, verify and load a database; how far a replica is.",
    "schema": "Make or check the metastore's database schema.",
    "serve": "Run the metastore server.",
    "spark": "Build what Spark's executors need, and check it.",
    "sql": "Run SQL on ACID tables.",
    "table": "Adopt a table directory that Hive left behind.",
    "txns": "Open and aborted transactions.",
}


class Program(LazyGroup):
    """The program: the last border, where errors become a message and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run, and end the process: 0 ok, 1 failed, 2 usage. ``--verbose`` may stand anywhere."""
        words, is_verbose = _without_verbose(sys.argv[1:] if args is None else args)
        ending = _JsonEnding(is_verbose) if _is_log_json(words) else _TextEnding(is_verbose)
        try:
            super().main(words, prog_name, complete_var, standalone_mode=False, **extra)
        except click.ClickException as error:
            ending.misused(error)
            sys.exit(error.exit_code)
        except click.exceptions.Exit as leaving:
            sys.exit(leaving.exit_code)
        except (click.Abort, KeyboardInterrupt):
            ending.write_line("stopped")
            sys.exit(1)
        except BrokenPipeError:
            _leave_closed_pipe()
        except (HmsBridgeError, ChangeManagerError) as error:
            ending.failed(str(error), error)
        except OSError as error:  # a file system's refusal says itself what to do
            ending.failed(_refusal_text(error), error)
        except Exception as error:  # the last border: a person never sees a traceback unasked
            ending.failed(f"unexpected {type(error).__name__}: {error}", error)
        sys.exit(0)


@click.command("hms-bridge", cls=Program, context_settings=_CONTEXT)
@click.version_option(package_name="hms-bridge")
@click.option("-v", "--verbose", is_flag=True, help="Log more, and show where an error came from.")
@click.pass_context
def cli(ctx: click.Context, verbose: bool) -> None:
    """A Hive-Metastore-compatible service, ACID compactor, cleaner and replication.

    \b
    Example:
      hms-bridge sql --metastore sqlite:///metastore.db -e "SELECT * FROM db.t"
    """
    ctx.obj = {"verbose": verbose}
    if verbose:
        os.environ.setdefault("HMS_BRIDGE_SPARK_LOG", "warn")  # read by spark/log4j2.properties
    level = logging.DEBUG if verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    logging.getLogger().addFilter(_is_no_interrupt)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    """Py4J logs Ctrl-C as an error with its traceback, by the root logger."""
    return not (record.exc_info and record.exc_info[0] is KeyboardInterrupt)


def main() -> None:
    """The program ``hms-bridge``."""
    _open_closed_streams()
    cli.main(prog_name="hms-bridge")


def _open_closed_streams() -> None:
    """Whoever started this may have closed them (``>&-``). Then the next file that is opened gets
    their number, and whatever is written to the stream would be written into that file."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        nothing = os.open(os.devnull, os.O_RDWR)
        if nothing != number:
            os.dup2(nothing, number)
            os.close(nothing)
        setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w"))


def _without_verbose(words: Sequence[str]) -> tuple[list[str], bool]:
    """People add it at the end of what just failed; click wants it before the verb."""
    end = list(words).index("--") if "--" in words else len(words)
    kept = [word for word in words[:end] if word != "--verbose"]
    if len(kept) == end:
        return list(words), bool(kept) and kept[0] == "-v"
    return ["--verbose", *kept, *words[end:]], True


def _refusal_text(error: OSError) -> str:
    """Without the number that Python puts before it."""
    if error.strerror is None:
        return str(error) or type(error).__name__
    return f"{error.strerror}: {error.filename}" if error.filename else error.strerror


class _TextEnding:
    """How the program's end is shown to a person."""

    def __init__(self, is_verbose: bool) -> None:
        self._is_verbose = is_verbose

    def misused(self, error: click.ClickException) -> None:
        """Words that cannot be understood, and how to ask for help."""
        error.show()

    def write_line(self, text: str) -> None:
        """What is said on the way out, as that the program was interrupted."""
        click.echo(text, err=True)

    def failed(self, text: str, error: BaseException) -> NoReturn:
        """An error, with its traceback if that was asked for."""
        self.write_line(f"error: {text}")
        if self._is_verbose:
            raise error
        if not isinstance(error, HmsBridgeError | ChangeManagerError):
            self.write_line("run again with --verbose to see where it came from")
        sys.exit(1)


class _JsonEnding(_TextEnding):
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


def _is_log_json(words: Sequence[str]) -> bool:
    """Asked before the words are understood, for what cannot be understood is answered so, too."""
    return "--log-format=json" in words or ("--log-format", "json") in pairwise(words)


def _leave_closed_pipe() -> NoReturn:
    """Who read our output has gone (``| head``): what Python still holds of it goes nowhere."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)


if __name__ == "__main__":
    main()
