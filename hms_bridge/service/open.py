"""Open a metastore over a database: the parts put together."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace

from changemanager.location import Resolver
from hms_bridge.archive.base_folder import note_folder
from hms_bridge.backend.engine import Database, open_database
from hms_bridge.backend.retry import RetrySettings
from hms_bridge.backend.schema.install import check_schema, install
from hms_bridge.catalog.built_in import install_default
from hms_bridge.clock import Clock, SystemClock
from hms_bridge.config.file_systems import file_systems
from hms_bridge.config.settings import Settings
from hms_bridge.errors import ConfigError
from hms_bridge.hooks.loading import event_hooks, inner_hooks
from hms_bridge.hooks.port import EventHook
from hms_bridge.notification.message_text import MessageFormat
from hms_bridge.service.archive_manifest import SqlArchiveManifest
from hms_bridge.service.archiving import Archiving
from hms_bridge.service.directories import Directories
from hms_bridge.service.drops import Drops
from hms_bridge.service.file_work import FileWork
from hms_bridge.service.foundation import Foundation
from hms_bridge.service.hook_positions import StoredPositions
from hms_bridge.service.hooks import HookDispatcher
from hms_bridge.service.known_file_systems import KnownFileSystems
from hms_bridge.service.locations import WarehouseRoots, warehouse_uri
from hms_bridge.service.metastore_service import MetastoreService
from hms_bridge.service.unit_of_work import Transactions, UnitOfWork
from hms_bridge.service.warehouse_files import WarehouseFiles


def new_token() -> str:
    """A text that nobody else has."""
    return uuid.uuid4().hex


def open_local_metastore(
    url: str,
    *,
    warehouse: str | None = None,
    settings: Settings | None = None,
    clock: Clock | None = None,
    hooks: Sequence[EventHook] = (),
    create_schema: bool = True,
    resolve: Resolver | None = None,
    directories: Directories | None = None,
    make_token: Callable[[], str] = new_token,
    retry: RetrySettings | None = None,
    open_url: Callable[[str], Database] = open_database,
    shares_turns: bool = True,
    tells_hooks: bool = True,
    folder: str | None = None,
) -> MetastoreService:
    """Open ``sqlite:///FILE``, ``postgresql://…`` or ``mysql://…`` as a metastore.

    ``warehouse`` goes before the setting of that name. ``hooks`` are called besides those that
    the settings name. With ``create_schema`` what is missing of the schema is made, and the
    database ``default``. ``make_token`` gives texts that nobody else has. With ``shares_turns``
    verbs of transactions that come at the same time share a commit. Without ``tells_hooks`` hooks
    that hear after the commit are another process's affair; it must have registered them before.
    ``folder`` is noted with ``create_schema`` as that of relative places, unless one is noted.
    Raises ConfigError, BackendError.
    """
    chosen = settings or Settings()
    if warehouse is not None:
        chosen = replace(chosen, warehouse=warehouse)
    roots = _roots(chosen)
    hooks_of_events = event_hooks(chosen, hooks) if tells_hooks else ()
    dispatcher = HookDispatcher(hooks_of_events, new_id=make_token, kept_by=chosen.event_ttl_name)
    inner = inner_hooks(chosen)
    message_format = _message_format(chosen)
    database = open_url(url)
    try:
        transactions = Transactions(
            database,
            clock or SystemClock(),
            message_format=message_format,
            hooks=dispatcher,
            inner_hooks=inner,
            settings=chosen,
            retry=retry,
            shares_turns=shares_turns,
        )
        _prepare(database, transactions, roots.external, folder, is_created=create_schema)
        resolver = KnownFileSystems(
            resolve or file_systems(chosen), _file_systems_of(chosen, roots), chosen.hadoop
        )
        service = _assembled(transactions, roots, resolver, directories, make_token)
        transactions.look_for_hooks()
        dispatcher.start(StoredPositions(transactions))
    except BaseException:
        database.close()
        raise
    return service


def _roots(settings: Settings) -> WarehouseRoots:
    default_fs = settings.hadoop.default_prefix
    served, base = settings.location_roots, settings.repl.external_base
    # Where external tables of replicas go; "/" (they keep their paths) would be everywhere.
    if base and base.strip("/"):
        served += (base,)
    return WarehouseRoots(
        managed=warehouse_uri(settings.warehouse, default_fs),
        external=warehouse_uri(settings.external_warehouse or settings.warehouse, default_fs),
        default_fs=default_fs,
        others=tuple(warehouse_uri(root, default_fs) for root in settings.deletion_roots),
        served=tuple(warehouse_uri(root, default_fs) for root in served),
    )


def _assembled(
    transactions: Transactions,
    roots: WarehouseRoots,
    resolver: KnownFileSystems,
    directories: Directories | None,
    make_token: Callable[[], str],
) -> MetastoreService:
    settings = transactions.settings.archive
    manifest = SqlArchiveManifest(transactions)
    archiving = Archiving(
        settings=settings,
        cmroot=lambda: warehouse_uri(settings.root, roots.default_fs),
        place=lambda text: warehouse_uri(text, roots.default_fs),
        resolve=resolver,
        manifest=manifest,
        clock=transactions.clock,
        new_id=make_token,
    )
    directories = directories or Directories(resolver)
    protocol = archiving.delete_protocol()
    files = WarehouseFiles(
        transactions=transactions,
        roots=roots,
        directories=directories,
        is_connected=resolver.has,
        archive=protocol.archive,
    )
    file_work = FileWork(
        transactions=transactions,
        files=files,
        directories=directories,
        protocol=protocol,
        new_id=make_token,
    )
    foundation = Foundation(
        transactions=transactions,
        files=files,
        file_work=file_work,
        drops=Drops(transactions, files, file_work),
        roots=roots,
    )
    return MetastoreService(foundation, manifest)


def _message_format(settings: Settings) -> MessageFormat:
    try:
        return MessageFormat(settings.events.message_format)
    except ValueError as error:
        known = ", ".join(message_format.value for message_format in MessageFormat)
        raise ConfigError(
            f"event message format '{settings.events.message_format}' is unknown; use {known}"
        ) from error


def _prepare(
    database: Database,
    transactions: Transactions,
    root: str,
    folder: str | None,
    *,
    is_created: bool,
) -> None:
    if not is_created:
        check_schema(database)
        return

    def make_first_objects(unit: UnitOfWork) -> None:
        install_default(unit.connection, root, unit.now_seconds)
        if folder is not None:
            note_folder(unit.connection, folder)

    install(database)
    transactions.write(make_first_objects)


def _file_systems_of(settings: Settings, roots: WarehouseRoots) -> list[str]:
    """A place on each file system that the settings name."""
    hadoop, archive = settings.hadoop, settings.archive
    named = [*settings.known_file_systems, *(f"hdfs://{name}" for name in hadoop.web_addresses)]
    if archive.is_enabled:
        named += [archive.root, *([archive.trash] if archive.trash else ())]
    places = [warehouse_uri(place, roots.default_fs) for place in named]
    return [roots.managed, roots.external, *roots.others, hadoop.default_fs, *places]
