"""Options that many verbs share, and what they stand for."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from changemanager.hadoop import PREFIXES as HADOOP_PREFIXES
from hms_bridge.cli.output import FORMATS
from hms_bridge.config.hive_site import read_hadoop_site, read_hive_site
from hms_bridge.config.settings import Settings, refuse_unknown, settings_from

Command = TypeVar("Command", bound=Callable[..., object])

DEFAULT_METASTORE = "sqlite:///metastore.db"


def metastore_option(command: Command) -> Command:
    """``--metastore URL`` (also spelt ``--database``): a database, or a thrift server."""
    return click.option(
        "--metastore",
        "--database",
        "metastore_url",
        envvar="HMS_BRIDGE_METASTORE",
        default=DEFAULT_METASTORE,
        show_default=True,
        metavar="URL",
        help="A database (sqlite:///FILE, postgresql+psycopg://…, mysql+pymysql://…) to open "
        "directly, or thrift://HOST:PORT of a server, ours or Hive's.",
    )(command)


def format_option(command: Command) -> Command:
    """``--format table|json|jsonl``."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(FORMATS),
        default="table",
        show_default=True,
        help="A table for people; JSON or JSON lines for programs.",
    )(command)


def settings_options(command: Callable[..., object]) -> Callable[..., object]:
    """``--config hive-site.xml`` and ``--set key=value``; the verb gets ``settings``."""

    @click.option(
        "--config",
        "config_path",
        type=click.Path(path_type=Path, dir_okay=False),
        envvar="HMS_BRIDGE_CONFIG",
        help="A hive-site.xml.",
    )
    @click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="KEY=VALUE",
        help="One setting; wins over the file. May be repeated.",
    )
    @functools.wraps(command)
    def with_settings(
        *args: object, config_path: Path | None, assignments: tuple[str, ...], **kwargs: object
    ) -> object:
        return command(*args, settings=load_settings(config_path, assignments), **kwargs)

    return with_settings


def load_settings(config_path: Path | None, assignments: tuple[str, ...]) -> Settings:
    """The settings of a file and of ``--set`` options, which must be settings of ours."""
    given = read_hive_site(config_path) if config_path else {}
    assigned = dict(_assignment(text) for text in assignments)
    refuse_unknown((key for key in assigned if not key.startswith(HADOOP_PREFIXES)), "--set")
    sources = [str(config_path)] if config_path else []
    sources += ["--set"] if assigned else []
    return settings_from(
        {**given, **assigned},
        " and ".join(sources) or "settings",
        read_hadoop_site(os.environ),
    )


def _assignment(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise click.UsageError(f"--set takes KEY=VALUE, not '{text}'")
    return key.strip(), value.strip()


def dry_run_option(command: Command) -> Command:
    """``--dry-run``: show the plan, change nothing."""
    return click.option(
        "--dry-run", "is_dry_run", is_flag=True, help="Show the plan and change nothing."
    )(command)


def split_table_name(text: str) -> tuple[str, str]:
    """``database.table`` or ``table`` (of ``default``), in lower case."""
    database, separator, name = text.strip().lower().rpartition(".")
    if not name or (separator and not database) or "." in database:
        raise click.UsageError(f"'{text}' is no table name; write database.table")
    return database or "default", name
