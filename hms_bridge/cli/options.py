"""Options that many verbs share, and what they stand for."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import click

from changemanager.hadoop import PREFIXES as HADOOP_PREFIXES
from changemanager.masking import masked_url
from hms_bridge.cli.output import FORMATS, say
from hms_bridge.config.hive_site import (
    hive_sites,
    read_hadoop_site,
    read_hive_site,
    site_of_environment,
)
from hms_bridge.config.jdbc import database_url, url_with_password
from hms_bridge.config.metastore_url import names_server
from hms_bridge.config.protection import PROTECTIONS, require_encrypted
from hms_bridge.config.reading import misspelt, refuse_unknown, settings_from
from hms_bridge.config.settings import CONNECTION_URL, KEYS, METASTORE_URIS, Settings
from hms_bridge.errors import ConfigError
from hms_bridge.model.target import TableName

Command = TypeVar("Command", bound=Callable[..., object])

DEFAULT_METASTORE = "sqlite:///metastore.db"
_GIVEN = "hms_bridge.given"
"""Where a verb's context keeps what settings were given: file and assignments."""
_URL = "hms_bridge.metastore"
"""Where it keeps the URL of its metastore."""


class _DatabaseOption(click.Option):
    """``--metastore`` of a verb that needs the metastore's own database."""


def metastore_option(command: Command) -> Command:
    """``--metastore URL`` (also spelt ``--database``): a database, or a thrift server.

    Goes above :func:`settings_options`, which looks into the settings if it is not given.
    """
    servers = "to open directly, or thrift://HOST:PORT of a server, ours or Hive's."
    return _metastore_option(click.Option, servers, "hive.metastore.uris or ")(command)


def database_option(command: Command) -> Command:
    """The same for a verb that opens the database itself."""
    return _metastore_option(_DatabaseOption, "of the metastore; no server.", "")(command)


def _metastore_option(
    option: type[click.Option], what: str, servers: str
) -> Callable[[Command], Command]:
    return click.option(
        "--metastore",
        "--database",
        "metastore_url",
        cls=option,
        envvar="HMS_BRIDGE_METASTORE",
        metavar="URL",
        help="A database (sqlite:///FILE, postgresql+psycopg://…, mysql+pymysql://…) "
        f"{what} @FILE: the URL stands in that file, as everybody sees command lines.  "
        f"[default: $HMS_BRIDGE_METASTORE, else {servers}"
        f"javax.jdo.option.ConnectionURL of the settings, else {DEFAULT_METASTORE}]",
    )


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
        help="A hive-site.xml.  [default: $HMS_BRIDGE_CONFIG, else that of $HIVE_CONF_DIR or "
        "$METASTORE_CONF_DIR, if there is one]",
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
        path = config_path or _from_environment()
        settings = load_settings(path, assignments)
        context = click.get_current_context()
        context.meta[_GIVEN] = path, assignments
        if "metastore_url" in kwargs and kwargs["metastore_url"] is None:
            kwargs["metastore_url"] = _metastore_of(settings, path, assignments)
        for name in ("metastore_url", "source_url"):
            if isinstance(given := kwargs.get(name), str):
                kwargs[name] = given_url(given, settings)
        metastore_url = context.meta[_URL] = kwargs.get("metastore_url")
        if context.invoked_subcommand is None:  # help of a verb below opens no database
            settings = _with_places(settings, metastore_url, kwargs.get("source_url"), assignments)
        return command(*args, settings=settings, **kwargs)

    return with_settings


def _with_places(
    settings: Settings, url: object, source_url: object, assignments: tuple[str, ...]
) -> Settings:
    """Relative places of the settings are of the metastore's folder, and the archive's of that of
    the source, if there is one; those of ``--set`` of the folder where it is typed."""
    placed = _in_folder_of(settings, url, assignments)
    if source_url is None:
        return placed
    return replace(placed, archive=_in_folder_of(settings, source_url, assignments).archive)


def _in_folder_of(settings: Settings, url: object, assignments: tuple[str, ...]) -> Settings:
    if not isinstance(url, str) or names_server(url):
        return settings
    from hms_bridge.service.relative_places import folder_of, has_relative_places, with_folder

    if not has_relative_places(settings):
        return settings
    typed = [text.partition("=")[0].strip() for text in assignments]
    return with_folder(settings, folder_of(url), typed)


def given_url(text: str, settings: Settings) -> str:
    """What an option such as ``--metastore`` is given, with the password that the settings have for
    it. Raises ConfigError, also where the settings ask for TLS that it does not."""
    url = url_of(text)
    require_encrypted(url, settings.access.asked)
    return url_with_password(url, settings.metastore.connection)


def metastore_of_verb(text: str | None, settings: Settings) -> str:
    """What ``--metastore`` was given, else as :func:`metastore_option` has it: for a verb that
    seldom needs it. Raises ConfigError."""
    path, assignments = click.get_current_context().meta[_GIVEN]
    return given_url(text or _metastore_of(settings, path, assignments), settings)


def url_of(text: str) -> str:
    """A URL, or that in ``@FILE``, as everybody on a machine sees command lines."""
    if not text.startswith("@"):
        return text
    path = Path(text[1:])
    try:
        url = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot read a URL from {path}: {reason}; check {text}") from error
    if not url or len(url.splitlines()) > 1:
        raise ConfigError(f"{path} has no URL in one line; write one, as sqlite:///metastore.db")
    return url


def _from_environment() -> Path | None:
    """Hive's own configuration, where its environment is set; a person reads which."""
    path = site_of_environment(os.environ)
    if path is not None:
        _say_once(f"settings of {path} (found by the environment)")
    return path


def _metastore_of(settings: Settings, path: Path | None, assignments: tuple[str, ...]) -> str:
    """The metastore that the settings name, or the default; which it is, is printed.

    Servers win over the database, as in Hive, unless the verb needs the database itself.
    Raises ConfigError for a database that cannot be opened.
    """
    place = settings.metastore
    command = click.get_current_context().command
    needs_database = any(isinstance(option, _DatabaseOption) for option in command.params)
    if place.thrift_uris and not needs_database:
        key, url = METASTORE_URIS, ",".join(place.thrift_uris)
    elif place.connection is not None:
        key, url = CONNECTION_URL, database_url(place.connection)
    else:
        if path is not None:
            hint = ", only servers" if place.thrift_uris else ""
            _say_once(
                f"metastore {DEFAULT_METASTORE} (the default: {path} names no database{hint})"
            )
        return DEFAULT_METASTORE
    assigned = {text.partition("=")[0].strip() for text in assignments}
    origin = "--set" if assigned & {*key.names} else str(path)
    name = key.aliases[0] if key.aliases else key.name
    _say_once(f"metastore {masked_url(url)} ({name} of {origin})")
    return url


def _say_once(text: str) -> None:
    """``txns abort`` reads the settings twice: for ``txns``, and for itself."""
    said: set[str] = click.get_current_context().meta.setdefault("hms_bridge.said", set())
    if text not in said:
        said.add(text)
        say(text)


def load_settings(config_path: Path | None, assignments: tuple[str, ...]) -> Settings:
    """The settings of a file and of ``--set`` options, which must be settings of ours.

    An assignment wins over the file also where the file has the setting's other name.
    """
    given = read_hive_site(config_path) if config_path else {}
    sites = hive_sites(config_path) if config_path else ()
    for site in sites[1:]:
        _say_once(f"settings of {site}, too")
    for name, meant in misspelt(given).items():
        _say_once(f"{config_path}: {name} is no setting and does nothing; did you mean {meant}?")
    assigned = dict(split_assignment("--set", text) for text in assignments)
    refuse_unknown_settings(assigned, "--set")
    for names in (*(key.names for key in KEYS), *(protection.names for protection in PROTECTIONS)):
        if assigned.keys() & names:
            given = {name: text for name, text in given.items() if name not in names}
    sources = [str(site) for site in sites]
    sources += ["--set"] if assigned else []
    return settings_from(
        {**given, **assigned},
        " and ".join(sources) or "settings",
        read_hadoop_site(os.environ),
    )


def refuse_unknown_settings(names: Iterable[str], source: str) -> None:
    """Raises ConfigError for a name that is neither a setting of ours nor of Hadoop's."""
    refuse_unknown((name for name in names if not name.startswith(HADOOP_PREFIXES)), source)


def settings_of_side(more: Mapping[str, str], url: str | None) -> Settings:
    """The settings of the verb that runs, and more: those of one side win. ``url``: of its
    metastore, None for that of the verb. Raises ConfigError."""
    meta = click.get_current_context().meta
    path, assignments = meta[_GIVEN]
    given = (*assignments, *(f"{key}={text}" for key, text in more.items()))
    return _in_folder_of(load_settings(path, given), url or meta.get(_URL), assignments)


def split_assignment(option: str, text: str) -> tuple[str, str]:
    """What an option such as ``--set`` is given. Raises UsageError."""
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise click.UsageError(f"{option} takes KEY=VALUE, not '{text}'")
    return key.strip(), value.strip()


def dry_run_option(command: Command) -> Command:
    """``--dry-run``: show the plan, change nothing."""
    return click.option(
        "--dry-run", "is_dry_run", is_flag=True, help="Show the plan and change nothing."
    )(command)


def duration_option_ms(option: str, text: str) -> int:
    """What an option such as ``--every`` is given, not negative. Raises UsageError, also for a bare
    number, which would be seconds to some and hours to Hive; ConfigError for no duration at all."""
    from hms_bridge.config.durations import parse_duration_ms

    if text.strip().lstrip("+-").isdecimal():
        raise click.UsageError(f"{option} takes a number and a unit, as 30m or 6h, not '{text}'")
    duration_ms = parse_duration_ms(text, "s")
    if duration_ms < 0:
        raise click.UsageError(f"{option} takes a duration that is not negative, as 6h")
    return duration_ms


def given_table(text: str) -> TableName:
    """``database.table`` or ``table`` (of ``default``), in lower case."""
    database, separator, name = text.strip().lower().rpartition(".")
    if not name or (separator and not database) or "." in database:
        raise click.UsageError(f"'{text}' is no table name; write database.table")
    return TableName(database or "default", name)
