"""From a URL to a metastore: a database that is opened directly, or a server over thrift.

The library's front door::

    from hms_bridge.connect import connected

    with connected("sqlite:////data/metastore.db") as metastore:
        print(metastore.get_databases())
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from changemanager.archive import ChangeManager
from changemanager.archive_directory import hindrance
from changemanager.delete_protocol import DeleteProtocol
from changemanager.hadoop import HadoopConfig
from changemanager.location import Location, Resolver
from changemanager.manifest import ArchiveManifest
from changemanager.masking import masked_url, typable_url
from hms_bridge.backend.engine import POOL_SIZE, Database, is_in_memory, open_database
from hms_bridge.backend.schema.install import schema_info
from hms_bridge.backend.start_wait import await_start
from hms_bridge.clock import Clock, SystemClock
from hms_bridge.config.file_systems import file_systems
from hms_bridge.config.metastore_url import SQLITE, names_server, sqlite_file
from hms_bridge.config.protection import Protected, require_encrypted, require_none
from hms_bridge.config.settings import CM_ROOT, WAREHOUSE, Settings
from hms_bridge.errors import ConfigError
from hms_bridge.metastore import Metastore
from hms_bridge.policy_store import PolicyStore
from hms_bridge.service.archiving import Archiving
from hms_bridge.service.metastore_service import MetastoreService
from hms_bridge.service.open import new_token, open_local_metastore
from hms_bridge.service.relative_places import (
    folder_of,
    has_relative_places,
    is_relative,
    with_folder,
)

_HOST_AND_PORT = re.compile(r"[\w.-]+:\d+|\[[0-9a-fA-F:.]+\]:\d+")


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessPlace:
    """What a process that serves a metastore does and has of it: it keeps ``pool_size`` connections
    to the database, and calls hooks of events, or leaves that to another process of the server.
    ``processes``: how many those are together."""

    pool_size: int = POOL_SIZE
    tells_hooks: bool = True
    processes: int = 1


_ALONE = ProcessPlace()


@dataclass(frozen=True, kw_only=True)
class LocalStore:
    """A metastore over its own database, with the archive that stands beside it."""

    metastore: MetastoreService
    manifest: ArchiveManifest
    resolver: Resolver
    clock: Clock
    settings: Settings

    @property
    def policies(self) -> PolicyStore:
        """What is replicated from where to where, as this database keeps it."""
        return self.metastore.policies

    def database_id(self) -> str:
        """Which database this is, whoever serves it; made by the first who asks."""
        return self.manifest.store_id(new_token())

    def archive(self) -> ChangeManager:
        """The ChangeManager of the settings. Raises ChangeManagerError for a bad one.

        Its directory may be absent, which is an empty archive.
        """
        manager = self._archiving().change_manager()
        _require_directory(manager.cmroot)
        return manager

    def delete_protocol(self) -> DeleteProtocol:
        """What removes files, with the archive if it is on. Raises as above, but an archive that
        cannot be used now fails each removal that needs it."""
        return self._archiving().delete_protocol()

    def note_folder(self) -> None:
        """Relative places of the settings are of this folder from now on, wherever a verb is typed,
        unless another one is noted. For a server: it knows best."""
        if has_relative_places(self.settings):
            self.metastore.manifest.note_folder(str(Path.cwd()))

    def _archiving(self) -> Archiving:
        return Archiving(
            settings=self.settings.archive,
            cmroot=lambda: known_archive_root(self.settings, self.manifest, self.resolver),
            place=lambda text: absolute_location(text, self.settings.hadoop),
            resolve=self.resolver,
            manifest=self.manifest,
            clock=self.clock,
            new_id=new_token,
        )


def open_metastore(
    url: str, settings: Settings | None = None, *, is_created: bool = True
) -> Metastore:
    """A metastore. Raises ConfigError for a URL that is none, and where the settings ask for a
    protection of the connection that is not given; else as :func:`open_local`."""
    if names_server(url):
        require_none((settings or Settings()).access.asked, Protected.CLIENT)
        # A database does without the client of a server, which takes long to import.
        from hms_bridge.client.thrift_metastore import ThriftMetastoreClient

        return ThriftMetastoreClient(url)
    return open_local(url, settings, is_created=is_created).metastore


def policies_of(metastore: Metastore) -> PolicyStore | None:
    """What the database behind a metastore keeps of replication; None where a server stands before
    it."""
    return metastore.policies if isinstance(metastore, MetastoreService) else None


def open_local(
    url: str,
    settings: Settings | None = None,
    clock: Clock | None = None,
    *,
    is_created: bool = True,
    place: ProcessPlace = _ALONE,
) -> LocalStore:
    """A metastore over its own database. Tables that are missing are made in a SQLite file, unless
    ``is_created`` is false; in a server's database only by :func:`install_schema`: a mistyped URL
    must not look like an empty metastore. ``place``: of a process that is one of several.

    Raises ConfigError for a thrift address or another text that is no database URL, and for a
    database that is not there; BackendError for one without the metastore's tables.
    """
    return _open(url, settings, clock, is_created=is_created and _is_sqlite(url), place=place)


def _open(
    url: str,
    settings: Settings | None,
    clock: Clock | None,
    *,
    is_created: bool,
    place: ProcessPlace = _ALONE,
) -> LocalStore:
    _require_database(url)
    if not is_created:
        _require_file(url)
    folder, time = folder_of(url), clock or SystemClock()
    chosen = with_folder(settings or Settings(), folder)
    require_encrypted(url, chosen.access.asked)
    resolver = file_systems(chosen)
    service = open_local_metastore(
        shareable_url(url),
        warehouse=absolute_location(chosen.warehouse, chosen.hadoop, key=WAREHOUSE.name),
        settings=chosen,
        clock=time,
        resolve=resolver,
        create_schema=is_created,
        open_url=partial(open_database, pool_size=place.pool_size, processes=place.processes),
        tells_hooks=place.tells_hooks,
        folder=folder,
    )
    return LocalStore(
        metastore=service,
        manifest=service.manifest,
        resolver=resolver,
        clock=time,
        settings=chosen,
    )


@contextmanager
def connected(
    url: str, settings: Settings | None = None, *, is_created: bool = True
) -> Iterator[Metastore]:
    """A metastore for the length of a block. Raises as :func:`open_metastore`."""
    metastore = open_metastore(url, settings, is_created=is_created)
    try:
        yield metastore
    finally:
        metastore.close()


@contextmanager
def connected_locally(
    url: str,
    settings: Settings | None = None,
    clock: Clock | None = None,
    *,
    is_created: bool = True,
    place: ProcessPlace = _ALONE,
) -> Iterator[LocalStore]:
    """A metastore's own database for the length of a block. Raises as :func:`open_local`."""
    store = open_local(url, settings, clock, is_created=is_created, place=place)
    try:
        yield store
    finally:
        store.metastore.close()


def shareable_url(url: str) -> str:
    """The same for another process with another working directory."""
    path = sqlite_file(url)
    if path is None or path.startswith("/"):
        return url
    return f"{SQLITE}{Path(path).resolve()}"


def archive_root(settings: Settings) -> str:
    """The archive's place, the same everywhere. Raises ConfigError, also for all of this machine:
    a purge takes what is below it for archived; and where the settings ask for more than one."""
    require_none(settings.access.asked, Protected.ARCHIVE)
    root = absolute_location(settings.archive.root, settings.hadoop, key=CM_ROOT.name)
    if root in ("/", "file:", "file:/", "file://"):
        raise ConfigError(f"{CM_ROOT.name} is '{root}', a whole file system; name a directory")
    return root


def known_archive_root(settings: Settings, manifest: ArchiveManifest, resolve: Resolver) -> str:
    """The same. Raises ConfigError also for a relative place in whose stead the metastore has
    archived to another one: it is of another folder than this."""
    root = archive_root(settings)
    if is_relative(settings.archive.root):
        known, here = manifest.roots(), resolve(root).uri
        if known and here not in known:
            raise ConfigError(
                f"{CM_ROOT.name} is '{settings.archive.root}', which would be {here}, but this "
                f"metastore has archived to {', '.join(known)}; add --set "
                f"{CM_ROOT.name}={known[-1]}, or type this in the folder of its server. Where the "
                f"archive was moved: --set {CM_ROOT.name}={here}"
            )
    return root


def require_shareable(url: str) -> None:
    """Raises ConfigError for a database that other processes would not see, or each another."""
    _require_database(url)
    if is_in_memory(url):
        raise ConfigError(
            f"'{masked_url(url)}' is a database in the memory of one process: others would not see "
            "it; name a file, as sqlite:///metastore.db, or serve it by one process"
        )


def await_database(url: str, wait_ms: int, clock: Clock | None = None) -> None:
    """Wait until a database's server answers, for what starts with it; not for a file, nor for a
    metastore over thrift. Raises DatabaseAbsentError after ``wait_ms``, ConfigError."""
    if not names_server(url) and not _is_sqlite(url):
        _require_database(url)
        database = open_database(shareable_url(url))
        try:
            await_start(database, clock or SystemClock(), wait_ms)
        finally:
            database.close()


def absolute_location(text: str, hadoop: HadoopConfig | None = None, *, key: str = "") -> str:
    """A path or URI that means the same everywhere; relative paths are of this directory.

    Where ``hadoop`` has another default file system than this machine's, a bare path is of that
    one. Raises ConfigError for a relative path there, which would mean a user's home directory,
    and for an empty text, as an unset variable of a script gives, which would mean this directory;
    ``key`` is the setting that it comes from.
    """
    if not text.strip():
        raise ConfigError(f"{key + ' is ' if key else ''}'{text}', which names no directory")
    is_local = hadoop is None or hadoop.is_default_local
    if ":/" in text or (text.startswith("/") and is_local):
        return text.rstrip("/") or "/"
    if is_local or hadoop is None:
        return str(Path(text).resolve())
    if not text.startswith("/"):
        raise ConfigError(
            f"{key + ' is ' if key else ''}'{text}': bare paths are of {hadoop.default_fs} "
            "(fs.defaultFS); write an absolute path, or file:/… for this machine"
        )
    return f"{hadoop.default_prefix}{text}".rstrip("/")


def _is_sqlite(url: str) -> bool:
    """Whether it names a file, or memory, and no database of a server."""
    return url.startswith("sqlite:")


def install_schema(url: str, settings: Settings) -> None:
    """Make the tables that are missing, and the default database; which of Hive's versions an
    empty database gets, :func:`hms_bridge.service.schema.make_version` decides before."""
    _open(url, settings, None, is_created=True).metastore.close()


def is_set_up(url: str) -> bool:
    """Whether a metastore is there to be asked, or must be: only a SQLite file makes itself."""
    if names_server(url):
        return True
    _require_database(url)
    if not _is_sqlite(url):
        return True
    try:
        _require_file(url)
    except ConfigError:
        return False
    return bool(describe_schema(url)["usable"])


@contextmanager
def opened_database(url: str, *, is_made: bool = False) -> Iterator[Database]:
    """A database by itself, whatever schema it has, for the length of a block. A SQLite file must
    be there, unless it ``is_made``. Raises ConfigError otherwise, and for what is no database."""
    _require_database(url)
    if not is_made:
        _require_file(url)
    database = open_database(shareable_url(url))
    try:
        yield database
    finally:
        database.close()


@contextmanager
def planned_database(url: str) -> Iterator[Database]:
    """As :func:`opened_database`, to plan what an installation would make: for a SQLite file that
    is not there yet an empty database in memory stands in."""
    with opened_database("sqlite://" if _missing_file(url) is not None else url) as database:
        yield database


def describe_schema(url: str) -> dict[str, object]:
    """What schema a database has, and what it lacks. Raises as :func:`open_local`."""
    with opened_database(url) as database:
        schema = schema_info(database)
    step = schema.next_step(how_to_make(url))
    return {
        "database": database.name,
        "version": schema.version,
        "meaning of own tables": schema.meaning,
        "usable": step is None,
        "next step": step or "none",
        "missing tables": list(schema.missing_tables),
        "missing columns": list(schema.missing_columns),
    }


def how_to_make(url: str) -> str:
    """The command that makes a database's schema, without its password."""
    return f"hms-bridge schema init --database {shlex.quote(typable_url(url))}"


def _require_directory(cmroot: Location) -> None:
    try:
        why = hindrance(cmroot)
    except OSError as error:
        raise ConfigError(
            f"{CM_ROOT.name}: cannot look at {cmroot.uri}: {error}; check it"
        ) from error
    if why is not None:
        raise ConfigError(
            f"{CM_ROOT.name}: {cmroot.uri} is no directory, as it {why}; name another one for the "
            "archive"
        )


def _require_database(url: str) -> None:
    if _HOST_AND_PORT.fullmatch(url):
        raise ConfigError(
            f"'{url}' is no database; write thrift://{url} for a server, or a database as "
            "sqlite:///metastore.db"
        )
    shown = masked_url(url)
    if "://" not in url:
        raise ConfigError(
            f"'{shown}' is no database; write it as sqlite:///metastore.db, or a "
            "server as thrift://HOST:9083"
        )
    if names_server(url):
        raise ConfigError(
            f"'{shown}' is no database; this needs the metastore's own database, as "
            "sqlite:///metastore.db"
        )


def _missing_file(url: str) -> str | None:
    path = sqlite_file(url)
    return None if path is None or Path(path).is_file() else path


def _require_file(url: str) -> None:
    """SQLite would make the file."""
    path = _missing_file(url)
    if path is not None:
        # A timer's shell has another directory, and not the environment that a person has.
        where = "" if Path(path).is_absolute() else f" in {Path.cwd()}"
        raise ConfigError(
            f"there is no database {path}{where}; name it by --metastore or HMS_BRIDGE_METASTORE, "
            f"or make it with 'hms-bridge schema init --database {url}'"
        )
