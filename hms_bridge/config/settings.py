"""The settings as frozen records, made once at start. Below ``cli/`` nobody reads a string key."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from changemanager.errors import ChangeManagerConfigError
from changemanager.hadoop import DEFAULT_FS, HadoopConfig
from hms_bridge.config import keys
from hms_bridge.config.hive_site import require_resolved
from hms_bridge.config.jdbc import JdbcConnection
from hms_bridge.config.keys import KEYS
from hms_bridge.config.values import GivenValues
from hms_bridge.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class TxnSettings:
    """Rules of transactions and locks."""

    timeout_ms: int = 300_000
    repl_timeout_ms: int = 950_400_000
    open_timeout_ms: int = 1_000
    open_batch_max: int = 1_000
    open_txns_max: int = 100_000


@dataclass(frozen=True, kw_only=True, slots=True)
class EventSettings:
    """Rules of notification events."""

    ttl_ms: int = 864_000_000
    message_format: str = "gzip(json-2.0)"
    hooks: tuple[str, ...] = ()
    is_alter_partitions_one_event: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class CompactorSettings:
    """Rules of initiator, worker and cleaner."""

    is_initiator_on: bool = False
    is_cleaner_on: bool = False
    worker_threads: int = 0
    worker_timeout_ms: int = 86_400_000
    check_interval_ms: int = 300_000
    delta_count_threshold: int = 10
    delta_share_threshold: float = 0.1
    aborted_txn_threshold: int = 1_000
    aborted_txn_time_threshold_ms: int = 43_200_000
    failed_compactions_threshold: int = 2
    failed_retry_ms: int = 604_800_000
    verify: str = "keys"
    cleaner_interval_ms: int = 5_000
    cleaner_retention_ms: int = 0
    cleaner_attempts_max: int = 5
    cleaner_retry_retention_ms: int = 300_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchiveSettings:
    """The ChangeManager: whether, where, how long. Paths and URIs as given.

    ``trash`` None: files that were dropped without PURGE stay in the archive. There or here they
    stay ``trash_retain_ms`` longer than others. ``is_elsewhere_allowed``: the archive may lie on
    another file system than the files that it keeps.
    """

    is_enabled: bool = True
    root: str = "cmroot"
    retain_ms: int = 864_000_000
    interval_ms: int = 3_600_000
    trash: str | None = None
    trash_retain_ms: int = 2_592_000_000
    is_elsewhere_allowed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplSettings:
    """Replication. ``external_base`` None: no place for data of external tables is known.

    ``event_batch_size`` None: events are not batched. ``load_roots`` empty: files from anywhere.
    """

    root: str = "repl"
    open_txn_timeout_ms: int = 3_600_000
    is_abort_allowed: bool = False
    external_base: str | None = None
    is_external_metadata_only: bool = True
    is_previous_kept: bool = False
    is_filtered: bool = True
    event_batch_size: int | None = 10_000
    has_checksums: bool = True
    load_roots: tuple[str, ...] = ()
    passed_kinds: frozenset[str] = frozenset(
        {
            "EVENT_DELETE_PART_COL_STAT",
            "EVENT_DELETE_TABLE_COL_STAT",
            "EVENT_UPDATE_PART_COL_STAT",
            "EVENT_UPDATE_TABLE_COL_STAT",
            "RELOAD",
            "UPDATE_PART_COL_STAT_EVENT_BATCH",
        }
    )
    load_schemes: frozenset[str] = frozenset(
        {"abfs", "abfss", "file", "gs", "hdfs", "s3", "s3a", "s3n", "webhdfs"}
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSettings:
    """The thrift server."""

    port: int = 9083
    message_size_bytes_max: int = 104_857_600
    message_elements_max: int = 5_000_000
    container_length_max: int = 1_000_000
    connections_max: int = 1_000
    idle_timeout_ms: int = 60_000


@dataclass(frozen=True, kw_only=True, slots=True)
class MetastorePlace:
    """The metastore that the settings name: servers, and a database; None if they name none."""

    thrift_uris: str | None = None
    connection: JdbcConnection | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """All of them.

    ``external_warehouse`` None: as ``warehouse``. ``deletion_roots``: more directories below which
    files of what is dropped may be deleted. ``known_file_systems``: more to which the metastore
    connects for locations of clients. ``hadoop``: how file systems are reached, and which one bare
    paths are of.
    """

    warehouse: str = "warehouse"
    external_warehouse: str | None = None
    deletion_roots: tuple[str, ...] = ()
    known_file_systems: tuple[str, ...] = ()
    hadoop: HadoopConfig = field(default_factory=HadoopConfig)
    server: ServerSettings = field(default_factory=ServerSettings)
    txn: TxnSettings = field(default_factory=TxnSettings)
    events: EventSettings = field(default_factory=EventSettings)
    compactor: CompactorSettings = field(default_factory=CompactorSettings)
    archive: ArchiveSettings = field(default_factory=ArchiveSettings)
    repl: ReplSettings = field(default_factory=ReplSettings)
    metastore: MetastorePlace = field(default_factory=MetastorePlace)


def refuse_unknown(names: Iterable[str], source: str) -> None:
    """Raises ConfigError, with the nearest name, for a name that is no setting of ours."""
    known = {name for key in KEYS for name in (key.name, *key.aliases)}
    for name in sorted(set(names) - known):
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
        hint = f"did you mean {near[0]}?" if near else "see docs/reference/settings.md"
        raise ConfigError(f"{source}: unknown setting {name}; {hint}")


def settings_from(
    given: Mapping[str, str], source: str = "settings", hadoop_site: Mapping[str, str] | None = None
) -> Settings:
    """Settings from names and texts; ``source`` (a file) stands in every refusal.

    ``hadoop_site`` are the properties of Hadoop's own configuration, before which those of the same
    names in ``given`` go.

    Raises ConfigError for a malformed value or an unknown ``hms.bridge.`` name; other unknown
    names are Hive's own, of which a hive-site.xml has many.
    """
    refuse_unknown((name for name in given if name.startswith("hms.bridge.")), source)
    values = GivenValues(given, source, hadoop_site or {})
    is_archive_enabled = values.flag(keys.CM_ENABLED)
    hadoop = _hadoop(values, hadoop_site or {})
    values.default_fs = hadoop.default_fs
    return Settings(
        warehouse=values.place(keys.WAREHOUSE),
        external_warehouse=values.place(keys.EXTERNAL_WAREHOUSE) or None,
        deletion_roots=values.items(keys.DELETION_ROOTS),
        known_file_systems=values.items(keys.FILE_SYSTEMS),
        hadoop=hadoop,
        server=ServerSettings(
            port=values.number(keys.THRIFT_PORT),
            message_size_bytes_max=values.number(keys.MAX_MESSAGE_SIZE),
            message_elements_max=values.number(keys.MAX_MESSAGE_ELEMENTS),
            container_length_max=values.number(keys.MAX_CONTAINER_LENGTH),
            connections_max=values.number(keys.MAX_CONNECTIONS),
            idle_timeout_ms=values.duration_ms(keys.IDLE_TIMEOUT),
        ),
        txn=TxnSettings(
            timeout_ms=values.duration_ms(keys.TXN_TIMEOUT),
            repl_timeout_ms=values.duration_ms(keys.REPL_TXN_TIMEOUT),
            open_timeout_ms=values.duration_ms(keys.OPEN_TXN_TIMEOUT),
            open_batch_max=values.number(keys.MAX_OPEN_BATCH),
            open_txns_max=values.number(keys.MAX_OPEN_TXNS),
        ),
        events=EventSettings(
            ttl_ms=values.duration_ms(
                keys.REPL_EVENT_TTL if is_archive_enabled else keys.EVENT_TTL
            ),
            message_format=values.text(keys.EVENT_MESSAGE_FORMAT),
            hooks=values.items(keys.EVENT_HOOKS),
            is_alter_partitions_one_event=values.flag(keys.ALTER_PARTITIONS_ONE_EVENT),
        ),
        compactor=_compactor(values),
        archive=ArchiveSettings(
            is_enabled=is_archive_enabled,
            root=values.place(keys.CM_ROOT),
            retain_ms=values.duration_ms(keys.CM_RETAIN),
            interval_ms=values.duration_ms(keys.CM_INTERVAL),
            trash=values.place(keys.CM_TRASH) or None,
            trash_retain_ms=values.duration_ms(keys.CM_TRASH_RETAIN),
            is_elsewhere_allowed=values.flag(keys.CM_ELSEWHERE),
        ),
        repl=_repl(values),
        metastore=_metastore(values),
    )


def _metastore(values: GivenValues) -> MetastorePlace:
    url = values.text(keys.CONNECTION_URL)
    connection = JdbcConnection(
        url=url,
        driver=values.text(keys.CONNECTION_DRIVER),
        user=values.text(keys.CONNECTION_USER),
        password=values.text(keys.CONNECTION_PASSWORD),
    )
    return MetastorePlace(
        thrift_uris=",".join(values.items(keys.METASTORE_URIS)) or None,
        connection=connection if url.strip() else None,
    )


def _verify_mode(values: GivenValues) -> str:
    text = values.text(keys.VERIFY).strip().lower()
    if text not in ("full", "keys", "counts"):
        raise values.refusal(keys.VERIFY, "write full, keys or counts")
    return text


def _hadoop(values: GivenValues, site: Mapping[str, str]) -> HadoopConfig:
    own = values.hadoop()
    client = values.text(keys.HDFS_CLIENT)
    if client not in ("auto", "http"):
        raise values.refusal(keys.HDFS_CLIENT, "write auto or http")
    elsewhere = site.get(DEFAULT_FS, "").rstrip("/")
    if elsewhere and own.get(DEFAULT_FS, elsewhere).rstrip("/") != elsewhere:
        raise ConfigError(
            f"{DEFAULT_FS} is {own[DEFAULT_FS]} in our settings and {elsewhere} in core-site.xml; "
            "bare paths would mean two places: make them equal, or leave one out"
        )
    config = HadoopConfig(
        values={**site, **own},
        user=values.text(keys.HADOOP_USER).strip() or None,
        is_native_allowed=client == "auto",
        web_addresses=values.addresses(keys.WEB_HDFS),
    )
    require_resolved(config.default_fs, DEFAULT_FS)
    if not (config.is_kerberos or config.is_default_local):
        # Said outright: another process, an executor of Spark, is to be the same user.
        config = replace(config, user=values.hadoop_user())
    try:
        config.require_consistent()
    except ChangeManagerConfigError as error:
        raise ConfigError(str(error)) from error
    return config


def _repl(values: GivenValues) -> ReplSettings:
    is_batched = values.flag(keys.REPL_BATCH_EVENTS)
    batch_size = values.number(keys.REPL_BATCH_SIZE)
    return ReplSettings(
        root=values.place(keys.REPL_ROOT),
        open_txn_timeout_ms=values.duration_ms(keys.REPL_OPEN_TXN_TIMEOUT),
        is_abort_allowed=values.flag(keys.REPL_ABORT_WRITERS),
        external_base=values.place(keys.REPL_EXTERNAL_BASE) or None,
        is_external_metadata_only=values.flag(keys.REPL_EXTERNAL_METADATA_ONLY),
        is_previous_kept=values.flag(keys.REPL_KEEP_PREVIOUS),
        is_filtered=values.flag(keys.REPL_FILTER_TXNS),
        event_batch_size=batch_size if is_batched else None,
        has_checksums=values.flag(keys.REPL_CHECKSUMS),
        load_roots=values.places(keys.REPL_LOAD_ROOTS),
        passed_kinds=frozenset(values.items(keys.REPL_PASSED_KINDS)),
        load_schemes=frozenset(values.items(keys.REPL_LOAD_SCHEMES)),
    )


def _compactor(values: GivenValues) -> CompactorSettings:
    is_delayed = values.flag(keys.DELAYED_CLEANUP)
    return CompactorSettings(
        is_initiator_on=values.flag(keys.INITIATOR_ON),
        is_cleaner_on=values.flag(keys.CLEANER_ON),
        worker_threads=values.number(keys.WORKER_THREADS),
        worker_timeout_ms=values.duration_ms(keys.WORKER_TIMEOUT),
        check_interval_ms=values.duration_ms(keys.CHECK_INTERVAL),
        delta_count_threshold=values.number(keys.DELTA_NUM_THRESHOLD),
        delta_share_threshold=values.decimal(keys.DELTA_PCT_THRESHOLD),
        aborted_txn_threshold=values.number(keys.ABORTED_TXN_THRESHOLD),
        aborted_txn_time_threshold_ms=values.duration_ms(keys.ABORTED_TXN_TIME_THRESHOLD),
        failed_compactions_threshold=values.number(keys.FAILED_COMPACTS_THRESHOLD),
        failed_retry_ms=values.duration_ms(keys.FAILED_RETRY_TIME),
        verify=_verify_mode(values),
        cleaner_interval_ms=values.duration_ms(keys.CLEANER_INTERVAL),
        cleaner_retention_ms=values.duration_ms(keys.CLEANER_RETENTION) if is_delayed else 0,
        cleaner_attempts_max=values.number(keys.CLEANER_MAX_ATTEMPTS),
        cleaner_retry_retention_ms=values.duration_ms(keys.CLEANER_RETRY_RETENTION),
    )
