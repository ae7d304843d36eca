"""The settings as frozen records, made once at start. Below ``cli/`` nobody reads a string key."""

from __future__ import annotations

import difflib
import getpass
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from changemanager.errors import ChangeManagerConfigError
from changemanager.hadoop import DEFAULT_FS, HadoopConfig
from changemanager.hadoop import PREFIXES as HADOOP_PREFIXES
from hms_bridge.config import keys
from hms_bridge.config.durations import parse_duration_ms
from hms_bridge.config.hive_site import require_resolved, substitute
from hms_bridge.config.jdbc import JdbcConnection
from hms_bridge.config.keys import KEYS, Key, Kind
from hms_bridge.errors import ConfigError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


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
    cleaner_interval_ms: int = 5_000
    cleaner_retention_ms: int = 0
    cleaner_attempts_max: int = 5
    cleaner_retry_retention_ms: int = 300_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchiveSettings:
    """The ChangeManager: whether, where, how long. Paths and URIs as given.

    ``trash`` None: files that were dropped without PURGE stay. ``is_elsewhere_allowed``: the
    archive may lie on another file system than the files that it keeps.
    """

    is_enabled: bool = True
    root: str = "cmroot"
    retain_ms: int = 864_000_000
    interval_ms: int = 3_600_000
    trash: str | None = None
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
    load_schemes: frozenset[str] = frozenset(
        {"abfs", "abfss", "file", "gs", "hdfs", "s3", "s3a", "s3n", "webhdfs"}
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSettings:
    """The thrift server."""

    port: int = 9083
    message_size_bytes_max: int = 104_857_600


@dataclass(frozen=True, kw_only=True, slots=True)
class MetastorePlace:
    """The metastore that the settings name: servers, and a database; None if they name none."""

    thrift_uris: str | None = None
    connection: JdbcConnection | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """All of them.

    ``external_warehouse`` None: as ``warehouse``. ``hadoop``: how file systems are reached, and
    which one bare paths are of.
    """

    warehouse: str = "warehouse"
    external_warehouse: str | None = None
    hadoop: HadoopConfig = field(default_factory=HadoopConfig)
    server: ServerSettings = field(default_factory=ServerSettings)
    txn: TxnSettings = field(default_factory=TxnSettings)
    events: EventSettings = field(default_factory=EventSettings)
    compactor: CompactorSettings = field(default_factory=CompactorSettings)
    archive: ArchiveSettings = field(default_factory=ArchiveSettings)
    repl: ReplSettings = field(default_factory=ReplSettings)
    metastore: MetastorePlace = field(default_factory=MetastorePlace)


# What Hive takes where nothing is set (MetastoreConf.WAREHOUSE, HiveConf.REPL_CM_ROOT, REPL_DIR).
_HIVE_PLACES = {
    keys.WAREHOUSE.name: "/user/hive/warehouse",
    keys.CM_ROOT.name: "/user/USER/cmroot",
    keys.REPL_ROOT.name: "/user/USER/repl",
}


class _Values:
    """The given values, by key, checked."""

    def __init__(self, given: Mapping[str, str], source: str, site: Mapping[str, str]) -> None:
        self._given = given
        self._known = {**site, **given}
        self._source = source
        self.default_fs = "file:///"
        self._system = {
            "system:user.name": getpass.getuser(),
            "user.name": getpass.getuser(),
            "user": getpass.getuser(),
            **{f"env:{name}": value for name, value in os.environ.items()},
            **{f"env.{name}": value for name, value in os.environ.items()},
        }

    def text(self, key: Key) -> str:
        for name in (key.name, *key.aliases):
            if name in self._given:
                return substitute(self._given[name], self._known, self._system)
        return key.default

    def items(self, key: Key) -> tuple[str, ...]:
        """Of a comma-separated list."""
        return tuple(one.strip() for one in self.text(key).split(",") if one.strip())

    def addresses(self, key: Key) -> Mapping[str, str]:
        """Of a list of ``AUTHORITY=HOST:PORT``."""
        try:
            return parse_addresses(self.text(key))
        except ConfigError as error:
            raise self._refusal(key, str(error)) from error

    def place(self, key: Key) -> str:
        """Of a path or URI; a bare path gets the default file system if that is not this machine.

        A relative path would be in the home directory of a user of it: refused. Our defaults are
        relative, for a trial on one machine; on a cluster they are Hive's.
        """
        text = self.text(key).strip()
        is_given = any(name in self._given for name in (key.name, *key.aliases))
        if not is_given and not self.default_fs.startswith("file:"):
            text = _HIVE_PLACES.get(key.name, text).replace("USER", self.hadoop_user())
        return self._qualified(key, text)

    def hadoop_user(self) -> str:
        """Who HDFS takes us for where it believes names."""
        given = self.text(keys.HADOOP_USER).strip() or os.environ.get("HADOOP_USER_NAME", "")
        return given.strip() or getpass.getuser()

    def places(self, key: Key) -> tuple[str, ...]:
        """Of a list of them."""
        return tuple(self._qualified(key, text) for text in self.items(key))

    def _qualified(self, key: Key, text: str) -> str:
        require_resolved(text, f"{self._source}: {key.name}")
        if not text or self.default_fs.startswith("file:") or _SCHEME.match(text):
            return text
        if not text.startswith("/"):
            raise self._refusal(
                key, f"with fs.defaultFS {self.default_fs}, write a URI or an absolute path"
            )
        return self.default_fs.rstrip("/") + text

    def hadoop(self) -> Mapping[str, str]:
        """Those that are Hadoop's own, with their references replaced."""
        names = [name for name in self._given if name.startswith(HADOOP_PREFIXES)]
        return {name: substitute(self._given[name], self._known, self._system) for name in names}

    def refusal(self, key: Key, advice: str) -> ConfigError:
        """For a value that is well-formed and still wrong."""
        return self._refusal(key, advice)

    def flag(self, key: Key) -> bool:
        text = self.text(key).lower()
        if text not in ("true", "false"):
            raise self._refusal(key, "write true or false")
        return text == "true"

    def number(self, key: Key) -> int:
        try:
            value = int(self.text(key))
        except ValueError:
            raise self._refusal(key, "write a whole number") from None
        return int(self._within(key, value))

    def decimal(self, key: Key) -> float:
        try:
            value = float(self.text(key))
        except ValueError:
            raise self._refusal(key, "write a number") from None
        return self._within(key, value)

    def duration_ms(self, key: Key) -> int:
        try:
            value = parse_duration_ms(self.text(key), key.unit)
        except ConfigError as error:
            raise self._refusal(key, str(error)) from error
        return int(self._within(key, value))

    def _within(self, key: Key, value: float) -> float:
        if key.minimum is not None and value < key.minimum:
            raise self._refusal(key, f"it must be at least {key.minimum:g}{_unit(key)}")
        if key.maximum is not None and value > key.maximum:
            raise self._refusal(key, f"it must be at most {key.maximum:g}{_unit(key)}")
        return value

    def _refusal(self, key: Key, advice: str) -> ConfigError:
        return ConfigError(f"{self._source}: {key.name} is '{self.text(key)}'; {advice}")


def parse_addresses(text: str) -> Mapping[str, str]:
    """Read ``AUTHORITY=HOST:PORT`` pairs, comma-separated. Raises ConfigError."""
    found: dict[str, str] = {}
    for one in (part.strip() for part in text.split(",") if part.strip()):
        name, separator, address = (part.strip() for part in one.partition("="))
        host, _, port = address.rpartition(":")
        if not (separator and name and host and port.isdecimal()) or "/" in one:
            raise ConfigError(f"write AUTHORITY=HOST:PORT, comma-separated, not '{one}'")
        found[name] = address
    return found


def _unit(key: Key) -> str:
    return " ms" if key.kind is Kind.DURATION else ""


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
    v = _Values(given, source, hadoop_site or {})
    is_archive_enabled = v.flag(keys.CM_ENABLED)
    hadoop = _hadoop(v, hadoop_site or {})
    v.default_fs = hadoop.default_fs
    return Settings(
        warehouse=v.place(keys.WAREHOUSE),
        external_warehouse=v.place(keys.EXTERNAL_WAREHOUSE) or None,
        hadoop=hadoop,
        server=ServerSettings(
            port=v.number(keys.THRIFT_PORT),
            message_size_bytes_max=v.number(keys.MAX_MESSAGE_SIZE),
        ),
        txn=TxnSettings(
            timeout_ms=v.duration_ms(keys.TXN_TIMEOUT),
            repl_timeout_ms=v.duration_ms(keys.REPL_TXN_TIMEOUT),
            open_timeout_ms=v.duration_ms(keys.OPEN_TXN_TIMEOUT),
            open_batch_max=v.number(keys.MAX_OPEN_BATCH),
            open_txns_max=v.number(keys.MAX_OPEN_TXNS),
        ),
        events=EventSettings(
            ttl_ms=v.duration_ms(keys.REPL_EVENT_TTL if is_archive_enabled else keys.EVENT_TTL),
            message_format=v.text(keys.EVENT_MESSAGE_FORMAT),
            hooks=v.items(keys.EVENT_HOOKS),
            is_alter_partitions_one_event=v.flag(keys.ALTER_PARTITIONS_ONE_EVENT),
        ),
        compactor=_compactor(v),
        archive=ArchiveSettings(
            is_enabled=is_archive_enabled,
            root=v.place(keys.CM_ROOT),
            retain_ms=v.duration_ms(keys.CM_RETAIN),
            interval_ms=v.duration_ms(keys.CM_INTERVAL),
            trash=v.place(keys.CM_TRASH) or None,
            is_elsewhere_allowed=v.flag(keys.CM_ELSEWHERE),
        ),
        repl=_repl(v),
        metastore=_metastore(v),
    )


def _metastore(v: _Values) -> MetastorePlace:
    url = v.text(keys.CONNECTION_URL)
    connection = JdbcConnection(
        url=url,
        driver=v.text(keys.CONNECTION_DRIVER),
        user=v.text(keys.CONNECTION_USER),
        password=v.text(keys.CONNECTION_PASSWORD),
    )
    return MetastorePlace(
        thrift_uris=",".join(v.items(keys.METASTORE_URIS)) or None,
        connection=connection if url.strip() else None,
    )


def _hadoop(v: _Values, site: Mapping[str, str]) -> HadoopConfig:
    own = v.hadoop()
    client = v.text(keys.HDFS_CLIENT)
    if client not in ("auto", "http"):
        raise v.refusal(keys.HDFS_CLIENT, "write auto or http")
    elsewhere = site.get(DEFAULT_FS, "").rstrip("/")
    if elsewhere and own.get(DEFAULT_FS, elsewhere).rstrip("/") != elsewhere:
        raise ConfigError(
            f"{DEFAULT_FS} is {own[DEFAULT_FS]} in our settings and {elsewhere} in core-site.xml; "
            "bare paths would mean two places: make them equal, or leave one out"
        )
    config = HadoopConfig(
        values={**site, **own},
        user=v.text(keys.HADOOP_USER).strip() or None,
        is_native_allowed=client == "auto",
        web_addresses=v.addresses(keys.WEB_HDFS),
    )
    require_resolved(config.default_fs, DEFAULT_FS)
    if not (config.is_kerberos or config.is_default_local):
        # Said outright: another process, an executor of Spark, is to be the same user.
        config = replace(config, user=v.hadoop_user())
    try:
        config.require_consistent()
    except ChangeManagerConfigError as error:
        raise ConfigError(str(error)) from error
    return config


def _repl(v: _Values) -> ReplSettings:
    is_batched, batch_size = v.flag(keys.REPL_BATCH_EVENTS), v.number(keys.REPL_BATCH_SIZE)
    return ReplSettings(
        root=v.place(keys.REPL_ROOT),
        open_txn_timeout_ms=v.duration_ms(keys.REPL_OPEN_TXN_TIMEOUT),
        is_abort_allowed=v.flag(keys.REPL_ABORT_WRITERS),
        external_base=v.place(keys.REPL_EXTERNAL_BASE) or None,
        is_external_metadata_only=v.flag(keys.REPL_EXTERNAL_METADATA_ONLY),
        is_previous_kept=v.flag(keys.REPL_KEEP_PREVIOUS),
        is_filtered=v.flag(keys.REPL_FILTER_TXNS),
        event_batch_size=batch_size if is_batched else None,
        has_checksums=v.flag(keys.REPL_CHECKSUMS),
        load_roots=v.places(keys.REPL_LOAD_ROOTS),
        load_schemes=frozenset(v.items(keys.REPL_LOAD_SCHEMES)),
    )


def _compactor(v: _Values) -> CompactorSettings:
    is_delayed = v.flag(keys.DELAYED_CLEANUP)
    return CompactorSettings(
        is_initiator_on=v.flag(keys.INITIATOR_ON),
        is_cleaner_on=v.flag(keys.CLEANER_ON),
        worker_threads=v.number(keys.WORKER_THREADS),
        worker_timeout_ms=v.duration_ms(keys.WORKER_TIMEOUT),
        check_interval_ms=v.duration_ms(keys.CHECK_INTERVAL),
        delta_count_threshold=v.number(keys.DELTA_NUM_THRESHOLD),
        delta_share_threshold=v.decimal(keys.DELTA_PCT_THRESHOLD),
        aborted_txn_threshold=v.number(keys.ABORTED_TXN_THRESHOLD),
        aborted_txn_time_threshold_ms=v.duration_ms(keys.ABORTED_TXN_TIME_THRESHOLD),
        failed_compactions_threshold=v.number(keys.FAILED_COMPACTS_THRESHOLD),
        failed_retry_ms=v.duration_ms(keys.FAILED_RETRY_TIME),
        cleaner_interval_ms=v.duration_ms(keys.CLEANER_INTERVAL),
        cleaner_retention_ms=v.duration_ms(keys.CLEANER_RETENTION) if is_delayed else 0,
        cleaner_attempts_max=v.number(keys.CLEANER_MAX_ATTEMPTS),
        cleaner_retry_retention_ms=v.duration_ms(keys.CLEANER_RETRY_RETENTION),
    )
