"""Options that verbs of ``repl`` share, and what they are called with."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hms_bridge.cli.options import (
    database_option,
    dry_run_option,
    format_option,
    metastore_option,
    settings_options,
)
from hms_bridge.cli.output import Row, print_record
from hms_bridge.cli.sides import source_side
from hms_bridge.config.settings import Settings
from hms_bridge.metastore import Metastore

if TYPE_CHECKING:
    from changemanager.manifest import ArchiveManifest
    from hms_bridge.connect import LocalStore

Command = TypeVar("Command", bound=Callable[..., object])
Verb = Callable[..., object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """What each verb is given: ``--metastore`` and the settings, how a person or a program wants to
    see what came of it, and whether the plan is all that is wanted."""

    metastore_url: str
    settings: Settings
    output_format: str = "table"
    is_dry_run: bool = False

    def connected(self) -> AbstractContextManager[Metastore]:
        """The metastore, which must be there."""
        from hms_bridge.connect import connected

        return connected(self.metastore_url, self.settings, is_created=False)

    def store(self, *, is_created: bool = False) -> AbstractContextManager[LocalStore]:
        """The database that is the metastore's own, where policies are; it must be there unless
        ``is_created``."""
        from hms_bridge.connect import connected_locally

        return connected_locally(self.metastore_url, self.settings, is_created=is_created)

    def source(self) -> AbstractContextManager[tuple[Metastore, ArchiveManifest | None]]:
        """The metastore as a source, and the manifest of its archive."""
        return source_side(self.metastore_url, self.settings)

    def print_record(self, record: Row) -> None:
        """In the form that is asked for."""
        print_record(record, self.output_format)


def called(
    *, has_plan: bool = False, needs_database: bool = False, has_output: bool = True
) -> Callable[[Verb], Verb]:
    """The options behind :class:`Call`; the verb gets ``call``. ``has_plan``: ``--dry-run``, too;
    ``needs_database``: a server's URL is not enough."""
    options: list[Callable[[Verb], Verb]] = [settings_options]
    options += [format_option] if has_output else []
    options += [database_option if needs_database else metastore_option]
    options += [dry_run_option] if has_plan else []
    names = ("metastore_url", "settings", "output_format", "is_dry_run")

    def decorated(command: Verb) -> Verb:
        @functools.wraps(command)
        def with_call(*args: object, **kwargs: Any) -> object:
            given = {name: kwargs.pop(name) for name in names if name in kwargs}
            return command(*args, call=Call(**given), **kwargs)

        verb: Verb = with_call
        for option in options:
            verb = option(verb)
        return verb

    return decorated


def dumps_root_option(command: Command) -> Command:
    """``--root DIR``: the verb gets ``given_root``, None where the setting counts."""
    return click.option(
        "--root", "given_root", metavar="DIR", help="Where dumps are.  [default: setting]"
    )(command)


def into_option(command: Command) -> Command:
    """``--into NAME``: the verb gets ``target_database``, None where it is called as there."""
    return click.option(
        "--into",
        "target_database",
        callback=_a_name,
        help="Database of the replica.  [default: the same]",
    )(command)


def _a_name(_context: click.Context, _parameter: click.Parameter, name: str | None) -> str | None:
    """As of a variable that is not set: none of the verbs takes it for the source's name."""
    if name is not None and not name.strip():
        raise click.UsageError(
            f"--into '{name}' names no database; without --into it is called as there"
        )
    return name


def source_of_database_option(command: Command) -> Command:
    """``--source URL``, without which the verb is of a policy: the verb gets ``source_url``."""
    return click.option(
        "--source",
        "source_url",
        metavar="URL",
        help="The source's metastore; POLICY is a database of it then.",
    )(command)


def depth_options(command: Verb) -> Verb:
    """``--checksums`` and ``--rows``, how closely both sides are compared: the verb gets
    ``depth``."""

    @click.option(
        "--checksums",
        "has_checksums",
        is_flag=True,
        help="Compare every byte of files that both sides have, also where the file system keeps "
        "no checksums.",
    )
    @click.option(
        "--rows", "has_rows", is_flag=True, help="Read and compare every row of ACID tables."
    )
    @functools.wraps(command)
    def with_depth(*args: object, has_checksums: bool, has_rows: bool, **kwargs: object) -> object:
        from hms_bridge.repl.compare.table_comparison import Depth

        depth = Depth(has_checksums=has_checksums, has_rows=has_rows)
        return command(*args, depth=depth, **kwargs)

    return with_depth


def require_two_databases(source: tuple[str, str], target: tuple[str, str]) -> None:
    """Raises UsageError where both sides, each a metastore's URL and a database, are the same."""
    if source[0] == target[0] and source[1].lower() == target[1].lower():
        raise click.UsageError(
            "--source and --metastore name one metastore, and there one database"
        )
