"""From options and settings to what the replication room is asked for. Options win."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from hms_bridge.cli.copy_options import CopyOptions
from hms_bridge.cli.dump_options import DumpOptions
from hms_bridge.cli.origin_options import OriginOptions
from hms_bridge.cli.output import say
from hms_bridge.config.durations import parse_duration_ms
from hms_bridge.config.settings import LOAD_ROOTS, REPL_ROOT, WAREHOUSE, Settings
from hms_bridge.config.sizes import parse_size
from hms_bridge.connect import absolute_location, archive_root
from hms_bridge.errors import ConfigError
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.repl.compare.table_comparison import Depth
from hms_bridge.repl.drill.plan import DrillRequest
from hms_bridge.repl.dump.discard import DiscardRequest
from hms_bridge.repl.dump.expiry import ExpiryRequest
from hms_bridge.repl.dump.plan import DumpRequest, IncrementalRules
from hms_bridge.repl.dump.snapshot_wait import WaitRules
from hms_bridge.repl.format.untrusted import DumpRules, given_name
from hms_bridge.repl.format.verify import Reading
from hms_bridge.repl.lease import LeaseKind, LeaseRequest, LeaseRules
from hms_bridge.repl.load.distributed import CopyLimits
from hms_bridge.repl.load.plan import LoadRequest

_LOOKS_MIN = 20
"""How often open writers are looked for at least before a wait is over."""


def dump_request(
    database: str,
    settings: Settings,
    asked: DumpOptions,
    *,
    scope: ReplScope | None = None,
) -> DumpRequest:
    """A dump. ``scope`` None: the tables of the dump before.

    Raises ConfigError for a duration that is none, and if data of external tables is wanted
    without a place for it.
    """
    repl = settings.repl
    return DumpRequest(
        root=repl_root(asked.root, settings),
        database=database,
        cm_root=archive_root(settings) if settings.archive.is_enabled else None,
        is_archive_elsewhere_allowed=settings.archive.is_elsewhere_allowed,
        policy=asked.policy,
        is_bootstrap_forced=asked.is_bootstrap_forced,
        tables_anew=asked.tables_anew,
        scope=scope,
        is_scope_changed=asked.is_scope_changed,
        is_previous_kept=asked.is_previous_kept or repl.is_previous_kept,
        has_checksums=repl.has_checksums and not asked.has_no_checksums,
        external_base=_dumped_external_base(asked.external_base, settings),
        event_limit=repl.event_limit if asked.event_limit is None else asked.event_limit,
        wait=wait_rules(
            settings,
            wait=asked.wait,
            is_abort_allowed=asked.is_abort_allowed or repl.is_abort_allowed,
        ),
        events=IncrementalRules(
            batch_size=repl.event_batch_size,
            is_filtered=repl.is_filtered,
            is_unknown_empty=asked.is_unknown_empty,
            passed_kinds=repl.passed_kinds,
        ),
        lease=lease_rules(settings),
        user=getpass.getuser(),
        host=socket.gethostname(),
    )


def wait_rules(settings: Settings, *, wait: str | None, is_abort_allowed: bool) -> WaitRules:
    """How long to wait for open writers. Raises ConfigError for a duration that is none.

    A short wait looks often, so that it ends soon after the last of them.
    """
    wait_ms = settings.repl.open_txn_timeout_ms
    if wait is not None:
        wait_ms = parse_duration_ms(wait, "h")
    rules = WaitRules(timeout_seconds=wait_ms / 1000, is_abort_allowed=is_abort_allowed)
    return replace(rules, poll_seconds=min(rules.poll_seconds, rules.timeout_seconds / _LOOKS_MIN))


def _dumped_external_base(given: str | None, settings: Settings) -> str | None:
    """The option asks for the data by itself; the setting is the replica's, too."""
    repl = settings.repl
    if given is not None:
        return absolute_location(given, settings.hadoop)
    if repl.is_external_metadata_only:
        return None
    if repl.external_base is None:
        raise ConfigError(
            "hive.repl.dump.metadata.only.for.external.table is false, but nothing says where the "
            "replica keeps such data; set hive.repl.replica.external.table.base.dir"
        )
    return absolute_location(repl.external_base, settings.hadoop)


def discard_request(
    database: str, settings: Settings, *, root: str | None, dump: str | None
) -> DiscardRequest:
    """The end of a dump that is not wanted: its directory or name; None: the newest."""
    return DiscardRequest(
        root=repl_root(root, settings),
        database_name=given_name(database, "database"),
        dump=absolute_location(dump) if dump is not None and "/" in dump else dump,
        lease=lease_rules(settings),
        user=getpass.getuser(),
        host=socket.gethostname(),
    )


def expiry_request(
    database: str, settings: Settings, *, root: str | None = None, ttl: str | None = None
) -> ExpiryRequest:
    """Dumps that are old. ``ttl``: a duration; a bare number means days, as in Hive. Raises
    ConfigError for one that is none, or below 0."""
    ttl_ms = settings.repl.dump_ttl_ms if ttl is None else parse_duration_ms(ttl, "d")
    if ttl_ms < 0:
        raise ConfigError(f"--ttl is '{ttl}'; no dump is younger than 0d, so write at least that")
    return ExpiryRequest(
        root=repl_root(root, settings),
        database_name=given_name(database, "database"),
        ttl_ms=ttl_ms,
        lease=lease_rules(settings),
        user=getpass.getuser(),
        host=socket.gethostname(),
    )


def load_request(
    source_database: str,
    settings: Settings,
    *,
    target_database: str | None = None,
    root: str | None = None,
    external_base: str | None = None,
    copying: CopyOptions | None = None,
    is_drop_allowed: bool = False,
    origin: OriginOptions | None = None,
    naming_command: Callable[[Sequence[str]], str] | None = None,
) -> LoadRequest:
    """A load of the newest dump. Raises ConfigError for a bandwidth that is none, and for a place
    that is none."""
    copying = copying or CopyOptions()
    origin = origin or OriginOptions()
    roots = origin.files_from or settings.repl.load_roots
    bandwidth = settings.repl.bandwidth
    if copying.bandwidth is not None:
        bandwidth = parse_size(copying.bandwidth)
    base = settings.repl.external_base if external_base is None else external_base
    return LoadRequest(
        root=repl_root(root, settings),
        source_database=source_database,
        target_database=target_database,
        external_base=None if base is None else absolute_location(base, settings.hadoop),
        functions_root=absolute_location(settings.repl.functions_root, settings.hadoop),
        user=getpass.getuser(),
        host=socket.gethostname(),
        rules=dump_rules(settings),
        lease=lease_rules(settings),
        preflight=_preflight(copying, settings),
        bandwidth=bandwidth,
        copy_limits=CopyLimits(
            files_max=settings.repl.copied_files_max, bytes_max=settings.repl.copied_bytes_max
        ),
        retain_ms=settings.archive.retain_ms,
        is_drop_allowed=is_drop_allowed or settings.repl.is_drop_allowed,
        roots=load_roots(roots, settings),
        is_origin_trusted=origin.is_trusted,
        is_from_hive=origin.is_from_hive or settings.repl.is_from_hive,
        naming_command=naming_command,
    )


def load_roots(roots: Iterable[str], settings: Settings) -> tuple[str, ...]:
    """Places that files may come from; each means the same everywhere. Raises ConfigError."""
    return tuple(absolute_location(root, settings.hadoop, key=LOAD_ROOTS.name) for root in roots)


def look_roots(
    settings: Settings, *, files_from: Iterable[str] = (), target_settings: Settings | None = None
) -> tuple[str, ...]:
    """Places where a look at a dump finds its files: those that loads may read, as far as options
    and settings name them, and the source's own. ``settings``: of the source, and of the replica
    where ``target_settings`` are not given. Raises ConfigError."""
    named = (*files_from, *(target_settings or settings).repl.load_roots)
    external = settings.external_warehouse
    return (
        *load_roots(named, settings),
        absolute_location(settings.warehouse, settings.hadoop, key=WAREHOUSE.name),
        *([] if external is None else [absolute_location(external, settings.hadoop)]),
        archive_root(settings),
    )


def _preflight(copying: CopyOptions, settings: Settings) -> Reading:
    if copying.is_quick:
        return Reading.NONE
    if copying.is_read_first or settings.repl.is_read_first:
        return Reading.ALL
    return Reading.WHERE_NAMES_ARE_USED_AGAIN


def drill_request(
    source_database: str,
    source_settings: Settings,
    target_settings: Settings,
    *,
    root: str,
    scratch: str | None = None,
    depth: Depth,
    is_kept: bool = False,
) -> DrillRequest:
    """A drill of what is kept below the root: dumped as the source says, loaded as the replica.
    Raises ReplError for what is no name."""
    name = f"drill_of_{source_database}" if scratch is None else scratch
    return DrillRequest(
        dump=dump_request(source_database, source_settings, DumpOptions(root=root)),
        # What would go is the drill's own database, which is to be compared.
        load=replace(
            load_request(source_database, target_settings, root=root), is_drop_allowed=False
        ),
        scratch_database=given_name(name, "database"),
        depth=depth,
        is_kept=is_kept,
    )


def lease_rules(settings: Settings) -> LeaseRules:
    """When another one at work counts as dead."""
    return LeaseRules(dead_after_seconds=settings.txn.timeout_ms / 1000)


def lease_request(kind: LeaseKind, name: str, settings: Settings) -> LeaseRequest:
    """To be alone with a database or a policy, for whoever types this; a wait is announced."""
    return LeaseRequest(
        kind=kind,
        database_name=name,
        user=getpass.getuser(),
        host=socket.gethostname(),
        rules=lease_rules(settings),
        on_waiting=say,
    )


def dump_rules(settings: Settings) -> DumpRules:
    """What is believed of a dump."""
    return DumpRules(
        schemes=settings.repl.load_schemes,
        passed_kinds=settings.repl.passed_kinds,
    )


def repl_root(given: str | None, settings: Settings) -> str:
    """``given``, else hive.repl.rootdir; absolute, as a location with a scheme."""
    if given is not None:
        return absolute_location(given, settings.hadoop)
    return absolute_location(settings.repl.root, settings.hadoop, key=REPL_ROOT.name)
