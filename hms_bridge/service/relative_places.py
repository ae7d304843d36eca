"""Relative places in the settings are of one folder, wherever a verb is typed.

Were they of the folder where it is typed, a cleaner typed elsewhere would archive where no load
looks. The folder is that of a new SQLite file, or else the one in which the first server started;
the database keeps it. A database of earlier versions has none until then: its places are of the
folder where a verb is typed, as they were.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from hms_bridge.archive.base_folder import noted_folder
from hms_bridge.backend.engine import open_database
from hms_bridge.catalog.catalogs import find_catalog
from hms_bridge.config.metastore_url import names_server, sqlite_file
from hms_bridge.config.settings import (
    CM_ROOT,
    EXTERNAL_WAREHOUSE,
    FUNCTIONS_ROOT,
    WAREHOUSE,
    Settings,
)
from hms_bridge.config.values import Key
from hms_bridge.errors import HmsBridgeError
from hms_bridge.model.catalog import DEFAULT_CATALOG


def folder_of(url: str) -> str | None:
    """The folder of a metastore's database; None for that in which the verb is typed."""
    path = sqlite_file(url)
    beside = None if path is None else str(Path(path).parent.resolve())
    if "://" not in url or names_server(url) or (path is not None and not Path(path).is_file()):
        return beside
    try:
        database = open_database(url)
    except HmsBridgeError:
        return beside  # whoever opens it next says what is wrong
    try:
        with database.transaction(write=False) as connection:
            noted = noted_folder(connection)
            is_new = noted is None and find_catalog(connection, DEFAULT_CATALOG) is None
    except HmsBridgeError:
        return beside
    finally:
        database.close()
    return beside if is_new else noted


def is_relative(text: str | None) -> bool:
    """Whether a place is of some folder. An empty text names no place, and is refused elsewhere."""
    return text is not None and bool(text.strip()) and not text.startswith("/") and ":/" not in text


def has_relative_places(settings: Settings) -> bool:
    """Whether archive or warehouse are of some folder. On a cluster no place is."""
    places = (settings.archive.root, settings.warehouse)
    return settings.hadoop.is_default_local and any(map(is_relative, places))


def with_folder(settings: Settings, folder: str | None, typed: Collection[str] = ()) -> Settings:
    """The settings with their relative places in a folder. Those of ``typed`` settings are of the
    folder where they were typed, as paths in a shell are."""
    if folder is None or not settings.hadoop.is_default_local:
        return settings

    def absolute(text: str, key: Key) -> str:
        if not is_relative(text):
            return text
        above = Path.cwd() if {*key.names} & {*typed} else Path(folder)
        return str((above / text).resolve())

    external = settings.external_warehouse
    return replace(
        settings,
        warehouse=absolute(settings.warehouse, WAREHOUSE),
        external_warehouse=external and absolute(external, EXTERNAL_WAREHOUSE),
        archive=replace(settings.archive, root=absolute(settings.archive.root, CM_ROOT)),
        repl=replace(
            settings.repl, functions_root=absolute(settings.repl.functions_root, FUNCTIONS_ROOT)
        ),
    )
