"""``hms-bridge``: finds the verb that was asked for, and loads nothing else."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from itertools import pairwise
from typing import Any

import click

from hms_bridge.cli.ending import JsonEnding, TextEnding
from hms_bridge.cli.garbage import search_seldom

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
    "spark": "Build what Spark's executors need, and check it; plan what Spark reads.",
    "sql": "Run SQL on ACID tables.",
    "table": "Adopt a table directory that Hive left behind.",
    "txns": "Open and aborted transactions.",
}


class Program(LazyGroup):
    """The program, from its words to its exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run, and end the process: 0 ok, 1 failed, 2 usage, or as the verb's help says.

        ``--verbose`` may stand anywhere.
        """
        words, is_verbose = _without_verbose(sys.argv[1:] if args is None else args)
        ending = JsonEnding(is_verbose) if _is_log_json(words) else TextEnding(is_verbose)
        run = super().main
        extra = {"standalone_mode": False, "obj": {"ending": ending, "words": words}, **extra}

        def understood() -> object:
            _require_text(words)
            return run(words, prog_name, complete_var, **extra)

        ending.run(understood)


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
    ctx.obj = {**(ctx.obj or {}), "verbose": verbose}
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
    search_seldom()
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


def _require_text(words: Sequence[str]) -> None:
    """Raises UsageError for bytes that are no text in this locale: Python hands them on as half
    characters, which no name, URL or path of a metastore, dump or archive can have."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            shown = word.encode(errors="surrogateescape").decode(errors="backslashreplace")
            encoding = sys.getfilesystemencoding().upper()
            raise click.UsageError(
                f"'{shown}' is no {encoding}, which is the encoding of this shell's locale: type "
                "it so; a file with such a name needs another one"
            ) from error


def _without_verbose(words: Sequence[str]) -> tuple[list[str], bool]:
    """People add it at the end of what just failed; click wants it before the verb."""
    end = list(words).index("--") if "--" in words else len(words)
    kept = [word for word in words[:end] if word != "--verbose"]
    if len(kept) == end:
        return list(words), bool(kept) and kept[0] == "-v"
    return ["--verbose", *kept, *words[end:]], True


def _is_log_json(words: Sequence[str]) -> bool:
    """Asked before the words are understood, for what cannot be understood is answered so, too."""
    return "--log-format=json" in words or ("--log-format", "json") in pairwise(words)


if __name__ == "__main__":
    main()
