"""Opens both sides of a policy, for verbs that dump and load."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from hms_bridge.cli.copy_options import CopyOptions, copy_job
from hms_bridge.cli.dump_jobs import dump_job
from hms_bridge.cli.origin_options import named_in_policy, places_of_source
from hms_bridge.cli.output import say
from hms_bridge.cli.sides import side_settings, side_url, source_side
from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import Settings
from hms_bridge.errors import HmsBridgeError, NoSuchObjectError
from hms_bridge.metastore import Metastore
from hms_bridge.model.replication import ReplicationPolicy

if TYPE_CHECKING:
    from changemanager.manifest import ArchiveManifest
    from hms_bridge.repl.cycles.cycle import OpenCycle
    from hms_bridge.repl.load.distributed import CopyJob
    from hms_bridge.repl.load.repl_load import ReplLoad
    from hms_bridge.repl.repair.looking import RepairSides


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sides:
    """Both metastores of a policy, with the settings and the manifest of each side that has one."""

    policy: ReplicationPolicy
    source: Metastore
    target: Metastore
    manifest: ArchiveManifest | None
    source_settings: Settings
    target_settings: Settings


@contextmanager
def open_cycle(
    policy: ReplicationPolicy, store_url: str, copying: CopyOptions | None = None
) -> Iterator[OpenCycle]:
    """Both sides of a policy, each with its settings. Raises HmsBridgeError."""
    with (
        _opened(policy, store_url, is_created=True) as sides,
        copy_job(copying, sides.target_settings) as job,
    ):
        yield _cycle(sides, store_url, copying, job)


@contextmanager
def open_repair(
    policy: ReplicationPolicy,
    store_url: str,
    on_table: Callable[[str], None],
    *,
    wait: str | None,
    is_abort_allowed: bool,
) -> Iterator[RepairSides]:
    """The same for a repair, which makes no metastore; ``on_table`` is given each table that is
    compared. ``wait``, a duration, and ``is_abort_allowed`` are for writers that are open."""
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.repl.compare.repl_compare import ReplCompare
    from hms_bridge.repl.dump.discard import ReplDiscard
    from hms_bridge.repl.repair.looking import RepairSides

    with _opened(policy, store_url, is_created=False) as sides:
        clock, at_target = SystemClock(), file_systems(sides.target_settings)
        yield RepairSides(
            cycle=_cycle(sides, store_url, wait=wait, is_abort_allowed=is_abort_allowed),
            source=sides.source,
            target=sides.target,
            discarder=dump_job(ReplDiscard, sides.source, sides.manifest, sides.source_settings),
            comparer=ReplCompare(
                at_target, clock, source=sides.source, target=sides.target, on_table=on_table
            ),
            resolve=at_target,
        )


@contextmanager
def _opened(policy: ReplicationPolicy, store_url: str, *, is_created: bool) -> Iterator[_Sides]:
    """``is_created``: the replica's metastore may be new."""
    from hms_bridge.connect import connected

    source_settings, target_settings = side_settings(policy.source), side_settings(policy.target)
    with ExitStack() as stack:
        source, manifest = stack.enter_context(
            source_side(side_url(policy.source, store_url), source_settings)
        )
        target = stack.enter_context(
            connected(side_url(policy.target, store_url), target_settings, is_created=is_created)
        )
        _require_known_database(source, policy, source_settings)
        yield _Sides(
            policy=policy,
            source=source,
            target=target,
            manifest=manifest,
            source_settings=source_settings,
            target_settings=target_settings,
        )


def _require_known_database(
    source: Metastore, policy: ReplicationPolicy, settings: Settings
) -> None:
    """Raises NoSuchObjectError for a database that is not there and was never dumped: of one that
    was, the next dump says."""
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.dml.named import find_database
    from hms_bridge.repl.format.directories import list_dumps

    try:
        find_database(source, policy.source.database)
    except NoSuchObjectError:
        if not list_dumps(file_systems(settings), policy.root, policy.source.database):
            raise


def _cycle(
    sides: _Sides,
    store_url: str,
    copying: CopyOptions | None = None,
    job: CopyJob | None = None,
    *,
    wait: str | None = None,
    is_abort_allowed: bool = False,
) -> OpenCycle:
    from hms_bridge.cli.dump_options import DumpOptions
    from hms_bridge.cli.repl_requests import dump_request, load_request
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.repl.cycles.cycle import OpenCycle
    from hms_bridge.repl.dump.repl_dump import ReplDump
    from hms_bridge.repl.pinned_dumps import release_loaded_dumps
    from hms_bridge.repl.pins import given_up_of

    policy, manifest = sides.policy, sides.manifest
    at_source = file_systems(sides.source_settings)

    def release() -> None:
        if manifest is not None:
            release_loaded_dumps(at_source, manifest)
        _remove_expired(sides)

    return OpenCycle(
        dumper=dump_job(ReplDump, sides.source, manifest, sides.source_settings),
        loader=_loader(sides, job),
        dump=dump_request(
            policy.source.database,
            sides.source_settings,
            DumpOptions(
                root=policy.root,
                policy=policy.name,
                is_scope_changed=True,
                wait=wait,
                is_abort_allowed=is_abort_allowed,
            ),
            scope=policy.scope,
        ),
        load=load_request(
            policy.source.database,
            sides.target_settings,
            target_database=policy.target.database,
            root=policy.root,
            copying=copying,
            naming_command=partial(named_in_policy, policy.name, store_url),
        ),
        release=release,
        given_up=lambda: given_up_of(manifest, policy.source.database, at_source(policy.root).uri),
    )


def _loader(sides: _Sides, job: CopyJob | None) -> ReplLoad:
    """It reads files where the source's metastore says that they are, and notes that."""
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.connect import policies_of
    from hms_bridge.repl.load.repl_load import ReplLoad

    return ReplLoad(
        sides.target,
        file_systems(sides.target_settings),
        note=policies_of(sides.target),
        source=places_of_source(sides.source, sides.source_settings),
        job=job,
        on_waiting=say,
    )


def _remove_expired(sides: _Sides) -> None:
    """Loaded dumps of the policy that are old, if the settings of its source ask for it. The cycle
    has done its work: what stays here now goes with a later one."""
    from hms_bridge.cli.repl_requests import expiry_request
    from hms_bridge.repl.dump.expiry import ReplExpiry

    settings, policy = sides.source_settings, sides.policy
    if settings.repl.dump_clean_interval_ms == 0:
        return
    job = dump_job(ReplExpiry, sides.source, sides.manifest, settings)
    request = expiry_request(policy.source.database, settings, root=policy.root)
    try:
        job.run(job.plan(request))
    except (HmsBridgeError, OSError) as error:
        say(f"{policy.name}: expired dumps stay: {error}")
