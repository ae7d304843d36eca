"""Where the files of a dump may come from, as ``repl load`` is asked for it."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from changemanager.masking import typable_url
from hms_bridge.cli.options import given_url, settings_of_side
from hms_bridge.config.settings import LOAD_ROOTS, Settings
from hms_bridge.metastore import Metastore

if TYPE_CHECKING:
    from hms_bridge.repl.load.admission import SourcePlaces

_TRUST = "--trust-origin"
_FILES_FROM = "--files-from"


@dataclass(frozen=True, kw_only=True, slots=True)
class OriginOptions:
    """``files_from``: directories of the source; ``source_url``: its metastore, which says where
    they are. ``is_trusted``: as the dump says. ``is_from_hive``: the dump may lack a manifest."""

    files_from: tuple[str, ...] = ()
    source_url: str | None = None
    is_trusted: bool = False
    is_from_hive: bool = False


def origin_options(command: Callable[..., object]) -> Callable[..., object]:
    """``--files-from``, ``--source``, ``--trust-origin`` and ``--from-hive``; the verb gets
    ``origin``."""

    @click.option(
        _FILES_FROM,
        "files_from",
        multiple=True,
        metavar="DIR",
        help="Read files below this directory of the source, and below no other that is not named. "
        "May be repeated.  [default: as at the last load]",
    )
    @click.option(
        "--source",
        "source_url",
        metavar="URL",
        help="The source's metastore: read files where it says that the database's tables are.",
    )
    @click.option(
        _TRUST,
        "is_trusted",
        is_flag=True,
        help="Read files wherever this dump names them, and below these directories from now on.",
    )
    @click.option(
        "--from-hive",
        "is_from_hive",
        is_flag=True,
        help="Take a dump of Hive, which has no manifest and cannot prove that it is whole.  "
        "[default: setting]",
    )
    @functools.wraps(command)
    def with_origin(
        *args: object,
        files_from: tuple[str, ...],
        source_url: str | None,
        is_trusted: bool,
        is_from_hive: bool,
        **kwargs: object,
    ) -> object:
        origin = OriginOptions(
            files_from=files_from,
            source_url=source_url,
            is_trusted=is_trusted,
            is_from_hive=is_from_hive,
        )
        return command(*args, origin=origin, **kwargs)

    return with_origin


def places_of_source(metastore: Metastore, settings: Settings) -> SourcePlaces:
    """What a source's metastore, and the settings of its side, say of where its files are."""
    from hms_bridge.connect import archive_root
    from hms_bridge.repl.load.admission import SourcePlaces

    cm_root = archive_root(settings) if settings.archive.is_enabled else None
    return SourcePlaces(metastore=metastore, cm_root=cm_root)


@contextmanager
def asked_source(origin: OriginOptions, settings: Settings) -> Iterator[SourcePlaces | None]:
    """What ``--source`` says, by settings of its own folder; None without it. Raises ConfigError,
    MetastoreUnavailableError."""
    from hms_bridge.connect import connected

    if origin.source_url is None:
        yield None
        return
    url = given_url(origin.source_url, settings)
    at_source = settings_of_side({}, url)
    with connected(url, at_source, is_created=False) as source:
        yield places_of_source(source, at_source)


def looked_at_option(command: Callable[..., object]) -> Callable[..., object]:
    """``--files-from`` of a verb that copies nothing; the verb gets ``files_from``."""
    return click.option(
        _FILES_FROM,
        "files_from",
        multiple=True,
        metavar="DIR",
        help="Look for files that a dump names below this directory of the source, too. May be "
        "repeated.",
    )(command)


def looked_at_too(roots: Sequence[str]) -> str:
    """The command that was typed, with more places where it may look for files."""
    typed = click.get_current_context().find_root().obj["words"]
    return shlex.join(["hms-bridge", *map(typable_url, typed), *_naming(roots)])


def _naming(roots: Sequence[str]) -> list[str]:
    return [word for root in roots for word in (_FILES_FROM, root)]


def typed_again(roots: Sequence[str]) -> str:
    """The command that was typed, with places that it may read files from."""
    typed = click.get_current_context().find_root().obj["words"]
    words = ["hms-bridge", *map(typable_url, _without_origin(typed))]
    named = _naming(roots)
    return (
        f"type '{shlex.join([*words, *named])}', which names them for this load and the next ones; "
        f"or '{shlex.join([*words, _TRUST])}', which takes what this dump names"
    )


def named_in_policy(policy: str, store_url: str, roots: Sequence[str]) -> str:
    """The command that names places in a policy."""
    setting = f"{LOAD_ROOTS.name}={','.join(roots)}"
    words = ["policy", "add", policy, "--replace", "--target-set", setting]
    store = ["--metastore", typable_url(store_url)]
    return f"type '{shlex.join(['hms-bridge', 'repl', *words, *store])}'"


def _without_origin(words: Sequence[str]) -> Iterator[str]:
    """Words without the options that say where files come from."""
    given = iter(words)
    for word in given:
        if word == _FILES_FROM:
            next(given, None)
        elif word != _TRUST and not word.startswith(f"{_FILES_FROM}="):
            yield word
