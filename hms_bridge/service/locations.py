"""Where databases, tables and partitions lie by default. Pure; texts are URIs as Hive writes them.

Rules of Hive (Warehouse.getDefaultDatabasePath, getDefaultTablePath): ``default`` is the warehouse
itself, ``d`` is ``d.db`` below it; a table's name is its directory's name, with what is neither
letter nor digit as ``-<code>-``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from changemanager.errors import LocationError
from changemanager.filesystem.opening import BUCKET_SCHEMES
from changemanager.location import is_below, parse_uri
from hms_bridge.errors import ConfigError, InvalidObjectError
from hms_bridge.model.catalog import DEFAULT_CATALOG, DEFAULT_DATABASE, Database, Table


@dataclass(frozen=True, kw_only=True, slots=True)
class WarehouseRoots:
    """The directories of managed and of external tables; often the same.

    ``default_fs`` is the file system of locations that clients give without one. ``others``:
    more directories below which files of what is dropped may be deleted. ``served``: more
    directories below which others are made, and files counted.
    """

    managed: str
    external: str
    default_fs: str = "file:"
    others: tuple[str, ...] = ()
    served: tuple[str, ...] = ()

    @property
    def known(self) -> tuple[str, ...]:
        """The directories of whoever runs the metastore. Clients name locations anywhere, and it
        may do and see what they may not: elsewhere it makes nothing, and shows nothing of what is
        there."""
        return (self.managed, self.external, *self.others, *self.served)

    def uri(self, text: str, what: str) -> str:
        """A location as it is stored: absolute, one form for one place, with its file system.

        Raises InvalidObjectError; ``what`` says whose location it is.
        """
        try:
            parsed = parse_uri(text)
        except LocationError as error:
            raise InvalidObjectError(f"{what}: {error}") from error
        if parsed.path == "/" and parsed.scheme not in BUCKET_SCHEMES:
            raise InvalidObjectError(
                f"{what}: {text!r} is a whole file system; name a directory in it"
            )
        return parsed.uri if parsed.scheme else f"{self.default_fs}{parsed.path}"

    def directory(self, text: str, what: str) -> str:
        """:meth:`uri` of a table or partition. Raises InvalidObjectError, also for a place around a
        warehouse: all tables would lie in it, and could be neither made, emptied, moved nor
        cleaned."""
        uri = self.uri(text, what)
        for root in dict.fromkeys((self.managed, self.external)):
            if is_below(root, uri):
                raise InvalidObjectError(
                    f"{what}: {uri} is around the warehouse {root}; name a directory of its own"
                )
        return uri

    def database_location(self, database: Database, catalog: str | None = None) -> str:
        """Where the external tables of a new database go: what DBS keeps as its location. Those of
        other catalogs lie in the directory of theirs (Warehouse.determineDatabasePath)."""
        if catalog is not None and database.catalog_name != DEFAULT_CATALOG:
            return f"{catalog.rstrip('/')}/{database.name}.db"
        return _database_directory(self.external, database.name)

    def managed_location(self, database: Database) -> str:
        """Where the managed tables of a database go (Warehouse.getDatabaseManagedPath)."""
        if database.managed_location:
            return database.managed_location.rstrip("/")
        location = (database.location or self.database_location(database)).rstrip("/")
        if database.catalog_name != DEFAULT_CATALOG:
            return location  # one of that name in the catalog hive has the directory elsewhere
        is_in_external = self.external != self.managed and is_below(location, self.external)
        return _database_directory(self.managed, database.name) if is_in_external else location

    def table_location(self, database: Database, name: str, *, is_external: bool) -> str:
        """Where a table lies that gives no location."""
        if is_external:
            above = (database.location or self.database_location(database)).rstrip("/")
        else:
            above = self.managed_location(database)
        return f"{above}/{table_directory(name)}"


def warehouse_uri(text: str, default_fs: str = "file:") -> str:
    """A configured directory as an absolute URI; a relative path is one of this machine.

    Raises ConfigError, also for a relative path where bare paths are not of this machine.
    """
    try:
        if default_fs != "file:" and ":/" not in text and not text.startswith("/"):
            raise ConfigError(
                f"'{text}': bare paths are of {default_fs} (fs.defaultFS), and this one is "
                "relative; set hive.metastore.warehouse.dir and hive.repl.cmrootdir to absolute "
                "paths, or to file:/… for this machine"
            )
        if "://" not in text and not text.startswith(("/", "file:")):
            text = str(Path(text).absolute())
        parsed = parse_uri(text)
    except LocationError as error:
        raise ConfigError(f"warehouse directory: {error}") from error
    return parsed.uri if parsed.scheme else f"{default_fs}{parsed.path}"


def _database_directory(root: str, name: str) -> str:
    return root if name == DEFAULT_DATABASE else f"{root}/{name}.db"


def table_directory(name: str) -> str:
    """The directory of a table (MetaStoreUtils.encodeTableName)."""
    return "".join(c if c.isalnum() or c == "_" else f"-{ord(c)}-" for c in name)


def partition_location(table: Table, name: str) -> str | None:
    """Where a partition lies that gives no location; None if the table has none."""
    location = table.storage.location
    return f"{location.rstrip('/')}/{name}" if location else None


def parent(location: str) -> str:
    """Without a slash at its end; empty for a text without one."""
    return location.rstrip("/").rpartition("/")[0]
